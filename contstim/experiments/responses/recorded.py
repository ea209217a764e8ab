"""Record of a rating by a platform, and how its cells are read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses.table import UNKNOWN
from contstim.sentence import Sentence
from contstim.tables import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.stimuli import Trial


@dataclass(frozen=True)
class RecordedAnswer:
    """A rating in the words of a platform.

    Attributes:
        where: file and row, for messages.
        participant: the platform's name of a person.
        group: empty where the platform does not say.
        trial_id: empty where the platform did not carry it.
        shown: the sentences (`Sentence.text`) left and right, or first and second; empty texts
            where the platform did not record them.
        rating: on the trial's scale, from left to right; 0 where a trial was shown and not rated.
        position: order of presentation, from 1; 0 unknown.
        rt_ms: nan unknown.
        marked: whether both sentences were recorded with an end mark of their own.
        simulated: whether an artificial participant answered.
    """

    where: str
    participant: str
    group: str
    trial_id: str
    shown: tuple[str, str]
    rating: int
    position: int
    rt_ms: float
    marked: bool = True
    simulated: bool = False

    @property
    def pair(self) -> frozenset[str]:
        """Both sentences, in no order."""
        return frozenset(self.shown)


def sided_answer(
    where: str,
    participant: str,
    trial_id: str,
    left: str,
    by_id: Mapping[str, Trial],
    *,
    rating: int = UNKNOWN,
    position: int = UNKNOWN,
    rt_ms: float = math.nan,
) -> RecordedAnswer:
    """An answer whose platform carried the trial_id and which of its sentences stood left.

    Args:
        where: file and row, for messages.
        participant: the platform's name of a person.
        trial_id: which may be of no trial.
        left: the cell that says 1 or 2.
        by_id: the trials.
        rating: on the trial's scale, from left to right; 0 where none was given.
        position: order of presentation, from 1; 0 unknown.
        rt_ms: nan unknown.

    Raises:
        InputError: there is no participant, or the cell says something else.
    """
    if not participant:
        raise InputError(f"{where} is a trial of no participant.")
    sides = shown_by_side(where, trial_id, left, by_id)
    return RecordedAnswer(where, participant, "", trial_id, sides, rating, position, rt_ms)


def shown_by_side(
    where: str, trial_id: str, left: str, by_id: Mapping[str, Trial]
) -> tuple[str, str]:
    """The texts left and right; those of an unknown trial are its trial_id, twice.

    Raises:
        InputError: the cell that says which sentence stood left is neither 1 nor 2.
    """
    side = whole(where, left, "left")
    if side not in (1, 2):
        raise InputError(f"{where}: the sentence shown left is 1 or 2, not {shortened(left)}.")
    trial = by_id.get(trial_id)
    # a trial that nobody knows is named later, with all others: here any two texts will do
    first, second = texts_of(trial) if trial else (trial_id, trial_id)
    return (first, second) if side == 1 else (second, first)


def whole(where: str, cell: str, name: str) -> int:
    """A whole number; 0 where the cell is empty.

    Raises:
        InputError: it is something else.
    """
    try:
        return int(number(cell, whole=True)) if cell.strip() else 0
    except ValueError:
        raise InputError(
            f"{where}: {shortened(cell)} under {name} is not a whole number."
        ) from None


def milliseconds(where: str, cell: str, name: str, *, unit: float = 1.0) -> float:
    """A time in milliseconds; nan where the cell is empty.

    Raises:
        InputError: it is not a number.
    """
    try:
        # Three decimals: seconds times 1000 would else end in digits of rounding
        return round(float(number(cell)) * unit, 3) if cell.strip() else math.nan
    except ValueError:
        raise InputError(f"{where}: {shortened(cell)} under {name} is not a number.") from None


def texts_of(trial: Trial) -> tuple[str, str]:
    """Both sentences (`Sentence.text`)."""
    return trial.sentence_1.text, trial.sentence_2.text


def bare(texts: tuple[str, str]) -> tuple[str, str]:
    """Two texts as people see them."""
    return Sentence.parse(texts[0]).bare, Sentence.parse(texts[1]).bare
