"""Who agrees with whom: models with models, people with people, and people with rival models.

Also whether models play the roles that trials give them, their results on the trials that were made
to tell two of them apart, and the trials on which each fails worst. Rows are those of tables.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis import measures
from contstim.experiments.analysis.ratings import pair_mask, roles, scope_mask
from contstim.items.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.experiments.analysis.measures import Measure
    from contstim.experiments.analysis.ratings import GroupRatings, Ratings, Scope
    from contstim.experiments.analysis.tables import Row
    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.items.stimuli import Trial


def model_agreement(ratings: Ratings, condition: Condition) -> FloatArray:
    """The share of a condition's trials in which two models prefer the same sentence.

    A tie counts one half. (n_models, n_models), symmetric, 1 on the diagonal; nan without trials.
    """
    signs = [np.sign(g.ratios[:, _of(g, condition)]) for g in ratings.groups]
    preferred = np.concatenate(signs, axis=1)
    n_models, n_trials = preferred.shape  # +1 for sentence_2, -1 for sentence_1, 0 for a tie
    if not n_trials:
        return np.full((n_models, n_models), np.nan)
    # The mean product of two models' signs is the share of agreements less that of disagreements.
    agreement: FloatArray = (1 + preferred @ preferred.T / n_trials) / 2
    np.fill_diagonal(agreement, 1.0)
    return agreement


def dominance(ratings: Ratings, condition: Condition) -> FloatArray:
    """The share of ratings that side with the row's model against the column's.

    Only trials count that were made to set the two against each other. (n_models, n_models); nan
    where there are none. Cells across the diagonal add up to one where the models do disagree.
    """
    n_models = len(ratings.models)
    sums, counts = np.zeros((2, n_models, n_models))
    for group in ratings.groups:
        # (n_models, 1, n_trials) against (n_participants, n_trials), summed over participants
        agreed = measures.choice_agreement(group.ratios[:, None], group.preferences).sum(axis=1)
        for column in np.flatnonzero(_of(group, condition)):
            trial = group.trials[column]
            rivals = [ratings.models.index(name) for name in (trial.model_1, trial.model_2)]
            for side, other in (rivals, rivals[::-1]):
                sums[side, other] += agreed[side, column]
                counts[side, other] += len(group.participants)
    shares: FloatArray = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return shares


def role_preferences(ratings: Ratings) -> list[Row]:
    """Preference for synthetic sentences over natural ones, by who accepts and who rejects them."""
    counts: dict[tuple[str, ...], list[tuple[int, int, int]]] = {}
    for trial, rated in rated_trials(ratings, Condition.NATURAL_SYNTHETIC):
        preferred = Counter(map(ratings.scale.preferred, rated.tolist()))  # 0 for neither
        counts.setdefault(roles(trial), []).append((len(rated), preferred[2], preferred[0]))
    rows = []
    for models in sorted(counts, key=lambda models: [*map(ratings.models.index, models)]):
        every, second, neither = map(sum, zip(*counts[models], strict=True))
        sizes = {"trials": len(counts[models]), "ratings": every}
        sizes |= {"prefer_synthetic": second, "prefer_neither": neither}
        rows.append({**dict(zip(("accept", "reject"), models, strict=True)), **sizes})
    return rows


def near_unanimity(ratings: Ratings, share: float = 0.9) -> list[Row]:
    """Number of trials of each condition that have at least `share` of people on one side.

    Who prefers neither sentence is on no side.
    """
    rows = []
    for condition in Condition:
        trials = [np.sign(r - ratings.scale.middle) for _, r in rated_trials(ratings, condition)]
        # 9 of 10 are .9, rounded or not
        sides = [max((signs > 0).mean(), (signs < 0).mean()) for signs in trials]
        agreed = sum(bool(side >= share - 1e-9) for side in sides)
        rows.append({"condition": condition, "trials": len(sides), "near_unanimous": agreed})
    return [row for row in rows if row["trials"]]


def rivals(ratings: Ratings, condition: Condition) -> tuple[tuple[str, str], ...]:
    """The pairs of models that a condition sets against each other, in the models' order."""
    met = {frozenset((t.model_1, t.model_2)) for t, _ in rated_trials(ratings, condition)}
    return tuple(pair for pair in combinations(ratings.models, 2) if frozenset(pair) in met)


def _of(group: GroupRatings, condition: Condition) -> BoolArray:
    return np.array([trial.condition is condition for trial in group.trials])


def rated_trials(ratings: Ratings, condition: Condition) -> Iterator[tuple[Trial, FloatArray]]:
    """Trials of a condition that somebody rated, each with its ratings, (n_participants,)."""
    for group in ratings.groups:
        for column in np.flatnonzero(_of(group, condition)):
            rated = group.ratings[:, column]
            if not np.isnan(rated).all():
                yield group.trials[column], rated[~np.isnan(rated)]


