"""Ratings on models' log-probability ratios, with random effects of participants and trials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import SINGLE_TESTS
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.mixed.fitting import (
    ThresholdKind,
    fit_blocks,
    threshold_scheme,
)
from contstim.experiments.analysis.mixed.laplace import RatedBlock
from contstim.experiments.analysis.mixed.links import Link
from contstim.experiments.analysis.ratings import Ratings, subset
from contstim.stimuli import Condition
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.mixed.fitting import MixedEstimates, ThresholdScheme

TESTING = tuple(condition for condition in Condition if condition is not Condition.CATCH)
"""The conditions that say something of models: catch trials only ask whether people attend."""


PeopleEffects: TypeAlias = Literal["none", "intercept", "slopes"]
RatioScale: TypeAlias = Literal["nats", "ranks"]


@dataclass(frozen=True)
class MixedSettings:
    """The mixed model of an analysis.

    Attributes:
        link: probit or logit.
        thresholds: symmetric, so that it does not matter which sentence of a trial is sentence_1;
            or flexible, as R's `clmm` has them by default, with which results depend on it.
        people: none, so that participants differ in nothing; intercept, in their leaning towards
            the side on which a sentence is shown; or slopes, also in how much they follow each
            model. Without slopes a coefficient speaks of these participants, and its standard error
            is too small for others. Intercept and slopes are independent. Ratings without a
            recorded side have no leaning.
        items: whether trials differ beyond what the ratios say. A trial has one ratio of each
            model, so that a slope of its own cannot be told from its intercept.
        ratios: in nats, an infinite one as large as the model's largest finite one, or their
            signed ranks among the trials, divided by the number of trials.
        level: of the intervals.
    """

    link: Link = "probit"
    thresholds: ThresholdKind = "symmetric"
    people: PeopleEffects = "slopes"
    items: bool = True
    ratios: RatioScale = "nats"
    level: float = 0.95

    def __post_init__(self) -> None:
        for name, allowed in (
            ("link", get_args(Link)),
            ("thresholds", get_args(ThresholdKind)),
            ("people", get_args(PeopleEffects)),
            ("ratios", get_args(RatioScale)),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}; there are {', '.join(allowed)}."
                )


@dataclass(frozen=True)
class MixedCoefficient:
    """Coefficient of a model's ratio in the hidden value behind a rating.

    The unit of that value is the standard deviation of the noise for probit, log odds for logit.

    Attributes:
        models: of the fit, joined by ` + `.
        model: whose ratio.
        estimate: per nat, or per unit of the signed ranks.
        standard_error: from the second derivatives of the log-likelihood.
        low: the interval's lower end.
        high: its upper end.
        statistic: estimate / standard_error.
        freedom: degrees of freedom, one less than the fewer of the units that are drawn at random:
            trials, and participants where each has a slope; ratings where neither is.
        p_value: two-sided, by Student's t.
        typical_ratio: root mean square of the ratios.
        typical_effect: of a ratio of this size, to compare models by.
        capped: trials with an infinite ratio, taken to be as large as `cap`.
        cap: the largest finite ratio.
        family: of tests that p-values are adjusted for; there is none.
    """

    models: str
    model: str
    estimate: float
    standard_error: float
    low: float
    high: float
    statistic: float
    freedom: int
    p_value: float
    typical_ratio: float
    typical_effect: float
    capped: int
    cap: float
    family: str


@dataclass(frozen=True)
class MixedVariance:
    """Variance of participants or trials.

    Attributes:
        models: of the fit, joined by ` + `.
        factor: participants or trials.
        effect: the intercept (of participants: their leaning towards a side), or the model whose
            slope it is.
        levels: how many participants or trials.
        standard_deviation: in the unit of the hidden value; of a slope, of a ratio of typical size.
        variance: its square.
    """

    models: str
    factor: str
    effect: str
    levels: int
    standard_deviation: float
    variance: float


@dataclass(frozen=True)
class MixedThreshold:
    """A threshold between two ratings; those between the mirrored ratings have the other sign.

    Attributes:
        models: of the fit, joined by ` + `.
        threshold: the ratings, such as 4|5.
        estimate: in the unit of the hidden value.
        standard_error: from the second derivatives of the log-likelihood.
    """

    models: str
    threshold: str
    estimate: float
    standard_error: float


@dataclass(frozen=True)
class TrialEffect:
    """Intercept of a trial, as estimated: what people think of it beyond a model's ratio.

    Attributes:
        trial_id: the trial's.
        estimate: the likeliest value, drawn towards zero the more, the fewer people rated the
            trial; above zero towards sentence_2.
        standard_error: the standard deviation of what is left uncertain.
    """

    trial_id: str
    estimate: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class MixedFit:
    """An ordinal mixed model of ratings.

    Attributes:
        models: whose ratios it holds; none for the model without ratios.
        settings: how it was fitted.
        coefficients: a row a model.
        thresholds: a row a threshold that is estimated.
        variances: a row a random effect.
        log_likelihood: by the Laplace approximation, nats.
        parameters: how many were estimated.
        ratings: how many.
        sided: for how many of them it was recorded on which side the sentences were shown.
        participants: how many.
        trials: how many.
        estimates: those behind the rows, for predictors of unit size.
        trial_ids: of each group's trials.
    """

    models: tuple[str, ...]
    settings: MixedSettings
    coefficients: tuple[MixedCoefficient, ...]
    thresholds: tuple[MixedThreshold, ...]
    variances: tuple[MixedVariance, ...]
    log_likelihood: float
    parameters: int
    ratings: int
    sided: int
    participants: int
    trials: int
    estimates: MixedEstimates
    trial_ids: tuple[tuple[str, ...], ...]

    @property
    def name(self) -> str:
        """The models, joined."""
        return fit_name(self.models)

    @property
    def aic(self) -> float:
        """Akaike's information criterion: smaller is better."""
        return 2 * self.parameters - 2 * self.log_likelihood

    @cached_property
    def trial_effects(self) -> tuple[TrialEffect, ...]:
        """Every trial's intercept, empty where trials have none."""
        scale = self.estimates.parameters.trials
        return tuple(
            TrialEffect(name, float(scale * mode), float(scale * np.sqrt(variance)))
            for names, block in zip(self.trial_ids, self.estimates.blocks, strict=True)
            for name, mode, variance in zip(
                names, block.modes.trials, block.trial_variances, strict=True
            )
            if self.settings.items
        )

    def __getitem__(self, model: str) -> MixedCoefficient:
        return next(row for row in self.coefficients if row.model == model)


