"""Experiment 1 of the 2023 study: its published files, conclusions and figures."""

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


def accuracy_result(analysis: Analysis, scope: Scope) -> Result:
    return analysis.result(scope, ACCURACY)


def test_all_16_500_ratings_of_100_participants_are_analyzed(analysis: Analysis) -> None:
    assert sum(group.ratings.size for group in analysis.ratings.groups) == 16_500
    assert [len(group.participants) for group in analysis.ratings.groups] == [10] * 10
    assert analysis.admission.excluded == {}
    assert {finding.problem for finding in analysis.admission.report.findings} <= HARMLESS
    contrasts = every_contrast(analysis.ratings.models)
    assert suited_units(analysis.ratings, contrasts, Sampling()) == "groups"  # as published


def test_accuracies_on_random_pairs_equal_the_published_ones(analysis: Analysis) -> None:
    evaluation = accuracy_result(analysis, Scope.RANDOM).evaluation
    n_correct = (evaluation.values * evaluation.n_trials).sum(axis=0)
    assert dict(zip(evaluation.models, n_correct, strict=True)) == pytest.approx(CORRECT)
    assert evaluation.lower.mean() == pytest.approx(0.748889, abs=5e-7)
    assert evaluation.upper.mean() == pytest.approx(0.810000, abs=5e-7)


def test_cosines_equal_the_published_ones_to_six_digits(analysis: Analysis) -> None:
    evaluation = analysis.result(Scope.OVERALL, COSINE).evaluation
    means = dict(zip(evaluation.models, evaluation.values.mean(axis=0), strict=True))
    assert means == pytest.approx(COSINES, abs=5e-7, rel=0)
    # Less exact: ties here differ in the published sums by rounding; the claims test all digits
    assert evaluation.lower.mean() == pytest.approx(0.720220, abs=1e-5)
    assert evaluation.upper.mean() == pytest.approx(0.773509, abs=5e-7)


def test_no_models_differ_on_random_pairs(analysis: Analysis) -> None:
    result = accuracy_result(analysis, Scope.RANDOM)
    assert len(result.comparisons) == 45
    assert not any(result.beaten_by(model) for model in MODELS)


def test_conclusions_on_natural_controversial_pairs(analysis: Analysis) -> None:
    result = accuracy_result(analysis, Scope.NATURAL)
    assert MODELS - result.below_ceiling() == {"gpt2", "roberta", "electra"}
    assert result.beaten_by("gpt2") == MODELS - {"gpt2", "roberta"}


def test_conclusions_on_synthetic_controversial_pairs(analysis: Analysis) -> None:
    assert MODELS - accuracy_result(analysis, Scope.SYNTHETIC).below_ceiling() == {"gpt2"}


def test_conclusions_on_natural_against_synthetic_sentences(analysis: Analysis) -> None:
    assert accuracy_result(analysis, Scope.ACCEPT).below_ceiling() == MODELS
    assert accuracy_result(analysis, Scope.REJECT).below_ceiling() == set()


def test_overall_order_of_the_best_four_models(analysis: Analysis) -> None:
    result = analysis.result(Scope.OVERALL, COSINE)
    for better, worse in (("gpt2", "roberta"), ("roberta", "electra"), ("electra", "bert")):
        assert worse in result.beaten_by(better)


def test_contrasts_with_the_ceiling_alone_change_conclusions(analysis: Analysis) -> None:
    family = [c for c in every_contrast(analysis.ratings.models) if c[1] == CEILING]
    sampling = Sampling("groups")
    result = compare(analysis.ratings, Scope.NATURAL, ACCURACY, family, sampling)
    assert len(result.comparisons) == 9
    assert result.below_ceiling() != MODELS - {"gpt2", "roberta", "electra"}


def test_agreement_of_models_on_random_pairs(analysis: Analysis) -> None:
    models = analysis.ratings.models
    agreement = analysis.agreement[Condition.RANDOM_NATURAL]
    shares = agreement[np.triu_indices(9, 1)]
    assert shares.mean() == pytest.approx(0.845, abs=5e-4)
    assert agreement[models.index("gpt2"), models.index("rnn")] == shares.min()
    assert agreement[models.index("gpt2"), models.index("roberta")] == shares.max()
    assert (shares.min(), shares.max()) == pytest.approx((0.7556, 0.9333), abs=5e-5)


def test_choices_by_role_and_near_unanimous_trials(analysis: Analysis) -> None:
    cells = {
        (role["accept"], role["reject"]): (role["prefer_synthetic"], role["ratings"])
        for role in analysis.roles
    }
    assert len(cells) == 72
    assert cells["gpt2", "bigram"] == (22, 100)
    table = {row["condition"]: (row["near_unanimous"], row["trials"]) for row in analysis.unanimity}
    del table[Condition.CATCH]
    assert table == {
        Condition.RANDOM_NATURAL: (47, 90),
        Condition.NATURAL_CONTROVERSIAL: (132, 360),
        Condition.NATURAL_SYNTHETIC: (487, 720),
        Condition.SYNTHETIC_SYNTHETIC: (216, 360),
    }


