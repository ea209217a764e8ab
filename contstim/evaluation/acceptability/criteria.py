"""When a model gets a minimal pair right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray

DELTAS = (0.5, 1.0, 5.0)
"""The values of δ in Vázquez Martínez (2021)."""


def z_scores(values: FloatArray) -> FloatArray:
    """Values less their mean, divided by their population standard deviation, column by column.

    Args:
        values: (n,) or (n, m); nan where there is none, and then nan comes back.

    Raises:
        InputError: all values of a column are the same.
    """
    deviations = np.nanstd(values, axis=0)  # of the population: divided by n, not n - 1
    if not np.all(deviations > 0):
        raise InputError("All values are the same: z-scores are undefined.")
    scores: FloatArray = (values - np.nanmean(values, axis=0)) / deviations
    return scores


@dataclass(frozen=True)
class Criterion:
    """The BLiMP criterion, or the Acceptability Delta Criterion (ADC) with its δ.

    A delta is the score of the acceptable sentence less that of the unacceptable one. The BLiMP
    criterion asks for a positive delta of the model (Warstadt et al. 2020). The ADC asks that the
    deltas of people and model have the same sign and differ by less than δ (Vázquez Martínez 2021).

    Attributes:
        delta: δ, above 0; None for the BLiMP criterion.

    Raises:
        InputError: δ is not above 0.
    """

    delta: float | None = None

    def __post_init__(self) -> None:
        if self.delta is not None and not 0 < self.delta < np.inf:
            raise InputError(f"--delta must be above 0, not {self.delta}.")

    @property
    def name(self) -> str:
        """Name in tables: `blimp`, or such as `adc-0.5`."""
        return "blimp" if self.delta is None else f"adc-{self.delta:g}"

    def met(self, people: FloatArray, model: FloatArray) -> BoolArray:
        """Mask of the pairs that meet it.

        Args:
            people: deltas of human judgements, broadcast against the models'.
            model: deltas of a model's or several models' z-scores.
        """
        if self.delta is None:
            return model > 0
        same = np.sign(people) == np.sign(model)  # two deltas of zero have the same sign
        met: BoolArray = same & (np.abs(people - model) < self.delta)
        return met