def fit_name(models: Sequence[str]) -> str:
    """Name of a fit in tables."""
    return " + ".join(models) or "(no model)"


def fit_mixed(
    ratings: Ratings,
    models: Sequence[str],
    settings: MixedSettings | None = None,
    *,
    conditions: Collection[Condition] = TESTING,
) -> MixedFit:
    """Fit a cumulative mixed model of ratings on the log-probability ratios of models.

    Ratios are log p(sentence_2) - log p(sentence_1). With several models each coefficient is what
    that model adds to the others; without any, thresholds and random effects alone are fitted.
    The same likelihood, by the same approximation, as R's `ordinal::clmm` (Christensen 2019). Of
    choices, and of ratings of one degree of confidence, it is a binary probit (or logit) without an
    intercept.

    Args:
        ratings: who rated what, and the models' log-probabilities.
        models: whose ratios.
        settings: of the model.
        conditions: which trials; by default all but catch trials.

    Raises:
        InputError: there is no such model or trial; a random effect has nothing to vary over (one
            participant, one trial, no trial that two people rated); all ratings are equal; a model
            ties everywhere or has no finite ratio; models follow from one another; or ratings
            follow the ratios without exception.
    """
    settings = settings or MixedSettings()
    unknown = [model for model in models if model not in ratings.models]
    if unknown or len(set(models)) < len(models):
        raise InputError(
            f"The models of a fit are {', '.join(models)}; each must be one of "
            f"{', '.join(ratings.models)}, and named once."
        )
    chosen = [[trial.condition in conditions for trial in group.trials] for group in ratings.groups]
    rated = subset(ratings, [np.array(columns, dtype=bool) for columns in chosen])
    if not rated.groups:
        raise InputError("There are no trials of these conditions to fit a mixed model to.")
    every = np.concatenate([group.ratings.ravel() for group in rated.groups])
    scheme = threshold_scheme(settings.thresholds, every.astype(np.int64), rated.scale)
    _require_variation(rated, settings)
    predictors = [_Predictor.of(rated, model, settings) for model in models]
    blocks = _blocks(rated, predictors, scheme, settings)
    estimates = fit_blocks(settings.link, scheme, blocks, trials_vary=settings.items)
    return _results(rated, predictors, scheme, settings, estimates)