def orientations(ratings: Ratings) -> dict[Condition, tuple[int, int]]:
    """Numbers of trials of each controversial condition, and of those that the scores contradict.

    The scores contradict a pair of two natural or two synthetic sentences unless model_1 finds
    sentence_1 less likely than sentence_2, and model_2 finds it likelier; they contradict a
    natural-synthetic trial unless the model that rejects the synthetic sentence finds it less
    likely than the natural one.
    """
    as_named: dict[Condition, list[bool]] = {condition: [] for condition in CONTROVERSIAL}
    for group in ratings.groups:
        for trial, ratios in zip(group.trials, group.ratios.T, strict=True):
            # How much likelier a model finds sentence_2
            of = dict(zip(ratings.models, ratios.tolist(), strict=True))
            if trial.condition is Condition.NATURAL_SYNTHETIC:
                # The natural sentence comes first. Only the rejecting model is asked: the accepting
                # one finds both about as likely, so that the sign of its ratio says little.
                as_named[trial.condition].append(of[roles(trial)[1]] < 0)
            elif trial.condition in CONTROVERSIAL:
                as_named[trial.condition].append(of[trial.model_1] > 0 > of[trial.model_2])
    return {c: (len(named), named.count(False)) for c, named in as_named.items() if named}


def pair_results(ratings: Ratings, condition: Condition, measure: Measure) -> Iterator[Row]:
    """A row for each pair of models that a condition sets against each other.

    Values and ceilings are means over the participants who saw such trials, on the same trials.
    """
    for pair in rivals(ratings, condition):
        masks = [pair_mask(g.trials, condition, pair, ratings.models) for g in ratings.groups]
        scores = measures.evaluate(ratings, measure, masks)
        first, second = (ratings.models.index(model) for model in pair)
        # Both models have the same trials here, so the ceilings of the first are those of both.
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
    """For each model the trials that contribute most to its error, worst first (2023, Tables 1-3).

    A trial's contribution is its term of the signed-rank cosine of the model with the participants
    on the model's own trials, averaged over them and with its sign changed. Of choices it is the
    share of participants who chose the other sentence, over the number of trials; among equals, the
    model's surest come first. Only trials in which most people prefer the other sentence are
    listed: with the sentence that people prefer, the one that the model prefers, the
    log-probabilities (nats) of both under the model and under its rival, who chose them, and what
    the trial takes from the model's mean cosine, or accuracy, in its group (`error`).

    Args:
        ratings: who rated what.
        scope: which trials evaluate which model.
        worst: how many to list for each model.
    """

    def order(row: Row) -> tuple[float, float]:
        surest = row["log_prob_people_prefer_model"] - row["log_prob_model_prefers_model"]
        return -row["error"], 0.0 if ratings.scale.is_graded else surest

    rows: list[Row] = []
    for model in ratings.models:
        own = [row for g in ratings.groups for row in _failures(g, scope, ratings.models, model)]
        rows += sorted(own, key=order)[:worst]
    return rows


def _failures(
    group: GroupRatings, scope: Scope, models: tuple[str, ...], model: str
) -> Iterator[Row]:
    """A model's failures on its own trials in a group."""
    # Arrays have these trials last: `place` counts them, `column` counts all of the group's.
    columns = np.flatnonzero(scope_mask(group.trials, scope, (model,))[0]).tolist()
    preferences = group.preferences[:, columns]
    ratios = group.ratios[models.index(model), columns]
    # The cosine's denominator, the root of both sums of squares (2023, Eq. 9), is a person's own:
    # ranks of who has a preference on fewer trials than all n weigh more. What a trial adds to the
    # numerator, divided by it, is the trial's term; a model that ties everywhere has no terms.
    k, n = np.count_nonzero(ratios), len(columns)
    own, full = measures.rank_squares(preferences), n * (n + 1) * (2 * n + 1) / 6
    weights = np.sqrt(np.divide(full, own, out=np.zeros_like(own), where=own > 0))
    people = (measures.signed_ranks(preferences) * weights[:, None]).mean(axis=0)
    scale = np.sqrt(k * (k + 1) * (2 * k + 1) * n * (n + 1) * (2 * n + 1)) / 6
    errors = -measures.signed_ranks(ratios) * people / (scale or 1.0)
    if not group.scale.is_graded:
        errors = (1 - measures.choice_agreement(ratios, preferences).mean(axis=0)) / n
    chose = [(preferences < 0).sum(axis=0).tolist(), (preferences > 0).sum(axis=0).tolist()]
    for place, column in enumerate(columns):
        trial = group.trials[column]
        likelier = int(ratios[place] > 0)  # the place of the sentence that the model prefers
        if ratios[place] == 0 or chose[1 - likelier][place] <= chose[likelier][place]:
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
            **{f"chose_{side}": chose[sentence][place] for side, sentence in sides.items()},
            "error": float(errors[place]),
        }
