"""Natural pairs after a review, and of one length, against exhaustive search by definition."""

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
    choose,
    fractional,
    least_sum,
    random_table,
    recount,
    reviewed,
)


def value(table: ScoreTable, pair: Pair) -> float:
    ranks = fractional(table.log_probs)
    one, two = table.models.index(pair.model_1), table.models.index(pair.model_2)
    return float(ranks[one, pair.row_1] + ranks[two, pair.row_2])


@st.composite
def rejections(draw: st.DrawFn) -> tuple[ScoreTable, int, int, int, list[int]]:
    """Scores, pairs before and after, which pairs are rejected, and sentences that are excluded."""
    n_models, per_pair, most = draw(st.sampled_from([(2, 2, 11), (2, 3, 11), (3, 1, 11)]))
    table = random_table(most, n_models, seed=draw(st.integers(0, 1000)))
    after = draw(st.integers(1, 3)) if n_models == 2 else 1
    excluded = draw(st.lists(st.integers(0, most - 1), max_size=2))
    return table, per_pair, after, draw(st.integers(0, 7)), excluded


@settings(max_examples=examples(25))
@given(rejections())
def test_after_rejections_all_others_stay_and_the_rest_is_the_best(
    case: tuple[ScoreTable, int, int, int, list[int]],
) -> None:
    """Witness: of every set that keeps as many pairs as any can, the least sum of ranks."""
    table, per_pair, after, drawn, excluded_rows = case
    assert table.sentences is not None
    try:
        before = choose(table, per_pair=per_pair)
    except InfeasibleError:
        return
    rejected = {p.trial_id for k, p in enumerate(before.pairs) if drawn >> k & 1}
    banned = set(excluded_rows)
    excluded = [table.sentences[row] for row in banned]
    stay: dict[tuple[str, str], list[Pair]] = {m: [] for m in combinations(table.models, 2)}
    for pair in before.pairs:
        if pair.trial_id in rejected:
            banned |= {pair.row_1, pair.row_2}
        elif not banned & {pair.row_1, pair.row_2}:
            stay[pair.model_1, pair.model_2].append(pair)
    # Of the sets of pairs that stay, that of the least sum; all that is left serves the rest.
    kept = [
        p for some in stay.values() for p in sorted(some, key=lambda p: value(table, p))[:after]
    ]

    def rest(kept: Collection[Pair]) -> float:
        rows = {row for pair in kept for row in (pair.row_1, pair.row_2)}
        stands = Counter(frozenset((p.model_1, p.model_2)) for p in kept)
        counts = {
            (r, a): after - stands[frozenset((table.models[r], table.models[a]))]
            for r, a in permutations(range(len(table.models)), 2)
        }
        free = set(range(len(table.log_probs))) - banned - rows
        return least_sum(fractional(table.log_probs), counts, free)

    review = reviewed(before.pairs, rejected)
    # Of all subsets that can stay, the largest
    able = [
        some
        for n in range(len(kept), -1, -1)
        for some in combinations(kept, n)
        if rest(some) < np.inf
    ]
    if not able:
        with pytest.raises(InfeasibleError, match=r"needs|lacks"):
            choose(table, per_pair=after, review=review, excluded=excluded)
        return
    selection = choose(table, per_pair=after, review=review, excluded=excluded)
    named = {pair.trial_id for pair in selection.pairs}
    stayed = [p for some in stay.values() for p in some if p.trial_id in named]
    assert len(stayed) == len(able[0])
    best = min(
        rest(some) + sum(value(table, pair) for pair in some)
        for some in combinations([p for some in stay.values() for p in some], len(stayed))
        if all(sum((p.model_1, p.model_2) == models for p in some) <= after for models in stay)
    )
    assert selection.certificate.objective == pytest.approx(best, abs=1e-9)
    recount(table, selection, excluded)
    assert not banned & {row for p in selection.pairs for row in (p.row_1, p.row_2)}
    lost = {p.trial_id for p in before.pairs} - rejected - named
    assert {item.item_id for item in selection.changed} == lost
    assert all(item.rule for item in selection.changed)


