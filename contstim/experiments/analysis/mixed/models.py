"""Ratings on models' log-probability ratios, with random effects of participants and trials."""

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
from contstim.wording import counted

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

    link: Annotated[Link, Help("Noise: normal or logistic.")] = "probit"
    thresholds: Annotated[
        ThresholdKind, Help("flexible: as R's clmm, depends on which sentence is sentence_1.")
    ] = "symmetric"
    people: Annotated[
        PeopleEffects,
        Help("Whether participants differ in slopes and leaning, in leaning, or not."),
    ] = "slopes"
    items: bool = True
    ratios: Annotated[RatioScale, Help("Ratios: nats or signed ranks.")] = "nats"
    level: float = 0.95

    def __post_init__(self) -> None:
        kinds = {"link": Link, "thresholds": ThresholdKind, "people": PeopleEffects}
        for name, kind in (kinds | {"ratios": RatioScale}).items():
            if getattr(self, name) not in get_args(kind):
                allowed = ", ".join(get_args(kind))
                raise InputError(f"`{name}` is {getattr(self, name)!r}; there are {allowed}.")


@dataclass(frozen=True, eq=False)
class MixedFit:
    """An ordinal mixed model of ratings.

    Attributes:
        models: whose ratios it holds; none for the model without ratios.
        settings: how it was fitted.
        rated: the ratings.
        sizes: for each model, the typical size of its ratios, by which they are divided, how many
            were infinite, and what these became.
        scheme: of the thresholds.
        parameters: for predictors of unit size; see `fitting.Estimates`.
        estimated: thresholds, then slopes.
        errors: of these.
        blocks: the log-likelihood of each group.
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
        """The models, joined."""
        return fit_name(self.models)

    @property
    def log_likelihood(self) -> float:
        """By the Laplace approximation, nats."""
        return sum(block.log_likelihood for block in self.blocks)

    @property
    def aic(self) -> float:
        """Akaike's information criterion: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def n_parameters(self) -> int:
        """Thresholds, slopes, and standard deviations."""
        return len(self.estimated) + len(self.parameters.participants) + self.settings.items

    @cached_property
    def coefficients(self) -> list[Row]:
        """The coefficient of each model's ratio in the hidden value behind a rating.

        The unit of that value is the standard deviation of the noise for probit, log odds for
        logit. The estimate is per nat, or per unit of the signed ranks; its error is from the
        second derivatives of the log-likelihood. Degrees of freedom are one less than the fewer of
        the units that are drawn at random: trials, and participants where each has a slope; ratings
        where neither is. To compare models by, `typical_effect` is that of a ratio of
        `typical_ratio`, the root mean square; `capped` counts trials with an infinite ratio, taken
        to be `cap`, the largest finite one. P-values belong to no family.
        """
        # Of a few people's slopes the mean is less sure than the normal distribution has it
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
        """Thresholds that are estimated, such as 4|5, with their standard errors.

        Between mirrored ratings thresholds have the other sign.
        """
        rows = zip(self.scheme.names, self.estimated.tolist(), self.errors, strict=False)
        names = ("models", "threshold", "estimate", "standard_error")
        return [dict(zip(names, (self.name, *row), strict=True)) for row in rows]

    @property
    def variances(self) -> list[Row]:
        """Standard deviations and variances of trials, and of participants: of how many (`levels`).

        An effect is an intercept (of participants: their leaning towards a side), or the model
        whose slope it is; a slope's are of a ratio of typical size.
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

    @cached_property
    def trial_effects(self) -> dict[str, tuple[float, float]]:
        """Intercept of each trial and its standard error, empty where trials have none.

        It is what people think of a trial beyond a model's ratio: the likeliest value, drawn
        towards zero the more, the fewer people rated the trial; above zero towards sentence_2.
        """
        scale = self.parameters.trials
        effects: dict[str, tuple[float, float]] = {}
        for group, block in zip(self.rated.groups, self.blocks, strict=True):
            errors = scale * np.sqrt(block.trial_variances)
            rows = zip((scale * block.modes[1]).tolist(), errors.tolist(), strict=True)
            effects |= dict(zip((trial.trial_id for trial in group.trials), rows, strict=True))
        return effects if self.settings.items else {}

    def __getitem__(self, model: str) -> Row:
        return self.coefficients[self.models.index(model)]


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
    grouped = [replace(g, ratings=g.scale.grouped(g.ratings)) for g in rated.groups]
    rated = replace(rated, groups=tuple(grouped))
    every = np.concatenate([group.ratings[np.isfinite(group.ratings)] for group in rated.groups])
    scheme = threshold_scheme(settings.thresholds, every.astype(np.int64), rated.scale)
    _require_variation(rated, settings)
    sizes, values = [], np.zeros((rated.n_trials, len(models)))  # of unit size, group after group
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
    """The ratings of each group as levels, and what is multiplied with slopes and effects."""
    # With flexible thresholds a ratio that is the same everywhere is an intercept, which they hold
    ones = np.ones((len(values), int(settings.thresholds == "flexible")))
    columns = np.hstack([ones, values])
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        raise InputError(
            f"The ratios of {fit_name(models)} follow from one another (or "
            "are the same on every trial), so that no coefficient can be told from the rest. Leave "
            "models out."
        )
    last = rated.scale.answers[-1]
    level_of = np.array([scheme.level_of.get(rating, 0) for rating in range(last + 1)])
    blocks, start = [], 0
    for group in rated.groups:
        rows = slice(start, start + len(group.trials))
        given = np.isfinite(group.ratings)
        levels = np.where(given, level_of[np.nan_to_num(group.ratings).astype(np.int64)], -1)
        # Positive towards the side on the left, where sentence_2 (1) or sentence_1 (-1) stood; 0
        # where this is not known. Exchanging the sentences of a trial turns all that stands here.
        sides = np.array([0.0, -1.0, 1.0])[group.left.astype(np.int64), None]
        slopes = np.broadcast_to(values[rows], (*levels.shape, len(models)))
        leanings = sides[..., : settings.people != "none" and rated.sided > 0]
        followings = slopes[..., : len(models) * (settings.people == "slopes")]
        effects = np.concatenate([leanings, followings], axis=-1)
        blocks.append(RatedBlock(levels, values[rows], effects))
        start = rows.stop
    return blocks


def _predictor(
    rated: Ratings, model: str, settings: MixedSettings
) -> tuple[FloatArray, tuple[float, int, float]]:
    """A model's ratios on all trials, divided by their typical size; see `MixedFit.sizes`."""
    row = rated.models.index(model)
    ratios = np.concatenate([group.ratios[row] for group in rated.groups])
    if not np.any(ratios):
        raise InputError(
            f"{model} prefers neither sentence on any of {counted(len(ratios), 'trial')}: with "
            "ties everywhere it predicts nothing. Leave it out."
        )
    finite = np.isfinite(ratios)
    if settings.ratios == "ranks":
        # Infinite ratios rank highest, so that none is capped
        ratios, finite = signed_ranks(ratios) / len(ratios), np.ones(len(ratios), np.bool_)
    cap = float(np.abs(ratios[finite]).max(initial=0))
    if cap == 0:
        raise InputError(
            f"Every ratio of {model} is infinite or zero: no finite one says how large they are. "
            "Take ranks for ratios, or leave it out."
        )
    ratios = np.clip(ratios, -cap, cap)
    typical = float(np.sqrt((ratios**2).mean()))
    return ratios / typical, (typical, int((~finite).sum()), cap)


def _require_variation(rated: Ratings, settings: MixedSettings) -> None:
    """Make sure that random effects have something to vary over.

    Raises:
        InputError: they have not.
    """
    people, trials = len(rated.participants), rated.n_trials
    lacking = {
        f"How participants vary cannot be told from {counted(people, 'participant')}": people < 2,
        "Everybody rated one trial, so that people cannot be told from trials": all(
            len(group.trials) < 2 for group in rated.groups
        ),
    }
    if settings.people == "none":
        lacking = {}
    if settings.items:
        lacking |= {
            f"How trials vary cannot be told from {counted(trials, 'trial')}": trials < 2,
            "No trial was rated by two people, so that what a trial adds is not told from chance": (
                all(len(group.participants) < 2 for group in rated.groups)
            ),
            "Everybody rated every trial alike, so that no finite variance of trials fits best": (
                all((group.ratings == group.ratings[0]).all() for group in rated.groups)
            ),
        }
    for why in (why for why, is_so in lacking.items() if is_so):
        raise InputError(f"{why}. Fit without effects of people or items, or add some.")
