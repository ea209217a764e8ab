"""Regression of choices on log-probability ratios; errors are clustered by people and items.

There is no intercept. sentence_1 is often the sentence that model_1 rejects, or the natural
sentence. The ratios of a model then often have the same sign, so an intercept would absorb their
effect. Without an intercept, swapping the two sentences of a trial does not change the result: the
choice and the ratio both change sign.

Judgements by one participant are not independent. Judgements of one sentence pair (item) are not
independent either, and items vary far more than people. Two-way clustered standard errors account
for both dependencies without assumptions about distributions (Cameron, Gelbach & Miller 2011,
*Robust inference with multiway clustering*).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.families import SINGLE_TESTS
from contstim.experiments.analysis.intervals import UNKNOWN, Estimate
from contstim.experiments.analysis.ratings import Ratings, scope_mask, scopes_of, subset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import FloatArray

# Warn if (typical ratio of a scope) / (typical ratio of all trials) is smaller. A scope is a set of
# trials. A typical ratio is the root mean square of a model's log-probability ratios
_MIN_RANGE = 0.1
# Warn if fewer choices than this agree with a model, or fewer disagree (Peduzzi et al. 1996)
_MIN_EVENTS = 10


def regress_choices(ratings: Ratings, row: int, *, level: float = 0.95) -> Row:
    """Regress choices of sentence_2 on the log-probability ratios of a model.

    Ratios are log p(sentence_2) - log p(sentence_1), in nats. `row` is the index of the model.

    Returns:
        The fields of `clustered_logit`, and `left_out`, the number of unused answers. Answers
        without a preference are not used. Answers to a trial are not used if the model gives a
        sentence of the trial the probability zero.

    Raises:
        InputError: see `clustered_logit`.
    """
    # One entry per choice: all trials of the first participant, then those of the second, …
    groups = ratings.groups
    sides = np.concatenate([np.sign(group.preferences).ravel() for group in groups])
    ratios = np.concatenate([np.tile(g.ratios[row], len(g.participants)) for g in groups])
    people = [name for group in groups for name in group.participants for _ in group.trials]
    items = [t.trial_id for group in groups for _ in group.participants for t in group.trials]
    is_given = np.concatenate([np.isfinite(group.ratings).ravel() for group in groups])
    is_used = np.isfinite(ratios) & (sides != 0)
    clusters = np.array(people)[is_used], np.array(items)[is_used]
    fitted = clustered_logit(sides[is_used] > 0, ratios[is_used], *clusters, level=level)
    return {**fitted, "left_out": int((is_given & ~is_used).sum())}


def clustered_logit(
    choices: ArrayLike,
    ratios: FloatArray,
    participants: ArrayLike,
    items: ArrayLike,
    *,
    level: float = 0.95,
) -> Row:
    """Fit a logistic regression without intercept, with two-way clustered errors.

    Args:
        choices: (n,), whether sentence_2 was chosen.
        ratios: (n,) finite log-probability ratios, nats, positive for sentence_2.
        participants: (n,), the participant who made each choice.
        items: (n,), the item of each choice.
        level: confidence level of the interval.

    Returns:
        `estimate` is the log odds of choosing sentence_2 per nat. Degrees of freedom are one less
        than the number of participants or items, whichever is smaller. `choices`, `participants`
        and `items` are counts. `repaired` is True if a negative variance of the estimate was set to
        0 (Cameron et al., section 2.3). Negative variances occur with few participants or items.
        The standard error is then too small.

    Raises:
        InputError: if there are fewer than two participants or items; if all ratios are zero; or if
            the ratios agree with all choices or contradict all choices, so that no finite estimate
            exists.
    """
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

    chosen = np.asarray(choices, np.float64)
    ways = [np.unique(np.asarray(way), return_inverse=True)[1] for way in (participants, items)]
    clusters = np.stack(ways, axis=1).astype(np.int64)  # (n, 2), numbered from 0
    sizes = (clusters.max(axis=0, initial=-1) + 1).tolist()
    counts: dict[str, int] = dict(zip(("participants", "items"), sizes, strict=True))
    for name, count in counts.items():
        if count < 2:
            raise InputError(
                f"Standard errors clustered by {name} need at least 2 {name}, got {count}."
            )
    if not ratios.any():
        raise InputError("All ratios of the model are zero, so that it predicts nothing.")
    # Ratios are scaled to a root mean square of 1: with tens of nats, the fit is ill-conditioned
    values = ratios[:, None]
    scale = np.sqrt((values**2).mean(axis=0))
    towards = np.where(chosen > 0, ratios, -ratios)  # positive if the choice agrees with the model
    separation_error = InputError(
        "The ratios separate the choices perfectly, so the fit has no finite coefficient. Add "
        "trials."
    )
    if towards.min() >= 0 or towards.max() <= 0:
        raise separation_error
    with warnings.catch_warnings():
        for warning in (ConvergenceWarning, PerfectSeparationWarning, RuntimeWarning):
            warnings.simplefilter("error", warning)
        try:
            fitted = Logit(chosen, values / scale).fit(
                disp=False, cov_type="cluster", cov_kwds={"groups": clusters}
            )
        except (ConvergenceWarning, PerfectSeparationWarning, RuntimeWarning) as error:
            raise separation_error from error
    # The two-way clustered variance V = V(participants) + V(items) - V(both) may be negative
    variance = float((fitted.cov_params() / scale**2)[0, 0])
    slope, deviation = float((fitted.params / scale)[0]), float(np.sqrt(max(0.0, variance)))
    estimate = Estimate.by_t(slope, deviation, min(sizes) - 1, level)
    return {"estimate": estimate, "choices": len(chosen), **counts, "repaired": variance < 0}


def regressions(ratings: Ratings, level: float) -> Iterator[Row]:
    """Yield a row for each scope (set of trials) and each model that this set evaluates.

    The regression uses only trials that evaluate the model. The estimate is the log odds of
    choosing sentence_2 per nat of the model's log-probability ratio. Standard errors are clustered
    by participants and by trials. If the estimate is nan or unreliable, `note` gives the reason.
    `typical_ratio` is the root mean square of the model's finite ratios on these trials, in nats.
    """
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        for row, model in enumerate(ratings.models):
            if not any(mask[row].any() for mask in masks):
                continue
            rated = subset(ratings, [mask[row] for mask in masks])
            typical, everywhere = _typical_ratio(rated, row), _typical_ratio(ratings, row)
            try:
                fit = regress_choices(rated, row, level=level)
                slope = fit["estimate"]
                counts = [fit[name] for name in ("choices", "participants", "items", "left_out")]
                note = "; ".join(_cautions(rated, row, fit["repaired"], typical, everywhere))
            except InputError as error:
                slope, note = UNKNOWN, str(error)
                counts = [rated.size, len(rated.participants), rated.n_trials, 0]
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
    """Yield warnings about a model's coefficient; typical ratios are in nats."""
    if typical < _MIN_RANGE * everywhere:
        yield (
            f"typical ratio of {typical:.2g} nats here, {everywhere:.2g} nats on all trials: the "
            "coefficient per nat cannot be compared with others"
        )
    # 1 if a person chose the sentence that the model prefers, -1 if the person chose the other
    # sentence, 0 if the person or the model has no preference. The regression does not use choices
    # without a finite ratio.
    agreed = np.concatenate(
        [
            (np.sign(group.preferences) * np.sign(ratios))[:, np.isfinite(ratios)].ravel()
            for group in targeted.groups
            for ratios in [group.ratios[row]]
        ]
    )
    towards, against = int((agreed > 0).sum()), int((agreed < 0).sum())
    few = min(towards, against)
    if few < _MIN_EVENTS:
        side = "against" if against < towards else "with"
        yield (
            f"{few} of {towards + against:,} choices go {side} the model: the coefficient "
            "depends on these"
        )
    if repaired:
        yield "few clusters: the standard error is too small"


def _typical_ratio(ratings: Ratings, row: int) -> float:
    """Return the root mean square of a model's finite ratios, nats; 0 if none is finite."""
    ratios = np.concatenate([group.ratios[row] for group in ratings.groups])
    finite = ratios[np.isfinite(ratios)]
    return float(np.sqrt((finite**2).mean())) if len(finite) else 0.0
