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
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import SINGLE_TESTS
from contstim.experiments.analysis.intervals import UNKNOWN, Estimate
from contstim.experiments.analysis.ratings import scope_mask, scopes_of, subset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray, IntArray

_NARROW = 0.1  # of the ratios on all trials: where a coefficient per nat reaches beyond its data
_EVENTS = 10  # choices of the rarer kind for a predictor (Peduzzi et al. 1996)


def regress_choices(ratings: Ratings, models: Sequence[str], *, level: float = 0.95) -> Row:
    """Regress choices of sentence_2 on the log-probability ratios of one or several models.

    Ratios are log p(sentence_2) - log p(sentence_1), in nats. With several models each coefficient
    is what that model adds to the others. Which sentence is called sentence_1 does not matter.

    Args:
        ratings: who chose what, and the models' log-probabilities.
        models: the predictors.
        level: of the intervals.

    Returns:
        See `clustered_logit`, with `left_out` answers: a sentence has probability zero there, or
        none was preferred. With the `choices` they are all answers that were given.

    Raises:
        InputError: see `clustered_logit`; or there is no such model.
    """
    unknown = [model for model in models if model not in ratings.models]
    if unknown or not models:
        raise InputError(
            f"There are no ratios of {', '.join(unknown) or 'no model'}; there are those of "
            f"{', '.join(ratings.models)}."
        )
    # One row a choice: all trials of the first participant, then those of the second, …
    rows, groups = [ratings.models.index(model) for model in models], ratings.groups
    sides = np.concatenate([np.sign(group.preferences).ravel() for group in groups])
    ratios = [np.tile(group.ratios[rows], len(group.participants)) for group in groups]
    every = np.concatenate(ratios, axis=1)  # (n_models, n_choices)
    people = [name for group in groups for name in group.participants for _ in group.trials]
    items = [t.trial_id for group in groups for _ in group.participants for t in group.trials]
    given = np.concatenate([np.isfinite(group.ratings).ravel() for group in groups])
    finite = np.isfinite(every).all(axis=0) & (sides != 0)
    known = dict(zip(models, every[:, finite], strict=True))
    clusters = np.array(people)[finite], np.array(items)[finite]
    fitted = clustered_logit(sides[finite] > 0, known, *clusters, level=level)
    return {**fitted, "left_out": int((given & ~finite).sum())}


def clustered_logit(
    choices: ArrayLike,
    differences: Mapping[str, FloatArray],
    participants: ArrayLike,
    items: ArrayLike,
    *,
    level: float = 0.95,
) -> Row:
    """Maximum-likelihood logistic regression without intercept and with two-way clustered errors.

    Args:
        choices: (n,) whether sentence_2 was chosen.
        differences: predictor → (n,) finite values, what sentence_2 has more than sentence_1: a
            log-probability ratio, or a difference of any other property of sentences.
        participants: (n,) the cluster of the first way.
        items: (n,) the cluster of the second way.
        level: of the intervals.

    Returns:
        `coefficients` by predictor: log odds of choosing sentence_2 per unit of it, for ratios per
        nat, with one degree of freedom less than the smaller number of clusters; how many `choices`
        there are, of how many `participants` and `items`; and whether the covariance was `repaired`
        (Cameron et al., section 2.3): then clusters are few, and standard errors too small.

    Raises:
        InputError: fewer than two participants or items, a predictor that is zero everywhere,
            predictors that determine each other, or a sum of them that never speaks against a
            choice, so that no finite estimate exists.
    """
    chosen = np.asarray(choices, np.float64)
    ways = [np.unique(np.asarray(way), return_inverse=True)[1] for way in (participants, items)]
    clusters = np.stack(ways, axis=1).astype(np.int64)  # (n, 2), numbered from 0
    counts = clusters.max(axis=0, initial=-1) + 1
    for name, count in zip(("participants", "items"), counts, strict=True):
        if count < 2:
            raise InputError(
                f"Standard errors clustered by {name} need two of them at least; given: {count}."
            )
    for name, column in differences.items():
        if not np.isfinite(column).all() or not np.any(column):
            raise InputError(
                f"The predictor {name!r} has values that are not finite, or is zero everywhere, so "
                "that it predicts nothing."
            )
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
    coefficients = {
        name: Estimate.by_t(value, error, freedom, level)
        for name, value, error in zip(differences, estimates.tolist(), errors.tolist(), strict=True)
    }
    sizes = dict(zip(("participants", "items"), counts.tolist(), strict=True))
    return {"coefficients": coefficients, "choices": len(chosen), **sizes, "repaired": repaired}


