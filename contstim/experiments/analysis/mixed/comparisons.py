"""Mixed models of several language models on the same ratings, and which of them fits better.

Which of two models fits better is the difference of their log-likelihoods. How sure it is, is asked
as Vuong (1989) asked for models that are not nested: contributions to the difference vary between
units that were drawn at random, and the sum's variance follows from theirs. Here two kinds of units
were drawn, trials and participants. By the delta method, the influence of a trial is the logarithm
of its ratings' likelihood, integrated over the trial's effect, with participants' effects where
they are likeliest; that of a participant likewise; and the variances of both add, less that of
single ratings, which both hold (Cameron, Gelbach & Miller 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import false_discovery
from contstim.experiments.analysis.mixed.models import TESTING, MixedSettings, fit_mixed, fit_name
from contstim.tables import columns_of, frame_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from _typeshed import DataclassInstance
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from contstim.experiments.analysis.mixed.models import MixedCoefficient, MixedFit
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Condition


@dataclass(frozen=True)
class FitSummary:
    """A fit in one row.

    Attributes:
        models: joined by ` + `.
        log_likelihood: by the Laplace approximation, nats.
        parameters: how many were estimated.
        aic: Akaike's information criterion.
        gain: the log-likelihood less that of the fit without models.
        trials_explained: by how much the variance of trials falls from the fit without models, as a
            share; nan where trials have no effect.
        ratings: how many.
        sided: for how many of them it was recorded on which side the sentences were shown.
        participants: how many.
        trials: how many.
    """

    models: str
    log_likelihood: float
    parameters: int
    aic: float
    gain: float
    trials_explained: float
    ratings: int
    sided: int
    participants: int
    trials: int


@dataclass(frozen=True)
class FitComparison:
    """Comparison of how well two models fit people's ratings.

    Attributes:
        first: a model.
        second: another.
        difference: log-likelihood of the first less that of the second, nats.
        standard_error: over trials and participants (see the module).
        low: the interval's lower end.
        high: its upper end.
        statistic: difference / standard_error.
        freedom: degrees of freedom, one less than the fewer of participants and trials.
        p_value: two-sided, by Student's t.
        adjusted: by Benjamini and Hochberg, over the family.
        family: what that is.
    """

    first: str
    second: str
    difference: float
    standard_error: float
    low: float
    high: float
    statistic: float
    freedom: int
    p_value: float
    adjusted: float
    family: str


@dataclass(frozen=True)
class FitAddition:
    """Contribution of a model beyond others.

    Attributes:
        model: the one that is added.
        beyond: those that are there already.
        estimate: its coefficient, per nat (or unit of ranks), beside the others.
        standard_error: of it.
        low: the interval's lower end.
        high: its upper end.
        p_value: two-sided.
        typical_effect: of a ratio of typical size.
        gain: by how much the log-likelihood rises.
        aic_gain: by how much AIC falls; below zero the model adds less than it costs.
        adjusted: the p-value by Benjamini and Hochberg, over the family.
        family: what that is.
    """

    model: str
    beyond: str
    estimate: float
    standard_error: float
    low: float
    high: float
    p_value: float
    typical_effect: float
    gain: float
    aic_gain: float
    adjusted: float
    family: str


@dataclass(frozen=True, eq=False)
class MixedAnalysis:
    """Mixed models of the same ratings.

    Attributes:
        settings: of all fits.
        empty: the fit without models.
        fits: one for each model that can be fitted, in the order of the scores.
        joint: those of several models.
        comparisons: every pair of models.
        additions: what each model adds to others.
        left_out: models that cannot be fitted, and why.
    """

    settings: MixedSettings
    empty: MixedFit
    fits: tuple[MixedFit, ...]
    joint: tuple[MixedFit, ...]
    comparisons: tuple[FitComparison, ...]
    additions: tuple[FitAddition, ...]
    left_out: Mapping[str, str]

    @property
    def summaries(self) -> tuple[FitSummary, ...]:
        """A row a fit: that without models, each model, several models."""
        every = self.empty.estimates.parameters.trials**2
        return tuple(
            FitSummary(
                fit_name(fit.models),
                fit.log_likelihood,
                fit.parameters,
                fit.aic,
                fit.log_likelihood - self.empty.log_likelihood,
                1 - fit.estimates.parameters.trials**2 / every if every > 0 else float("nan"),
                fit.ratings,
                fit.sided,
                fit.participants,
                fit.trials,
            )
            for fit in (self.empty, *self.fits, *self.joint)
        )

    @property
    def coefficients_capped(self) -> tuple[MixedCoefficient, ...]:
        """Coefficients of models with infinite ratios, each fitted alone."""
        return tuple(row for fit in self.fits for row in fit.coefficients if row.capped)

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Columns of every table, by its name; one without rows has none."""
        every = (self.empty, *self.fits, *self.joint)
        rows: dict[str, Sequence[DataclassInstance]] = {
            "fits": self.summaries,
            "coefficients": [row for fit in every for row in fit.coefficients],
            "variances": [row for fit in every for row in fit.variances],
            "thresholds": [row for fit in every for row in fit.thresholds],
            "comparisons": self.comparisons,
            "additions": self.additions,
        }
        return {
            name: columns_of(type(kind[0]), kind) if kind else {} for name, kind in rows.items()
        }

    def to_frame(self, name: str = "fits") -> DataFrame:
        """One of the tables: fits, coefficients, variances, thresholds, comparisons, additions.

        Raises:
            InputError: there is no table of this name.
        """
        tables = self.tables()
        if name not in tables:
            raise InputError(
                f"{name!r} is not a table of mixed models; there are {', '.join(tables)}."
            )
        return frame_of(tables[name])


