"""Comparisons of mixed models of the same ratings.

A mixed model predicts ratings from the log-probability ratios of language models. The results are
differences in fit between mixed models, and the contribution of one language model in addition to
another language model.

Fits are compared by the difference of their log-likelihoods. As in Vuong's (1989) test for models
that are not nested, the difference is a sum of contributions of random units. The variance of the
contributions gives the variance of the sum. Here both trials and participants are random units. The
contribution of a trial is the log-likelihood of its ratings (delta method). This log-likelihood is
integrated over the trial's effect, with participants' effects at the mode. For the contribution of
a participant, the roles of trials and participants are exchanged. The variances over trials and
over participants are added. Both contain the variance over single ratings, which is therefore
subtracted once (Cameron, Gelbach & Miller 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, count, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import with_family
from contstim.experiments.analysis.intervals import Estimate
from contstim.experiments.analysis.mixed.models import MixedFit, MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import TESTING, Ratings
from contstim.experiments.analysis.tables import Row, named_frame, rows_table
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pandas import DataFrame

    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Condition


@dataclass(frozen=True, eq=False)
class MixedAnalysis:
    """Mixed models of the same ratings; below, a model is a language model.

    Attributes:
        empty: the fit without models.
        fits: a fit of each model that can be fitted alone, in the requested order.
        joint: the fits of several models; empty unless requested.
        comparisons: a row for each pair of models. `difference` is the first log-likelihood minus
            the second, in nats. Its standard error is over trials and participants (see the
            module). Degrees of freedom are one less than the number of trials or participants,
            whichever is smaller. With a single trial, they depend on the participants alone, and
            with a single participant on the trials alone.
        additions: for each ordered pair of models, the contribution of the first model in addition
            to the second; empty unless requested.
        left_out: model that cannot be fitted → reason.
    """

    settings: MixedSettings
    empty: MixedFit
    fits: tuple[MixedFit, ...]
    joint: tuple[MixedFit, ...]
    comparisons: list[Row]
    additions: list[Row]
    left_out: Mapping[str, str]

    @property
    def all_fits(self) -> tuple[MixedFit, ...]:
        """The fits without models, of single models, and of several models."""
        return (self.empty, *self.fits, *self.joint)

    @property
    def summaries(self) -> list[Row]:
        """Rows of the table of fits.

        `gain` is the log-likelihood minus the log-likelihood of the fit without models.
        `trials_explained` is the share of the variance of trials (in the fit without models) that
        the models explain; nan if this variance is zero. `sided` is the number of ratings with a
        record of the sentence that was on the left.
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
            for fit in self.all_fits
        ]

    def tables(self) -> dict[str, dict[str, list[Any]]]:
        """Return table name → columns; a table without rows has no columns."""
        of_fits = ("coefficients", "variances", "thresholds")
        rows = {
            "fits": self.summaries,
            **{kind: [x for fit in self.all_fits for x in getattr(fit, kind)] for kind in of_fits},
            "comparisons": self.comparisons,
            "additions": self.additions,
        }
        return {name: rows_table(kind) for name, kind in rows.items()}

    def to_frame(self, name: str = "fits") -> DataFrame:
        """Return one table: fits, coefficients, variances, thresholds, comparisons or additions.

        Raises:
            InputError: if there is no table of this name.
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

    With `together`, more mixed models are fitted: one for each pair of language models, and one for
    all language models. These fits estimate the contribution of a language model in addition to
    other language models.

    Raises:
        InputError: see `fit_mixed`. A language model that cannot be fitted alone is left out. The
            error is raised only if no language model can be fitted.
    """
    settings, models = settings or MixedSettings(), list(models or ratings.models)
    total, done = 1 + len(models), count()

    def fit(names: Sequence[str]) -> MixedFit:
        progress(next(done), total)
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
    fit_by_model = {single.models[0]: single for single in fits if together}
    pairs = list(combinations(fit_by_model, 2))
    total += len(pairs) + (len(fit_by_model) > 2)
    by_pair = {frozenset(pair): fit(pair) for pair in pairs}
    fits_of_all = [fit(list(fit_by_model))] if len(fit_by_model) > 2 else []
    progress(total, total)
    return MixedAnalysis(
        settings,
        empty,
        tuple(fits),
        (*by_pair.values(), *fits_of_all),
        compare_fits(fits, settings.level),
        _additions(fit_by_model, by_pair),
        left_out,
    )


def compare_fits(fits: Sequence[MixedFit], level: float = 0.95) -> list[Row]:
    """Compare every pair of fits; the standard error is over trials and participants.

    The fits must have equal numbers of parameters.

    Raises:
        InputError: if the fits are of different ratings.
    """
    ids = {tuple(trial.trial_id for trial in fit.rated.trials) for fit in fits}
    if len(ids) > 1 or len({fit.rated.size for fit in fits}) > 1:
        raise InputError("Only fits to the same ratings can be compared.")
    rows: list[Row] = []
    for first, second in combinations(fits, 2):
        pairs = list(zip(first.blocks, second.blocks, strict=True))
        of_trials = np.concatenate([a.of_trials - b.of_trials for a, b in pairs])
        of_people = np.concatenate([a.of_participants - b.of_participants for a, b in pairs])
        of_ratings = np.concatenate([(a.of_ratings - b.of_ratings).ravel() for a, b in pairs])
        by_trials, by_people = _sum_variance(of_trials), _sum_variance(of_people)
        # With few units, this estimate may be too small, or even negative. The maximum below
        # corrects this
        total = by_trials + by_people - _sum_variance(of_ratings)
        error = float(np.sqrt(max(total, by_trials, by_people)))
        # A factor (trials or participants) with a single unit does not count, because the test
        # cannot generalise over this factor
        freedom = min(len(units) for units in (of_trials, of_people) if len(units) > 1) - 1
        difference = first.log_likelihood - second.log_likelihood
        estimate = Estimate.by_t(difference, error, freedom, level)
        rows.append({"first": first.name, "second": second.name, "difference": estimate})
    family = quantity(len(rows), "pair of models", "pairs of models")
    return with_family(rows, [row["difference"].p_value for row in rows], family)


def _sum_variance(contributions: FloatArray) -> float:
    n = len(contributions)
    return float(n * contributions.var(ddof=1)) if n > 1 else 0.0


def _additions(
    fit_by_model: Mapping[str, MixedFit], by_pair: Mapping[frozenset[str], MixedFit]
) -> list[Row]:
    """Return a row for each ordered pair of models.

    `model` and `beyond` name the two models of the pair. A row has the coefficient of `model` in
    the fit of both models. `gain` is the log-likelihood of this fit minus that of `beyond` alone.

    `aic_gain` is negative if the gain in fit does not justify the additional parameters.
    """
    rows: list[Row] = []
    for model, beyond in permutations(fit_by_model, 2):
        single, joint = fit_by_model[beyond], by_pair[frozenset((model, beyond))]
        rows.append(
            {
                "model": model,
                "beyond": beyond,
                **{name: joint[model][name] for name in ("estimate", "typical_effect")},
                "gain": joint.log_likelihood - single.log_likelihood,
                "aic_gain": single.aic - joint.aic,
            }
        )
    family = quantity(len(rows), "ordered pair of models", "ordered pairs of models")
    return with_family(rows, [row["estimate"].p_value for row in rows], family)
