"""Comparisons of mixed models of the same ratings: which fits better, and what one adds to another.

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
from contstim.experiments.analysis.families import with_family
from contstim.experiments.analysis.intervals import Estimate
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import TESTING
from contstim.experiments.analysis.tables import named_frame, rows_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.mixed.models import MixedFit
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Condition


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
