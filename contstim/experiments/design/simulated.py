"""Simulated participants: a model's preferences plus noise, calibrated to a noise ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import log_ratios
from contstim.experiments.analysis.ratings import require_scores
from contstim.experiments.analysis.scopes import Scope, scope_mask
from contstim.experiments.design.population import votes_agreement
from contstim.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.scores import ScoreTable
    from contstim.stimuli import Trial


@dataclass(frozen=True, eq=False)
class TrialPreferences:
    """Preferences of models on the trials of one condition.

    Attributes:
        models: their names.
        differences: (n_trials, n_models) log p(sentence_2) - log p(sentence_1), nats.
        evaluates: (n_trials, n_models) whether the trial evaluates the model: those that target it,
            and all models where a trial targets none.
        groups: (n_trials,) 0-based group that sees it.
        strata: (n_trials,) trials of one condition and model pair have one number.
    """

    models: tuple[str, ...]
    differences: FloatArray
    evaluates: BoolArray
    groups: IntArray
    strata: IntArray


@dataclass(frozen=True, eq=False)
class ScopedPreferences:
    """Preferences of models on all trials but catch trials, and which of these evaluate each model.

    Attributes:
        every: all these trials; each evaluates the models that it targets, or all.
        evaluates: scope → (n_trials, n_models) whether a trial evaluates a model there, as in
            `analyze`; scopes without trials are left out.
    """

    every: TrialPreferences
    evaluates: Mapping[Scope, BoolArray]

    def rows(self, scope: Scope) -> IntArray:
        """The places of a scope's trials."""
        return np.flatnonzero(self.evaluates[scope].any(axis=1))

    def of_scope(self, scope: Scope) -> TrialPreferences:
        """A scope's trials, with the models that they evaluate there."""
        rows, every = self.rows(scope), self.every
        return TrialPreferences(
            every.models,
            every.differences[rows],
            self.evaluates[scope][rows],
            every.groups[rows],
            every.strata[rows],
        )


def with_trials(comparisons: TrialPreferences) -> TrialPreferences:
    """The same without models that no trial evaluates."""
    kept = np.flatnonzero(comparisons.evaluates.any(axis=0))
    return TrialPreferences(
        tuple(comparisons.models[model] for model in kept),
        comparisons.differences[:, kept],
        comparisons.evaluates[:, kept],
        comparisons.groups,
        comparisons.strata,
    )


def preferences_by_scope(trials: Iterable[Trial], table: ScoreTable) -> ScopedPreferences:
    """The models' preferences on all trials but catch trials, by scope.

    Scores are joined by `Sentence.text`. Two sentences of probability zero are alike.

    Raises:
        InputError: sentences have no scores, a trial targets a model that has none, or there are no
            such trials.
    """
    some = [trial for trial in trials if trial.condition != Condition.CATCH]
    if not some:
        raise InputError("There are no trials but catch trials, so there is nothing to simulate.")
    every = _preferences(some, table)
    masks = {scope: scope_mask(some, scope, table.models).T for scope in Scope}
    return ScopedPreferences(every, {scope: mask for scope, mask in masks.items() if mask.any()})


def preferences_by_condition(
    trials: Iterable[Trial], table: ScoreTable
) -> dict[Condition, TrialPreferences]:
    """The models' preferences on the trials of each condition, catch trials left out.

    Scores are joined by `Sentence.text`. Two sentences of probability zero are alike.

    Raises:
        InputError: a sentence has no scores, or a trial targets a model that has none.
    """
    preferences: dict[Condition, TrialPreferences] = {}
    trials = list(trials)
    for condition in Condition:
        some = [t for t in trials if t.condition == condition]
        if some and condition != Condition.CATCH:
            preferences[condition] = _preferences(some, table)
    return preferences


def _preferences(trials: list[Trial], table: ScoreTable) -> TrialPreferences:
    require_scores(trials, table)
    for model in sorted({m for trial in trials for m in (trial.model_1, trial.model_2)} - {""}):
        table.column(model)
    # places: (n_trials, 2), so that log-probabilities are (n_trials, 2, n_models); ratios are taken
    # over the last axis, which the two sentences move to.
    places = [[table.rows[trial.sentence_1], table.rows[trial.sentence_2]] for trial in trials]
    pairs = [(trial.model_1, trial.model_2) for trial in trials]
    kinds = [(trial.condition, *pair) for trial, pair in zip(trials, pairs, strict=True)]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return TrialPreferences(
        table.models,
        log_ratios(np.moveaxis(table.log_probs[places], 1, 2)),
        np.array([[pair == ("", "") or m in pair for m in table.models] for pair in pairs]),
        np.array([trial.group - 1 for trial in trials]),
        np.array([numbers[kind] for kind in kinds]),
    )


def choice_probabilities(differences: FloatArray, noise: float | FloatArray) -> FloatArray:
    """Probability that a simulated participant prefers sentence_2.

    The participant has the planted model's difference in log-probability, adds normal noise of
    standard deviation `noise` (nats) anew in every trial, and prefers what comes out higher: the
    law of comparative judgement (Thurstone 1927), p = Phi(difference / noise).
    """
    from scipy.special import ndtr

    probabilities: FloatArray = ndtr(differences / noise)
    return probabilities


def lower_ceiling(differences: FloatArray, noise: float, raters: int) -> float:
    """Rate at which one of `raters` simulated participants agrees with most of the others.

    The expected value, over trials with these differences, of the lower noise ceiling of accuracy
    (Golan et al. 2023, Methods); a majority of half against half counts one half.
    """
    return float(np.mean(votes_agreement(choice_probabilities(differences, noise), raters)))


def calibrate_noise(differences: FloatArray, ceiling: float, *, raters: int = 10) -> float:
    """The noise (nats) under which simulated participants reach a stated lower noise ceiling.

    Args:
        differences: (n_trials,) of the planted model, on the trials where it was measured.
        ceiling: share of trials in which a person agrees with the majority of the others, such as
            `PUBLISHED_CEILING`.
        raters: participants who saw each trial where that was measured.

    Raises:
        InputError: no noise gives this ceiling.
    """
    from scipy.optimize import brentq

    finite = differences[np.isfinite(differences)]
    spread = float(np.abs(finite).max(initial=0.0))
    if raters < 2:
        raise InputError(f"A noise ceiling compares 2 or more participants, not {raters}.")
    most = lower_ceiling(differences, spread * 1e-6, raters) if spread else 0.5
    if not 0.5 < ceiling < most:
        raise InputError(
            f"No noise gives simulated participants a noise ceiling of {ceiling}: it lies between "
            f"0.5 and {most:.6f} on these {len(differences)} pairs."
        )

    # The ceiling falls as noise grows, and noise has no natural unit: the root is sought over its
    # logarithm, fourteen e-folds to either side of the largest difference.
    def excess(log_noise: float) -> float:
        return lower_ceiling(differences, float(np.exp(log_noise)), raters) - ceiling

    return float(np.exp(brentq(excess, np.log(spread) - 14, np.log(spread) + 14)))
