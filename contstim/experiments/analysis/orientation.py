"""Whether models play the roles that trials give them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.experiments.analysis.scopes import roles
from contstim.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Trial


@dataclass(frozen=True)
class Orientation:
    """How many trials of a condition the scores contradict; see `orientations`."""

    condition: Condition
    trials: int
    contradicted: int


def orientations(ratings: Ratings) -> tuple[Orientation, ...]:
    """For each controversial condition, how many trials have models in roles they do not play.

    The scores contradict a pair of two natural or two synthetic sentences unless model_1 finds
    sentence_1 less likely than sentence_2, and model_2 finds it likelier; they contradict a
    natural-synthetic trial unless the model that rejects the synthetic sentence finds it less
    likely than the natural one.
    """
    trials: Counter[Condition] = Counter()
    contradicted: Counter[Condition] = Counter()
    for group in ratings.groups:
        for trial, ratios in zip(group.trials, group.ratios.T, strict=True):
            if trial.condition in CONTROVERSIAL:
                trials[trial.condition] += 1
                contradicted[trial.condition] += not _as_named(trial, ratings.models, ratios)
    return tuple(Orientation(c, trials[c], contradicted[c]) for c in CONTROVERSIAL if trials[c])


def _as_named(trial: Trial, models: tuple[str, ...], ratios: FloatArray) -> bool:
    """From how much likelier sentence_2 is under each model, (n_models,)."""
    if trial.condition is Condition.NATURAL_SYNTHETIC:
        return bool(ratios[models.index(roles(trial)[1])] < 0)
    first, second = (ratios[models.index(name)] for name in (trial.model_1, trial.model_2))
    return bool(first > 0 > second)
