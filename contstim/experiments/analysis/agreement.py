"""Agreement of models with models, people with people, and people with rival models.

Rivals are two models that a trial targets: the trial was made because these models disagree about
its sentences. In a natural-synthetic trial, the rivals have roles: one model accepts the synthetic
sentence, the other model rejects it. `orientations` counts trials whose scores contradict the
roles. `failures` lists the trials on which each model fails worst. `pair_results` evaluates each
pair of rivals on the trials that target this pair.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis import measures
from contstim.experiments.analysis.ratings import roles, scope_mask
from contstim.items.stimuli import CONTROVERSIAL, Condition, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.measures import Measure
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings, Scope
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray


def model_agreement(ratings: Ratings, condition: Condition) -> FloatArray:
    """Return, for every two models, the share of trials in which they prefer the same sentence.

    Only trials of the condition count. A tie counts one half. The matrix, (n_models, n_models), is
    symmetric with 1 on the diagonal. If the condition has no trials, all values are nan.
    """
    signs = [np.sign(g.ratios[:, _condition_mask(g, condition)]) for g in ratings.groups]
    preferred = np.concatenate(signs, axis=1)
    n_models, n_trials = preferred.shape  # +1 for sentence_2, -1 for sentence_1, 0 for a tie
    if not n_trials:
        return np.full((n_models, n_models), np.nan)
    # The mean product of two models' signs is the share of agreements minus the share of
    # disagreements
    agreement: FloatArray = (1 + preferred @ preferred.T / n_trials) / 2
    np.fill_diagonal(agreement, 1.0)
    return agreement


def dominance(ratings: Ratings, condition: Condition) -> FloatArray:
    """Return the share of ratings that agree with the row's model, (n_models, n_models).

    For a cell, only trials count that target the row's model and the column's model. The cell is
    nan if there are no such trials. Cells [i, j] and [j, i] sum to 1 if the two models disagree on
    all these trials.
    """
    n_models = len(ratings.models)
    sums, counts = np.zeros((2, n_models, n_models))
    for group in ratings.groups:
        # (n_models, n_trials), summed over participants
        agreed = measures.choice_agreement(group.ratios[:, None], group.preferences).sum(axis=1)
        for column in np.flatnonzero(_condition_mask(group, condition)):
            trial = group.trials[column]
            rivals = [ratings.models.index(name) for name in (trial.model_1, trial.model_2)]
            for side, rival in (rivals, rivals[::-1]):
                sums[side, rival] += agreed[side, column]
                counts[side, rival] += len(group.participants)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def role_preferences(ratings: Ratings) -> list[Row]:
    """Count preferences in natural-synthetic trials, by accepting model and rejecting model."""
    counts: dict[tuple[str, ...], list[tuple[int, int, int]]] = {}
    for trial, rated in rated_trials(ratings, Condition.NATURAL_SYNTHETIC):
        preferred = Counter(map(ratings.scale.preferred, rated.tolist()))  # 0 for neither
        counts.setdefault(roles(trial), []).append((len(rated), preferred[2], preferred[0]))
    rows = []
    for models in sorted(counts, key=lambda models: [*map(ratings.models.index, models)]):
        n_ratings, second, neither = map(sum, zip(*counts[models], strict=True))
        sizes = {"trials": len(counts[models]), "ratings": n_ratings}
        sizes |= {"prefer_synthetic": second, "prefer_neither": neither}
        rows.append({**dict(zip(("accept", "reject"), models, strict=True)), **sizes})
    return rows


def near_unanimity(ratings: Ratings, share: float = 0.9) -> list[Row]:
    """Count, for each condition, the trials on which people are nearly unanimous.

    In these trials, at least `share` of people prefer the same sentence. Ratings without a
    preference count for neither sentence.
    """
    rows = []
    for condition in Condition:
        trials = [np.sign(r - ratings.scale.middle) for _, r in rated_trials(ratings, condition)]
        # Without the tolerance, rounding errors could make 9 of 10 less than .9
        sides = [max((signs > 0).mean(), (signs < 0).mean()) for signs in trials]
        agreed = sum(bool(side >= share - 1e-9) for side in sides)
        rows.append({"condition": condition, "trials": len(sides), "near_unanimous": agreed})
    return [row for row in rows if row["trials"]]


def rivals(ratings: Ratings, condition: Condition) -> tuple[tuple[str, str], ...]:
    """Return each pair of models that a rated trial of the condition targets."""
    rival_pairs = {frozenset((t.model_1, t.model_2)) for t, _ in rated_trials(ratings, condition)}
    return tuple(pair for pair in combinations(ratings.models, 2) if frozenset(pair) in rival_pairs)


def _condition_mask(group: GroupRatings, condition: Condition) -> BoolArray:
    return np.array([trial.condition is condition for trial in group.trials])


def rated_trials(ratings: Ratings, condition: Condition) -> Iterator[tuple[Trial, FloatArray]]:
    """Yield each rated trial of a condition with its ratings, (n_ratings,), none of them nan."""
    for group in ratings.groups:
        for column in np.flatnonzero(_condition_mask(group, condition)):
            rated = group.ratings[:, column]
            if not np.isnan(rated).all():
                yield group.trials[column], rated[~np.isnan(rated)]


def orientations(ratings: Ratings) -> dict[Condition, tuple[int, int]]:
    """Count the trials of each condition, and the trials whose scores contradict the models' roles.

    Only conditions in which the two models of a trial should disagree are counted. A role states
    how a model should judge the two sentences of a trial. Scores of a natural-synthetic trial agree
    with the roles if the rejecting model finds the synthetic sentence less likely than the natural
    sentence. In all other conditions, scores agree with the roles if model_1 finds sentence_1 less
    likely than sentence_2, and model_2 finds sentence_1 more likely than sentence_2.

    Returns:
        Condition → (number of trials, number of trials whose scores contradict the roles).
    """
    agreements: dict[Condition, list[bool]] = {condition: [] for condition in CONTROVERSIAL}
    for group in ratings.groups:
        for trial, ratios in zip(group.trials, group.ratios.T, strict=True):
            ratio_by_model = dict(zip(ratings.models, ratios.tolist(), strict=True))
            if trial.condition is Condition.NATURAL_SYNTHETIC:
                # sentence_1 is the natural sentence. The accepting model is not checked: it finds
                # both sentences about equally likely, so the sign of its log-probability ratio is
                # not informative.
                agreements[trial.condition].append(ratio_by_model[roles(trial)[1]] < 0)
            elif trial.condition in CONTROVERSIAL:
                agreements[trial.condition].append(
                    ratio_by_model[trial.model_1] > 0 > ratio_by_model[trial.model_2]
                )
    return {c: (len(agreed), agreed.count(False)) for c, agreed in agreements.items() if agreed}


def pair_results(ratings: Ratings, condition: Condition, measure: Measure) -> Iterator[Row]:
    """Yield a row for each pair of models that trials of a condition target.

    A row has the value of each model under `measure`, and the noise ceilings, which show how well
    participants predict one another. Values and ceilings are computed on the trials that target
    this pair. Both are means over the participants who rated these trials.
    """
    for pair in rivals(ratings, condition):
        masks = []  # for each group, (n_models, n_trials); only the rows of both rivals have True
        for group in ratings.groups:
            are_targets = [{t.model_1, t.model_2} == set(pair) for t in group.trials]
            columns = _condition_mask(group, condition) & are_targets
            masks.append(np.logical_and.outer([model in pair for model in ratings.models], columns))
        scores = measures.evaluate(ratings, measure, masks)
        first, second = (ratings.models.index(model) for model in pair)
        # Both models have the same trials, so they have the same ceilings
        yield {
            "condition": condition,
            "model_1": pair[0],
            "model_2": pair[1],
            "measure": measure.name,
            "value_1": measures.known_mean(scores.values[:, first]),
            "value_2": measures.known_mean(scores.values[:, second]),
            "lower": measures.known_mean(scores.lower[:, first]),
            "upper": measures.known_mean(scores.upper[:, first]),
            "n_trials": sum(int(mask.any(axis=0).sum()) for mask in masks),
            "n_ratings": int(scores.n_trials[:, first].sum()),
        }


def failures(ratings: Ratings, scope: Scope, *, worst: int = 5) -> list[Row]:
    """List the trials that contribute most to each model's error, worst first (2023, Tables 1-3).

    `scope` is a kind of trials, such as random natural pairs. A trial is listed only if most people
    with a preference chose the sentence that the model finds less likely.

    The signed-rank cosine of the model and a participant is a sum with one term for each trial. A
    trial's contribution (`error`) is its term with the opposite sign, averaged over participants.
    If answers are choices, the contribution is the share of participants who chose the sentence
    that the model finds less likely, divided by the number of trials. In this case, trials with
    equal contributions are ordered by the absolute log-probability ratio, largest first.

    A row has two sentences: one that people prefer, and one that the model prefers. For each
    sentence, the row has the log-probabilities (nats) under the model and its rival, and the number
    of participants who chose the sentence.
    """

    def order(row: Row) -> tuple[float, float]:
        negated_ratio = row["log_prob_people_prefer_model"] - row["log_prob_model_prefers_model"]
        return -row["error"], 0.0 if ratings.scale.is_graded else negated_ratio

    rows: list[Row] = []
    for model in ratings.models:
        model_failures = [
            row for g in ratings.groups for row in _failures(g, scope, ratings.models, model)
        ]
        rows += sorted(model_failures, key=order)[:worst]
    return rows


def _failures(
    group: GroupRatings, scope: Scope, models: tuple[str, ...], model: str
) -> Iterator[Row]:
    """Yield a row for each trial of a group in which the majority contradicts the model."""
    # `index` counts only the trials that evaluate the model; these trials are the last axis of the
    # arrays below. `column` counts all trials of the group.
    columns = np.flatnonzero(scope_mask(group.trials, scope, (model,))[0]).tolist()
    preferences = group.preferences[:, columns]
    ratios = group.ratios[models.index(model), columns]
    # A trial's term is its part of the cosine's numerator, divided by the denominator. The
    # denominator is the root of the product of two sums of squared ranks: the model's and the
    # participant's (2023, Eq. 9). The denominator is smaller for participants with fewer
    # preferences, so the ranks of these participants get more weight.
    k, n = np.count_nonzero(ratios), len(columns)
    squares, full_square = measures.rank_squares(preferences), n * (n + 1) * (2 * n + 1) / 6
    weights = np.sqrt(
        np.divide(full_square, squares, out=np.zeros_like(squares), where=squares > 0)
    )
    mean_ranks = (measures.signed_ranks(preferences) * weights[:, None]).mean(axis=0)
    scale = np.sqrt(k * (k + 1) * (2 * k + 1) * n * (n + 1) * (2 * n + 1)) / 6
    errors = -measures.signed_ranks(ratios) * mean_ranks / (scale or 1.0)
    if not group.scale.is_graded:
        errors = (1 - measures.choice_agreement(ratios, preferences).mean(axis=0)) / n
    chose = [(preferences < 0).sum(axis=0).tolist(), (preferences > 0).sum(axis=0).tolist()]
    for index, column in enumerate(columns):
        trial = group.trials[column]
        likelier = int(ratios[index] > 0)  # index of the sentence that the model prefers
        if ratios[index] == 0 or chose[1 - likelier][index] <= chose[likelier][index]:
            continue
        rival = trial.model_2 if trial.model_1 == model else trial.model_1
        sides = {"people_prefer": 1 - likelier, "model_prefers": likelier}
        texts = (trial.sentence_1.text, trial.sentence_2.text)
        judges = {"model": model, "rival": rival}
        yield {
            "scope": scope,
            **judges,
            "group": group.number,
            "trial_id": trial.trial_id,
            **{side: texts[sentence] for side, sentence in sides.items()},
            **{
                f"log_prob_{side}_{judge}": (
                    float(group.log_probs[models.index(name), column, sentence]) if name else np.nan
                )
                for judge, name in judges.items()
                for side, sentence in sides.items()
            },
            **{f"chose_{side}": chose[sentence][index] for side, sentence in sides.items()},
            "error": float(errors[index]),
        }
