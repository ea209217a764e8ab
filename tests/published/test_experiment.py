"""Experiment 1 of the 2023 study: the paper's conclusions, and figures computed by others."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.analysis.effects import Result, Sampling, compare, suited_units
from contstim.experiments.analysis.families import CEILING, every_contrast
from contstim.experiments.analysis.measures import ACCURACY, COSINE
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.reproduce.golan2023 import analyze_golan2023, claims, locate
from contstim.experiments.responses.checks import HARMLESS
from contstim.items.stimuli import Condition

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


def test_with_the_ceilings_alone_as_a_family_the_published_pattern_is_lost(
    analysis: Analysis,
) -> None:
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
