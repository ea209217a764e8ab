"""PsychoPy and Pavlovia: a conditions file for each list.

Facts from psychopy.org, *Loops* and *Conditions*: a CSV file with a row for each trial, whose
header holds valid variable names; and `psychopy_cells` for what becomes of the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.display import BUTTON_LIST, QUESTION
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import sides, stimulus_lists
from contstim.experiments.platforms.psychopy.cells import psychopy_cell, unquotable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contstim.experiments.design.presentation import Shown
    from contstim.experiments.platforms.lists import StimulusList
    from contstim.stimuli import Trial

COLUMNS = ("trial_id", "list_name", "stimulus_group", "left", "left_sentence", "right_sentence")


def export_psychopy(trials: Sequence[Trial], out: Path | str, *, seed: int = 0) -> Path:
    """Write a conditions file for each list (L01.csv, L02.csv, …), lists.csv and a README.

    Each group of the trials has two lists, mirrored in their sides; the loop draws the order.

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        seed: decides sides.

    Raises:
        InputError: PsychoPy would evaluate sentences or trial_ids, which are named; the trials
            cannot be traced back; or the folder holds other files.
    """
    _check(trials)
    folder = ExportFolder(out)
    lists = stimulus_lists(trials, seed=seed)
    tables = {one.name: [_row(one, shown) for shown in one.shown] for one in lists}
    for name, rows in tables.items():
        folder.rows(f"{name}.csv", rows, COLUMNS)
    folder.lists(lists)
    folder.readme(
        "psychopy.md",
        lists=len(lists),
        question=QUESTION,
        buttons=BUTTON_LIST,
    )
    return folder.finish("psychopy", seed=seed)


def _check(trials: Sequence[Trial]) -> None:
    """Refuse what PsychoPy would not show, or not give back, as it is; all of it at once."""
    found = [problem for trial in trials for problem in _problems(trial)]
    if found:
        more = f"\n  and {len(found) - 20:,} more" if len(found) > 20 else ""
        raise InputError(
            "PsychoPy would not show these as they are:\n"
            + "\n".join(found[:20])
            + f"{more}\nChange them or leave their trials out; other platforms show them."
        )


def _problems(trial: Trial) -> Iterator[str]:
    name = trial.trial_id
    for text in (trial.sentence_1.bare, trial.sentence_2.bare):
        if problem := unquotable(text):
            yield f"  {name}: {text[:60]!r}: {problem}"
    if problem := unquotable(name):
        yield f"  the trial_id {name!r}: {problem}"
    elif psychopy_cell(name) != name:
        yield f"  the trial_id {name!r}: it would have to begin with a space"


def _row(one: StimulusList, shown: Shown) -> dict[str, object]:
    left, right = (psychopy_cell(text) for text in sides(shown))
    return {
        "trial_id": shown.trial.trial_id,
        "list_name": one.name,
        "stimulus_group": one.group,
        "left": shown.left,
        "left_sentence": left,
        "right_sentence": right,
    }
