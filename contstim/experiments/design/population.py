"""People, items and trials that simulated experiments draw from: a mixed model of choices.

In every trial a person prefers sentence_2 if a hidden value is positive,

    hidden value = signal · (1 + following) + item + noise,

where the signal is what models say of the trial, `item` what people agree on beyond that,
`following` how a person differs from others, and the noise of single answers is standard normal
(Thurstone 1927). It is the model that `contstim mixed` fits to ratings, with the link probit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import log_ratios
from contstim.experiments.analysis.ratings import Scope, scope_mask, trial_log_probs
from contstim.items.stimuli import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial

AS_MEASURED = "as measured"
"""The name of a population that follows all models, each as far as people of a pilot did."""

DISTANT, CLOSE = "distant", "close"
"""Where rivals of a planted model stand: with people they share only what they share with it, or
they predict people nearly as well, as other models did where it was measured."""

_NODES = 31  # of Gauss-Hermite quadrature over items


@dataclass(frozen=True, eq=False)
class Population:
    """People and items, for the trials of an experiment.

    Attributes:
        name: the planted model, or `AS_MEASURED`.
        signal: (n_trials,) what models say, in standard deviations of single answers; positive for
            sentence_2.
        item_sd: (n_trials,) how much items vary beyond that, in the same unit.
        following: standard deviation of how far people follow models, as a share of the mean.
        rivals: of a planted model, `DISTANT` or `CLOSE`.
    """

    name: str
    signal: FloatArray
    item_sd: FloatArray
    following: float
    rivals: str = ""

    def choice_probabilities(self) -> FloatArray:
        """(n_trials,) how likely a new person prefers sentence_2 of a new item of this kind."""
        from scipy.special import ndtr

        # All random parts are normal and independent: their variances add up.
        total = np.sqrt(1 + self.item_sd**2 + (self.following * self.signal) ** 2)
        probabilities: FloatArray = ndtr(self.signal / total)
        return probabilities

    def lower_ceiling(self, raters: int) -> float:
        """The expected lower noise ceiling of accuracy on these trials; see `votes_agreement`."""
        from scipy.special import ndtr

        # Given its item, people's answers to a trial are independent: (n_trials, nodes) shares of
        # people who prefer sentence_2, averaged over the normal distribution of items.
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        value = self.signal[:, None] + self.item_sd[:, None] * nodes
        shares = ndtr(value / np.sqrt(1 + (self.following * self.signal[:, None]) ** 2))
        return float((votes_agreement(shares, raters) @ weights / weights.sum()).mean())

    def of_trials(self, rows: IntArray) -> Population:
        """The same for some of the trials, in this order; a trial may stand several times."""
        return replace(self, signal=self.signal[rows], item_sd=self.item_sd[rows])

    def answers(self, rows: IntArray, participants: int, rng: np.random.Generator) -> BoolArray:
        """Who prefers sentence_2, (n_experiments, participants, n_rows): new people, new items.

        Args:
            rows: (n_experiments, n_rows), the trials that a group of participants sees.
            participants: in the group.
            rng: decides.
        """
        experiments, n_rows = rows.shape
        signal = self.signal[rows][:, None]
        items = self.item_sd[rows] * rng.standard_normal(rows.shape)
        following = rng.standard_normal((experiments, participants, 1))
        hidden = rng.standard_normal((experiments, participants, n_rows))
        hidden += signal * (1 + self.following * following) + items[:, None]
        return hidden > 0


def votes_agreement(shares: FloatArray, raters: int) -> FloatArray:
    """Rate at which one of `raters` people agrees with the majority of the others, trial by trial.

    The lower noise ceiling of accuracy (Golan et al. 2023, Methods) where a share of all people
    prefers sentence_2; a majority of half against half counts one half.

    Args:
        shares: of any shape.
        raters: people who see each trial.
    """
    from scipy.special import bdtr, bdtrc

    # Votes of the others for sentence_2 are binomial(others, p). bdtrc(k, n, p) is the chance of
    # more than k, bdtr(k, n, p) of k at most; of an even number of others half may stand against
    # half, which counts one half.
    others = raters - 1
    if others % 2:
        majority = bdtrc(others // 2, others, shares)
    else:
        more, fewer = bdtrc(others // 2, others, shares), bdtr(others // 2 - 1, others, shares)
        majority = (more + 1 - fewer) / 2
    agreement: FloatArray = shares * majority + (1 - shares) * (1 - majority)
    return agreement


@dataclass(frozen=True, eq=False)
class TrialPreferences:
    """Preferences of models on the trials of a design.

    Attributes:
        models: their names.
        differences: (n_trials, n_models) log p(sentence_2) - log p(sentence_1), nats.
        evaluates: (n_trials, n_models) whether the trial evaluates the model.
        groups: (n_trials,) 0-based group that sees it.
        strata: (n_trials,) trials of one condition and model pair have one number.
    """

    models: tuple[str, ...]
    differences: FloatArray
    evaluates: BoolArray
    groups: IntArray
    strata: IntArray

    @property
    def designed(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    @property
    def least(self) -> int:
        """Trials of the group that has the fewest."""
        return int(np.bincount(self.groups).min())

    @cached_property
    def sides(self) -> FloatArray:
        """(n_trials, n_models): 1 where a model prefers sentence_2, -1 sentence_1, 0 for a tie."""
        return np.sign(self.differences)

    def of_trials(self, rows: IntArray) -> TrialPreferences:
        """Some of the trials, in this order."""
        by_trial = ("differences", "evaluates", "groups", "strata")
        return replace(self, **{name: getattr(self, name)[rows] for name in by_trial})

    def with_trials(self) -> TrialPreferences:
        """The same without models that no trial evaluates."""
        kept = np.flatnonzero(self.evaluates.any(axis=0))
        return replace(
            self,
            models=tuple(self.models[model] for model in kept),
            differences=self.differences[:, kept],
            evaluates=self.evaluates[:, kept],
        )

    def places(self, groups: int | None = None) -> list[IntArray]:
        """For each group, (n_trials,) the trial at each of its places.

        Args:
            groups: more than the design's begin anew with its own, fewer leave trials out.
        """
        numbers = range(groups or self.designed)
        places = [np.flatnonzero(self.groups == number % self.designed) for number in numbers]
        return [of_group for of_group in places if len(of_group)]

    def draw(
        self, places: Iterable[IntArray], experiments: int, rng: np.random.Generator
    ) -> list[IntArray]:
        """For each group, (n_experiments, n_trials): at each place a trial of the same kind.

        Trials of one kind set the same models against each other, and evaluate the same.
        """
        same = np.column_stack([self.strata, self.evaluates])
        kinds = np.unique(same, axis=0, return_inverse=True)[1].ravel()
        # Trials sorted by kind; the trials of a kind begin at its start, and are so many.
        by_kind, counts = np.argsort(kinds, kind="stable"), np.bincount(kinds)
        starts = np.cumsum(counts) - counts
        return [
            by_kind[starts[of_places] + rng.integers(counts[of_places], size=size)]
            for of_group in places
            for of_places, size in [(kinds[of_group], (experiments, len(of_group)))]
        ]

    def thinned(self, per_group: int, *, seed: int = 0) -> IntArray:
        """So many trials of each group, model pairs taken as evenly as possible.

        Raises:
            InputError: a group has fewer trials, or none would be left.
        """
        if not 1 <= per_group <= self.least:
            raise InputError(f"per_group must be 1 to {self.least}, not {per_group}.")
        order = even_orders(self.strata, 1, np.random.default_rng(seed))[0]
        groups = self.groups[order]
        return np.concatenate([order[groups == group][:per_group] for group in np.unique(groups)])


def even_orders(strata: IntArray, simulations: int, rng: np.random.Generator) -> IntArray:
    """Random orders of trials, (n_simulations, n_trials), strata as evenly as possible."""
    # The k trials of a stratum get the places (0 + u) / k, (1 + u) / k, … at random, in every
    # simulation anew: strata of one size come round by round, larger ones as much more often.
    keys = rng.random((simulations, len(strata)))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        keys[:, members] += np.argsort(np.argsort(keys[:, members], axis=1), axis=1)
        keys[:, members] /= len(members)
    return np.argsort(keys, axis=1)


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
        here = replace(self.every, evaluates=self.evaluates[scope])
        return here.of_trials(self.rows(scope))


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
    log_probs = trial_log_probs(some, table)
    pairs = [(trial.model_1, trial.model_2) for trial in some]
    for model in sorted({model for pair in pairs for model in pair} - {""}):
        table.column(model)
    kinds = [(trial.condition, *pair) for trial, pair in zip(some, pairs, strict=True)]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    every = TrialPreferences(
        table.models,
        log_ratios(log_probs).T,
        np.array([[pair == ("", "") or m in pair for m in table.models] for pair in pairs]),
        np.array([trial.group - 1 for trial in some]),
        np.array([numbers[kind] for kind in kinds]),
    )
    masks = {scope: scope_mask(some, scope, table.models).T for scope in Scope}
    return ScopedPreferences(every, {scope: mask for scope, mask in masks.items() if mask.any()})
