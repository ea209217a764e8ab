"""Selection of triplets, compared with exhaustive search over all sets."""

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.items.reviews import Review
from contstim.items.stimuli import Triplet, content_id
from contstim.optimization.selection.question import TripletQuestion, TripletSelection, demand
from contstim.optimization.selection.triplets import (
    build_rules,
    by_model_pair,
    quantile_edges,
    quantile_groups,
    quantile_name,
    select_triplets,
    triplet_costs,
    worst_ranks,
)
from contstim.optimization.selection.verification import verify_triplets
from contstim.words.sentence import Sentence
from tests.optimization.selection import triplet_recount as recount

NATURALS = ("Cats sleep.", "Dogs bark 1 1!", "Owls hoot 1 1.", "Cats sleep!", "One dog 1 1.")
TOKENS = {"One cat": 2, "Two cats ran": 4, "Three dogs ran away": 7, "Dogs sleep": 3}
TAGS = Path(__file__).with_name("tags.csv")  # one tag per word
Problem = tuple[list[Triplet], TripletQuestion]
MANY = 2_000
TOKEN_COUNTS = {
    (f"{text} {k} {k}.", model): n
    for text, n in TOKENS.items()
    for model in "abc"
    for k in range(MANY)
}


def make_triplet(
    number: int,
    models: tuple[str, str],
    log_probs: tuple[float, float, float, float],
    texts: tuple[str, str, str],
) -> Triplet:
    natural_1, natural_2, rejected_1, rejected_2 = log_probs
    natural, synthetic_1, synthetic_2 = texts
    return Triplet(
        content_id("triplet", number),
        *models,
        Sentence.parse(natural),
        Sentence.parse(synthetic_1),
        Sentence.parse(synthetic_2),
        log_prob_natural_model_1=natural_1,
        log_prob_natural_model_2=natural_2,
        log_prob_synthetic_1_model_1=rejected_1,
        log_prob_synthetic_1_model_2=natural_2,
        log_prob_synthetic_2_model_1=natural_1,
        log_prob_synthetic_2_model_2=rejected_2,
        controversiality=natural_1 - rejected_1 + natural_2 - rejected_2,
    )


def make_triplets(sizes: tuple[int, ...], seed: int, n_sentences: int = MANY) -> list[Triplet]:
    """Return distinct triplets of the pairs a-b and a-c, with ties, shared naturals and words."""
    rng = np.random.default_rng(seed)
    triplets: list[Triplet] = []
    contents = set[tuple[str, ...]]()
    for models, size in zip((("a", "b"), ("a", "c")), sizes, strict=False):
        while sum((t.model_1, t.model_2) == models for t in triplets) < size:
            log_probs = rng.integers(-8, 0, 4) + 0.1 * rng.integers(0, 3, 4)
            log_probs[2:] -= 8
            texts, numbers = rng.choice(list(TOKENS), 2), rng.integers(n_sentences, size=2)
            first, second = (f"{text} {k} {k}." for text, k in zip(texts, numbers, strict=True))
            a, b, c, d = map(float, log_probs)
            sentences = (str(rng.choice(NATURALS)), first, second)
            if (*models, *sentences) in contents:
                continue
            contents.add((*models, *sentences))
            triplets.append(make_triplet(len(triplets), models, (a, b, c, d), sentences))
    return triplets


@st.composite
def triplet_problems(draw: st.DrawFn) -> Problem:
    sizes = draw(st.sampled_from([(5,), (7,), (4, 4), (5, 5)]))
    quantiles = draw(st.sampled_from([0, 1, 2]))
    readable = st.fixed_dictionaries(
        {"objective": st.just("readable"), "enough": st.sampled_from([None, 0.0, 7.0])}
    )
    by_disagreement = st.sampled_from(["controversiality", "worst-rank"])
    objective = draw(readable | by_disagreement.map(lambda name: {"objective": name}))
    question = TripletQuestion(
        per_pair=draw(st.sampled_from([2, 4] if quantiles == 2 else [1, 2])),
        tags=TAGS if objective["objective"] == "readable" else None,
        quantiles=quantiles,
        natural_once=draw(st.booleans()),
        word_cap=draw(st.sampled_from([None, 2, 3, 6])),
        token_balance=draw(st.sampled_from([None, 0.0, 1.0])),
        counts=draw(st.sampled_from([(), (("a", "b", 0),)])) if len(sizes) > 1 else (),
        **objective,
    )
    n_sentences = draw(st.sampled_from([3, 6, MANY]))
    return make_triplets(sizes, draw(st.integers(0, 10_000)), n_sentences), question


