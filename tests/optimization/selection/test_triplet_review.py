"""Triplets after a review, compared with exhaustive search over all sets that satisfy the rules."""

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError
from contstim.experiments.design.building import triplet_trials
from contstim.items.reviews import Decision, Review, ReviewedItem, undecided_items
from contstim.optimization.selection.triplets import select_triplets
from tests.examples import examples
from tests.optimization.selection.tables import make_review
from tests.optimization.selection.test_triplets import (
    QUESTION,
    TOKEN_COUNTS,
    Problem,
    allowed_sets,
    make_triplets,
    select_example,
    triplet_problems,
)
from tests.optimization.selection.triplet_recount import set_values


@settings(max_examples=examples(12))
@given(triplet_problems(), st.integers(0, 255))
def test_reviewed_selections_equal_the_exhaustive_optimum(problem: Problem, bits: int) -> None:
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
    all_sets = ((s, {t.triplet_id for t in s}) for s in allowed_sets(triplets, question))
    sets = [(len(kept_names & ids), s) for s, ids in all_sets if not rejected & ids]
    if not sets:
        with pytest.raises(InfeasibleError, match="violates"):
            select_triplets(triplets, question, tokens=TOKEN_COUNTS, review=review)
        return
    n_kept = max(n for n, _ in sets)
    values = set_values((s for n, s in sets if n == n_kept), triplets, question)
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
    trials = (triplet_trials(triplet, twins=True) for triplet in selection.triplets)
    trials_of_group = [replace(trial, group=1) for trial in chain(*trials)]
    rejected = selection.triplets[2].triplet_id
    items = undecided_items(trials_of_group, "Ann")
    index = next(i for i, item in enumerate(items) if item.source_id == rejected)
    items = (*items[:index], replace(items[index], decision=Decision.REJECT), *items[index + 1 :])
    by_trials = select_example(review=Review(items))[1]
    review = make_review(selection.triplets, {rejected}, Decision.NONE)
    by_triplets = select_example(review=review)[1]
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
    review = make_review(old.triplets, set(), Decision.NONE)
    new = select_example(review=review, **(question | rules))[1]
    removed = {t.triplet_id for t in old.triplets} - {t.triplet_id for t in new.triplets}
    assert {item.item_id for item in new.changed} == removed != set()
    assert key in {item.key for item in new.changed}


def test_removed_triplets_are_named() -> None:
    triplets, old = select_example()
    remaining = [t for t in triplets if t.triplet_id != old.triplets[0].triplet_id]
    review = make_review(old.triplets, set(), Decision.NONE)
    new = select_triplets(remaining, QUESTION, review=review)
    assert old.triplets[0].triplet_id in {item.item_id for item in new.changed}
