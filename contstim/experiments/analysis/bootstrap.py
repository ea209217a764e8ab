"""Variation of results over other participants, other items, or both.

The percentile bootstrap of Efron (1979), within each group of participants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.evaluation import evaluate_group
from contstim.experiments.analysis.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.experiments.analysis.crossed import Side
    from contstim.experiments.analysis.evaluation import Measure
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings

RESAMPLED = ("items and participants", "items", "participants")
_CELLS = 200_000  # participants × trials × resamples at once: what stays in a processor's cache


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Group means in every resample.

    Attributes:
        values: (3, n_groups, n_models, n_samples); the first axis is `RESAMPLED`.
        lower: the lower noise ceiling, same shape.
        shares: (n_groups,), how much each group counts in a mean over groups.
    """

    values: FloatArray
    lower: FloatArray
    shares: FloatArray

    def interval(self, side: Side, level: float) -> Interval:
        """Percentiles of a value or difference; nan where nothing was resampled."""
        # Both sides come from one resample, so that what moves both cancels.
        means = self.values[:, :, side.first]
        if side.ceiling:
            means = means - self.lower[:, :, side.first]
        elif side.second is not None:
            means = means - self.values[:, :, side.second]
        # A group in which a resample drew none of the model's trials is nan, and drops out of that
        # resample's mean together with its share.
        defined, shares = ~np.isnan(means), self.shares[:, None]
        total = (defined * shares).sum(axis=1)
        summed = (np.where(defined, means, 0) * shares).sum(axis=1)
        samples = np.divide(summed, total, out=np.full(total.shape, np.nan), where=total > 0)
        limits = np.full((3, 2), np.nan)
        for row, drawn in zip(limits, samples, strict=True):
            drawn = drawn[~np.isnan(drawn)]
            if len(drawn):
                row[:] = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2))
        (low, high), (low_items, high_items), (low_people, high_people) = limits.tolist()
        alone = low_items, high_items, low_people, high_people
        note = "percentiles of resamples, which have no standard error"
        return Interval(low, high, *alone, np.nan, np.nan, BOTH, note)


def bootstrap(
    ratings: Ratings,
    measure: Measure,
    masks: Sequence[BoolArray],
    shares: FloatArray,
    *,
    samples: int,
    seed: int,
) -> Bootstrap:
    """Draw participants and trials of each group with replacement, apart and together.

    A model's results in a resample are those on its own trials among the drawn ones. The ceiling of
    a drawn participant is that against all others who took part, so that nobody predicts their own
    double.

    Args:
        ratings: who rated what.
        measure: accuracy or signed-rank cosine.
        masks: for each group, which trials evaluate which model, (n_models, n_trials).
        shares: (n_groups,); see `Bootstrap`.
        samples: how many resamples.
        seed: decides what is drawn.
    """
    parts = []
    for group, mask in zip(ratings.groups, masks, strict=True):
        # A group's draws follow from its own number: they stay when other groups come or go.
        rng = np.random.default_rng([seed, group.number])
        parts.append(_bootstrap_group(group, measure, mask, samples, rng))
    values, lower = (np.stack(kind, axis=1) for kind in zip(*parts, strict=True))
    return Bootstrap(values, lower, shares)


def _bootstrap_group(
    group: GroupRatings, measure: Measure, mask: BoolArray, samples: int, rng: np.random.Generator
) -> list[FloatArray]:
    """Values and lower ceilings, (3, n_models, n_samples) each."""
    # items: (n_samples, n_trials), how often each trial is drawn; trials that evaluate no model are
    # not drawn from. people: (n_samples, n_participants), how much each counts in a group's mean.
    used, n_people = np.flatnonzero(mask.any(axis=0)), len(group.participants)
    items = np.zeros((samples, mask.shape[1]))
    items[:, used] = _draws(len(used), samples, rng)
    people = _draws(n_people, samples, rng) / n_people
    # Resamples of items are evaluated in chunks that fit into a processor's cache.
    at_once = max(1, _CELLS // max(1, n_people * int(mask.sum(axis=1).max())))
    chunks = [
        evaluate_group(group, measure, mask, items[start : start + at_once])[:2]
        for start in range(0, max(1, samples), at_once)
    ]
    # Values and lower ceilings by item, (n_participants, n_models, n_samples), and as they are,
    # (n_participants, n_models). Participants need no second evaluation, only other weights: a
    # drawn person's ceiling is against all who took part.
    resampled = (np.concatenate(kind, axis=-1) for kind in zip(*chunks, strict=True))
    as_it_is = evaluate_group(group, measure, mask)[:2]
    return [
        np.stack(
            [
                np.einsum("pms,sp->ms", by_item, people),  # items and participants
                by_item.mean(axis=0),  # items
                (people @ fixed).T,  # participants
            ]
        )
        for by_item, fixed in zip(resampled, as_it_is, strict=True)
    ]


def _draws(n: int, samples: int, rng: np.random.Generator) -> FloatArray:
    """Number of times that each of n is drawn, (samples, n)."""
    if n == 0:
        return np.zeros((samples, 0))
    return rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float64)
