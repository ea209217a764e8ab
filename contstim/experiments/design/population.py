"""People, items and trials for simulated experiments: a mixed model of choices.

In every trial a person prefers sentence_2 if a latent value is positive,

    latent value = signal · (1 + following) + item + noise,

where `signal` is the models' prediction for the trial, and `item` is a preference that all people
share and that the models do not predict. People differ in how strongly their answers depend on the
signal. `following` is the strength of this dependence for a person, divided by its mean over
people, minus 1. The noise of single answers is standard normal (Thurstone 1927). `contstim mixed`
fits the same mixed model to ratings, with a probit link. For new designs, the default sizes of
these terms were estimated from the participants of Golan et al. (2023).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import log_ratios
from contstim.experiments.analysis.ratings import Scope, scope_mask, trial_log_probs
from contstim.items.stimuli import Condition, Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.items.scores import ScoreTable

AS_MEASURED = "as measured"
"""Name of a population that follows all models, each as closely as the people of a pilot did."""

DISTANT, CLOSE = "distant", "close"
"""Assumptions about the rivals of a planted model.

The planted model is the model that simulated people follow most; its rivals are the other models.
With distant rivals, people follow the planted model alone. A rival then predicts people only to
the extent that its predictions agree with those of the planted model. Close rivals have the
accuracies that were measured for all models except the best one. In both cases, the planted model
has the accuracy of the best measured model."""

_NODES = 31  # nodes of Gauss-Hermite quadrature over items

PUBLISHED_RATERS = 10  # raters of each trial
# Measurements in experiment 1 of Golan et al. (2023), on trials that evaluate GPT-2 (the model that
# people followed most). The columns:
#   scope
#   lower noise ceiling of accuracy with ten raters a trial, from `analyze`
#   standard deviation of the item effects that GPT-2 does not predict; its unit is the standard
#       deviation of the noise of single answers. The value was estimated by a mixed model of all
#       choices in a condition (`fit_mixed`), with the link `probit` and the ratio scale `ranks`
#   GPT-2's accuracy
#   accuracies of the eight other models on their own trials, descending
_PUBLISHED_TABLE = """\
random-natural .748889 .701 .75 .714444 .712222 .707778 .707778 .701111 .672222 .672222 .65
natural-controversial .795 .706 .7275 .6925 .605 .57 .425 .41375 .37375 .36375 .32875
synthetic-synthetic .82125 .998 .7725 .77125 .745 .6375 .44 .42 .315 .21875 .18
natural-synthetic-accept .73625 .904 .26875 .2825 .265 .255 .12625 .0725 .045 .0375 .0275
natural-synthetic-reject .91375 .904 .91 .90625 .88375 .84125 .83625 .835 .82875 .805 .77375
"""
PUBLISHED_KINDS = {
    name: tuple(map(float, numbers))
    for name, *numbers in map(str.split, _PUBLISHED_TABLE.splitlines())
}
PUBLISHED_CEILING = PUBLISHED_KINDS["random-natural"][0]  # lower noise ceiling
# Standard deviation of the strength with which people follow GPT-2, divided by the mean strength.
# The value was estimated by the mixed model of all ratings (`fit_mixed`), with the ratio scale
# `ranks`
PUBLISHED_FOLLOWING = 0.297
# Results of `benchmarks/replay.py` for this experiment
WORTH = (
    "In experiment 1 of Golan et al. (2023), one answer on two synthetic sentences gave .76 nats "
    "of evidence (log Bayes factor) for one of two models. An answer gave .52 nats on a natural "
    "controversial pair, .18 on a natural and a synthetic sentence, and .04 on a random pair. "
    "These four values come from a choice rule that was fitted to random pairs. If the rule for "
    "two models is fitted instead to all trials of other pairs of models, the four values are "
    ".48, .23, .17 and .05. With more than about five answers to an item, more items give more "
    "information than more people."
)
ANSWERS = 5  # answers to each item, and therefore the default number of participants in a group
SECONDS_PER_TRIAL = 8.5  # the median participant took 23.3 minutes for 165 trials


@dataclass(frozen=True, eq=False)
class Population:
    """People and items, for the trials of an experiment.

    Attributes:
        name: planted model (the model that people follow most), or `AS_MEASURED`.
        signal: (n_trials,), the models' prediction, positive for sentence_2. The unit is the
            standard deviation of the noise of single answers.
        item_sd: (n_trials,), standard deviation of `item` in the latent value, in the same unit.
        following: standard deviation, between people, of the term `following` of the latent value
            (see the module's docstring); it has no unit.
        rivals: `DISTANT` or `CLOSE` for a planted model; otherwise empty.
    """

    name: str
    signal: FloatArray
    item_sd: FloatArray
    following: float
    rivals: str = ""

    def choice_probabilities(self) -> FloatArray:
        """Return the probability of choosing sentence_2 for new people and items, (n_trials,)."""
        from scipy.special import ndtr

        total = np.sqrt(1 + self.item_sd**2 + (self.following * self.signal) ** 2)
        return np.asarray(ndtr(self.signal / total))

    def lower_ceiling(self, raters: int) -> float:
        """Return the expected lower noise ceiling on these trials; see `votes_agreement`."""
        from scipy.special import ndtr

        # For a fixed value of `item`, people's answers are independent. The agreement is computed
        # for shares of people who prefer sentence_2, (n_trials, nodes), and averaged over items.
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        value = self.signal[:, None] + self.item_sd[:, None] * nodes
        shares = ndtr(value / np.sqrt(1 + (self.following * self.signal[:, None]) ** 2))
        return float((votes_agreement(shares, raters) @ weights / weights.sum()).mean())

    def of_trials(self, rows: IntArray) -> Population:
        """Return the population for the trials with the indices `rows`; indices may be repeated."""
        return replace(self, signal=self.signal[rows], item_sd=self.item_sd[rows])

    def answers(self, rows: IntArray, participants: int, rng: np.random.Generator) -> BoolArray:
        """Draw the choices of new people: True if a person prefers sentence_2.

        `rows`, (n_experiments, n_rows), are indices of the trials of a group. The result has the
        shape (n_experiments, participants, n_rows).
        """
        experiments, n_rows = rows.shape
        signal = self.signal[rows][:, None]
        items = self.item_sd[rows] * rng.standard_normal(rows.shape)
        following = rng.standard_normal((experiments, participants, 1))
        latent = rng.standard_normal((experiments, participants, n_rows))
        latent += signal * (1 + self.following * following) + items[:, None]
        return latent > 0


def votes_agreement(shares: FloatArray, raters: int) -> FloatArray:
    """Return the rate at which one of `raters` people agrees with the majority of the others.

    This is the lower noise ceiling of accuracy for each trial (Golan et al. 2023, Methods). A draw
    among the others counts one half.

    `shares` are probabilities that a person prefers sentence_2, in an array of any shape.
    """
    from scipy.special import bdtr, bdtrc

    # bdtrc(k, n, p) is the binomial probability of more than k votes for sentence_2, bdtr(k, n, p)
    # is that of at most k votes. A draw is possible only if the number of others is even.
    n_others = raters - 1
    if n_others % 2:
        majority = bdtrc(n_others // 2, n_others, shares)
    else:
        p_more = bdtrc(n_others // 2, n_others, shares)
        p_fewer = bdtr(n_others // 2 - 1, n_others, shares)
        majority = (p_more + 1 - p_fewer) / 2
    return np.asarray(shares * majority + (1 - shares) * (1 - majority))


@dataclass(frozen=True, eq=False)
class TrialPreferences:
    """Preferences of models on the trials of a design, or of one scope of it (a set of trials).

    A trial evaluates a model if people's choices on this trial count in the model's accuracy.

    Attributes:
        differences: (n_trials, n_models), log p(sentence_2) - log p(sentence_1), nats.
        evaluates: (n_trials, n_models), whether the trial evaluates the model.
        groups: (n_trials,), 0-based group of the trial.
        strata: (n_trials,), index of the trial's stratum: its condition and its pair of models.
        scopes: scope → (n_trials, n_models), whether the trial evaluates the model in this scope,
            as in `analyze`. Scopes without trials are left out. The results of `of_trials` and
            `of_scope` have an empty mapping.
    """

    models: tuple[str, ...]
    differences: FloatArray
    evaluates: BoolArray
    groups: IntArray
    strata: IntArray
    scopes: Mapping[Scope, BoolArray] = field(default_factory=dict)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    @property
    def min_trials(self) -> int:
        """Number of trials of the smallest group."""
        return int(np.bincount(self.groups).min())

    @cached_property
    def sides(self) -> FloatArray:
        """(n_trials, n_models): 1 if a model prefers sentence_2, -1 for sentence_1, 0 for a tie."""
        return np.sign(self.differences)

    def of_trials(self, rows: IntArray) -> TrialPreferences:
        """Return the preferences on the trials with the indices `rows`, in this order."""
        by_trial = ("differences", "evaluates", "groups", "strata")
        arrays = {name: getattr(self, name)[rows] for name in by_trial}
        return replace(self, **arrays, scopes={})

    def rows(self, scope: Scope) -> IntArray:
        """Return the indices of a scope's trials."""
        return np.flatnonzero(self.scopes[scope].any(axis=1))

    def of_scope(self, scope: Scope) -> TrialPreferences:
        """Return the preferences on a scope's trials; `evaluates` is that of the scope."""
        return replace(self, evaluates=self.scopes[scope]).of_trials(self.rows(scope))

    def with_trials(self) -> TrialPreferences:
        """Return the preferences of the models that at least one trial evaluates."""
        evaluated = np.flatnonzero(self.evaluates.any(axis=0))
        return replace(
            self,
            models=tuple(self.models[model] for model in evaluated),
            differences=self.differences[:, evaluated],
            evaluates=self.evaluates[:, evaluated],
        )

    def rows_by_group(self, groups: int | None = None) -> list[IntArray]:
        """Return the indices of each group's trials, an (n_trials,) array for each group.

        Args:
            groups: number of groups, by default the design's. A larger number repeats the design's
                groups; a smaller number leaves out the design's last groups.
        """
        numbers = (number % self.n_groups for number in range(groups or self.n_groups))
        rows_by_group = (np.flatnonzero(self.groups == number) for number in numbers)
        return [group_rows for group_rows in rows_by_group if len(group_rows)]

    def draw(
        self, rows_by_group: Iterable[IntArray], experiments: int, rng: np.random.Generator
    ) -> list[IntArray]:
        """Replace each trial by a random trial of the same kind.

        Trials of one kind have the same condition and model pair, and evaluate the same models. The
        result has an array of trial indices for each group, (n_experiments, n_trials).
        """
        keys = np.column_stack([self.strata, self.evaluates])
        kinds = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        by_kind, counts = np.argsort(kinds, kind="stable"), np.bincount(kinds)
        starts = np.cumsum(counts) - counts
        return [
            by_kind[starts[position_kinds] + rng.integers(counts[position_kinds], size=size)]
            for group_rows in rows_by_group
            for position_kinds, size in [(kinds[group_rows], (experiments, len(group_rows)))]
        ]

    def thinned_rows(self, per_group: int, *, seed: int = 0) -> IntArray:
        """Return indices of trials, spread evenly over model pairs.

        `per_group` is the number of trials of each group, at most `min_trials`.
        """
        order = even_orders(self.strata, 1, np.random.default_rng(seed))[0]
        groups = self.groups[order]
        return np.concatenate([order[groups == group][:per_group] for group in np.unique(groups)])


def even_orders(strata: IntArray, simulations: int, rng: np.random.Generator) -> IntArray:
    """Return random orders of trials, (n_simulations, n_trials), which mix the strata evenly."""
    # The k trials of a stratum get the sort keys (0 + u) / k, (1 + u) / k, … in random order; each
    # u is a random number between 0 and 1. So strata of equal size alternate, and larger strata
    # occur more often, in proportion to their size.
    keys = rng.random((simulations, len(strata)))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        keys[:, members] += np.argsort(np.argsort(keys[:, members], axis=1), axis=1)
        keys[:, members] /= len(members)
    return np.argsort(keys, axis=1)


def preferences_by_scope(trials: Iterable[Trial], table: ScoreTable) -> TrialPreferences:
    """Return the models' preferences on all trials except catch trials, with all scopes.

    A trial evaluates the models that it targets, or all models if it targets none. Scores are
    matched by the texts of sentences. Two sentences of probability zero are a tie.

    Raises:
        InputError: if sentences have no scores, a trial targets a model without scores, or all
            trials are catch trials.
    """
    test_trials = [trial for trial in trials if trial.condition != Condition.CATCH]
    if not test_trials:
        raise InputError(
            "All trials are catch trials, so there is nothing to simulate. Use a design with "
            "other trials."
        )
    log_probs = trial_log_probs(test_trials, table)
    pairs = [(trial.model_1, trial.model_2) for trial in test_trials]
    for model in sorted({model for pair in pairs for model in pair} - {""}):
        table.column(model)
    kinds = [(trial.condition, *pair) for trial, pair in zip(test_trials, pairs, strict=True)]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    masks = {s: mask for s in Scope if (mask := scope_mask(test_trials, s, table.models).T).any()}
    return TrialPreferences(
        table.models,
        log_ratios(log_probs).T,
        np.array([[pair == ("", "") or m in pair for m in table.models] for pair in pairs]),
        np.array([trial.group - 1 for trial in test_trials]),
        np.array([numbers[kind] for kind in kinds]),
        masks,
    )