def allowed_sets(triplets: list[Triplet], question: TripletQuestion) -> Iterator[list[Triplet]]:
    """Yield every set that satisfies the rules, by their definitions."""
    choices = [
        [
            part
            for part in combinations(group, count)
            if recount.satisfies_pair_rules(part, group, count, question)
        ]
        for (_, group), count in zip(
            recount.group_by_models(triplets).items(),
            recount.required_counts(triplets, question).values(),
            strict=True,
        )
    ]
    for parts in product(*choices):
        chosen = [t for part in parts for t in part]
        if recount.satisfies_joint_rules(chosen, question, TOKEN_COUNTS):
            yield chosen


@given(triplet_problems())
def test_selections_equal_the_exhaustive_optimum(problem: Problem) -> None:
    triplets, question = problem
    values = recount.set_values(allowed_sets(triplets, question), triplets, question)
    if not values:
        with pytest.raises(InfeasibleError, match="violates"):
            select_triplets(triplets, question, tokens=TOKEN_COUNTS)
        return
    best = max(values) if question.objective == "controversiality" else min(values)
    certificate = select_triplets(triplets, question, tokens=TOKEN_COUNTS).certificate
    assert certificate.objective == pytest.approx(best, abs=1e-6)
    assert certificate.status == "optimal"
    assert certificate.bound == pytest.approx(best, abs=3e-6)


QUESTION = TripletQuestion(per_pair=4, quantiles=2, objective="controversiality")


def select_example(
    *, review: Review | None = None, **rules: Any
) -> tuple[list[Triplet], TripletSelection]:
    triplets = make_triplets((20, 20), seed=3)
    question = replace(QUESTION, **rules)
    return triplets, select_triplets(triplets, question, tokens=TOKEN_COUNTS, review=review)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [((-9.0, -8.5, -8.4, -1.0), (1, 2)), ((-20.0, -8.5, -8.4, -8.3), (0, 3))],
)
def test_controversiality_breaks_ties(losses: tuple[float, ...], expected: tuple[int, int]) -> None:
    """The medians allow only the ranks 1 + 4 and 2 + 3."""
    naturals = [(-1.0, -1.0), (-1.0, -9.0), (-9.0, -1.0), (-9.0, -9.0)]
    texts = [("Cats sleep.", f"{i} {i}.", f"{i} {i} 2.") for i in range(4)]
    triplets = [
        make_triplet(i, ("a", "b"), (*n, n[0] + loss, n[1] + loss), texts[i])
        for i, (n, loss) in enumerate(zip(naturals, losses, strict=True))
    ]
    assert worst_ranks(triplets).tolist() == [1, 2, 3, 4]
    question = TripletQuestion(per_pair=2, quantiles=2, objective="worst-rank")
    selection = select_triplets(triplets, question)
    assert selection.certificate.objective == selection.certificate.bound == 5
    assert selection.triplets == tuple(triplets[i] for i in expected)


def test_nats_beyond_enough_do_not_count() -> None:
    """Witness: by hand; the second and third have enough nats, but the third has misfits."""
    texts = [("Dogs sleep.", "Cats sleep."), ("Cats bark.", "Owls sleep."), ("Sleep cats.", "One.")]
    triplets = [
        make_triplet(i, ("a", "b"), (-9.0, -9.0, -9 - drop, -9 - drop), ("Owls bark.", *synthetics))
        for i, (drop, synthetics) in enumerate(zip((4.9, 5.0, 50.0), texts, strict=True))
    ]
    question = TripletQuestion(per_pair=1, quantiles=0, tags=TAGS)
    selection = select_triplets(triplets, question)
    assert selection.triplets == (triplets[1],)
    assert selection.certificate.question == replace(question, enough=5.0)
    low_selection = select_triplets(triplets, replace(question, enough=0.0))
    assert low_selection.triplets == (triplets[1],), "as many misfits, fewer new words"
    with pytest.raises(
        InfeasibleError, match=r"drops of at least 5 nats under both models: a-b 2 of 3\."
    ):
        select_triplets(triplets, replace(question, per_pair=3))


