"""Reviews in a study: only what showed a rejected item changes, from one round to the next."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from contstim.items.reviews import Decision, undecided, write_review
from contstim.items.stimuli import Trial, read_pairs, read_stimulus_table, read_trials
from tests.study.small import change, run


def reject(folder: Path, table: str, row: int, rounds: int) -> set[str]:
    """Write a review of one row alone, name it in the study, and return the sentences rejected."""
    stimulus = read_stimulus_table(folder / "results" / f"{table}.csv")[row]
    (item,) = undecided([stimulus], "Ann")
    write_review(folder / f"{rounds}.csv", [replace(item, decision=Decision.REJECT)])
    names = ", ".join(f'"{number}.csv"' for number in range(1, rounds + 1))
    before = names.rpartition(", ")[0]
    old = f"decisions = [{before}]" if before else "rare = 3.0"
    change(folder, (old, f"decisions = [{names}]"))
    return {sentence.text for sentence in item.sentences}


def trials_of(folder: Path) -> list[Trial]:
    return list(read_trials(folder / "results" / "trials.csv"))


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param([("selected", 0), ("selected", 0)], marks=pytest.mark.slow),
        [("pairs", 1), ("trials", 0)],
    ],
)
def test_only_what_showed_a_rejected_item_changes(
    study: Path, rounds: list[tuple[str, int]]
) -> None:
    """Witness: the tables before and after, row by row."""
    # Enough to choose from besides those whose sentences stand in random and catch trials
    change(study, ("per_pair = 4", "per_pair = 6"), ("min_count = 4", "min_count = 1"))
    run(study, last="design")
    rounds_of_reviews(study, rounds)


def rounds_of_reviews(study: Path, rounds: list[tuple[str, int]]) -> None:
    for number, (table, row) in enumerate(rounds, start=1):
        path = study / "results" / f"{table}.csv"
        items, before = list(read_stimulus_table(path)), trials_of(study)
        gone = reject(study, table, row, number)
        names = {getattr(items[row], of, "") for of in ("triplet_id", "source_id", "trial_id")}
        showed = [bool({t.source_id, t.trial_id} & (names - {""})) for t in before]
        run(study, last="design")
        after = trials_of(study)
        assert len(after) == len(before)
        for old, new, was_rejected in zip(before, after, showed, strict=True):
            assert (old != new) == was_rejected
            # In its own place
            assert (new.group, new.condition, new.model_1, new.model_2, new.kind_2) == (
                (old.group, old.condition, old.model_1, old.model_2, old.kind_2)
            )
            if was_rejected:
                assert not gone & {new.sentence_1.text, new.sentence_2.text}
        chosen = list(read_stimulus_table(path))
        assert [a == b for a, b in zip(items, chosen, strict=True)].count(False) <= sum(showed)
        # Done again, nothing changes any more
        run(study, first="selection" if table == "selected" else "design", last="design")
        assert trials_of(study) == after


def test_the_page_shows_what_changed(study: Path) -> None:
    gone = reject(study, "pairs", 2, 1)
    run(study, last="review")
    page = (study / "index.html").read_text(encoding="utf-8")
    new = read_pairs(study / "results" / "pairs.csv")[2]
    assert re.search(rf"\d of {len(trials_of(study))} trials changed after the review", page)
    for text in (*gone, str(new.sentence_1), str(new.sentence_2)):
        assert escape(text) in page