def _fit(
    chosen: FloatArray, values: FloatArray, clusters: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Estimates, (n_predictors,), and their clustered covariance, (n_predictors, n_predictors)."""
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
    # A sum of the predictors that has the sign of every choice, zeros allowed
    if separating(np.where(chosen[:, None] > 0, -scaled, scaled)).any():
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


def separating(rows: FloatArray) -> FloatArray:
    """A direction in which no row lies, and some rows lie away from it; zeros if there is none.

    If, and only if, there is one, a likelihood that grows away from all rows has no maximum (Albert
    & Anderson 1984). It is found by a linear program (Konis 2007).

    Args:
        rows: (n_rows, n_predictors), how much each observation speaks against a predictor.
    """
    from scipy.optimize import linprog

    rows = np.unique(rows, axis=0)
    program = linprog(rows.sum(axis=0), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    return program.x if program.fun < -1e-9 else np.zeros(rows.shape[1])


def regressions(ratings: Ratings, level: float) -> Iterator[Row]:
    """A row for each scope and each model that it evaluates, on the model's own trials.

    The estimate is the log odds of choosing sentence_2 per nat of the model's log-probability
    ratio, with errors clustered by participants and by trials; nan where there is none. A note says
    why there is none, or why not to trust it; `typical_ratio` is the root mean square of the
    model's ratios on these trials, nats.
    """
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        for row, model in enumerate(ratings.models):
            if not any(mask[row].any() for mask in masks):
                continue
            own = subset(ratings, [mask[row] for mask in masks])
            typical, everywhere = _typical(own, row), _typical(ratings, row)
            try:
                fit = regress_choices(own, [model], level=level)
                slope = fit["coefficients"][model]
                counts = [fit[name] for name in ("choices", "participants", "items", "left_out")]
                note = "; ".join(_cautions(own, row, fit["repaired"], typical, everywhere))
            except InputError as error:
                # A model without an estimate has its row too: the note says why it has none.
                slope, note = UNKNOWN, str(error)
                counts = [own.size, len(own.participants), own.n_trials, 0]
            yield {
                "scope": scope,
                "model": model,
                "estimate": slope,
                **dict(zip(("choices", "participants", "trials", "left_out"), counts, strict=True)),
                "typical_ratio": typical,
                "note": note,
                "family": SINGLE_TESTS,
            }


def _cautions(
    targeted: Ratings, row: int, repaired: bool, typical: float, everywhere: float
) -> Iterator[str]:
    """Limits of the coefficient of the model in a row; typical ratios are in nats."""
    if typical < _NARROW * everywhere:
        yield (
            f"ratios of {typical:.2g} nats here, {everywhere:.2g} on all trials: a coefficient "
            "per nat compares with no other"
        )
    # 1 where a person chose the sentence that the model prefers, -1 where the other, 0 where the
    # model ties; choices without a finite ratio are not part of the regression.
    agreed = np.concatenate(
        [
            (np.sign(group.preferences) * np.sign(ratios))[:, np.isfinite(ratios)].ravel()
            for group in targeted.groups
            for ratios in [group.ratios[row]]
        ]
    )
    towards, against = int((agreed > 0).sum()), int((agreed < 0).sum())
    few = min(towards, against)
    if few < _EVENTS:
        side = "against" if against < towards else "with"
        yield (
            f"{few} of {towards + against:,} choices go {side} the model: the coefficient rests on "
            "these"
        )
    if repaired:
        yield "few clusters: the standard error is too small"


def _typical(ratings: Ratings, row: int) -> float:
    """The root mean square of a model's finite ratios over trials, nats; 0 where none is finite."""
    ratios = np.concatenate([group.ratios[row] for group in ratings.groups])
    finite = ratios[np.isfinite(ratios)]
    return float(np.sqrt((finite**2).mean())) if len(finite) else 0.0