def test_a_quantile_that_cannot_be_filled_is_named() -> None:
    triplets = [
        make_triplet(i, ("a", "b"), (-1.0 - i, -3.0, -20.0, -20.0), (f"Cats {i}.", "One.", "Two."))
        for i in range(10)
    ]
    with pytest.raises(InfeasibleError, match=r"quartile 2 of p\(n\|b\) for a-b \(1\)"):
        select_triplets(triplets, replace(QUESTION, quantiles=4))


@pytest.mark.parametrize(
    ("texts", "gap"),
    [
        (("Owls hoot.", "One small cat.", "Many dogs sleep."), "one … cat"),
        (("Owls hoot.", "Many dogs sleep.", "One big cat!"), "… big cat"),
        (("One big pig.", "Owls hoot.", "Many dogs sleep."), "one big …"),
    ],
)
def test_too_similar_sentences_are_named(texts: tuple[str, ...], gap: str) -> None:
    """By hand: a synthetic sentence is similar to a sentence of another triplet."""
    all_texts = (("Cats sleep.", "One big cat.", "One big dog."), texts)
    triplets = [
        make_triplet(i, ("a", "b"), (-1.0, -3.0, -20.0, -20.0), sentences)  # type: ignore[arg-type]
        for i, sentences in enumerate(all_texts)
    ]
    question = TripletQuestion(per_pair=2, quantiles=0)
    with pytest.raises(InfeasibleError, match=f"sentences like '{gap}'"):
        select_triplets(triplets, question)
    assert select_triplets(triplets, replace(question, per_pair=1)).triplets
    # Similar natural sentences, or similar sentences within a triplet, are allowed
    log_probs = (-1.0, -3.0, -20.0, -20.0)
    other = make_triplet(1, ("a", "b"), log_probs, ("Cats play.", "Two.", "Two two."))
    pair = triplets[0], other
    assert select_triplets([*pair], question).triplets == pair


def test_a_word_that_occurs_too_often_is_named() -> None:
    with pytest.raises(InfeasibleError, match="word 'c"):
        select_example(word_cap=1, quantiles=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"per_pair": 0}, "No pair of models needs"),
        ({"per_pair": 3}, "cannot be spread evenly over 2 2-quantiles"),
        ({"quantiles": -1}, "`quantiles` must be 0 or more, not -1"),
        ({"word_cap": 0}, "`word_cap` must be 1 or more, not 0"),
        ({"token_balance": -1.0}, "`token_balance` must be 0 or more"),
        ({"token_balance": np.inf}, "must be a finite number"),
        ({"counts": (("b", "a", 2),)}, "not a pair of models in this order"),
        ({"counts": (("a", "b", -2),)}, "must be at least 0, got -2"),
        ({"objective": "readable", "enough": -1.0}, "`enough` must be 0 or more, not -1"),
        ({"enough": 5.0}, "`enough` needs the objective readable, got controversiality"),
    ],
)
def test_unusable_questions_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        select_example(**change)


def test_unusable_triplets_are_refused() -> None:
    triplets = make_triplets((4, 4), seed=0)
    first = triplets[0]
    for bad_triplets, message in (
        ([], "no triplets"),
        ([first, first], "occurs twice"),
        ([*triplets, replace(first, triplet_id="t")], "t occurs twice"),
        ([*triplets, replace(first, triplet_id="t", model_1="b", model_2="a")], "same order"),
        ([replace(first, log_prob_natural_model_1=-np.inf)], "not finite"),
        ([replace(first, controversiality=0.0)], "not belong together"),
        ([replace(first, controversiality=first.controversiality + 0.01)], "do not belong"),
        ([replace(first, controversiality=float("nan"))], "not belong together"),
    ):
        with pytest.raises(InputError, match=message):
            select_triplets(bad_triplets, QUESTION)
    with pytest.raises(InputError, match=r"'.*' under a, which is missing"):
        select_triplets(triplets, replace(QUESTION, token_balance=1.0))


