"""Where models fail, by hand and against the cosine that failures must add up to."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.experiments.analysis.evaluation import COSINE, evaluate
from contstim.experiments.analysis.failures import failures
from contstim.experiments.analysis.ratings import gather
from contstim.experiments.analysis.scopes import Scope, scope_mask
from contstim.experiments.responses.table import Response
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial
from tests.experiments.analysis.simulation import simulate


def test_the_worst_failure_is_the_one_that_model_and_people_are_surest_of() -> None:
    """By hand: a is right on t1, slightly wrong on t2, badly wrong on t3; t4 targets others."""
    models = {"t1": "ab", "t2": "ab", "t3": "ba", "t4": "bc"}
    trials = tuple(
        Trial(
            name,
            1,
            Condition.NATURAL_CONTROVERSIAL,
            pair[0],
            pair[1],
            Sentence.parse(f"First {name}."),
            Sentence.parse(f"Second {name}."),
            Kind.NATURAL,
            Kind.NATURAL,
            "",
        )
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
    found = [one for one in failures(gathered, Scope.NATURAL) if one.model == "a"]
    assert [one.trial_id for one in found] == ["t3", "t2"]
    worst = found[0]
    assert (worst.rival, worst.people_prefer, worst.model_prefers) == (
        "b",
        "First t3.",
        "Second t3.",
    )
    assert worst.log_probs == (-20.0, -11.0, -30.0, -30.0)
    assert worst.choices == (2, 0)
    # ranks of a: 2, 1, 3; of p0's ratings 6, 3, 1: 2.5, 1, 2.5; of p1's 5, 3, 2: 2.5, 1, 2.5
    assert worst.error == pytest.approx(3 * 2.5 / 14)
    assert not [
        one for one in failures(gathered, Scope.NATURAL, worst=1) if one.error < worst.error
    ]


def test_errors_are_the_negative_terms_of_the_cosine() -> None:
    made = simulate(groups=(5,), follow=0.4, seed=4)
    ratings = gather(made.trials, made.responses, made.scores)
    mask = scope_mask(ratings.groups[0].trials, Scope.RANDOM, ratings.models)
    cosines = evaluate(ratings, COSINE, [mask]).values.mean(axis=0)
    for row, model in enumerate(ratings.models):
        listed = [f for f in failures(ratings, Scope.RANDOM, worst=99) if f.model == model]
        group = ratings.groups[0]
        turned = (
            group.ratios[row][mask[row]] * ((group.ratings > 3.5).mean(axis=0) - 0.5)[mask[row]]
        )
        assert len(listed) == (turned < 0).sum()
        assert sum(f.error for f in listed) >= -cosines[row] - 1e-9
        assert all(f.rival == "" and np.isnan(f.log_probs[2]) for f in listed)
        assert [f.error for f in listed] == sorted((f.error for f in listed), reverse=True)
