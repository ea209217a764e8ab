"""Ordinal regression of ratings on models' log-probability ratios, with random effects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import SINGLE_TESTS
from contstim.experiments.analysis.intervals import Estimate
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.mixed.fitting import ThresholdKind, fit_blocks, threshold_scheme
from contstim.experiments.analysis.mixed.laplace import Link, RatedBlock
from contstim.experiments.analysis.ratings import TESTING, Ratings, subset
from contstim.options import Help
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from contstim.experiments.analysis.mixed.fitting import ThresholdScheme
    from contstim.experiments.analysis.mixed.laplace import BlockLikelihood, MixedParameters
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Condition

PeopleEffects: TypeAlias = Literal["slopes", "intercept", "none"]
RatioScale: TypeAlias = Literal["nats", "ranks"]


@dataclass(frozen=True)
class MixedSettings:
    """The mixed model of an analysis.

    The predictors are ratios: a model's log p(sentence_2) - log p(sentence_1) for each trial.

    Attributes:
        thresholds: "symmetric" or "flexible". With symmetric thresholds, the order of a trial's
            sentences does not matter. Flexible thresholds are the default of R's `clmm`; results
            then depend on this order.
        people: random effects of participants. "none" has no effects. "intercept" has a bias
            towards the sentence on the left or right side of the screen. "slopes" has this bias,
            and a slope for each model's ratio. Without slopes, the standard error of a coefficient
            ignores that slopes differ between participants. The error is then too small for
            conclusions about new participants. Intercept and slopes are independent. If no sides
            are recorded, there is no side bias.
        items: whether trials have random intercepts. A trial has only one ratio for each model, so
            a random slope of trials could not be distinguished from the intercept of trials.
        ratios: "nats" or "ranks". With nats, the model's largest finite ratio replaces infinite
            ratios. Ranks are signed ranks of the ratios among the trials, divided by the number of
            trials.
    """

    link: Annotated[Link, Help("probit for normal noise, logit for logistic noise.")] = "probit"
    thresholds: Annotated[
        ThresholdKind,
        Help("flexible: as in R's clmm; results depend on which sentence is sentence_1."),
    ] = "symmetric"
    people: Annotated[
        PeopleEffects,
        Help("Whether participants differ in slopes and intercepts, in intercepts, or not."),
    ] = "slopes"
    items: bool = True
    ratios: Annotated[RatioScale, Help("Ratios in nats, or their signed ranks.")] = "nats"
    level: float = 0.95

    def __post_init__(self) -> None:
        kinds = {"link": Link, "thresholds": ThresholdKind, "people": PeopleEffects}
        for name, kind in (kinds | {"ratios": RatioScale}).items():
            if getattr(self, name) not in get_args(kind):
                allowed = ", ".join(get_args(kind))
                raise InputError(f"`{name}` must be one of {allowed}, got {getattr(self, name)!r}.")


@dataclass(frozen=True, eq=False)
class MixedFit:
    """An ordinal mixed model of ratings.

    Attributes:
        models: models whose ratios are predictors; may be empty.
        rated: the ratings; slider ratings are grouped (see `Scale.grouped`).
        sizes: three numbers for each model: the typical size of its ratios, by which they are
            divided; the number of infinite ratios; and the finite ratio that replaces infinite
            ratios.
        parameters: parameters for predictors of unit size; see `fitting.Estimates`.
        estimated: estimated thresholds, followed by estimated slopes.
        blocks: log-likelihood for each group of participants.
    """

    models: tuple[str, ...]
    settings: MixedSettings
    rated: Ratings
    sizes: tuple[tuple[float, int, float], ...]
    scheme: ThresholdScheme
    parameters: MixedParameters
    estimated: FloatArray
    errors: list[float]
    blocks: tuple[BlockLikelihood, ...]

    @property
    def name(self) -> str:
        """Names of the models, joined by ` + `."""
        return fit_name(self.models)

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood by the Laplace approximation, nats."""
        return sum(block.log_likelihood for block in self.blocks)

    @property
    def aic(self) -> float:
        """Akaike's information criterion: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def n_parameters(self) -> int:
        """Number of thresholds, slopes, and standard deviations."""
        return len(self.estimated) + len(self.parameters.participants) + self.settings.items

    @cached_property
    def coefficients(self) -> list[Row]:
        """Effects of the models' ratios on the latent value of a rating.

        For probit, the unit of latent values is the standard deviation of the noise. For logit, it
        is log odds. The estimate is per nat, or per unit of the signed ranks. The second
        derivatives of the log-likelihood give its standard error. Degrees of freedom are n - 1. If
        trials have intercepts, n is the number of trials. If participants have slopes, n is the
        number of participants. If both are true, n is the smaller number. If neither is true, n is
        the number of ratings. `typical_ratio` is the root mean square of the ratios.
        `typical_effect` is the effect of a ratio of this size, and can be compared between models.
        `capped` counts trials with an infinite ratio. `cap`, the largest finite ratio, replaces
        infinite ratios. P-values are not adjusted.
        """
        units = [self.rated.n_trials] * self.settings.items
        units += [len(self.rated.participants)] * (self.settings.people == "slopes")
        freedom, level = min(units, default=self.rated.size) - 1, self.settings.level
        slopes = self.parameters.slopes.tolist()
        errors = self.errors[len(self.scheme.names) :]
        return [
            {
                "models": self.name,
                "model": model,
                "estimate": Estimate.by_t(slope / typical, error / typical, freedom, level),
                "typical_ratio": typical,
                "typical_effect": slope,
                "capped": capped,
                "cap": cap,
                "family": SINGLE_TESTS,
            }
            for model, (typical, capped, cap), slope, error in zip(
                self.models, self.sizes, slopes, errors, strict=True
            )
        ]

    @property
    def thresholds(self) -> list[Row]:
        """Estimated thresholds, such as `4|5`, with their standard errors.

        Symmetric thresholds have opposite signs. On a scale from 1 to 6, for example, the threshold
        `2|3` is minus the threshold `4|5`, and has no row.
        """
        rows = zip(self.scheme.names, self.estimated.tolist(), self.errors, strict=False)
        names = ("models", "threshold", "estimate", "standard_error")
        return [dict(zip(names, (self.name, *row), strict=True)) for row in rows]

    @property
    def variances(self) -> list[Row]:
        """Standard deviations and variances of the effects of trials and participants.

        `levels` is the number of trials or participants. `effect` is `intercept` (for participants,
        the side bias) or the name of a model whose slope varies. The unit of slopes is the effect
        of a ratio of typical size.
        """
        parameters, people = self.parameters, len(self.rated.participants)
        effects = [("trials", "intercept", self.rated.n_trials, parameters.trials)]
        effects *= self.settings.items
        names = ["intercept"] * (self.rated.sided > 0) + [*self.models]
        for effect, deviation in zip(names, parameters.participants.tolist(), strict=False):
            effects.append(("participants", effect, people, deviation))
        return [
            {
                "models": self.name,
                "factor": factor,
                "effect": effect,
                "levels": levels,
                "standard_deviation": deviation,
                "variance": deviation**2,
            }
            for factor, effect, levels, deviation in effects
        ]

    def __getitem__(self, model: str) -> Row:
        return self.coefficients[self.models.index(model)]


def fit_name(models: Sequence[str]) -> str:
    """Return the name of a fit in tables."""
    return " + ".join(models) or "(no model)"


def fit_mixed(
    ratings: Ratings,
    models: Sequence[str],
    settings: MixedSettings | None = None,
    *,
    conditions: Collection[Condition] = TESTING,
) -> MixedFit:
    """Fit a cumulative mixed model of ratings on the log-probability ratios of models.

    Ratios are log p(sentence_2) - log p(sentence_1). With several models, each coefficient is the
    model's contribution in addition to the others. Without models, only thresholds and random
    effects are fitted. Likelihood and approximation are those of R's `ordinal::clmm` (Christensen
    2019). If answers express no confidence (choices), symmetric thresholds give a binary probit (or
    logit) model without an intercept.

    Raises:
        InputError: if a model does not exist or is named twice; if no trial has one of the
            conditions; if the variance of a random effect cannot be estimated, for example because
            there is only one participant; if all ratings are equal; if all ratios of a model are 0,
            or all are 0 or infinite; if ratios are collinear; or if the ratios separate the ratings
            perfectly.
    """
    settings = settings or MixedSettings()
    unknown = [model for model in models if model not in ratings.models]
    if unknown or len(set(models)) < len(models):
        raise InputError(
            f"The models of a fit are {', '.join(models)}; each must be one of "
            f"{', '.join(ratings.models)}, and named once."
        )
    groups = ratings.groups
    rated = subset(
        ratings, [np.array([t.condition in conditions for t in g.trials]) for g in groups]
    )
    if not rated.groups:
        raise InputError("There are no trials of these conditions to fit a mixed model to.")
    grouped = [replace(g, ratings=g.scale.grouped(g.ratings)) for g in rated.groups]
    rated = replace(rated, groups=tuple(grouped))
    all_ratings = np.concatenate(
        [group.ratings[np.isfinite(group.ratings)] for group in rated.groups]
    )
    scheme = threshold_scheme(settings.thresholds, all_ratings.astype(np.int64), rated.scale)
    _require_variation(rated, settings)
    sizes, values = [], np.zeros((rated.n_trials, len(models)))  # of unit size, in order of groups
    for column, model in enumerate(models):
        values[:, column], size = _predictor(rated, model, settings)
        sizes.append(size)
    blocks = _blocks(rated, models, values, scheme, settings)
    estimates = fit_blocks(settings.link, scheme, blocks, trials_vary=settings.items)
    return MixedFit(tuple(models), settings, rated, tuple(sizes), scheme, *estimates)


def _blocks(
    rated: Ratings,
    models: Sequence[str],
    values: FloatArray,
    scheme: ThresholdScheme,
    settings: MixedSettings,
) -> list[RatedBlock]:
    # A ratio that is the same on all trials is an intercept, which flexible thresholds include
    ones = np.ones((len(values), int(settings.thresholds == "flexible")))
    columns = np.hstack([ones, values])
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        raise InputError(
            f"The ratios of {fit_name(models)} are collinear (or the same on every trial), "
            "so the coefficients cannot be distinguished. Remove models."
        )
    last = rated.scale.answers[-1]
    level_of = np.array([scheme.level_of.get(rating, 0) for rating in range(last + 1)])
    blocks, start = [], 0
    for group in rated.groups:
        rows = slice(start, start + len(group.trials))
        is_given = np.isfinite(group.ratings)
        levels = np.where(is_given, level_of[np.nan_to_num(group.ratings).astype(np.int64)], -1)
        # 1 if sentence_2 was on the left, -1 if sentence_1 was on the left, 0 if unknown. If the
        # sentences of a trial are exchanged, sides and ratios both change sign.
        sides = np.array([0.0, -1.0, 1.0])[group.left.astype(np.int64), None]
        slopes = np.broadcast_to(values[rows], (*levels.shape, len(models)))
        side_effects = sides[..., : settings.people != "none" and rated.sided > 0]
        slope_effects = slopes[..., : len(models) * (settings.people == "slopes")]
        effects = np.concatenate([side_effects, slope_effects], axis=-1)
        blocks.append(RatedBlock(levels, values[rows], effects))
        start = rows.stop
    return blocks


def _predictor(
    rated: Ratings, model: str, settings: MixedSettings
) -> tuple[FloatArray, tuple[float, int, float]]:
    """Return a model's ratios, divided by their typical size, and its `MixedFit.sizes`."""
    row = rated.models.index(model)
    ratios = np.concatenate([group.ratios[row] for group in rated.groups])
    if not np.any(ratios):
        raise InputError(
            f"{model} prefers neither sentence on any of {quantity(len(ratios), 'trial')}: it "
            "has only ties and predicts nothing. Remove the model."
        )
    finite = np.isfinite(ratios)
    if settings.ratios == "ranks":
        # Infinite ratios have the highest ranks and are not capped
        ratios, finite = signed_ranks(ratios) / len(ratios), np.ones(len(ratios), np.bool_)
    cap = float(np.abs(ratios[finite]).max(initial=0))
    if cap == 0:
        raise InputError(
            f"Every ratio of {model} is infinite or zero, so their size is unknown. Set "
            "`ratios` to ranks, or remove the model."
        )
    ratios = np.clip(ratios, -cap, cap)
    typical = float(np.sqrt((ratios**2).mean()))
    return ratios / typical, (typical, int((~finite).sum()), cap)


def _require_variation(rated: Ratings, settings: MixedSettings) -> None:
    groups, people, trials = rated.groups, len(rated.participants), rated.n_trials
    have_one_trial = all(len(group.trials) < 2 for group in groups)
    have_one_participant = all(len(group.participants) < 2 for group in groups)
    have_equal_ratings = all((group.ratings == group.ratings[0]).all() for group in groups)
    n_people, n_trials = quantity(people, "participant"), quantity(trials, "trial")
    problems = {}
    if settings.people != "none":
        problems = {
            f"Too few participants to estimate their variance: {n_people}": people < 2,
            "Each participant rated one trial, so effects of participants and trials cannot be "
            "distinguished": have_one_trial,
        }
    if settings.items:
        problems |= {
            f"The variance of trials cannot be estimated from {n_trials}": trials < 2,
            "No trial was rated by two participants, so the variance of trials cannot be "
            "distinguished from noise": have_one_participant,
            "All participants gave the same rating in each trial, so the variance of trials "
            "is not finite": have_equal_ratings,
        }
    for problem in (text for text, is_so in problems.items() if is_so):
        raise InputError(f"{problem}. Fit without effects of participants or items, or add data.")
