"""Regression of choices on log-probability ratios, standard errors for people and items at once.

There is no intercept. Which sentence of a trial is called sentence_1 is a convention of the design,
often one that follows the models (the sentence that model_1 rejects, the natural one), so that an
intercept would take the effect away from the ratios. Without it, exchanging the sentences of any
trials changes nothing: choice and ratio both turn.

Judgements of the same participant, and of the same sentence pair, are not independent; items vary
far more than people. Two-way clustered standard errors (Cameron, Gelbach & Miller 2011, *Robust
inference with multiway clustering*) allow for both without a model of either.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import ArrayLike

    from contstim.arrays import FloatArray, IntArray
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.stimuli import Condition


@dataclass(frozen=True)
class Coefficient:
    """Coefficient of one predictor in the log odds of choosing sentence_2.

    Attributes:
        name: the predictor's; for a model's log-probability ratio, the model's.
        estimate: log odds per unit of the predictor, for ratios per nat.
        standard_error: two-way clustered.
        low: the interval's lower end.
        high: its upper end.
        statistic: estimate / standard_error.
        p_value: two-sided, by Student's t with one degree of freedom less than the smaller number
            of clusters.
    """

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float
    statistic: float
    p_value: float


@dataclass(frozen=True)
class ClusteredLogit:
    """A logistic regression whose standard errors are clustered by participant and by item.

    Attributes:
        coefficients: of the predictors, in their order.
        level: of the intervals.
        choices: how many.
        participants: clusters of the first way.
        items: clusters of the second way.
        left_out: choices without a finite ratio: a sentence has probability zero under a model.
        repaired: whether the covariance had negative eigenvalues, which were set to zero (Cameron
            et al., section 2.3): then clusters are few, and standard errors too small.
    """

    coefficients: tuple[Coefficient, ...]
    level: float
    choices: int
    participants: int
    items: int
    left_out: int
    repaired: bool

    def __getitem__(self, name: str) -> Coefficient:
        return next(coefficient for coefficient in self.coefficients if coefficient.name == name)


def regress_choices(
    ratings: Ratings,
    models: Sequence[str],
    *,
    conditions: Collection[Condition] | None = None,
    level: float = 0.95,
) -> ClusteredLogit:
    """Regress choices of sentence_2 on the log-probability ratios of one or several models.

    Ratios are log p(sentence_2) - log p(sentence_1), in nats. With several models each coefficient
    is what that model adds to the others. Which sentence is called sentence_1 does not matter.

    Args:
        ratings: who chose what, and the models' log-probabilities.
        models: the predictors.
        conditions: which trials; all by default.
        level: of the intervals.

    Raises:
        InputError: see `clustered_logit`; or there is no such model or no such trial.
    """
    unknown = [model for model in models if model not in ratings.models]
    if unknown or not models:
        raise InputError(
            f"There are no ratios of {', '.join(unknown) or 'no model'}; there are those of "
            f"{', '.join(ratings.models)}."
        )
    rows = [ratings.models.index(model) for model in models]
    choices, ratios, people, items = [], [], [], []
    for group in ratings.groups:
        columns = [
            column
            for column, trial in enumerate(group.trials)
            if conditions is None or trial.condition in conditions
        ]
        names = [group.trials[column].trial_id for column in columns]
        # One row a choice: all trials of the first participant, then those of the second, …
        chosen = group.preferences[:, columns] > 0  # (n_participants, n_trials)
        group_ratios = group.ratios[rows][:, columns]  # (n_models, n_trials)
        choices.append(chosen.ravel())
        ratios.append(np.tile(group_ratios, len(group.participants)))
        people += [name for name in group.participants for _ in columns]
        items += names * len(group.participants)
    every = np.concatenate(ratios, axis=1)  # (n_models, n_choices)
    finite = np.isfinite(every).all(axis=0)
    return clustered_logit(
        np.concatenate(choices)[finite],
        dict(zip(models, every[:, finite], strict=True)),
        np.array(people)[finite],
        np.array(items)[finite],
        level=level,
        left_out=int((~finite).sum()),
    )


def clustered_logit(
    choices: ArrayLike,
    differences: Mapping[str, FloatArray],
    participants: ArrayLike,
    items: ArrayLike,
    *,
    level: float = 0.95,
    left_out: int = 0,
) -> ClusteredLogit:
    """Maximum-likelihood logistic regression without intercept and with two-way clustered errors.

    Args:
        choices: (n,) whether sentence_2 was chosen.
        differences: predictor → (n,) finite values, what sentence_2 has more than sentence_1: a
            log-probability ratio, or a difference of any other property of sentences.
        participants: (n,) the cluster of the first way.
        items: (n,) the cluster of the second way.
        level: of the intervals.
        left_out: choices that were left out before; only noted.

    Raises:
        InputError: fewer than two participants or items, a predictor that is zero everywhere,
            predictors that determine each other, or a sum of them that never speaks against a
            choice, so that no finite estimate exists.
    """
    from scipy.stats import t as student

    chosen = np.asarray(choices, np.float64)
    clusters = np.stack([_codes(participants), _codes(items)], axis=1)  # (n, 2), numbered from 0
    counts = clusters.max(axis=0, initial=-1) + 1
    _check(differences, counts)
    values = np.stack([np.asarray(column, np.float64) for column in differences.values()], axis=1)
    estimates, covariance = _fit(chosen, values, clusters)
    # Two-way clustered, V = V(participants) + V(items) - V(both): a difference, which may come out
    # with negative eigenvalues where clusters are few. These are set to zero (section 2.3).
    eigenvalues, vectors = np.linalg.eigh(covariance)
    repaired = bool(eigenvalues.min() < -1e-12 * eigenvalues.max())
    if repaired:
        covariance = (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
    errors = np.sqrt(np.maximum(np.diag(covariance), 0))
    freedom = int(counts.min()) - 1
    quantile = float(student.ppf((1 + level) / 2, freedom))
    coefficients = []
    for name, b, error in zip(differences, estimates.tolist(), errors.tolist(), strict=True):
        statistic = b / error if error else float("inf") * np.sign(b)
        low, high = b - quantile * error, b + quantile * error
        p_value = float(2 * student.sf(abs(statistic), freedom))
        coefficients.append(Coefficient(name, b, error, low, high, statistic, p_value))
    people, pairs = counts.tolist()
    return ClusteredLogit(
        tuple(coefficients), level, len(chosen), people, pairs, left_out, repaired
    )


def _codes(names: ArrayLike) -> IntArray:
    return np.unique(np.asarray(names), return_inverse=True)[1].astype(np.int64)


def _check(differences: Mapping[str, FloatArray], counts: IntArray) -> None:
    for what, count in zip(("participants", "items"), counts, strict=True):
        if count < 2:
            raise InputError(
                f"Standard errors clustered by {what} need two of them at least; given: {count}."
            )
    for name, values in differences.items():
        if not np.isfinite(values).all():
            raise InputError(f"The predictor {name!r} has values that are not finite.")
        if not np.any(values):
            raise InputError(f"The predictor {name!r} is zero everywhere, so it predicts nothing.")


def _fit(
    chosen: FloatArray, values: FloatArray, clusters: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimates, (n_predictors,), and their clustered covariance, (n_predictors, n_predictors)."""
    from scipy.optimize import linprog
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

    # Ratios of tens of nats make an ill-conditioned fit; predictors of unit size do not.
    scale = np.sqrt((values**2).mean(axis=0))
    scaled = values / scale
    if np.linalg.matrix_rank(scaled) < scaled.shape[1]:
        raise InputError("The predictors determine each other; leave some of them out.")
    separated = InputError(
        "The predictors separate the choices perfectly, so that no finite coefficient fits "
        "best. Add trials, or leave predictors out."
    )
    # If, and only if, some sum of the predictors has the sign of every choice, zeros allowed, the
    # likelihood has no maximum (Albert & Anderson 1984). A linear program finds such a sum (Konis
    # 2007): maximise what it has towards the choices, where it has nothing against any of them.
    towards = np.unique(np.where(chosen[:, None] > 0, scaled, -scaled), axis=0)
    program = linprog(
        -towards.sum(axis=0), A_ub=-towards, b_ub=np.zeros(len(towards)), bounds=(-1, 1)
    )
    if -program.fun > 1e-9:
        raise separated
    with warnings.catch_warnings():
        for warning in (ConvergenceWarning, PerfectSeparationWarning, RuntimeWarning):
            warnings.simplefilter("error", warning)
        try:
            fitted = Logit(chosen, scaled).fit(
                disp=False, cov_type="cluster", cov_kwds={"groups": clusters}
            )
        except (ConvergenceWarning, PerfectSeparationWarning, RuntimeWarning) as error:
            raise separated from error
    return fitted.params / scale, fitted.cov_params() / np.outer(scale, scale)