def test_a_pair_that_is_no_longer_what_is_asked_for_goes() -> None:
    """New sentences may move a sentence below the median of the model that must accept it."""
    table = random_table()
    assert table.sentences is not None
    before = choose(table, per_pair=4)
    more = [Sentence.parse(f"New sentence number {n}") for n in range(60)]
    larger = ScoreTable(
        (*table.sentences, *more),
        table.models,
        np.concatenate([table.log_probs, table.log_probs[::-1] + np.eye(3)[0]]),
    )
    ranks = fractional(larger.log_probs)
    stay = {
        p.trial_id
        for p in before.pairs
        if ranks[table.models.index(p.model_2), p.row_1] >= 0.5
        and ranks[table.models.index(p.model_1), p.row_2] >= 0.5
        and ranks[table.models.index(p.model_1), p.row_1] < 0.5
        and ranks[table.models.index(p.model_2), p.row_2] < 0.5
    }
    assert len(stay) < len(before.pairs)
    after = choose(larger, per_pair=4, review=reviewed(before.pairs, set()))
    assert stay <= {p.trial_id for p in after.pairs}
    assert {item.item_id for item in after.changed} == {p.trial_id for p in before.pairs} - stay


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
    table = of_lengths(900, [5, 6], 3, 0)
    assert table.sentences is not None
    texts = [replace(s, words=(*s.words[:-1], s.words[0])) for s in table.sentences[::3]]
    sentences = [texts[k // 3] if not k % 3 else s for k, s in enumerate(table.sentences)]
    table = replace(table, sentences=tuple(sentences))
    ranks = fractional(table.log_probs)
    # Kept pairs by hand: all that a rule allows, of two lengths and with repetitions
    before = choose(table, per_pair=3, agreeing=True)
    if key == "agreeing":
        odd = next(r for r in range(900) if ranks[:2, r].min() > 0.6)
        first = before.pairs[0]
        pair = replace(first, sentence_1=sentences[odd], row_1=odd, trial_id="pair-odd")
        before = replace(before, pairs=(pair, *before.pairs[1:]))
    excluded = [sentences[p.row_1] for p in before.pairs[:1]] if question.get("excluded") else []
    models, rows = question.get("models", table.models), question.get("rows", 900)
    columns = [table.models.index(model) for model in models]
    smaller = ScoreTable(tuple(sentences[:rows]), models, table.log_probs[:rows, columns])
    rules = {
        name: question[name] for name in question if name not in {"excluded", "models", "rows"}
    }
    after = choose(
        smaller, review=reviewed(before.pairs, set()), excluded=excluded, **{"per_pair": 3, **rules}
    )
    lost = {p.trial_id for p in before.pairs} - {p.trial_id for p in after.pairs}
    assert {item.item_id for item in after.changed} == lost != set()
    assert key in {item.key for item in after.changed}
    assert all(item.item_id in str(item) and item.key in str(item) for item in after.changed)


def test_reviews_need_texts() -> None:
    table = random_table()
    before = choose(table, per_pair=2)
    nameless = ScoreTable(None, table.models, table.log_probs)
    with pytest.raises(InputError, match="'sentence'"):
        choose(nameless, per_pair=2, review=reviewed(before.pairs, set()))


def test_sentences_of_trials_that_stay_are_avoided_if_possible() -> None:
    """Witness: by hand. The new pair's best sentences are shown by a random pair that stays."""
    table = random_table()
    before = choose(table, per_pair=4)
    rejected = before.pairs[0]
    review = reviewed(before.pairs, {rejected.trial_id})
    free = choose(table, per_pair=4, review=review)
    (new,) = {p.trial_id: p for p in free.pairs}.keys() - {p.trial_id for p in before.pairs}
    pair = next(p for p in free.pairs if p.trial_id == new)
    assert pair.sentence_1 is not None
    assert pair.sentence_2 is not None
    texts = (pair.sentence_1, pair.sentence_2)
    trial = Trial(
        *("trial-x", 1, Condition.RANDOM_NATURAL, "", "", *texts, Kind.NATURAL, Kind.NATURAL, "")
    )
    shown = Review((*review.decisions, *undecided_items([trial])))
    after = choose(table, per_pair=4, review=shown)
    assert not {s for p in after.pairs for s in (p.sentence_1, p.sentence_2)} & {*texts}
    # If there are no others, they are used
    free_of_others = [
        s
        for s in table.sentences or ()
        if s not in {s for p in free.pairs for s in (p.sentence_1, p.sentence_2)}
    ]
    again = choose(table, per_pair=4, review=shown, excluded=free_of_others)
    assert again.pairs == free.pairs


def of_lengths(n: int, lengths: list[int], n_models: int, seed: int) -> ScoreTable:
    """Sentences of given numbers of words, the longer the less likely under every model."""
    rng = np.random.default_rng(seed)
    words = [lengths[k % len(lengths)] for k in range(n)]
    texts = [Sentence(tuple(f"w{k}x{i}" for i in range(w))) for k, w in enumerate(words)]
    shared = -10.0 * np.array(words)[:, None] + rng.normal(size=(n, 1))
    scores = np.round(shared + 2 * rng.normal(size=(n, n_models)), 1)
    return ScoreTable(tuple(texts), tuple("abc"[:n_models]), scores)


@settings(max_examples=examples(25))
@given(st.sampled_from([[2, 3], [2, 2, 3], [2, 3, 4]]), st.integers(1, 3), st.integers(0, 1000))
def test_each_length_is_the_best_of_its_own(lengths: list[int], per_pair: int, seed: int) -> None:
    """Witness: exhaustive search inside each length, with ranks among that length alone."""
    table = of_lengths(18, lengths, 2, seed)
    assert table.sentences is not None
    words = np.array([len(sentence) for sentence in table.sentences])
    shares = length_shares(per_pair, {int(w): int((words == w).sum()) for w in set(words)})
    expected = 0.0
    for length, share in shares.items():
        log_probs = table.log_probs[words == length]
        counts = dict.fromkeys([(0, 1), (1, 0)], share)
        expected += least_sum(fractional(log_probs), counts, set(range(len(log_probs))))
    if expected == np.inf:
        with pytest.raises(InfeasibleError, match=r"sentences of \d words"):
            choose(table, per_pair=per_pair, same_length=True)
        return
    chosen = choose(table, per_pair=per_pair, same_length=True)
    assert chosen.certificate.objective == pytest.approx(expected, abs=1e-9)
    assert chosen.certificate.bound == chosen.certificate.objective
    sizes: Counter[int] = Counter()
    for pair in chosen.pairs:
        assert pair.sentence_1 is not None
        assert pair.sentence_2 is not None
        assert len(pair.sentence_1) == len(pair.sentence_2)
        sizes[len(pair.sentence_1)] += 1
    assert sizes == Counter(shares)


@given(st.integers(0, 40), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_shares_are_within_one_of_proportion(count: int, numbers: list[int]) -> None:
    sizes = dict(enumerate(numbers, start=4))
    shares = length_shares(count, sizes)
    assert sum(shares.values()) == count
    for words, share in shares.items():
        assert abs(share - count * sizes[words] / sum(numbers)) < 1


def test_a_table_of_one_length_is_selected_as_ever() -> None:
    table = of_lengths(60, [5], 3, 0)
    plain, same = (choose(table, per_pair=4, same_length=s) for s in (False, True))
    assert plain.pairs == same.pairs
    for name in ("objective", "bound", "candidates"):
        assert getattr(plain.certificate, name) == getattr(same.certificate, name)


def test_same_lengths_and_reviews_go_together() -> None:
    table = of_lengths(120, [5, 6, 6], 3, 1)
    before = choose(table, per_pair=6, same_length=True)
    rejected = {pair.trial_id for pair in before.pairs[::5]}
    after = choose(table, per_pair=6, same_length=True, review=reviewed(before.pairs, rejected))
    kept = {pair.trial_id for pair in before.pairs} - rejected
    assert kept <= {pair.trial_id for pair in after.pairs}
    assert not after.changed
