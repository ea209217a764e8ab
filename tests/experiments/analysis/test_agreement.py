"""Counts of agreement and preference, against loops over single ratings."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, compress

import numpy as np
import pytest
from scipy.stats import rankdata

from contstim.experiments.analysis import agreement
from contstim.experiments.analysis.agreement import failures
from contstim.experiments.analysis.ratings import Scope, gather, scope_mask
from contstim.experiments.responses.table import UNRATED, Response
from contstim.files.arrays import FloatArray
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Trial
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.stimuli import new_trial

MODELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Some scores are equal, so that models tie."""
    simulated = simulate(MODELS, groups=(3, 4), seed=2)
    log_probs = np.round(simulated.scores.log_probs, -1)
    scores = ScoreTable(simulated.scores.sentences, MODELS, log_probs)
    return Experiment(simulated.trials, simulated.responses, scores)


def ratio(experiment: Experiment, model: str, trial: Trial) -> float:
    score_by_sentence = dict(
        zip(experiment.scores.sentences or (), experiment.scores.column(model), strict=True)
    )
    return float(score_by_sentence[trial.sentence_2] - score_by_sentence[trial.sentence_1])


def test_model_agreement_equals_a_loop_over_trials(experiment: Experiment) -> None:
    ratings = experiment.gather()
    agreements = agreement.model_agreement(ratings, Condition.RANDOM_NATURAL)
    trials = [t for t in experiment.trials if t.condition is Condition.RANDOM_NATURAL]
    ties = 0
    for first, second in combinations(MODELS, 2):
        points = 0.0
        for trial in trials:
            both = ratio(experiment, first, trial) * ratio(experiment, second, trial)
            ties += both == 0
            points += 0.5 if both == 0 else float(both > 0)
        row, column = MODELS.index(first), MODELS.index(second)
        expected = pytest.approx(points / len(trials))
        assert agreements[row, column] == agreements[column, row] == expected
    assert ties
    assert np.diag(agreements).tolist() == [1.0] * 3


def test_dominance_equals_a_loop_over_responses(experiment: Experiment) -> None:
    ratings = experiment.gather()
    for condition in (Condition.NATURAL_CONTROVERSIAL, Condition.NATURAL_SYNTHETIC):
        dominance = agreement.dominance(ratings, condition)
        points: Counter[tuple[str, str]] = Counter()
        counts: Counter[tuple[str, str]] = Counter()
        by_id = {trial.trial_id: trial for trial in experiment.trials}
        for response in experiment.responses:
            trial = by_id[response.trial_id]
            if trial.condition is not condition:
                continue
            for model, rival in ((trial.model_1, trial.model_2), (trial.model_2, trial.model_1)):
                value = ratio(experiment, model, trial)
                second = response.rating > 3.5
                points[model, rival] += 0.5 if value == 0 else float((value > 0) == second)  # type: ignore[assignment]
                counts[model, rival] += 1
        assert np.isnan(np.diag(dominance)).all()
        for (model, rival), number in counts.items():
            cell = dominance[MODELS.index(model), MODELS.index(rival)]
            assert cell == pytest.approx(points[model, rival] / number)
        assert len(counts) == 6


def test_role_preferences_equal_a_loop_over_responses(experiment: Experiment) -> None:
    ratings = experiment.gather()
    by_id = {trial.trial_id: trial for trial in experiment.trials}
    counts: Counter[tuple[str, str]] = Counter()
    chosen: Counter[tuple[str, str]] = Counter()
    for response in experiment.responses:
        trial = by_id[response.trial_id]
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            reject_first = trial.kind_2 == "synthetic_1"
            models = (trial.model_1, trial.model_2)
            accept, reject = models[::-1] if reject_first else models
            counts[accept, reject] += 1
            chosen[accept, reject] += response.rating >= 4
    rows = agreement.role_preferences(ratings)
    assert {(row["accept"], row["reject"]): row["ratings"] for row in rows} == counts
    assert {(row["accept"], row["reject"]): row["prefer_synthetic"] for row in rows} == chosen
    assert {row["trials"] for row in rows} == {4}


