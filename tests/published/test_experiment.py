"""Experiment 1 of the 2023 study: its published files, its conclusions, and others' figures."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.analysis.effects import Result, Sampling, compare, suited_units
from contstim.experiments.analysis.families import CEILING, every_contrast
from contstim.experiments.analysis.measures import ACCURACY, COSINE
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.reproduce.golan2023 import analyze_golan2023, claims, locate
from contstim.experiments.reproduce.published import read_experiment, read_stimulus_scores
from contstim.experiments.responses.admission import admit
from contstim.experiments.responses.checks import HARMLESS, check_responses
from contstim.experiments.responses.table import Response
from contstim.items.stimuli import Condition, Trial

pytestmark = pytest.mark.published

MODELS = {"gpt2", "roberta", "electra", "bert", "xlm", "lstm", "rnn", "trigram", "bigram"}
CORRECT = {
    "gpt2": 675,
    "roberta": 641,
    "electra": 637,
    "bert": 643,
    "xlm": 631,
    "lstm": 637,
    "rnn": 605,
    "trigram": 605,
    "bigram": 585,
}
COSINES = {
    "gpt2": 0.626882,
    "roberta": 0.602620,
    "electra": 0.569057,
    "bert": 0.507873,
    "xlm": 0.452131,
    "lstm": 0.444224,
    "rnn": 0.308928,
    "trigram": 0.323389,
    "bigram": 0.269957,
}


@pytest.fixture(scope="module")
def analysis(published_data: Path) -> Analysis:
    return analyze_golan2023(*locate(published_data))


def accuracy(analysis: Analysis, scope: Scope) -> Result:
    return analysis.result(scope, ACCURACY)


def test_16_500_ratings_of_100_people_and_nobody_left_out(analysis: Analysis) -> None:
    assert sum(group.ratings.size for group in analysis.ratings.groups) == 16_500
    assert [len(group.participants) for group in analysis.ratings.groups] == [10] * 10
    assert analysis.admission.excluded == {}
    assert {finding.problem for finding in analysis.admission.report.findings} <= HARMLESS
    every = every_contrast(analysis.ratings.models)
    assert suited_units(analysis.ratings, every, Sampling()) == "groups"  # as published


def test_correct_predictions_on_random_pairs(analysis: Analysis) -> None:
    found = accuracy(analysis, Scope.RANDOM).evaluation
    sums = (found.values * found.n_trials).sum(axis=0)
    assert dict(zip(found.models, sums, strict=True)) == pytest.approx(CORRECT)
    assert found.lower.mean() == pytest.approx(0.748889, abs=5e-7)
    assert found.upper.mean() == pytest.approx(0.810000, abs=5e-7)


def test_cosines_over_all_trials_to_six_digits(analysis: Analysis) -> None:
    found = analysis.result(Scope.OVERALL, COSINE).evaluation
    means = dict(zip(found.models, found.values.mean(axis=0), strict=True))
    assert means == pytest.approx(COSINES, abs=5e-7, rel=0)
    # To its last digit among the claims: published sums in floating point tell apart what ties here
    assert found.lower.mean() == pytest.approx(0.720220, abs=1e-5)
    assert found.upper.mean() == pytest.approx(0.773509, abs=5e-7)


def test_no_model_differs_from_another_on_random_pairs(analysis: Analysis) -> None:
    result = accuracy(analysis, Scope.RANDOM)
    assert len(result.comparisons) == 45
    assert not any(result.beaten_by(model) for model in MODELS)


def test_natural_controversial_pairs(analysis: Analysis) -> None:
    result = accuracy(analysis, Scope.NATURAL)
    assert MODELS - result.below_ceiling() == {"gpt2", "roberta", "electra"}
    assert result.beaten_by("gpt2") == MODELS - {"gpt2", "roberta"}


def test_synthetic_controversial_pairs(analysis: Analysis) -> None:
    assert MODELS - accuracy(analysis, Scope.SYNTHETIC).below_ceiling() == {"gpt2"}


def test_natural_against_synthetic(analysis: Analysis) -> None:
    assert accuracy(analysis, Scope.ACCEPT).below_ceiling() == MODELS
    assert accuracy(analysis, Scope.REJECT).below_ceiling() == set()


def test_overall_gpt2_roberta_electra_bert(analysis: Analysis) -> None:
    result = analysis.result(Scope.OVERALL, COSINE)
    for better, worse in (("gpt2", "roberta"), ("roberta", "electra"), ("electra", "bert")):
        assert worse in result.beaten_by(better)


def test_ceilings_alone_as_a_family_lose_the_published_pattern(analysis: Analysis) -> None:
    family = [c for c in every_contrast(analysis.ratings.models) if c[1] == CEILING]
    sampling = Sampling("groups")
    result = compare(analysis.ratings, Scope.NATURAL, ACCURACY, family, sampling)
    assert len(result.comparisons) == 9
    assert result.below_ceiling() != MODELS - {"gpt2", "roberta", "electra"}


def test_models_agree_on_random_pairs(analysis: Analysis) -> None:
    models = analysis.ratings.models
    found = analysis.agreement[Condition.RANDOM_NATURAL]
    above = found[np.triu_indices(9, 1)]
    assert above.mean() == pytest.approx(0.845, abs=5e-4)
    assert found[models.index("gpt2"), models.index("rnn")] == above.min()
    assert found[models.index("gpt2"), models.index("roberta")] == above.max()
    assert (above.min(), above.max()) == pytest.approx((0.7556, 0.9333), abs=5e-5)


def test_people_on_synthetic_sentences_and_on_what_all_agree(analysis: Analysis) -> None:
    cells = {
        (r["accept"], r["reject"]): (r["prefer_synthetic"], r["ratings"]) for r in analysis.roles
    }
    assert len(cells) == 72
    assert cells["gpt2", "bigram"] == (22, 100)
    unanimous = {
        one["condition"]: (one["near_unanimous"], one["trials"]) for one in analysis.unanimity
    }
    del unanimous[Condition.CATCH]
    assert unanimous == {
        Condition.RANDOM_NATURAL: (47, 90),
        Condition.NATURAL_CONTROVERSIAL: (132, 360),
        Condition.NATURAL_SYNTHETIC: (487, 720),
        Condition.SYNTHETIC_SYNTHETIC: (216, 360),
    }


def test_every_claim_is_printed_as_holding(analysis: Analysis) -> None:
    made = claims(analysis)
    assert len(made) == 21
    assert [claim for claim in made if claim[1] != claim[2]] == []


def test_the_command_writes_the_claims(published_data: Path, tmp_path: Path) -> None:
    """From a checkout of contstimlang alone, with the ratings named apart."""
    command = [sys.executable, "-m", "contstim", "reproduce", "golan2023", "--out", "out"]
    command += ["--data", str(published_data / "contstimlang"), "--quiet"]
    command += ["--ratings", str(published_data / "contstimlang-fork" / "data")]
    env = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert "21 of 21 claims hold." in done.stdout
    assert "22 of 100" in done.stdout
    with (tmp_path / "out" / "tables" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["holds"] for row in rows] == ["True"] * 21
    assert (tmp_path / "out" / "report.html").is_file()


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