def test_every_published_claim_holds(analysis: Analysis) -> None:
    all_claims = claims(analysis)
    assert len(all_claims) == 21
    assert [claim for claim in all_claims if claim[1] != claim[2]] == []


def test_the_command_writes_the_claims(published_data: Path, tmp_path: Path) -> None:
    """From a checkout of contstimlang and a separate file of ratings."""
    command = [sys.executable, "-m", "contstim", "reproduce", "golan2023", "--out", "out"]
    command += ["--data", str(published_data / "contstimlang"), "--quiet"]
    command += ["--ratings", str(published_data / "contstimlang-fork" / "data")]
    environment = {**os.environ, "COLUMNS": "200"}
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    assert "21 of 21 claims hold." in result.stdout
    assert "22 of 100" in result.stdout
    with (tmp_path / "out" / "tables" / "claims.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["holds"] for row in rows] == ["True"] * 21
    assert (tmp_path / "out" / "report.html").is_file()


Experiment = tuple[tuple[Trial, ...], tuple[Response, ...]]


@pytest.fixture(scope="module")
def experiment(published_data: Path) -> Experiment:
    folders = (published_data / name for name in ("contstimlang", "contstimlang-fork/data"))
    return read_experiment(*folders)


@pytest.mark.published
def test_experiment_1_has_the_published_design(experiment: Experiment) -> None:
    """Witness: the paper: 100 participants in 10 groups, 9 + 36 + 72 + 36 + 12 trials each."""
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
    trial_by_id = {trial.trial_id: trial for trial in trials}
    n_trials = Counter((r.participant, trial_by_id[r.trial_id].condition) for r in responses)
    for participant, _ in members:
        assert n_trials[participant, Condition.RANDOM_NATURAL] == 9
        assert n_trials[participant, Condition.NATURAL_CONTROVERSIAL] == 36
        assert n_trials[participant, Condition.NATURAL_SYNTHETIC] == 72
        assert n_trials[participant, Condition.SYNTHETIC_SYNTHETIC] == 36
        assert n_trials[participant, Condition.CATCH] == 12


@pytest.mark.published
def test_every_group_has_each_model_pair_in_each_role(experiment: Experiment) -> None:
    """Witness: the paper: one trial for each of 36 pairs, or each ordered pair, of models."""
    trials, _ = experiment
    for group in range(1, 11):
        group_trials = [trial for trial in trials if trial.group == group]
        roles = Counter(
            (trial.condition, frozenset((trial.model_1, trial.model_2)), trial.kind_2)
            for trial in group_trials
            if trial.model_1
        )
        assert len(roles) == 4 * 36
        assert set(roles.values()) == {1}


@pytest.mark.published
def test_no_participant_is_excluded(experiment: Experiment) -> None:
    """Witness: the paper; all participants were correct in at least 11 of 12 catch trials."""
    trials, responses = experiment
    assert {finding.problem for finding in check_responses(trials, responses).findings} <= HARMLESS
    admitted = admit(trials, responses)
    assert len(admitted.participants) == 100
    assert admitted.excluded == {}


@pytest.mark.published
def test_direction_of_ratings_equals_raw_file(experiment: Experiment, published_data: Path) -> None:
    """Witness: the raw file, in which GPT-2 agrees with 675 of 900 choices on random pairs.

    The file names the first sentence of each pair and the scores of GPT-2 for both sentences.
    """
    trials, responses = experiment
    table = read_stimulus_scores(published_data / "contstimlang")
    gpt2 = dict(zip(table.sentences or (), table.column("gpt2"), strict=True))
    trial_by_id = {trial.trial_id: trial for trial in trials}
    with (published_data / "contstimlang-fork/data").open(encoding="utf-8") as file:
        raw_rows = list(csv.DictReader(file))
    n_correct = 0
    for row, response in zip(raw_rows, responses, strict=True):
        trial = trial_by_id[response.trial_id]
        preference = gpt2[trial.sentence_2] - gpt2[trial.sentence_1]
        raw_preference = float(row["sentence2_gpt2_prob"]) - float(row["sentence1_gpt2_prob"])
        agrees = (preference > 0) == (response.rating > 3)
        assert agrees == ((raw_preference > 0) == (float(row["rating"]) > 3))
        assert response.position == int(row["Trial Number"])
        n_correct += agrees and trial.condition is Condition.RANDOM_NATURAL
    assert n_correct == 675
    assert np.isfinite([r.rt_ms for r in responses]).all()