def compare_mixed(
    ratings: Ratings,
    settings: MixedSettings | None = None,
    *,
    conditions: Collection[Condition] = TESTING,
    models: Sequence[str] | None = None,
    together: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> MixedAnalysis:
    """Fit a mixed model for each language model, and compare them on the same ratings.

    Args:
        ratings: who rated what, and the models' log-probabilities.
        settings: of the mixed models.
        conditions: which trials; by default all but catch trials.
        models: which; all by default.
        together: also fit every two models together, and all of them, and ask what each adds.
        progress: told how many of how many fits are done.

    Raises:
        InputError: see `fit_mixed`; a model for which alone it cannot be done is left out, unless
            no other is left.
    """
    settings, models = settings or MixedSettings(), list(models or ratings.models)
    total, done = 1 + len(models), 0

    def fit(names: Sequence[str]) -> MixedFit:
        nonlocal done
        progress(done, total)
        done += 1
        return fit_mixed(ratings, names, settings, conditions=conditions)

    empty = fit(())
    fits, left_out = [], {}
    for model in models:
        try:
            fits.append(fit([model]))
        except InputError as error:
            if not fits and model == models[-1]:
                raise
            left_out[model] = str(error)
    joint, additions = [], []
    if together and len(fits) > 1:
        alone = {each.models[0]: each for each in fits}
        pairs = list(combinations(alone, 2))
        total += len(pairs) + (len(alone) > 2)
        joint = [fit(pair) for pair in pairs]
        by_pair = {frozenset(each.models): each for each in joint}
        rows = [
            (by_pair[frozenset(pair)][pair[0]], alone[pair[1]], by_pair[frozenset(pair)])
            for pair in permutations(alone, 2)
        ]
        additions = _additions(rows)
        if len(alone) > 2:
            joint.append(fit(list(alone)))
    progress(total, total)
    return MixedAnalysis(
        settings,
        empty,
        tuple(fits),
        tuple(joint),
        compare_fits(fits, settings.level),
        tuple(additions),
        left_out,
    )


def compare_fits(fits: Sequence[MixedFit], level: float = 0.95) -> tuple[FitComparison, ...]:
    """Every pair of fits to the same ratings, with the variance over trials and participants.

    Args:
        fits: of the same ratings, with as many parameters each.
        level: of the intervals.

    Raises:
        InputError: the fits are of different ratings.
    """
    from scipy.stats import t as student

    if len({fit.trial_ids for fit in fits}) > 1 or len({fit.ratings for fit in fits}) > 1:
        raise InputError("Only fits to the same ratings can be compared.")
    rows = []
    for first, second in combinations(fits, 2):
        pairs = list(zip(first.estimates.blocks, second.estimates.blocks, strict=True))
        of_trials, of_people, of_ratings = (
            np.concatenate(differences)
            for differences in (
                [a.of_trials - b.of_trials for a, b in pairs],
                [a.of_participants - b.of_participants for a, b in pairs],
                [(a.of_ratings - b.of_ratings).ravel() for a, b in pairs],
            )
        )
        by_trials, by_people = _sum_variance(of_trials), _sum_variance(of_people)
        # A difference of variances can come out too small where units are few
        both = by_trials + by_people - _sum_variance(of_ratings)
        error = float(np.sqrt(max(both, by_trials, by_people)))
        difference = first.log_likelihood - second.log_likelihood
        # One participant, or one trial, is no sample: the test speaks of the other factor alone.
        freedom = min(len(units) for units in (of_trials, of_people) if len(units) > 1) - 1
        reach = float(student.ppf((1 + level) / 2, freedom)) * error
        # Two models with the same ratios fit alike, without any uncertainty
        statistic = difference / error if error > 0 else 0.0
        rows.append(
            (
                (first.name, second.name, difference, error, difference - reach),
                (difference + reach, statistic, freedom),
                float(2 * student.sf(abs(statistic), freedom)),
            )
        )
    adjusted = false_discovery(np.array([p_value for *_, p_value in rows]))
    family = counted(len(rows), "pair of models", "pairs of models")
    return tuple(
        FitComparison(*first, *second, p_value, q_value, family)
        for (first, second, p_value), q_value in zip(rows, adjusted.tolist(), strict=True)
    )


def _sum_variance(contributions: ArrayLike) -> float:
    """The variance of the sum of independent contributions, as their scatter tells it."""
    values = np.asarray(contributions, np.float64)
    if len(values) < 2:
        return 0.0
    return float(len(values) * values.var(ddof=1))


def _additions(
    rows: Iterable[tuple[MixedCoefficient, MixedFit, MixedFit]],
) -> list[FitAddition]:
    rows = list(rows)
    adjusted = false_discovery(np.array([row.p_value for row, _, _ in rows]))
    family = counted(len(rows), "ordered pair of models", "ordered pairs of models")
    return [
        FitAddition(
            row.model,
            before.name,
            row.estimate,
            row.standard_error,
            row.low,
            row.high,
            row.p_value,
            row.typical_effect,
            after.log_likelihood - before.log_likelihood,
            before.aic - after.aic,
            q_value,
            family,
        )
        for (row, before, after), q_value in zip(rows, adjusted.tolist(), strict=True)
    ]
