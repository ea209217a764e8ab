"""How choices follow each model's log-probability ratios, scope by scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import Ratings, subset
from contstim.experiments.analysis.scopes import scope_mask, scopes_of
from contstim.experiments.regression import regress_choices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.scopes import Scope


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
    note: str


def regressions(ratings: Ratings, level: float) -> Iterator[ChoiceRegression]:
    """A regression for each scope and each model that it evaluates, on the model's own trials."""
    for scope in scopes_of(ratings):
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        for row, model in enumerate(ratings.models):
            if any(mask[row].any() for mask in masks):
                yield _regress(subset(ratings, [mask[row] for mask in masks]), scope, model, level)


def _regress(own: Ratings, scope: Scope, model: str, level: float) -> ChoiceRegression:
    try:
        found = regress_choices(own, [model], level=level)
    except InputError as error:
        choices = sum(group.ratings.size for group in own.groups)
        trials = sum(len(group.trials) for group in own.groups)
        missing = (np.nan,) * 5
        people = len(own.participants)
        return ChoiceRegression(scope, model, *missing, choices, people, trials, 0, str(error))
    slope = found[model]
    return ChoiceRegression(
        scope,
        model,
        slope.estimate,
        slope.standard_error,
        slope.low,
        slope.high,
        slope.p_value,
        found.choices,
        found.participants,
        found.items,
        found.left_out,
        "few clusters: the standard error is too small" if found.repaired else "",
    )
