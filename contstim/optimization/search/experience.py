"""What a search has learned on its way: how good estimates are, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import FloatArray


class Stage(Enum):
    """How an estimate came about; the value is the error believed in at first, nats."""

    SCREEN = 2.0
    """For all words at once, from the least work."""
    DRAFT = 0.5
    """For a few words, from a draft of the model."""


class Calibration:
    """How far differences of estimates tell differences of what they estimate.

    A line fitted to all pairs observed so far, with a ridge prior towards y = x, and the spread of
    the residuals around it.

    Args:
        spread: the residuals' standard deviation, nats, believed before anything is seen.
    """

    _OFFSET, _SLOPE, _SPREAD = 4.0, 100.0, 6.0  # weights of the priors, in pairs

    def __init__(self, spread: float) -> None:
        self._moments = np.diag([self._OFFSET, self._SLOPE])  # of (1, x)
        self._products = np.array([0.0, self._SLOPE])  # of these with y
        self._squares = self._SPREAD * spread**2
        self._n = self._SPREAD

    def predict(self, x: FloatArray) -> FloatArray:
        """What is expected of estimated differences, (n,), nats."""
        offset, slope = np.linalg.solve(self._moments, self._products)
        expected: FloatArray = offset + slope * x
        return expected

    @property
    def spread(self) -> float:
        """The standard deviation around what is expected, nats."""
        return float(np.sqrt(self._squares / self._n))

    def calibrate(self, x: FloatArray, y: FloatArray) -> None:
        """Add pairs of differences, (n,) each, nats; those that are not finite tell nothing."""
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        residuals = y - self.predict(x)
        design = np.stack([np.ones(len(x)), x])
        self._moments = self._moments + design @ design.T
        self._products = self._products + design @ y
        self._squares += float(residuals @ residuals)
        self._n += len(x)


class SearchState:
    """One search's memory; begins with modest beliefs and is never shared between searches."""

    def __init__(self) -> None:
        self._calibrations: dict[tuple[int, Stage], Calibration] = {}
        self._paid: defaultdict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._gained = self._batches = 0

    def calibration(self, number: int, stage: Stage) -> Calibration:
        """What is known of a model's estimates of one kind."""
        return self._calibrations.setdefault((number, stage), Calibration(stage.value))

    def expected_cost(self, number: int, guess: float) -> float:
        """Passes that a sharper estimate of one word costs under a model, 1 or more.

        Args:
            number: the model's.
            guess: what to believe at first; worth four words.
        """
        rows, words = self._paid[number]
        return max(1.0, (rows + 4 * guess) / (words + 4))

    def record_cost(self, number: int, rows: int, words: int) -> None:
        """Remember what some words have cost."""
        before = self._paid[number]
        self._paid[number] = (before[0] + rows, before[1] + words)

    def batch(self, most: int) -> int:
        """How many words to score exactly at once: as many as a gain has taken batches so far."""
        return int(np.clip(round((self._batches + 2) / (self._gained + 2)), 1, most))

    def remember(self, *, gained: bool) -> None:
        """Count a batch of exact scores, and whether it held a better word."""
        self._gained += gained
        self._batches += 1
