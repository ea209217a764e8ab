"""The trials on which each model fails worst (2023, Tables 1-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.measures import choice_agreement, signed_ranks
from contstim.experiments.analysis.scopes import Scope, scope_mask
from contstim.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.ratings import GroupRatings, Ratings

SCOPES = (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.ACCEPT, Scope.REJECT)


@dataclass(frozen=True)
class Failure:
    """A trial in which people side against a model.

    Attributes:
        scope: which trials were considered.
        model: the one that fails.
        rival: the model it was set against; empty for random pairs.
        group: of the participants.
        trial_id: the trial.
        people_prefer: the sentence that the model finds less likely.
        model_prefers: the sentence that the model finds likelier, or as likely.
        log_probs: nats; of `people_prefer` and `model_prefers` under the model, then under the
            rival (nan where there is none).
        choices: how many participants chose `people_prefer`, and `model_prefers`.
        error: what the trial takes from the model's mean signed-rank cosine in its group; of
            choices, from its accuracy there.
    """

    scope: Scope
    model: str
    rival: str
    group: int
    trial_id: str
    people_prefer: str
    model_prefers: str
    log_probs: tuple[float, ...]
    choices: tuple[int, int]
    error: float


def failures(ratings: Ratings, scope: Scope, *, worst: int = 5) -> tuple[Failure, ...]:
    """For each model the trials that contribute most to its error, worst first.

    A trial's contribution is its term of the signed-rank cosine of the model with the participants
    on the model's own trials, averaged over them and with its sign changed. Of choices it is the
    share of participants who chose the other sentence, over the number of trials; among equals, the
    model's surest come first. Only trials in which most people prefer the other sentence are
    listed.

    Args:
        ratings: who rated what.
        scope: which trials evaluate which model.
        worst: how many to list for each model.
    """

    def worst_first(failure: Failure) -> tuple[float, float]:
        people_prefer, model_prefers = failure.log_probs[:2]
        is_choice = ratings.scale is Scale.CHOICE
        return -failure.error, people_prefer - model_prefers if is_choice else 0.0

    by_model: dict[str, list[Failure]] = {model: [] for model in ratings.models}
    for group in ratings.groups:
        mask = scope_mask(group.trials, scope, ratings.models)
        for row, model in enumerate(ratings.models):
            columns = np.flatnonzero(mask[row])
            by_model[model] += _of_group(group, scope, ratings.models, row, columns.tolist())
    return tuple(
        failure for rows in by_model.values() for failure in sorted(rows, key=worst_first)[:worst]
    )


def _of_group(
    group: GroupRatings, scope: Scope, models: tuple[str, ...], row: int, columns: list[int]
) -> Iterator[Failure]:
    """A model's failures on its own trials in a group: their places and the model's row are given.

    Arrays have the columns' trials last: `place` counts them, `column` counts all of the group's.
    """
    preferences, ratios = group.preferences[:, columns], group.ratios[row, columns]
    people = signed_ranks(preferences).mean(axis=0)
    # The cosine's denominator, the root of both sums of squares (2023, Eq. 9): the model has k
    # trials without a tie, people all n. What a trial adds to the numerator, divided by it, is the
    # trial's term; a model that ties everywhere has no terms.
    k, n = np.count_nonzero(ratios), len(columns)
    scale = np.sqrt(k * (k + 1) * (2 * k + 1) * n * (n + 1) * (2 * n + 1)) / 6
    errors = -signed_ranks(ratios) * people / (scale or 1.0)
    if group.scale is Scale.CHOICE:
        errors = (1 - choice_agreement(ratios, preferences).mean(axis=0)) / n
    second = (preferences > 0).sum(axis=0)
    for place, column in enumerate(columns):
        trial = group.trials[column]
        prefer_second = int(second[place]), len(preferences) - int(second[place])
        likelier = int(ratios[place] > 0)  # the place of the sentence that the model prefers
        choices = prefer_second if likelier == 0 else prefer_second[::-1]
        if ratios[place] == 0 or choices[0] <= choices[1]:
            continue
        texts = (trial.sentence_1.text, trial.sentence_2.text)
        rival = trial.model_2 if trial.model_1 == models[row] else trial.model_1
        order = [1 - likelier, likelier]  # what people prefer, then what the model prefers
        under_rival = (
            group.log_probs[models.index(rival), column, order] if rival else (np.nan, np.nan)
        )
        yield Failure(
            scope,
            models[row],
            rival,
            group.number,
            trial.trial_id,
            texts[order[0]],
            texts[order[1]],
            (*map(float, group.log_probs[row, column, order]), *map(float, under_rival)),
            choices,
            float(errors[place]),
        )