def _blocks(
    rated: Ratings,
    predictors: Sequence[_Predictor],
    scheme: ThresholdScheme,
    settings: MixedSettings,
) -> list[RatedBlock]:
    """The ratings of each group as levels, and what is multiplied with slopes and effects."""
    n_trials = sum(len(group.trials) for group in rated.groups)
    values = np.zeros((n_trials, len(predictors)))
    for column, predictor in enumerate(predictors):
        values[:, column] = predictor.values
    # With flexible thresholds a ratio that is the same everywhere is an intercept, which they hold
    ones = np.ones((n_trials, 1))
    columns = np.hstack([ones, values]) if settings.thresholds == "flexible" else values
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        raise InputError(
            f"The ratios of {fit_name([p.model for p in predictors])} follow from one another (or "
            "are the same on every trial), so that no coefficient can be told from the rest. Leave "
            "models out."
        )
    last = rated.scale.answers[-1]
    level_of = np.array([scheme.level_of.get(rating, 0) for rating in range(last + 1)])
    blocks, start = [], 0
    for group in rated.groups:
        rows = slice(start, start + len(group.trials))
        levels = level_of[group.ratings.astype(np.int64)]
        # Positive towards the side on the left, where sentence_2 (1) or sentence_1 (-1) stood; 0
        # where this is not known. Exchanging the sentences of a trial turns all that stands here.
        sides = np.array([0.0, -1.0, 1.0])[group.left.astype(np.int64), None]
        slopes = np.broadcast_to(values[rows], (*levels.shape, len(predictors)))
        leanings = sides[..., : settings.people != "none" and rated.sided > 0]
        followings = slopes[..., : len(predictors) * (settings.people == "slopes")]
        effects = np.concatenate([leanings, followings], axis=-1)
        blocks.append(RatedBlock(levels, values[rows], effects))
        start = rows.stop
    return blocks


def _results(
    rated: Ratings,
    predictors: Sequence[_Predictor],
    scheme: ThresholdScheme,
    settings: MixedSettings,
    estimates: MixedEstimates,
) -> MixedFit:
    """The estimates as rows of tables."""
    models = tuple(predictor.model for predictor in predictors)
    name, n = fit_name(models), len(scheme.names)
    parameters, people = estimates.parameters, len(rated.participants)
    n_trials = sum(len(group.trials) for group in rated.groups)
    n_ratings = sum(group.ratings.size for group in rated.groups)
    # Of a few people's slopes the mean is less sure than the normal distribution has it
    units = [n_trials] * settings.items + [people] * (settings.people == "slopes")
    freedom = min(units, default=n_ratings) - 1
    slopes, thresholds = parameters.slopes.tolist(), estimates.estimated[:n].tolist()
    errors = np.sqrt(np.diag(estimates.covariance)).tolist()
    coefficients = [
        predictor.coefficient(name, slope, error, settings.level, freedom)
        for predictor, slope, error in zip(predictors, slopes, errors[n:], strict=True)
    ]
    rows = zip(scheme.names, thresholds, errors[:n], strict=True)
    deviations = [("trials", "intercept", n_trials, parameters.trials)] * settings.items
    of_people = zip(
        (*["intercept"] * (rated.sided > 0), *models),
        parameters.participants.tolist(),
        strict=False,
    )
    deviations += [("participants", effect, people, deviation) for effect, deviation in of_people]
    return MixedFit(
        models,
        settings,
        tuple(coefficients),
        tuple(MixedThreshold(name, *row) for row in rows),
        tuple(MixedVariance(name, *row, row[-1] ** 2) for row in deviations),
        estimates.log_likelihood,
        estimates.n_parameters,
        n_ratings,
        rated.sided,
        people,
        n_trials,
        estimates,
        tuple(tuple(trial.trial_id for trial in group.trials) for group in rated.groups),
    )


