"""Natural pairs after a review, and pairs of equal length.

Witness: exhaustive search by definition.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError
from contstim.items.reviews import Review, undecided_items
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Pair, Trial
from contstim.optimization.selection.natural import length_shares
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.optimization.selection.tables import (
    check_selection,
    choose,
    find_least_sum,
    fractional_ranks,
    make_review,
    random_table,
)


def pair_value(table: ScoreTable, pair: Pair) -> float:
    ranks = fractional_ranks(table.log_probs)
    model_1, model_2 = table.models.index(pair.model_1), table.models.index(pair.model_2)
    return float(ranks[model_1, pair.row_1] + ranks[model_2, pair.row_2])


@st.composite
def review_cases(draw: st.DrawFn) -> tuple[ScoreTable, int, int, int, list[int]]:
    """Draw scores, pairs before and after, bits of rejected pairs, and excluded sentences."""
    n_models, per_pair, n_sentences = draw(st.sampled_from([(2, 2, 11), (2, 3, 11), (3, 1, 11)]))
    table = random_table(n_sentences, n_models, seed=draw(st.integers(0, 1000)))
    new_per_pair = draw(st.integers(1, 3)) if n_models == 2 else 1
    excluded = draw(st.lists(st.integers(0, n_sentences - 1), max_size=2))
    return table, per_pair, new_per_pair, draw(st.integers(0, 7)), excluded


@settings(max_examples=examples(25))
@given(review_cases())
def test_reviewed_selections_equal_the_exhaustive_optimum(
    case: tuple[ScoreTable, int, int, int, list[int]],
) -> None:
    """Witness: the least sum of ranks among sets that keep the maximum number of pairs."""
    table, per_pair, new_per_pair, bits, excluded_rows = case
    assert table.sentences is not None
    try:
        old = choose(table, per_pair=per_pair)
    except InfeasibleError:
        return
    rejected = {p.trial_id for k, p in enumerate(old.pairs) if bits >> k & 1}
    unusable = set(excluded_rows)
    excluded = [table.sentences[row] for row in unusable]
    by_models: dict[tuple[str, str], list[Pair]] = {m: [] for m in combinations(table.models, 2)}
    for pair in old.pairs:
        if pair.trial_id in rejected:
            unusable |= {pair.row_1, pair.row_2}
        elif not unusable & {pair.row_1, pair.row_2}:
            by_models[pair.model_1, pair.model_2].append(pair)
    # Keep the pairs with the least values; all other sentences may complete the selection
    candidates = [
        p
        for subset in by_models.values()
        for p in sorted(subset, key=lambda p: pair_value(table, p))[:new_per_pair]
    ]

    def find_rest_sum(candidates: Collection[Pair]) -> float:
        rows = {row for pair in candidates for row in (pair.row_1, pair.row_2)}
        kept_counts = Counter(frozenset((p.model_1, p.model_2)) for p in candidates)
        counts = {
            (r, a): new_per_pair - kept_counts[frozenset((table.models[r], table.models[a]))]
            for r, a in permutations(range(len(table.models)), 2)
        }
        unused = set(range(len(table.log_probs))) - unusable - rows
        return find_least_sum(fractional_ranks(table.log_probs), counts, unused)

    review = make_review(old.pairs, rejected)
    # Subsets that can be completed, the largest first
    feasible_subsets = [
        subset
        for n in range(len(candidates), -1, -1)
        for subset in combinations(candidates, n)
        if find_rest_sum(subset) < np.inf
    ]
    if not feasible_subsets:
        with pytest.raises(InfeasibleError, match=r"needs|lacks"):
            choose(table, per_pair=new_per_pair, review=review, excluded=excluded)
        return
    selection = choose(table, per_pair=new_per_pair, review=review, excluded=excluded)
    selected_ids = {pair.trial_id for pair in selection.pairs}
    kept_pairs = [p for subset in by_models.values() for p in subset if p.trial_id in selected_ids]
    assert len(kept_pairs) == len(feasible_subsets[0])
    all_pairs = [p for subset in by_models.values() for p in subset]
    best = min(
        find_rest_sum(subset) + sum(pair_value(table, pair) for pair in subset)
        for subset in combinations(all_pairs, len(kept_pairs))
        if all(
            sum((p.model_1, p.model_2) == models for p in subset) <= new_per_pair
            for models in by_models
        )
    )
    assert selection.certificate.objective == pytest.approx(best, abs=1e-9)
    check_selection(table, selection, excluded)
    assert not unusable & {row for p in selection.pairs for row in (p.row_1, p.row_2)}
    removed = {p.trial_id for p in old.pairs} - rejected - selected_ids
    assert {item.item_id for item in selection.changed} == removed
    assert all(item.rule for item in selection.changed)


def test_pairs_that_become_inadmissible_are_removed() -> None:
    """New sentences may move a sentence below the median of the model that must accept it."""
    table = random_table()
    assert table.sentences is not None
    old = choose(table, per_pair=4)
    new_sentences = [Sentence.parse(f"New sentence number {n}") for n in range(60)]
    larger = ScoreTable(
        (*table.sentences, *new_sentences),
        table.models,
        np.concatenate([table.log_probs, table.log_probs[::-1] + np.eye(3)[0]]),
    )
    ranks = fractional_ranks(larger.log_probs)
    admissible_ids = {
        p.trial_id
        for p in old.pairs
        if ranks[table.models.index(p.model_2), p.row_1] >= 0.5
        and ranks[table.models.index(p.model_1), p.row_2] >= 0.5
        and ranks[table.models.index(p.model_1), p.row_1] < 0.5
        and ranks[table.models.index(p.model_2), p.row_2] < 0.5
    }
    assert len(admissible_ids) < len(old.pairs)
    later = choose(larger, per_pair=4, review=make_review(old.pairs, set()))
    assert admissible_ids <= {p.trial_id for p in later.pairs}
    assert {item.item_id for item in later.changed} == {
        p.trial_id for p in old.pairs
    } - admissible_ids


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ({"per_pair": 1}, "per_pair"),
        ({"counts": (("a", "b", 0),)}, "per_pair"),
        ({"excluded": [0]}, "exclude"),
        ({"no_repeats": True, "repeatable": frozenset()}, "no_repeats"),
        ({"same_length": True}, "same_length"),
        ({"agreeing": False}, "agreeing"),
        ({"models": ("a", "c")}, ""),
        ({"rows": 700}, ""),
    ],
)
def test_changes_name_the_rule_and_its_key(question: dict[str, Any], key: str) -> None:
    """Witness: by hand; each change of the question forbids some of the kept pairs."""
    table = make_table_of_lengths(900, [5, 6], 3, 0)
    assert table.sentences is not None
    texts = [replace(s, words=(*s.words[:-1], s.words[0])) for s in table.sentences[::3]]
    sentences = [texts[k // 3] if not k % 3 else s for k, s in enumerate(table.sentences)]
    table = replace(table, sentences=tuple(sentences))
    ranks = fractional_ranks(table.log_probs)
    # The kept pairs have two lengths and repetitions, which some of the rules forbid
    old = choose(table, per_pair=3, agreeing=True)
    if key == "agreeing":
        agreeing_row = next(r for r in range(900) if ranks[:2, r].min() > 0.6)
        first = old.pairs[0]
        pair = replace(
            first, sentence_1=sentences[agreeing_row], row_1=agreeing_row, trial_id="pair-odd"
        )
        old = replace(old, pairs=(pair, *old.pairs[1:]))
    excluded = [sentences[p.row_1] for p in old.pairs[:1]] if question.get("excluded") else []
    models, rows = question.get("models", table.models), question.get("rows", 900)
    columns = [table.models.index(model) for model in models]
    smaller = ScoreTable(tuple(sentences[:rows]), models, table.log_probs[:rows, columns])
    other_names = {"excluded", "models", "rows"}
    rules = {name: question[name] for name in question if name not in other_names}
    later = choose(
        smaller,
        review=make_review(old.pairs, set()),
        excluded=excluded,
        **{"per_pair": 3, **rules},
    )
    removed = {p.trial_id for p in old.pairs} - {p.trial_id for p in later.pairs}
    assert {item.item_id for item in later.changed} == removed != set()
    assert key in {item.key for item in later.changed}
    assert all(item.item_id in str(item) and item.key in str(item) for item in later.changed)


def test_reviews_need_texts() -> None:
    table = random_table()
    selection = choose(table, per_pair=2)
    table_without_texts = ScoreTable(None, table.models, table.log_probs)
    with pytest.raises(InputError, match="'sentence'"):
        choose(table_without_texts, per_pair=2, review=make_review(selection.pairs, set()))


def test_sentences_of_kept_trials_are_avoided_if_possible() -> None:
    """Witness: by hand. A kept random trial contains the best sentences for the new pair."""
    table = random_table()
    old = choose(table, per_pair=4)
    rejected = old.pairs[0]
    review = make_review(old.pairs, {rejected.trial_id})
    free = choose(table, per_pair=4, review=review)
    (new_id,) = {p.trial_id: p for p in free.pairs}.keys() - {p.trial_id for p in old.pairs}
    pair = next(p for p in free.pairs if p.trial_id == new_id)
    assert pair.sentence_1 is not None
    assert pair.sentence_2 is not None
    texts = (pair.sentence_1, pair.sentence_2)
    trial = Trial(
        *("trial-x", 1, Condition.RANDOM_NATURAL, "", "", *texts, Kind.NATURAL, Kind.NATURAL, "")
    )
    extended_review = Review((*review.decisions, *undecided_items([trial])))
    later = choose(table, per_pair=4, review=extended_review)
    assert not {s for p in later.pairs for s in (p.sentence_1, p.sentence_2)} & {*texts}
    # Without other sentences, they are used
    other_sentences = [
        s
        for s in table.sentences or ()
        if s not in {s for p in free.pairs for s in (p.sentence_1, p.sentence_2)}
    ]
    forced = choose(table, per_pair=4, review=extended_review, excluded=other_sentences)
    assert forced.pairs == free.pairs


def make_table_of_lengths(n: int, lengths: list[int], n_models: int, seed: int) -> ScoreTable:
    """Return sentences with these numbers of words; longer ones are less likely for every model."""
    rng = np.random.default_rng(seed)
    words = [lengths[k % len(lengths)] for k in range(n)]
    texts = [Sentence(tuple(f"w{k}x{i}" for i in range(w))) for k, w in enumerate(words)]
    shared = -10.0 * np.array(words)[:, None] + rng.normal(size=(n, 1))
    scores = np.round(shared + 2 * rng.normal(size=(n, n_models)), 1)
    return ScoreTable(tuple(texts), tuple("abc"[:n_models]), scores)


@settings(max_examples=examples(25))
@given(st.sampled_from([[2, 3], [2, 2, 3], [2, 3, 4]]), st.integers(1, 3), st.integers(0, 1000))
def test_selections_per_length_equal_the_exhaustive_optimum(
    lengths: list[int], per_pair: int, seed: int
) -> None:
    """Witness: exhaustive search within each length, with ranks within that length."""
    table = make_table_of_lengths(18, lengths, 2, seed)
    assert table.sentences is not None
    words = np.array([len(sentence) for sentence in table.sentences])
    shares = length_shares(per_pair, {int(w): int((words == w).sum()) for w in set(words)})
    expected = 0.0
    for length, share in shares.items():
        log_probs = table.log_probs[words == length]
        counts = dict.fromkeys([(0, 1), (1, 0)], share)
        expected += find_least_sum(fractional_ranks(log_probs), counts, set(range(len(log_probs))))
    if expected == np.inf:
        with pytest.raises(InfeasibleError, match=r"sentences of \d words"):
            choose(table, per_pair=per_pair, same_length=True)
        return
    selection = choose(table, per_pair=per_pair, same_length=True)
    assert selection.certificate.objective == pytest.approx(expected, abs=1e-9)
    assert selection.certificate.bound == selection.certificate.objective
    sizes: Counter[int] = Counter()
    for pair in selection.pairs:
        assert pair.sentence_1 is not None
        assert pair.sentence_2 is not None
        assert len(pair.sentence_1) == len(pair.sentence_2)
        sizes[len(pair.sentence_1)] += 1
    assert sizes == Counter(shares)


@given(st.integers(0, 40), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_shares_of_lengths_are_proportional_within_one(count: int, numbers: list[int]) -> None:
    sizes = dict(enumerate(numbers, start=4))
    shares = length_shares(count, sizes)
    assert sum(shares.values()) == count
    for words, share in shares.items():
        assert abs(share - count * sizes[words] / sum(numbers)) < 1


def test_same_length_has_no_effect_on_a_single_length() -> None:
    table = make_table_of_lengths(60, [5], 3, 0)
    plain, with_same_length = (choose(table, per_pair=4, same_length=s) for s in (False, True))
    assert plain.pairs == with_same_length.pairs
    for name in ("objective", "bound", "candidates"):
        assert getattr(plain.certificate, name) == getattr(with_same_length.certificate, name)


def test_reviews_work_with_same_length() -> None:
    table = make_table_of_lengths(120, [5, 6, 6], 3, 1)
    old = choose(table, per_pair=6, same_length=True)
    rejected = {pair.trial_id for pair in old.pairs[::5]}
    later = choose(table, per_pair=6, same_length=True, review=make_review(old.pairs, rejected))
    kept_ids = {pair.trial_id for pair in old.pairs} - rejected
    assert kept_ids <= {pair.trial_id for pair in later.pairs}
    assert not later.changed
