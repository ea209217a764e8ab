"""Regressions of choices on each model's log-probability ratios, scope by scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Ratings, subset
from contstim.experiments.analysis.regression import regress_choices
from contstim.experiments.analysis.scopes import scope_mask, scopes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.scopes import Scope

_NARROW = 0.1  # of the ratios on all trials: where a coefficient per nat reaches beyond its data
_EVENTS = 10  # choices of the rarer kind for a predictor (Peduzzi et al. 1996)


@dataclass(frozen=True)
class ChoiceRegression:
    """A model's coefficient: log odds of choosing sentence_2 per nat of its log-probability ratio.

    Attributes:
        scope: which trials evaluate the model.
        model: whose ratios.
        estimate: nan where there is none.
        standard_error: clustered by participants and by trials.
        low: the interval's lower end.
        high: its upper end.
        p_value: two-sided.
        choices: how many.
        participants: clusters.
        trials: clusters.
        left_out: choices without a finite ratio.
        typical_ratio: root mean square of the model's ratios on these trials, nats.
        note: why there is no estimate, or why not to trust it.
    """

    scope: Scope
    model: str
    estimate: float
    standard_error: float
    low: float
    high: float
    p_value: float
    choices: int
    participants: int
    trials: int
    left_out: int
    typical_ratio: float
    note: str


def regressions(ratings: Ratings, level: float) -> Iterator[ChoiceRegression]:
    """A regression for each scope and each model that it evaluates, on the model's own trials."""
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        for row, model in enumerate(ratings.models):
            if not any(mask[row].any() for mask in masks):
                continue
            targeted = subset(ratings, [mask[row] for mask in masks])
            typical = _typical(targeted, row)
            try:
                fit = regress_choices(targeted, [model], level=level)
            except InputError as error:
                # A model without an estimate has its row too: the note says why it has none.
                choices = sum(group.ratings.size for group in targeted.groups)
                trials = sum(len(group.trials) for group in targeted.groups)
                counts = (choices, len(targeted.participants), trials, 0)
                yield ChoiceRegression(scope, model, *(np.nan,) * 5, *counts, typical, str(error))
                continue
            slope = fit[model]
            cautions = _cautions(targeted, row, fit.repaired, typical, _typical(ratings, row))
            yield ChoiceRegression(
                scope,
                model,
                slope.estimate,
                slope.standard_error,
                slope.low,
                slope.high,
                slope.p_value,
                fit.choices,
                fit.participants,
                fit.items,
                fit.left_out,
                typical,
                "; ".join(cautions),
            )


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
