"""Triplets after a review, against exhaustive search over every set that keeps the rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError
from contstim.experiments.design.building import triplet_trials
from contstim.items.reviews import Decision, Review, undecided
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import select_triplets
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.experiments.stimuli import some_triplets
from tests.optimization.selection.test_triplets import (
    COUNTED,
    allowed_sets,
    selected,
    small_questions,
    value_of,
)


def likely(triplet: Triplet, first: float, second: float) -> Triplet:
    """The triplet with other log-probabilities of its natural sentence; drops are as long."""
    return replace(
        triplet,
        log_prob_natural_model_1=first,
        log_prob_natural_model_2=second,
        log_prob_synthetic_1_model_1=first - 20,
        log_prob_synthetic_2_model_2=second - 20,
    )


def reviewed(triplets: tuple[Triplet, ...], rejected: set[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.NONE)
            for item in undecided(triplets, "Ann")
        )
    )


@settings(max_examples=examples(25))
@given(small_questions(), st.integers(0, 255))
def test_as_many_stay_as_in_any_set_and_of_these_the_best_is_chosen(
    asked: tuple[list[Triplet], TripletQuestion], drawn: int
) -> None:
    """Witness: every set that keeps the rules and holds no rejected triplet."""
    triplets, question = asked
    try:
        before = select_triplets(triplets, question, tokens=COUNTED)
    except InfeasibleError:
        return
    if not before.triplets:
        return
    names = [triplet.triplet_id for triplet in before.triplets]
    rejected = {name for k, name in enumerate(names) if drawn >> k & 1}
    stay = set(names) - rejected
    review = reviewed(before.triplets, rejected)
    sets = [
        some
        for some in allowed_sets(triplets, question)
        if not rejected & {t.triplet_id for t in some}
    ]
    if not sets:
        with pytest.raises(InfeasibleError, match=r"lacks \d of \d.*contstim triplets --review"):
            select_triplets(triplets, question, tokens=COUNTED, review=review)
        return
    most = max(len(stay & {t.triplet_id for t in some}) for some in sets)
    values = [
        value_of(triplets, some, question)
        for some in sets
        if len(stay & {t.triplet_id for t in some}) == most
    ]
    best = max(values) if question.objective == "controversiality" else min(values)
    after = select_triplets(triplets, question, tokens=COUNTED, review=review)
    certificate = after.certificate
    assert certificate.kept == certificate.kept_bound == most <= certificate.kept_price_bound
    assert len(stay & {t.triplet_id for t in after.triplets}) == most
    assert certificate.objective == pytest.approx(best, abs=1e-6)
    assert certificate.bound == pytest.approx(best, abs=3e-6)
    assert certificate.status == "optimal"
    assert (certificate.reviewed, certificate.rejected) == (len(names), len(rejected))


def test_nothing_rejected_changes_nothing() -> None:
    before = selected()[1]
    after = selected(review=reviewed(before.triplets, set()))[1]
    assert after.triplets == before.triplets
    assert after.certificate.objective == before.certificate.objective


def test_a_review_of_trials_is_one_of_their_triplets() -> None:
    before = selected()[1]
    trials = [
        replace(t, group=1) for each in before.triplets for t in triplet_trials(each, twins=True)
    ]
    rejected = before.triplets[2].triplet_id
    items = undecided(trials, "Ann")
    place = next(i for i, item in enumerate(items) if item.source_id == rejected)
    items = (
        *items[:place],
        replace(items[place], decision=Decision.REJECT),
        *items[place + 1 :],
    )
    by_trials = selected(review=Review(items))[1]
    by_triplets = selected(review=reviewed(before.triplets, {rejected}))[1]
    assert by_trials.triplets == by_triplets.triplets
    assert by_trials.certificate.kept == by_triplets.certificate.kept


def test_what_each_model_pair_lacks_is_said() -> None:
    triplets, _ = selected()
    question = TripletQuestion(per_pair=19, quantiles=0, objective="controversiality")
    before = select_triplets(triplets, question)
    rejected = {t.triplet_id for t in before.triplets if t.model_2 == "b"} - {
        before.triplets[0].triplet_id
    }
    with pytest.raises(InfeasibleError, match=r"a-b lacks 17 of 19\. 'contstim triplets --rev"):
        select_triplets(triplets, question, review=reviewed(before.triplets, rejected))


def test_reviews_of_something_else_are_refused() -> None:
    before = selected()[1]
    other = replace(before.triplets[0], triplet_id="triplet-x")
    changed = replace(before.triplets[0], natural=Sentence.parse("Pigs fly."))
    trials = [replace(t, group=1) for t in triplet_trials(other, twins=True)]
    for items, message in (
        ((), "holds no triplets"),
        (undecided([other]), "another set: 1 of 1 reviewed triplets are not in the triplets given"),
        (undecided([changed]), "has changed since the review"),
        (undecided(trials), "trials of other triplets: 1 of 1"),
    ):
        with pytest.raises(InputError, match=message):
            selected(review=Review(items))


def test_quantiles_stay_where_other_triplets_come_in_the_place_of_rejected_ones() -> None:
    """Witness: pandas' quantiles of the triplets that stood before."""
    rng = np.random.default_rng(0)
    triplets = [
        likely(triplet, *rng.normal(-20, 4, 2)) for triplet in some_triplets(60, ("a", "b"))
    ]
    question = TripletQuestion(per_pair=6, quantiles=3, objective="controversiality")
    before = select_triplets(triplets, question)
    edges = before.certificate.edges
    of_model = {model: each for _, _, model, each in edges}
    for number in (1, 2):
        values = [getattr(t, f"log_prob_natural_model_{number}") for t in triplets]
        _, expected = pd.qcut(values, 3, retbins=True)
        assert of_model["ab"[number - 1]] == pytest.approx(expected)
    gone = before.triplets[0]
    review = reviewed((gone,), {gone.triplet_id})
    stood = Review((*review.decisions, *undecided(before.triplets[1:])))
    # A search found others, so unlikely that all quantiles move
    new = [
        likely(
            replace(
                t, triplet_id=f"{t.triplet_id}-new", natural=Sentence((*t.natural.words, "so"))
            ),
            *rng.normal(-40, 4, 2),
        )
        for t in triplets[:30]
    ]
    others = [*(t for t in triplets if t is not gone), *new]
    moved = select_triplets(others, question, review=stood)
    after = select_triplets(others, replace(question, edges=edges), review=stood)
    assert moved.certificate.kept < after.certificate.kept == 5
    assert after.certificate.edges == before.certificate.edges
    assert moved.certificate.against
    assert not after.certificate.against
