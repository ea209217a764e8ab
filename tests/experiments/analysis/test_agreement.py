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
def made() -> Experiment:
    """Some scores are equal, so that models tie."""
    experiment = simulate(MODELS, groups=(3, 4), seed=2)
    log_probs = np.round(experiment.scores.log_probs, -1)
    scores = ScoreTable(experiment.scores.sentences, MODELS, log_probs)
    return Experiment(experiment.trials, experiment.responses, scores)


def ratio(made: Experiment, model: str, trial: Trial) -> float:
    column = dict(zip(made.scores.sentences or (), made.scores.column(model), strict=True))
    return float(column[trial.sentence_2] - column[trial.sentence_1])


def test_models_agree_trial_by_trial(made: Experiment) -> None:
    ratings = gather(made.trials, made.responses, made.scores)
    found = agreement.model_agreement(ratings, Condition.RANDOM_NATURAL)
    trials = [t for t in made.trials if t.condition is Condition.RANDOM_NATURAL]
    ties = 0
    for first, second in combinations(MODELS, 2):
        points = 0.0
        for trial in trials:
            product = ratio(made, first, trial) * ratio(made, second, trial)
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
            for own, other in ((trial.model_1, trial.model_2), (trial.model_2, trial.model_1)):
                value = ratio(made, own, trial)
                second = response.rating > 3.5
                points[own, other] += 0.5 if value == 0 else float((value > 0) == second)  # type: ignore[assignment]
                counts[own, other] += 1
        assert np.isnan(np.diag(found)).all()
        for (own, other), number in counts.items():
            cell = found[MODELS.index(own), MODELS.index(other)]
            assert cell == pytest.approx(points[own, other] / number)
        assert len(counts) == 6


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
    assert {(r["accept"], r["reject"]): r["ratings"] for r in found} == counts
    assert {(r["accept"], r["reject"]): r["prefer_synthetic"] for r in found} == chosen
    assert {r["trials"] for r in found} == {4}


def test_the_worst_failure_is_the_one_that_model_and_people_are_surest_of() -> None:
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
        Response(f"p{person}", 1, name, given[person], 1, 1, 900.0)
        for name, given in ratings.items()
        for person in (0, 1)
    ]
    gathered = gather(trials, responses, ScoreTable(tuple(texts), ("a", "b", "c"), log_probs))
    found = [one for one in failures(gathered, Scope.NATURAL) if one["model"] == "a"]
    assert [one["trial_id"] for one in found] == ["t3", "t2"]
    worst = found[0]
    told = [worst[name] for name in ("rival", "people_prefer", "model_prefers")]
    assert told == ["b", "First t3.", "Second t3."]
    log_probs_of = [worst[name] for name in worst if name.startswith("log_prob")]
    assert log_probs_of == [-20.0, -11.0, -30.0, -30.0]
    assert (worst["chose_people_prefer"], worst["chose_model_prefers"]) == (2, 0)
    # ranks of a: 2, 1, 3; of p0's ratings 6, 3, 1: 2.5, 1, 2.5; of p1's 5, 3, 2: 2.5, 1, 2.5
    assert worst["error"] == pytest.approx(3 * 2.5 / 14)
    assert failures(gathered, Scope.NATURAL, worst=1)[0] == worst


def test_errors_are_terms_of_each_persons_own_cosine_where_answers_are_missing() -> None:
    """Witness: unit vectors of scipy's ranks, each divided by the norm of its own number."""

    def unit(values: FloatArray) -> FloatArray:
        known, ranks = values != 0, np.zeros(len(values))
        ranks[known] = np.sign(values[known]) * rankdata(np.abs(values[known]))
        of_all: FloatArray = ranks / np.linalg.norm(np.arange(known.sum() + 1))
        return of_all

    made = simulate(groups=(5,), follow=0.4, seed=4)
    places = {trial.trial_id: n for n, trial in enumerate(made.trials)}
    late = [  # the last person is late at every third trial, the others now and then
        replace(r, rating=UNRATED)
        if places[r.trial_id] % (3 if r.participant == "g1p4" else 11) == 0
        else r
        for r in made.responses
    ]
    ratings = gather(made.trials, late, made.scores)
    (group,) = ratings.groups
    assert group.participants[4] == "g1p4"
    own = scope_mask(group.trials, Scope.RANDOM, ratings.models)[0]
    names = [trial.trial_id for trial in compress(group.trials, own)]
    people = np.array([unit(person[own]) for person in group.preferences])
    against = np.sign(np.sign(people).sum(axis=0))  # the side of most
    for model, ratios in zip(ratings.models, group.ratios[:, own], strict=True):
        listed = [f for f in failures(ratings, Scope.RANDOM, worst=99) if f["model"] == model]
        errors = dict(zip(names, -(unit(ratios) * people).mean(axis=0), strict=True))
        wrong = {n for n, r, side in zip(names, ratios, against, strict=True) if r * side < 0}
        assert {f["trial_id"] for f in listed} == wrong != set()
        found = [f["error"] for f in listed]
        assert found == pytest.approx([errors[f["trial_id"]] for f in listed])
        assert found == sorted(found, reverse=True)
        assert all(f["rival"] == "" and np.isnan(f["log_prob_people_prefer_rival"]) for f in listed)
