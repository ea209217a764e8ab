"""Participants whose answers are known: what each route must give back."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from contstim.experiments.responses import Response
from contstim.stimuli import Trial


def table(path: Path) -> list[dict[str, str]]:
    """A CSV file read by the standard library."""
    csv.field_size_limit(10_000_000)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


class Planted:
    """Ratings drawn for participants as they answer, and kept to compare with.

    A platform shows a row; `press` rates its trial, remembers that, and gives the button from the
    left that says so.
    """

    def __init__(self, trials: list[Trial], seed: int = 5) -> None:
        self._chance = random.Random(seed)
        self._trials = {trial.trial_id: trial for trial in trials}
        self.responses: list[Response] = []

    def shuffled(self, rows: list[dict[str, str]]) -> list[dict[str, str]]:
        return self._chance.sample(rows, len(rows))

    def press(self, participant: str, trial_id: str, left: str, position: int) -> tuple[int, int]:
        """The button, 1 from the left, and the reaction time in milliseconds."""
        rating, rt_ms = self.rate(trial_id), self._chance.randint(300, 9_000)
        button = rating if left == "1" else 7 - rating
        group = self._trials[trial_id].group
        self.responses.append(
            Response(participant, group, trial_id, rating, int(left), position, float(rt_ms))
        )
        return button, rt_ms

    def rate(self, trial_id: str) -> int:
        """The rating of a trial, from sentence_1 to sentence_2."""
        del trial_id
        return self._chance.randint(1, 6)
