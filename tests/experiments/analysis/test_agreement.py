"""Counts of agreement and preference, against loops over single ratings."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from contstim.experiments.analysis import agreement
from contstim.experiments.analysis.agreement import pair_results
from contstim.experiments.analysis.evaluation import ACCURACY, COSINE, evaluate
from contstim.experiments.analysis.ratings import gather
from contstim.experiments.analysis.scopes import pair_mask
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Condition
from tests.experiments.analysis.simulation import Experiment, simulate

MODELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def made() -> Experiment:
    """Some scores are equal, so that models tie."""
    experiment = simulate(MODELS, groups=(3, 4), seed=2)
    log_probs = np.round(experiment.scores.log_probs, -1)
    scores = ScoreTable(experiment.scores.sentences, MODELS, log_probs)
    return Experiment(experiment.trials, experiment.responses, scores)


def ratio(made: Experiment, model: str, sentences: tuple[Sentence, Sentence]) -> float:
    column = dict(zip(made.scores.sentences or (), made.scores.column(model), strict=True))
    return float(column[sentences[1]] - column[sentences[0]])


def test_models_agree_trial_by_trial(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    found = agreement.model_agreement(ratings, Condition.RANDOM_NATURAL)
    trials = [t for t in made.trials if t.condition is Condition.RANDOM_NATURAL]
    ties = 0
    for first, second in combinations(MODELS, 2):
        points = 0.0
        for trial in trials:
            texts = (trial.sentence_1, trial.sentence_2)
            product = ratio(made, first, texts) * ratio(made, second, texts)
            ties += product == 0
            points += 0.5 if product == 0 else float(product > 0)
        row, column = MODELS.index(first), MODELS.index(second)
        assert found[row, column] == found[column, row] == pytest.approx(points / len(trials))
    assert ties
    assert np.diag(found).tolist() == [1.0] * 3


def test_people_side_with_one_of_two_rivals(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    for condition in (Condition.NATURAL_CONTROVERSIAL, Condition.NATURAL_SYNTHETIC):
        found = agreement.dominance(ratings, condition)
        points: Counter[tuple[str, str]] = Counter()
        counts: Counter[tuple[str, str]] = Counter()
        by_id = {trial.trial_id: trial for trial in made.trials}
        for response in made.responses:
            trial = by_id[response.trial_id]
            if trial.condition is not condition:
                continue
            for own, other in (
                (trial.model_1, trial.model_2),
                (trial.model_2, trial.model_1),
            ):
                value = ratio(made, own, (trial.sentence_1, trial.sentence_2))
                second = response.rating > 3.5
                points[own, other] += 0.5 if value == 0 else float((value > 0) == second)  # type: ignore[assignment]
                counts[own, other] += 1
        for row, own in enumerate(MODELS):
            for column, other in enumerate(MODELS):
                if own == other:
                    assert np.isnan(found[row, column])
                else:
                    share = points[own, other] / counts[own, other]
                    assert found[row, column] == pytest.approx(share)


def test_synthetic_sentences_by_who_accepts_and_who_rejects(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    by_id = {trial.trial_id: trial for trial in made.trials}
    counts: Counter[tuple[str, str]] = Counter()
    chosen: Counter[tuple[str, str]] = Counter()
    for response in made.responses:
        trial = by_id[response.trial_id]
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            reject_first = trial.kind_2 == "synthetic_1"
            accept, reject = (
                (trial.model_2, trial.model_1) if reject_first else (trial.model_1, trial.model_2)
            )
            counts[accept, reject] += 1
            chosen[accept, reject] += response.rating >= 4
    found = agreement.role_preferences(ratings)
    assert {(r.accept, r.reject): r.ratings for r in found} == counts
    assert {(r.accept, r.reject): r.prefer_synthetic for r in found} == chosen
    assert {r.trials for r in found} == {4}


def test_near_unanimity_is_counted_trial_by_trial(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    for share in (0.6, 0.75, 1.0):
        for one in agreement.near_unanimity(ratings, share):
            own = {t.trial_id for t in made.trials if t.condition is one.condition}
            sides = {
                trial_id: [r.rating > 3 for r in made.responses if r.trial_id == trial_id]
                for trial_id in own
            }
            expected = sum(
                max(sum(side), len(side) - sum(side)) / len(side) >= share
                for side in sides.values()
            )
            assert (one.near_unanimous, one.trials) == (expected, len(own))


def test_rivals_have_results_on_their_own_trials(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    condition = Condition.SYNTHETIC_SYNTHETIC
    rows = list(pair_results(ratings, condition, ACCURACY))
    assert [(r.model_1, r.model_2) for r in rows] == list(combinations(MODELS, 2))
    side = agreement.dominance(ratings, condition)
    for row in rows:
        first, second = MODELS.index(row.model_1), MODELS.index(row.model_2)
        assert row.value_1 == pytest.approx(side[first, second])
        assert row.value_2 == pytest.approx(side[second, first])
        assert (row.n_trials, row.n_ratings) == (4, 2 * 7)
    (cosine, *_) = pair_results(ratings, condition, COSINE)
    masks = [pair_mask(g.trials, condition, ("a", "b"), MODELS) for g in ratings.groups]
    found = evaluate(ratings, COSINE, masks)
    assert cosine.value_2 == pytest.approx(found.values[:, 1].mean())
    assert cosine.lower == pytest.approx(found.lower[:, 0].mean())
