"""Natural pairs after a review, and of one length, against exhaustive search by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from contstim.errors import InfeasibleError, InputError, ScoreError, VerificationError
from contstim.items.reviews import Decision, Review, undecided
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Pair, Trial
from contstim.optimization.selection.question import NaturalCertificate, NaturalSelection
from contstim.optimization.selection.strata import length_shares
from contstim.optimization.selection.verification import verify_natural
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.optimization.selection.tables import choose, random_table, recount

Counts = Mapping[tuple[str, str], int]


def least_sum(ranks: np.ndarray, counts: Mapping[tuple[int, int], int], usable: set[int]) -> float:
    """The least sum of fractional ranks by trying every set; infinite where there is none.

    Args:
        ranks: (n_models, n_sentences), fractional.
        counts: sentences for each (reject, accept).
        usable: sentences that may be chosen.
    """
    sources = [source for source, count in counts.items() if count]

    def least(k: int, free: frozenset[int]) -> float:
        if k == len(sources):
            return 0.0
        reject, accept = sources[k]
        admitted = [s for s in free if ranks[accept, s] >= 0.5 > ranks[reject, s]]
        return min(
            (
                float(ranks[reject, list(some)].sum()) + least(k + 1, free - set(some))
                for some in combinations(admitted, counts[sources[k]])
            ),
            default=np.inf,
        )

    return least(0, frozenset(usable))


def fractional(log_probs: np.ndarray) -> np.ndarray:
    """(n_models, n_sentences)."""
    return np.stack([rankdata(column) for column in log_probs.T]) / len(log_probs)


def reviewed(selection: NaturalSelection, rejected: set[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in undecided(selection.pairs, "Ann")
        )
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


@settings(max_examples=examples(50))
@given(rejections())
def test_after_any_rejections_all_others_stay_and_the_rest_is_the_best(
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

    witness = rest(kept)
    review = reviewed(before, rejected)
    if witness == np.inf:
        # As few others change as can: of all subsets that can stay, the largest
        able = [
            some
            for n in range(len(kept) - 1, -1, -1)
            for some in combinations(kept, n)
            if rest(some) < np.inf
        ]
        if able:
            fewest = choose(table, per_pair=after, review=review, excluded=excluded)
            stayed = [p for p in kept if p.trial_id in {q.trial_id for q in fewest.pairs}]
            assert fewest.certificate.kept == fewest.certificate.kept_bound == len(able[0])
            assert len(stayed) == len(able[0])
            best = rest(stayed) + sum(value(table, pair) for pair in stayed)
            assert fewest.certificate.objective == pytest.approx(best, abs=1e-9)
            assert fewest.certificate.against
            return
        with pytest.raises(InfeasibleError, match=r"needs|lacks"):
            choose(table, per_pair=after, review=review, excluded=excluded)
        return
    after_all = choose(table, per_pair=after, review=review, excluded=excluded)
    certificate = after_all.certificate
    expected = witness + sum(value(table, pair) for pair in kept)
    assert certificate.objective == pytest.approx(expected, abs=1e-9)
    recount(table, after_all, excluded)
    assert certificate.kept == certificate.kept_bound == len(kept)
    assert certificate.rejected == len(rejected)
    # Of pairs of equal sums, either may stay.
    named = {p.trial_id for some in stay.values() for p in some}
    assert len(named & {p.trial_id for p in after_all.pairs}) == len(kept)
    assert not banned & {row for p in after_all.pairs for row in (p.row_1, p.row_2)}


def test_nothing_rejected_changes_nothing() -> None:
    table = random_table()
    before = choose(table, per_pair=4)
    after = choose(table, per_pair=4, review=reviewed(before, set()))
    assert after.pairs == before.pairs
    assert after.certificate.objective == before.certificate.objective
    assert after.certificate.kept == 12


def test_two_rounds_of_reviews_keep_what_was_rejected_in_the_first_away() -> None:
    table = random_table()
    first = choose(table, per_pair=4)
    one = reviewed(first, {first.pairs[0].trial_id})
    second = choose(table, per_pair=4, review=one)
    new = next(p for p in second.pairs if p.trial_id not in {q.trial_id for q in first.pairs})
    both = Review((*one.decisions, *reviewed(second, {new.trial_id}).decisions))
    third = choose(table, per_pair=4, review=both)
    assert third.certificate.kept == 11
    gone = {s for p in (first.pairs[0], new) for s in (p.sentence_1, p.sentence_2)}
    assert not gone & {s for p in third.pairs for s in (p.sentence_1, p.sentence_2)}


def test_a_review_of_trials_is_one_of_their_pairs() -> None:
    table = random_table()
    before = choose(table, per_pair=4)
    trials = [
        Trial(
            p.trial_id,
            1,
            Condition.NATURAL_CONTROVERSIAL,
            *(p.model_1, p.model_2, p.sentence_1, p.sentence_2),  # type: ignore[arg-type]
            *(Kind.NATURAL, Kind.NATURAL, p.trial_id),
        )
        for p in before.pairs
    ]
    rejected = {before.pairs[3].trial_id}
    items = [
        replace(i, decision=Decision("reject" if i.item_id in rejected else ""))
        for i in undecided(trials, "Ann")
    ]
    by_trials = choose(table, per_pair=4, review=Review(tuple(items)))
    by_pairs = choose(table, per_pair=4, review=reviewed(before, rejected))
    assert by_trials.pairs == by_pairs.pairs
    # Both together, as after a review of either
    both = Review((*items, *reviewed(before, rejected).decisions))
    assert choose(table, per_pair=4, review=both).pairs == by_pairs.pairs


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
    after = choose(larger, per_pair=4, review=reviewed(before, set()))
    assert after.certificate.kept == len(stay)
    assert stay <= {p.trial_id for p in after.pairs}


def test_what_lacks_beside_the_pairs_that_stay_is_counted() -> None:
    table = random_table(12, 2, seed=4)
    before = choose(table, per_pair=4, agreeing=True)
    rejected = {pair.trial_id for pair in before.pairs[:2]}
    with pytest.raises(InfeasibleError, match="beside the 2 reviewed pairs that stay") as caught:
        choose(table, per_pair=4, agreeing=True, review=reviewed(before, rejected))
    assert "model-0 against model-1" in str(caught.value)


def test_reviews_of_something_else_are_refused() -> None:
    table = random_table()
    before = choose(table, per_pair=2)
    review = reviewed(before, {before.pairs[0].trial_id})
    turned = ScoreTable(table.sentences, table.models[::-1], table.log_probs[:, ::-1])
    nameless = ScoreTable(None, table.models, table.log_probs)
    assert table.sentences is not None
    few = ScoreTable(table.sentences[:20], table.models, table.log_probs[:20])
    other = undecided([replace(before.pairs[1], trial_id="pair-x")], "Bea")
    for given_table, given_review, error, message in (
        (turned, review, InputError, "do not compare in this order"),
        (nameless, review, InputError, "names pairs by their sentences"),
        (few, review, ScoreError, "The scores lack"),
        (table, Review((*review.decisions, *other)), InputError, "stand in two reviewed pairs"),
        (table, Review(()), InputError, "holds no natural pairs"),
    ):
        with pytest.raises(error, match=message):
            choose(given_table, per_pair=2, review=given_review)


def of_lengths(n: int, lengths: list[int], n_models: int, seed: int) -> ScoreTable:
    """Sentences of given numbers of words, the longer the less likely under every model."""
    rng = np.random.default_rng(seed)
    words = [lengths[k % len(lengths)] for k in range(n)]
    texts = [Sentence(tuple(f"w{k}x{i}" for i in range(w))) for k, w in enumerate(words)]
    shared = -10.0 * np.array(words)[:, None] + rng.normal(size=(n, 1))
    scores = np.round(shared + 2 * rng.normal(size=(n, n_models)), 1)
    return ScoreTable(tuple(texts), tuple("abc"[:n_models]), scores)


@settings(max_examples=examples(50))
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
    ((_, *stratum),) = plain.certificate.strata
    assert same.certificate.strata == ((5, *stratum),)


def test_same_lengths_and_reviews_go_together(tmp_path: Path) -> None:
    table = of_lengths(120, [5, 6, 6], 3, 1)
    before = choose(table, per_pair=6, same_length=True)
    rejected = {pair.trial_id for pair in before.pairs[::5]}
    review = reviewed(before, rejected)
    after = choose(table, per_pair=6, same_length=True, review=review)
    assert after.certificate.kept == len(before.pairs) - len(rejected)
    after.certificate.save(tmp_path / "c.json")
    again = replace(after, certificate=NaturalCertificate.load(tmp_path / "c.json"))
    verify_natural(table, again, review=review)
    prices = after.certificate.prices
    changed = ((*prices[0][:3], prices[0][3] + 9), *prices[1:])
    forged = replace(after, certificate=replace(after.certificate, prices=changed))
    with pytest.raises(VerificationError, match="its strata are"):
        verify_natural(table, forged, review=review)


def test_new_pairs_show_no_sentence_of_another_trial() -> None:
    """Witness: the best of all sets without the sentences of trials that stay."""
    table = random_table(24, 2, seed=5)
    assert table.sentences is not None
    before = choose(table, per_pair=2)
    review = reviewed(before, {before.pairs[0].trial_id})
    unbound = choose(table, per_pair=2, review=review)
    (new,) = {p.trial_id: p for p in unbound.pairs}.keys() - {p.trial_id for p in before.pairs}
    pair = next(p for p in unbound.pairs if p.trial_id == new)
    # A random pair of the sentences that would be the best
    random = Trial(
        "trial-random",
        1,
        Condition.RANDOM_NATURAL,
        *("", "", pair.sentence_1, pair.sentence_2),  # type: ignore[arg-type]
        *(Kind.NATURAL, Kind.NATURAL, ""),
    )
    both = Review((*review.decisions, *undecided([random])))
    after = choose(table, per_pair=2, review=both)
    kept = [p for p in before.pairs if p.trial_id != before.pairs[0].trial_id]
    out = {row for p in (*before.pairs, pair) for row in (p.row_1, p.row_2)}
    counts = {(0, 1): 1, (1, 0): 1}
    best = least_sum(fractional(table.log_probs), counts, set(range(24)) - out)
    assert after.certificate.objective == pytest.approx(best + sum(value(table, p) for p in kept))
    assert after.certificate.objective > unbound.certificate.objective
    assert not after.certificate.shared
    # Where nothing else is left, a sentence of the trial serves, and the certificate says so
    few = [row for row in range(24) if row not in out]
    excluded = [table.sentences[row] for row in few]
    shared = choose(table, per_pair=2, review=both, excluded=excluded)
    assert shared.certificate.shared
    assert {new} == {p.trial_id for p in shared.pairs} - {p.trial_id for p in before.pairs}
    claimed = replace(shared, certificate=replace(shared.certificate, shared=False))
    with pytest.raises(VerificationError, match="rejected or other items are chosen again"):
        verify_natural(table, claimed, review=both, excluded=excluded)


def test_where_a_pair_cannot_be_replaced_alone_as_few_others_change_as_can() -> None:
    """Witness: every subset of the pairs that may stay, the largest first, with the best rest."""
    table = random_table(30, 3, seed=5)
    assert table.sentences is not None
    ranks = fractional(table.log_probs)
    before = choose(table, per_pair=1)
    of_pairs = {row for pair in before.pairs for row in (pair.row_1, pair.row_2)}
    others = [row for row in range(30) if row not in of_pairs]
    rng, changed = np.random.default_rng(0), 0
    for number in range(30):
        rejected = before.pairs[number % 3]
        left_out = set(rng.permutation(others)[: int(rng.integers(10, 22))].tolist())
        free = set(range(30)) - left_out - {rejected.row_1, rejected.row_2}
        stay = [pair for pair in before.pairs if pair != rejected]
        able: dict[tuple[str, ...], float] = {}
        for kept in (stay, stay[:1], stay[1:], []):
            taken = {row for pair in kept for row in (pair.row_1, pair.row_2)}
            met = [{p.model_1, p.model_2} for p in kept]
            counts = {
                (r, a): int({table.models[r], table.models[a]} not in met)
                for r, a in permutations(range(3), 2)
            }
            total = least_sum(ranks, counts, free - taken) + sum(value(table, p) for p in kept)
            if total < np.inf:
                able[tuple(p.trial_id for p in kept)] = total
        review = reviewed(before, {rejected.trial_id})
        excluded = [table.sentences[row] for row in left_out]
        if not able:
            with pytest.raises(InfeasibleError):
                choose(table, per_pair=1, review=review, excluded=excluded)
            continue
        after = choose(table, per_pair=1, review=review, excluded=excluded)
        certificate = after.certificate
        now = {pair.trial_id for pair in after.pairs}
        stayed = tuple(pair.trial_id for pair in stay if pair.trial_id in now)
        assert len(stayed) == max(map(len, able))
        assert certificate.kept == certificate.kept_bound == len(stayed)
        assert certificate.objective == pytest.approx(able[stayed])
        assert bool(certificate.against) == (len(stayed) < len(stay))
        changed += bool(certificate.against)
    assert changed