def test_failures_are_ordered_by_size() -> None:
    """By hand: a is right on t1, slightly wrong on t2, badly wrong on t3; t4 targets others."""
    controversial = Condition.NATURAL_CONTROVERSIAL
    models = {"t1": "ab", "t2": "ab", "t3": "ba", "t4": "bc"}
    trials = tuple(
        new_trial(name, 1, f"First {name}.", f"Second {name}.", controversial, (pair[0], pair[1]))
        for name, pair in models.items()
    )
    ratios = {"t1": 3.0, "t2": 1.0, "t3": 9.0, "t4": 5.0}
    texts = [text for t in trials for text in (t.sentence_1, t.sentence_2)]
    log_probs = np.array([[-20.0, -30.0, -40.0]] * len(texts))
    log_probs[1::2, 0] += list(ratios.values())
    ratings = {"t1": (6, 5), "t2": (3, 3), "t3": (1, 2), "t4": (1, 1)}
    responses = [
        Response(f"p{person}", 1, name, ratings_of_trial[person], 1, 1, 900.0)
        for name, ratings_of_trial in ratings.items()
        for person in (0, 1)
    ]
    gathered = gather(trials, responses, ScoreTable(tuple(texts), ("a", "b", "c"), log_probs))
    failures_of_a = [f for f in failures(gathered, Scope.NATURAL) if f["model"] == "a"]
    assert [f["trial_id"] for f in failures_of_a] == ["t3", "t2"]
    worst = failures_of_a[0]
    texts_of_worst = [worst[name] for name in ("rival", "people_prefer", "model_prefers")]
    assert texts_of_worst == ["b", "First t3.", "Second t3."]
    log_probs_of = [worst[name] for name in worst if name.startswith("log_prob")]
    assert log_probs_of == [-20.0, -11.0, -30.0, -30.0]
    assert (worst["chose_people_prefer"], worst["chose_model_prefers"]) == (2, 0)
    # ranks of a: 2, 1, 3; of p0's ratings 6, 3, 1: 2.5, 1, 2.5; of p1's 5, 3, 2: 2.5, 1, 2.5
    assert worst["error"] == pytest.approx(3 * 2.5 / 14)
    assert failures(gathered, Scope.NATURAL, worst=1)[0] == worst


def test_errors_with_missing_ratings_are_terms_of_cosines() -> None:
    """Witness: unit vectors of scipy's ranks, each divided by its own norm."""

    def unit(values: FloatArray) -> FloatArray:
        rated, ranks = values != 0, np.zeros(len(values))
        ranks[rated] = np.sign(values[rated]) * rankdata(np.abs(values[rated]))
        unit_vector: FloatArray = ranks / np.linalg.norm(np.arange(rated.sum() + 1))
        return unit_vector

    experiment = simulate(groups=(5,), follow=0.4, seed=4)
    index_by_id = {trial.trial_id: n for n, trial in enumerate(experiment.trials)}
    missing = [  # the last participant misses every third trial, the others a few
        replace(r, rating=UNRATED)
        if index_by_id[r.trial_id] % (3 if r.participant == "g1p4" else 11) == 0
        else r
        for r in experiment.responses
    ]
    ratings = gather(experiment.trials, missing, experiment.scores)
    (group,) = ratings.groups
    assert group.participants[4] == "g1p4"
    targeted = scope_mask(group.trials, Scope.RANDOM, ratings.models)[0]
    names = [trial.trial_id for trial in compress(group.trials, targeted)]
    people = np.array([unit(person[targeted]) for person in group.preferences])
    majority = np.sign(np.sign(people).sum(axis=0))  # the side of most
    for model, ratios in zip(ratings.models, group.ratios[:, targeted], strict=True):
        rows = [f for f in failures(ratings, Scope.RANDOM, worst=99) if f["model"] == model]
        errors = dict(zip(names, -(unit(ratios) * people).mean(axis=0), strict=True))
        wrong = {n for n, r, side in zip(names, ratios, majority, strict=True) if r * side < 0}
        assert {f["trial_id"] for f in rows} == wrong != set()
        listed_errors = [f["error"] for f in rows]
        assert listed_errors == pytest.approx([errors[f["trial_id"]] for f in rows])
        assert listed_errors == sorted(listed_errors, reverse=True)
        assert all(f["rival"] == "" and np.isnan(f["log_prob_people_prefer_rival"]) for f in rows)
