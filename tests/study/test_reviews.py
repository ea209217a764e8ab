"""Reviews in a study: only what showed a rejected item changes, from one round to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.stimuli import Condition, Trial, read_trials
from tests.study.small import change, review_with, run


def trials_of(folder: Path) -> list[Trial]:
    return list(read_trials(folder / "results" / "trials.csv"))


def reject(folder: Path, condition: Condition, rounds: int) -> Trial:
    """Write a review of all trials that rejects one, name it in the study, and return the trial."""
    trials = trials_of(folder)
    rejected = next(trial for trial in trials if trial.condition is condition)
    rows = (
        replace(item, decision=Decision("reject" if item.item_id == rejected.trial_id else ""))
        for item in undecided_items(trials, "Ann")
    )
    write_review(folder / f"{rounds}.csv", rows)
    review_with(folder, [f"{number}.csv" for number in range(1, rounds + 1)])
    return rejected


@pytest.mark.parametrize(
    "conditions",
    [
        (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL),
        pytest.param(
            (Condition.SYNTHETIC_SYNTHETIC, Condition.NATURAL_CONTROVERSIAL, Condition.CATCH),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_only_what_showed_a_rejected_item_changes(
    study: Path, conditions: tuple[Condition, ...]
) -> None:
    """Witness: the tables before and after, trial by trial, over two and three rounds."""
    # Enough to choose from besides those whose sentences stand in random and catch trials
    change(study, ("per_pair = 4", "per_pair = 6"), ("min_count = 4", "min_count = 1"))
    run(study, last="design")
    for number, condition in enumerate(conditions, start=1):
        before, rejected = trials_of(study), reject(study, condition, number)
        gone = {rejected.trial_id, rejected.source_id} - {""}
        run(study, last="design")
        after = trials_of(study)
        assert len(after) == len(before)
        assert {t for t in before if not gone & {t.trial_id, t.source_id}} <= {*after}
        assert not gone & {name for t in after for name in (t.trial_id, t.source_id)}
        # Again, nothing changes any more
        run(study, first="design", last="design")
        assert trials_of(study) == after
