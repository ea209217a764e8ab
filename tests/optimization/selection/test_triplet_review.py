"""Triplets after a review, against exhaustive search over every set that keeps the rules."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError
from contstim.experiments.design.building import triplet_trials
from contstim.items.reviews import Decision, Review, ReviewedItem, undecided_items
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import select_triplets
from tests.examples import examples
from tests.optimization.selection.tables import reviewed
from tests.optimization.selection.test_triplets import (
    COUNTED,
    QUESTION,
    allowed_sets,
    selected,
    small_questions,
    some_triplets,
)
from tests.optimization.selection.triplet_recount import values_of


@settings(max_examples=examples(12))
@given(small_questions(), st.integers(0, 255))
def test_the_best_of_largest_sets(asked: tuple[list[Triplet], TripletQuestion], drawn: int) -> None:
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
    review = reviewed(before.triplets, rejected, Decision.NONE)
    sets = [
        some
        for some in allowed_sets(triplets, question)
        if not rejected & {t.triplet_id for t in some}
    ]
    if not sets:
        with pytest.raises(InfeasibleError, match="violates"):
            select_triplets(triplets, question, tokens=COUNTED, review=review)
        return
    most = max(len(stay & {t.triplet_id for t in some}) for some in sets)
    largest = (some for some in sets if len(stay & {t.triplet_id for t in some}) == most)
    values = values_of(largest, triplets, question)
    best = max(values) if question.objective == "controversiality" else min(values)
    after = select_triplets(triplets, question, tokens=COUNTED, review=review)
    certificate = after.certificate
    assert len(stay & {t.triplet_id for t in after.triplets}) == most
    assert certificate.objective == pytest.approx(best, abs=1e-6)
    assert certificate.bound == pytest.approx(best, abs=3e-6)
    assert certificate.status == "optimal"
    lost = stay - {t.triplet_id for t in after.triplets}
    assert {item.item_id for item in after.changed} == lost
    assert all(item.rule for item in after.changed)


def test_a_review_of_trials_is_one_of_their_triplets() -> None:
    before = selected()[1]
    trials = [
        replace(t, group=1) for each in before.triplets for t in triplet_trials(each, twins=True)
    ]
    rejected = before.triplets[2].triplet_id
    items = undecided_items(trials, "Ann")
    place = next(i for i, item in enumerate(items) if item.source_id == rejected)
    items = (*items[:place], replace(items[place], decision=Decision.REJECT), *items[place + 1 :])
    by_trials = selected(review=Review(items))[1]
    by_triplets = selected(review=reviewed(before.triplets, {rejected}, Decision.NONE))[1]
    assert by_trials.certificate.objective == by_triplets.certificate.objective
    names = [{t.triplet_id for t in s.triplets} for s in (before, by_trials, by_triplets)]
    assert names[0] - names[1] == names[0] - names[2] == {rejected}


def test_three_rounds_change_what_was_rejected_only() -> None:
    """Each round rejects one triplet of the current set; its reviewer keeps it a round later."""
    triplets = some_triplets((80, 80), seed=3)
    current = select_triplets(triplets, QUESTION)
    rows: list[ReviewedItem] = []
    first_rows: list[int] = []
    gone = set[str]()
    for number in range(3):
        rejected = current.triplets[2 * number].triplet_id
        gone.add(rejected)
        first_rows.append(len(rows))
        rows += reviewed(current.triplets, {rejected}, Decision.NONE).decisions
        after = select_triplets(triplets, QUESTION, review=Review(tuple(rows), tuple(first_rows)))
        names = {t.triplet_id for t in after.triplets}
        assert {t.triplet_id for t in current.triplets} - {rejected} <= names
        assert not gone & names
        assert not after.changed
        current = after


@pytest.mark.parametrize(
    ("number", "rules", "key"),
    [
        (4, {"quantiles": 2, "per_pair": 2}, "quantiles"),
        (4, {"per_pair": 2}, "per_pair"),
        (4, {"objective": "readable", "enough": 9.0, "per_pair": 4}, "enough"),
        (2, {"natural_once": True}, "natural_once"),
        (4, {"word_cap": 13}, "word_cap"),
        (4, {"token_balance": 0.25}, "token_balance"),
    ],
)
def test_changes_name_the_rule_and_its_key(number: int, rules: dict[str, Any], key: str) -> None:
    """Witness: by hand; each question forbids some of the kept triplets."""
    question: dict[str, Any] = {"quantiles": 0, "per_pair": number}
    before = selected(**question)[1]
    after = selected(review=reviewed(before.triplets, set(), Decision.NONE), **(question | rules))[
        1
    ]
    lost = {t.triplet_id for t in before.triplets} - {t.triplet_id for t in after.triplets}
    assert {item.item_id for item in after.changed} == lost != set()
    assert key in {item.key for item in after.changed}


def test_triplets_that_are_gone_are_named() -> None:
    triplets, before = selected()
    left = [t for t in triplets if t.triplet_id != before.triplets[0].triplet_id]
    after = select_triplets(left, QUESTION, review=reviewed(before.triplets, set(), Decision.NONE))
    assert before.triplets[0].triplet_id in {item.item_id for item in after.changed}
