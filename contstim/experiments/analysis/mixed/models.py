"""Ratings on models' log-probability ratios, with random effects of participants and trials.

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
from functools import cached_property
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import SINGLE_TESTS, with_family
from contstim.experiments.analysis.intervals import Estimate
from contstim.experiments.analysis.measures import signed_ranks
from contstim.experiments.analysis.mixed.fitting import ThresholdKind, fit_blocks, threshold_scheme
from contstim.experiments.analysis.mixed.laplace import Link, RatedBlock
from contstim.experiments.analysis.ratings import TESTING, Ratings, subset
from contstim.experiments.analysis.tables import named_frame, rows_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pandas import DataFrame

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.mixed.fitting import ThresholdScheme
    from contstim.experiments.analysis.mixed.laplace import BlockLikelihood, MixedParameters
    from contstim.experiments.analysis.tables import Row
    from contstim.stimuli import Condition

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
    every = np.concatenate([group.ratings.ravel() for group in rated.groups])
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
        levels = level_of[group.ratings.astype(np.int64)]
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


@dataclass(frozen=True, eq=False)
class MixedAnalysis:
    """Mixed models of the same ratings.

    Attributes:
        settings: of all fits.
        empty: the fit without models.
        fits: one for each model that can be fitted, in the order of the scores.
        joint: those of several models.
        comparisons: every pair of models, a row each: by how many nats (`difference`) the first's
            log-likelihood is higher, with an error over trials and participants (see the module)
            and degrees of freedom one less than the fewer of these.
        additions: what each model adds to others.
        left_out: models that cannot be fitted, and why.
    """

    settings: MixedSettings
    empty: MixedFit
    fits: tuple[MixedFit, ...]
    joint: tuple[MixedFit, ...]
    comparisons: list[Row]
    additions: list[Row]
    left_out: Mapping[str, str]

    @property
    def every(self) -> tuple[MixedFit, ...]:
        """Fits without models, of each model, and of several."""
        return (self.empty, *self.fits, *self.joint)

    @property
    def summaries(self) -> list[Row]:
        """A row a fit.

        `gain` is the log-likelihood less that of the fit without models, `trials_explained` by how
        much the variance of trials falls from there, as a share; nan where trials have no effect.
        `sided` counts the ratings of which it was recorded on which side sentences were shown.
        """
        variance = self.empty.parameters.trials**2
        return [
            {
                "models": fit.name,
                "log_likelihood": fit.log_likelihood,
                "parameters": fit.n_parameters,
                "aic": fit.aic,
                "gain": fit.log_likelihood - self.empty.log_likelihood,
                "trials_explained": (
                    1 - fit.parameters.trials**2 / variance if variance > 0 else np.nan
                ),
                "ratings": fit.rated.size,
                "sided": fit.rated.sided,
                "participants": len(fit.rated.participants),
                "trials": fit.rated.n_trials,
            }
            for fit in self.every
        ]

    @property
    def coefficients_capped(self) -> list[Row]:
        """Coefficients of models with infinite ratios, each fitted alone."""
        return [row for fit in self.fits for row in fit.coefficients if row["capped"]]

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Columns of every table, by its name; one without rows has none."""
        of_fits = ("coefficients", "variances", "thresholds")
        rows = {
            "fits": self.summaries,
            **{kind: [x for fit in self.every for x in getattr(fit, kind)] for kind in of_fits},
            "comparisons": self.comparisons,
            "additions": self.additions,
        }
        return {name: rows_table(kind) for name, kind in rows.items()}

    def to_frame(self, name: str = "fits") -> DataFrame:
        """One of the tables: fits, coefficients, variances, thresholds, comparisons, additions.

        Raises:
            InputError: there is no table of this name.
        """
        return named_frame(self.tables(), name, "mixed models")


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
    alone = {each.models[0]: each for each in fits} if together and len(fits) > 1 else {}
    pairs = list(combinations(alone, 2))
    total += len(pairs) + (len(alone) > 2)
    by_pair = {frozenset(pair): fit(pair) for pair in pairs}
    everyone = [fit(list(alone))] if len(alone) > 2 else []
    progress(total, total)
    return MixedAnalysis(
        settings,
        empty,
        tuple(fits),
        (*by_pair.values(), *everyone),
        compare_fits(fits, settings.level),
        _additions(alone, by_pair),
        left_out,
    )


def compare_fits(fits: Sequence[MixedFit], level: float = 0.95) -> list[Row]:
    """Every pair of fits to the same ratings, with the variance over trials and participants.

    Args:
        fits: of the same ratings, with as many parameters each.
        level: of the intervals.

    Raises:
        InputError: the fits are of different ratings.
    """
    ids = {tuple(trial.trial_id for trial in fit.rated.trials) for fit in fits}
    if len(ids) > 1 or len({fit.rated.size for fit in fits}) > 1:
        raise InputError("Only fits to the same ratings can be compared.")
    rows: list[Row] = []
    for first, second in combinations(fits, 2):
        pairs = list(zip(first.blocks, second.blocks, strict=True))
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
        # One participant, or one trial, is no sample: the test speaks of the other factor alone.
        freedom = min(len(units) for units in (of_trials, of_people) if len(units) > 1) - 1
        difference = first.log_likelihood - second.log_likelihood
        estimate = Estimate.by_t(difference, error, freedom, level)
        rows.append({"first": first.name, "second": second.name, "difference": estimate})
    family = counted(len(rows), "pair of models", "pairs of models")
    return with_family(rows, [row["difference"].p_value for row in rows], family)


def _sum_variance(contributions: FloatArray) -> float:
    """The variance of the sum of independent contributions, as their scatter tells it."""
    n = len(contributions)
    return float(n * contributions.var(ddof=1)) if n > 1 else 0.0


def _additions(
    alone: Mapping[str, MixedFit], by_pair: Mapping[frozenset[str], MixedFit]
) -> list[Row]:
    """What each model adds to each other one: its coefficient beside it, and by how much fits gain.

    Where AIC gains less than zero, the model adds less than it costs.
    """
    rows: list[Row] = []
    for model, beyond in permutations(alone, 2):
        before, after = alone[beyond], by_pair[frozenset((model, beyond))]
        rows.append(
            {
                "model": model,
                "beyond": beyond,
                **{name: after[model][name] for name in ("estimate", "typical_effect")},
                "gain": after.log_likelihood - before.log_likelihood,
                "aic_gain": before.aic - after.aic,
            }
        )
    family = counted(len(rows), "ordered pair of models", "ordered pairs of models")
    return with_family(rows, [row["estimate"].p_value for row in rows], family)
