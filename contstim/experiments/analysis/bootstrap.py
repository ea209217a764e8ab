"""Variation of results over other participants, other items, or both.

The percentile bootstrap of Efron (1979), within each group of participants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.evaluation import evaluate_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray
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

    def interval(self, group_means: FloatArray, level: float) -> FloatArray:
        """Percentile intervals of the mean over groups, (3, 2); nan where nothing was resampled.

        Args:
            group_means: (3, n_groups, n_samples), such as a difference of `values`.
            level: the share of resamples inside, such as 0.95.
        """
        # A group in which a resample drew none of the model's trials is nan, and drops out of that
        # resample's mean together with its share.
        defined = ~np.isnan(group_means)
        counted = np.where(defined, group_means, 0) * self.shares[:, None]
        total = (defined * self.shares[:, None]).sum(axis=1)
        means = np.divide(
            counted.sum(axis=1), total, out=np.full(total.shape, np.nan), where=total > 0
        )
        intervals = np.full((len(means), 2), np.nan)
        for row, samples in zip(intervals, means, strict=True):
            samples = samples[~np.isnan(samples)]
            if len(samples):
                row[:] = np.quantile(samples, ((1 - level) / 2, (1 + level) / 2))
        return intervals


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
) -> tuple[FloatArray, FloatArray]:
    # items: (n_samples, n_trials), how often each trial is drawn; trials that evaluate no model are
    # not drawn from. people: (n_samples, n_participants), how much each counts in a group's mean.
    used = np.flatnonzero(mask.any(axis=0))
    items = np.zeros((samples, mask.shape[1]))
    items[:, used] = _draws(len(used), samples, rng)
    people = _draws(len(group.participants), samples, rng) / len(group.participants)
    # Resamples of items are evaluated in chunks that fit into a processor's cache.
    cells = len(group.participants) * int(mask.sum(axis=1).max())
    at_once = max(1, _CELLS // max(1, cells))
    chunks = [
        evaluate_group(group, measure, mask, items[start : start + at_once])[:2]
        for start in range(0, max(1, samples), at_once)
    ]
    # Values and lower ceilings by item, (n_participants, n_models, n_samples), and as they are,
    # (n_participants, n_models). Participants need no second evaluation, only other weights: a
    # drawn person's ceiling is against all who took part.
    resampled = (np.concatenate(kind, axis=-1) for kind in zip(*chunks, strict=True))
    as_it_is = evaluate_group(group, measure, mask)[:2]
    values, lower = (
        np.stack(
            [
                np.einsum("pms,sp->ms", by_item, people),  # items and participants
                by_item.mean(axis=0),  # items
                (people @ fixed).T,  # participants
            ]
        )
        for by_item, fixed in zip(resampled, as_it_is, strict=True)
    )
    return values, lower


def _draws(n: int, samples: int, rng: np.random.Generator) -> FloatArray:
    """Number of times that each of n is drawn, (samples, n)."""
    if n == 0:
        return np.zeros((samples, 0))
    return rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(np.float64)
