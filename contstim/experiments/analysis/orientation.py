"""Check of whether models play the roles that trials give them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.experiments.analysis.scopes import roles
from contstim.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from contstim.experiments.analysis.ratings import Ratings


@dataclass(frozen=True)
class Orientation:
    """Number of trials of a condition that the scores contradict; see `orientations`."""

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
            if trial.condition not in CONTROVERSIAL:
                continue
            # ratios: how much likelier sentence_2 is under each model, (n_models,)
            if trial.condition is Condition.NATURAL_SYNTHETIC:
                # The natural sentence comes first. Only the rejecting model is asked: the accepting
                # one finds both about as likely, so that the sign of its ratio says little.
                rejects = ratios[ratings.models.index(roles(trial)[1])]
                as_named = rejects < 0
            else:
                first = ratios[ratings.models.index(trial.model_1)]
                second = ratios[ratings.models.index(trial.model_2)]
                as_named = first > 0 > second
            trials[trial.condition] += 1
            contradicted[trial.condition] += not as_named
    return tuple(Orientation(c, trials[c], contradicted[c]) for c in CONTROVERSIAL if trials[c])
