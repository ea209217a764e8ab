"""Scopes: sets of trials that evaluate models."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from contstim.stimuli import Condition, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Trial


class Scope(StrEnum):
    """A set of trials for each model, on which models are compared.

    Random pairs and the overall result use all models and all such trials; in controversial
    conditions a model answers only for trials that target it, in the role it was given there. Catch
    trials evaluate no model: they decide who takes part, so that those who do agree on them,
    whatever a model says.
    """

    RANDOM = "random-natural"
    NATURAL = "natural-controversial"
    SYNTHETIC = "synthetic-synthetic"
    ACCEPT = "natural-synthetic-accept"
    REJECT = "natural-synthetic-reject"
    OVERALL = "overall"


DESCRIPTIONS = {
    Scope.RANDOM: "random natural pairs",
    Scope.NATURAL: "natural controversial pairs",
    Scope.SYNTHETIC: "synthetic controversial pairs",
    Scope.ACCEPT: "natural vs. synthetic, the model accepts the synthetic sentence",
    Scope.REJECT: "natural vs. synthetic, the model rejects the synthetic sentence",
    Scope.OVERALL: "all kinds of trials together",
}

_CONDITIONS = {
    Scope.RANDOM: Condition.RANDOM_NATURAL,
    Scope.NATURAL: Condition.NATURAL_CONTROVERSIAL,
    Scope.SYNTHETIC: Condition.SYNTHETIC_SYNTHETIC,
    Scope.ACCEPT: Condition.NATURAL_SYNTHETIC,
    Scope.REJECT: Condition.NATURAL_SYNTHETIC,
}


def roles(trial: Trial) -> tuple[str, str]:
    """The models that accept and reject the synthetic sentence of a natural-synthetic trial.

    model_1 rejects synthetic_1, model_2 rejects synthetic_2.
    """
    if Kind.SYNTHETIC_1 in (trial.kind_1, trial.kind_2):
        return trial.model_2, trial.model_1
    return trial.model_1, trial.model_2


def evaluates(trial: Trial, scope: Scope, model: str) -> bool:
    """True if a trial is one of those that evaluate a model in a scope."""
    if scope is Scope.OVERALL:
        return trial.condition is not Condition.CATCH
    if trial.condition is not _CONDITIONS[scope]:
        return False
    if scope is Scope.ACCEPT:
        return roles(trial)[0] == model
    if scope is Scope.REJECT:
        return roles(trial)[1] == model
    return scope is Scope.RANDOM or model in (trial.model_1, trial.model_2)


def scope_mask(
    trials: Sequence[Trial], scope: Scope, models: Sequence[str], *, catch: bool = False
) -> BoolArray:
    """`evaluates` for all models and trials, (n_models, n_trials).

    Args:
        trials: of a group.
        scope: which of them count.
        models: one a row.
        catch: whether catch trials count in the overall result, as published in 2023.
    """
    mask = np.array([[evaluates(trial, scope, model) for trial in trials] for model in models])
    if catch and scope is Scope.OVERALL:
        mask[:] = True
    return mask


def pair_mask(
    trials: Sequence[Trial], condition: Condition, pair: tuple[str, str], models: Sequence[str]
) -> BoolArray:
    """The trials of a condition that set two models against each other, (n_models, n_trials)."""
    targets = [t.condition is condition and {t.model_1, t.model_2} == set(pair) for t in trials]
    return np.array([[model in pair and mine for mine in targets] for model in models])


def scopes_of(ratings: Ratings) -> tuple[Scope, ...]:
    """The scopes for which a design has trials."""
    trials = [trial for group in ratings.groups for trial in group.trials]
    return tuple(
        scope
        for scope in Scope
        if any(evaluates(trial, scope, model) for trial in trials for model in ratings.models)
    )