def test_rounded_controversialities_are_recomputed() -> None:
    """Witness: Eq. 4 with the stored log-probabilities of each selected triplet."""
    columns = [field.name for field in fields(Triplet) if field.name.startswith("log_prob")]

    def round_to_float32(t: Triplet) -> Triplet:
        values: dict[str, Any] = {c: float(np.float32(1.7 * getattr(t, c) - 60)) for c in columns}
        return replace(t, **values)

    rounded = [round_to_float32(t) for t in make_triplets((6, 6), seed=1)]

    def with_error(t: Triplet, error: float) -> Triplet:
        exact = t.log_prob_natural_model_1 - t.log_prob_synthetic_1_model_1
        exact += t.log_prob_natural_model_2 - t.log_prob_synthetic_2_model_2
        return replace(t, controversiality=exact + error)

    inexact = [with_error(t, (-1) ** n * 6e-5) for n, t in enumerate(rounded)]
    question = replace(QUESTION, objective="controversiality")
    selection = select_triplets(inexact, question)
    chosen = selection.triplets
    assert chosen == select_triplets([with_error(t, 0) for t in rounded], question).triplets
    for t in chosen:
        expected = with_error(t, 0).controversiality
        assert t.controversiality == pytest.approx(expected, abs=1e-12)
    verify_triplets(inexact, selection)
    forged = replace(selection, triplets=(with_error(chosen[0], 1), *chosen[1:]))
    with pytest.raises(VerificationError, match="is not among the candidates, or has changed"):
        verify_triplets(inexact, forged)


VALUES = st.one_of(st.floats(-99, 0), st.sampled_from([-9.0, -8.5, -8.0, -7.25]))


@given(triplet_problems(), st.integers(0, 2**16))
def test_rules_equal_independent_rules(problem: Problem, bits: int) -> None:
    """Any set, optimal or not, satisfies the rules of both implementations or of neither."""
    triplets, question = problem
    chosen = [index for index in range(len(triplets)) if bits >> index & 1]
    counts = demand(question, by_model_pair(triplets))
    satisfied = all(
        r.lower
        <= sum(w for m, w in zip(r.members, r.weights, strict=True) if m in chosen)
        <= r.upper
        for r in build_rules(triplets, question, counts, TOKEN_COUNTS)
    )
    assert satisfied == recount.satisfies_rules(
        [triplets[index] for index in chosen], triplets, question, TOKEN_COUNTS
    )
    assert worst_ranks(triplets).tolist() == recount.ranks(triplets).tolist()
    product_costs, *_ = triplet_costs(triplets, question, sum(counts.values()))
    assert product_costs == pytest.approx(recount.costs(triplets, question), abs=1e-9)


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(1, 12))
def test_quantile_groups_equal_those_of_pandas(values: list[float], n: int) -> None:
    """If edges coincide, pandas drops some; then each value's group still ends at the same edge."""
    edges = quantile_edges(np.array(values), n)
    groups = quantile_groups(np.array(values), edges)
    witness, bins = pd.qcut(values, n, labels=False, retbins=True, duplicates="drop")
    if len(bins) == n + 1:
        assert groups.tolist() == witness.tolist()
    else:
        above_min = np.array(values) > min(values)  # the others are in the first group
        expected = bins[witness[above_min].astype(int) + 1]
        assert edges[groups + 1][above_min].tolist() == expected.tolist()
        assert set(groups[~above_min]) == {0}


@pytest.mark.parametrize("size", [10, 11, 100, 101, 997])
def test_values_on_edges_belong_to_the_lower_group_as_in_pandas(size: int) -> None:
    values = np.arange(size) / 7
    for n in range(1, 21):
        groups = quantile_groups(values, quantile_edges(values, n))
        assert groups.tolist() == pd.qcut(values, n, labels=False).tolist()


def test_quantiles_have_names() -> None:
    assert [quantile_name(n) for n in (4, 7, 10)] == ["quartile", "7-quantile", "decile"]


def test_judges_break_ties_between_equal_sets() -> None:
    """Witness: all pairs of six triplets that differ only in the judges' drops."""
    triplets = make_triplets((6,), seed=1)
    drops = zip(triplets, [3.0, 0.5, 2.0, -1.0, 2.5, 0.0], strict=True)
    judged = [replace(t, judge_drop_1=drop, judge_drop_2=1.0) for t, drop in drops]
    question = TripletQuestion(per_pair=2, quantiles=0, enough=0.1)
    selection = select_triplets(judged, question).triplets
    costs = {
        t.triplet_id: (recount.count_misfits(t), len(recount.new_words(t)), t.judge_drop_1 or 0.0)
        for t in judged
    }
    sums = {
        pair: tuple(map(sum, zip(*(costs[t.triplet_id] for t in pair), strict=True)))
        for pair in combinations(judged, 2)
        if all(min(t.drops) >= 0.1 for t in pair)
    }
    assert {*selection} == {*min(sums, key=sums.__getitem__)}
