"""Experiment 1 of the 2023 study, rebuilt from its published files."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.reproduce.published import read_experiment, read_stimulus_scores
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.checks import HARMLESS, check_responses
from contstim.experiments.responses.table import Response
from contstim.items.stimuli import Condition, Trial

Experiment = tuple[tuple[Trial, ...], tuple[Response, ...]]


@pytest.fixture(scope="module")
def experiment(published_data: Path) -> Experiment:
    return read_experiment(
        published_data / "contstimlang", published_data / "contstimlang-fork/data"
    )


@pytest.mark.published
def test_experiment_1_has_its_published_design(experiment: Experiment) -> None:
    """Methods of the paper: 100 people in 10 groups, 9 + 36 + 72 + 36 + 12 trials each."""
    trials, responses = experiment
    assert len(responses) == 16_500
    members = Counter(dict.fromkeys((r.participant, r.group) for r in responses))
    assert len({participant for participant, _ in members}) == len(members) == 100
    assert Counter(group for _, group in members) == dict.fromkeys(range(1, 11), 10)
    assert Counter(trial.condition for trial in trials) == {
        Condition.RANDOM_NATURAL: 90,
        Condition.NATURAL_CONTROVERSIAL: 360,
        Condition.NATURAL_SYNTHETIC: 720,
        Condition.SYNTHETIC_SYNTHETIC: 360,
        Condition.CATCH: 120,
    }
    by_id = {trial.trial_id: trial for trial in trials}
    each = Counter((r.participant, by_id[r.trial_id].condition) for r in responses)
    for participant, _ in members:
        assert each[participant, Condition.RANDOM_NATURAL] == 9
        assert each[participant, Condition.NATURAL_CONTROVERSIAL] == 36
        assert each[participant, Condition.NATURAL_SYNTHETIC] == 72
        assert each[participant, Condition.SYNTHETIC_SYNTHETIC] == 36
        assert each[participant, Condition.CATCH] == 12


@pytest.mark.published
def test_every_group_has_each_pair_of_models_in_each_role(experiment: Experiment) -> None:
    """Methods of the paper: one trial for each of 36 pairs, or each ordered pair, of models."""
    trials, _ = experiment
    for group in range(1, 11):
        own = [trial for trial in trials if trial.group == group]
        roles = Counter(
            (trial.condition, frozenset((trial.model_1, trial.model_2)), trial.kind_2)
            for trial in own
            if trial.model_1
        )
        assert len(roles) == 4 * 36
        assert set(roles.values()) == {1}


@pytest.mark.published
def test_nobody_is_excluded(experiment: Experiment) -> None:
    """The paper: no participant was excluded; everyone had at least 11 of 12 catch trials right."""
    trials, responses = experiment
    assert {each.problem for each in check_responses(trials, responses).findings} <= HARMLESS
    admitted = admit(trials, responses)
    assert len(admitted.participants) == 100
    assert admitted.excluded == {}


@pytest.mark.published
def test_ratings_keep_their_direction(experiment: Experiment, published_data: Path) -> None:
    """GPT-2 agrees with 675 of 900 choices on random pairs, counted here from the raw file.

    The file names the first sentence of each pair and gives GPT-2's score of both.
    """
    trials, responses = experiment
    table = read_stimulus_scores(published_data / "contstimlang")
    gpt2 = dict(zip(table.sentences or (), table.column("gpt2"), strict=True))
    by_id = {trial.trial_id: trial for trial in trials}
    with (published_data / "contstimlang-fork/data").open(encoding="utf-8") as file:
        raw = list(csv.DictReader(file))
    right = 0
    for row, response in zip(raw, responses, strict=True):
        trial = by_id[response.trial_id]
        lead = gpt2[trial.sentence_2] - gpt2[trial.sentence_1]
        raw_lead = float(row["sentence2_gpt2_prob"]) - float(row["sentence1_gpt2_prob"])
        agrees = (lead > 0) == (response.rating > 3)
        assert agrees == ((raw_lead > 0) == (float(row["rating"]) > 3))
        assert response.position == int(row["Trial Number"])
        right += agrees and trial.condition is Condition.RANDOM_NATURAL
    assert right == 675
    assert np.isfinite([r.rt_ms for r in responses]).all()
