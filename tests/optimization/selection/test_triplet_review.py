"""Triplets after a review, compared with exhaustive search over all sets that satisfy the rules."""

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
from tests.optimization.selection.tables import make_review
from tests.optimization.selection.test_triplets import (
    QUESTION,
    TOKEN_COUNTS,
    allowed_sets,
    make_triplets,
    select_example,
    triplet_problems,
)
from tests.optimization.selection.triplet_recount import set_values


@settings(max_examples=examples(12))
@given(triplet_problems(), st.integers(0, 255))
def test_reviewed_selections_equal_the_exhaustive_optimum(
    problem: tuple[list[Triplet], TripletQuestion], bits: int
) -> None:
    """Witness: every set that satisfies the rules and contains no rejected triplet."""
    triplets, question = problem
    try:
        old = select_triplets(triplets, question, tokens=TOKEN_COUNTS)
    except InfeasibleError:
        return
    if not old.triplets:
        return
    names = [triplet.triplet_id for triplet in old.triplets]
    rejected = {name for k, name in enumerate(names) if bits >> k & 1}
    kept_names = set(names) - rejected
    review = make_review(old.triplets, rejected, Decision.NONE)
    sets = [
        candidate
        for candidate in allowed_sets(triplets, question)
        if not rejected & {t.triplet_id for t in candidate}
    ]
    if not sets:
        with pytest.raises(InfeasibleError, match="violates"):
            select_triplets(triplets, question, tokens=TOKEN_COUNTS, review=review)
        return
    n_kept = max(len(kept_names & {t.triplet_id for t in candidate}) for candidate in sets)
    largest = (
        candidate
        for candidate in sets
        if len(kept_names & {t.triplet_id for t in candidate}) == n_kept
    )
    values = set_values(largest, triplets, question)
    best = max(values) if question.objective == "controversiality" else min(values)
    new = select_triplets(triplets, question, tokens=TOKEN_COUNTS, review=review)
    certificate = new.certificate
    assert len(kept_names & {t.triplet_id for t in new.triplets}) == n_kept
    assert certificate.objective == pytest.approx(best, abs=1e-6)
    assert certificate.bound == pytest.approx(best, abs=3e-6)
    assert certificate.status == "optimal"
    removed = kept_names - {t.triplet_id for t in new.triplets}
    assert {item.item_id for item in new.changed} == removed
    assert all(item.rule for item in new.changed)


def test_a_review_of_trials_applies_to_their_triplets() -> None:
    selection = select_example()[1]
    trials = [
        replace(t, group=1)
        for triplet in selection.triplets
        for t in triplet_trials(triplet, twins=True)
    ]
    rejected = selection.triplets[2].triplet_id
    items = undecided_items(trials, "Ann")
    index = next(i for i, item in enumerate(items) if item.source_id == rejected)
    items = (*items[:index], replace(items[index], decision=Decision.REJECT), *items[index + 1 :])
    by_trials = select_example(review=Review(items))[1]
    by_triplets = select_example(review=make_review(selection.triplets, {rejected}, Decision.NONE))[
        1
    ]
    assert by_trials.certificate.objective == by_triplets.certificate.objective
    names = [{t.triplet_id for t in s.triplets} for s in (selection, by_trials, by_triplets)]
    assert names[0] - names[1] == names[0] - names[2] == {rejected}


def test_three_rounds_change_only_rejected_triplets() -> None:
    """Each round rejects one triplet of the current set; the next round's review keeps it."""
    triplets = make_triplets((80, 80), seed=3)
    current = select_triplets(triplets, QUESTION)
    rows: list[ReviewedItem] = []
    first_rows: list[int] = []
    all_rejected = set[str]()
    for number in range(3):
        rejected = current.triplets[2 * number].triplet_id
        all_rejected.add(rejected)
        first_rows.append(len(rows))
        rows += make_review(current.triplets, {rejected}, Decision.NONE).decisions
        new = select_triplets(triplets, QUESTION, review=Review(tuple(rows), tuple(first_rows)))
        names = {t.triplet_id for t in new.triplets}
        assert {t.triplet_id for t in current.triplets} - {rejected} <= names
        assert not all_rejected & names
        assert not new.changed
        current = new


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
    old = select_example(**question)[1]
    new = select_example(
        review=make_review(old.triplets, set(), Decision.NONE), **(question | rules)
    )[1]
    removed = {t.triplet_id for t in old.triplets} - {t.triplet_id for t in new.triplets}
    assert {item.item_id for item in new.changed} == removed != set()
    assert key in {item.key for item in new.changed}


def test_removed_triplets_are_named() -> None:
    triplets, old = select_example()
    remaining = [t for t in triplets if t.triplet_id != old.triplets[0].triplet_id]
    new = select_triplets(
        remaining, QUESTION, review=make_review(old.triplets, set(), Decision.NONE)
    )
    assert old.triplets[0].triplet_id in {item.item_id for item in new.changed}