@dataclass(frozen=True, eq=False)
class _Predictor:
    """A model's ratios on all trials, divided by their typical size.

    Attributes:
        model: whose.
        values: (n_trials,) of unit size, group after group.
        typical: what they were divided by.
        capped: how many were infinite.
        cap: what these became.
    """

    model: str
    values: FloatArray
    typical: float
    capped: int
    cap: float

    @classmethod
    def of(cls, rated: Ratings, model: str, settings: MixedSettings) -> _Predictor:
        row = rated.models.index(model)
        ratios = np.concatenate([group.ratios[row] for group in rated.groups])
        if not np.any(ratios):
            raise InputError(
                f"{model} prefers neither sentence on any of {counted(len(ratios), 'trial')}: with "
                "ties everywhere it predicts nothing. Leave it out."
            )
        if settings.ratios == "ranks":
            # Infinite ratios rank highest, so that none is capped
            ranks = signed_ranks(ratios) / len(ratios)
            typical = float(np.sqrt((ranks**2).mean()))
            return cls(model, ranks / typical, typical, 0, float(np.abs(ranks).max()))
        finite = np.isfinite(ratios)
        cap = float(np.abs(ratios[finite]).max(initial=0))
        if cap == 0:
            raise InputError(
                f"Every ratio of {model} is infinite or zero: no finite one says how large they "
                "are. Take ranks for ratios, or leave it out."
            )
        capped = np.clip(ratios, -cap, cap)
        typical = float(np.sqrt((capped**2).mean()))
        return cls(model, capped / typical, typical, int((~finite).sum()), cap)

    def coefficient(
        self, models: str, slope: float, error: float, level: float, freedom: int
    ) -> MixedCoefficient:
        """A row of the table, in the unit of the ratios."""
        from scipy.stats import t as student

        statistic, quantile = slope / error, float(student.ppf((1 + level) / 2, freedom))
        return MixedCoefficient(
            models,
            self.model,
            slope / self.typical,
            error / self.typical,
            (slope - quantile * error) / self.typical,
            (slope + quantile * error) / self.typical,
            statistic,
            freedom,
            float(2 * student.sf(abs(statistic), freedom)),
            self.typical,
            slope,
            self.capped,
            self.cap,
            SINGLE_TESTS,
        )


def _require_variation(rated: Ratings, settings: MixedSettings) -> None:
    """Make sure that random effects have something to vary over."""
    people = len(rated.participants)
    trials = sum(len(group.trials) for group in rated.groups)
    if settings.people != "none" and people < 2:
        raise InputError(
            f"How participants vary cannot be told from {counted(people, 'participant')}: it takes "
            "two at least. Fit without effects of participants, for this participant alone."
        )
    if settings.people != "none" and all(len(g.trials) < 2 for g in rated.groups):
        raise InputError(
            "Everybody rated one trial, so that people cannot be told from trials. Fit without "
            "effects of participants."
        )
    if settings.items and trials < 2:
        raise InputError(
            f"How trials vary cannot be told from {counted(trials, 'trial')}: it takes two at "
            "least. Fit without effects of items, for this trial alone."
        )
    if settings.items and all(len(group.participants) < 2 for group in rated.groups):
        raise InputError(
            "No trial was rated by two people, so that what a trial adds cannot be told from "
            "chance. Fit without effects of items."
        )
    if settings.items and all((group.ratings == group.ratings[0]).all() for group in rated.groups):
        raise InputError(
            "Everybody rated every trial alike, so that no finite variance of trials fits best. "
            "Fit without effects of items, or add people who differ."
        )
