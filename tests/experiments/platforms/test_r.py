"""The analysis in R: the exported files, and the same numbers in R as in Python."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis import run
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Scope, gather
from contstim.experiments.platforms.r import PLATFORM, RSettings, export_r
from contstim.experiments.responses.table import UNRATED, write_responses
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, on_scale
from contstim.testing.platform import HOSTILE, make_trial, read_csv_rows
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.responses.experiment import make_responses, scores_of

MODELS = ("gpt 2", 'a "b", c', "ü")


def export(experiment: Experiment, folder: Path, **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    write_responses(folder / "responses.csv", experiment.responses)
    experiment.scores.write(folder / "scores.csv")
    r_settings = RSettings(folder / "responses.csv", folder / "scores.csv", **settings)  # type: ignore[arg-type]
    return export_r(experiment.trials, folder / "out", r_settings).path


def run_r(folder: Path, *arguments: str) -> str:
    """Run the script and return its output; a warning of R fails the test."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    process = subprocess.run(
        [program, "analysis.R", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert process.returncode == 0, process.stderr
    assert "Warning" not in process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    simulated = simulate(MODELS, (5, 5), follow=0.75)
    log_probs = simulated.scores.log_probs.copy()
    log_probs[4, 1] = -np.inf  # an impossible sentence
    return replace(simulated, scores=replace(simulated.scores, log_probs=log_probs))


@pytest.fixture(scope="module")
def folder(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(experiment, tmp_path_factory.mktemp("r"))


def remove_sides(experiment: Experiment) -> Experiment:
    """Return an experiment without sides and without rating 1."""
    responses = tuple(replace(r, left=0, rating=max(r.rating, 2)) for r in experiment.responses)
    return replace(experiment, responses=responses)


def check_accuracies(output: str) -> None:
    assert "accuracy: the same order of models in 5 of 5 scopes" in output
    (differences,) = re.findall(r"accuracy: largest difference (\S+); of ceilings (\S+)", output)
    assert max(map(float, differences)) < 1e-12


def test_r_computes_equal_accuracies_and_ceilings(folder: Path) -> None:
    check_accuracies(run_r(folder, "none"))
    assert (folder / "accuracy.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
@pytest.mark.parametrize("change", [None, remove_sides], ids=["as it is", "no sides"])
def test_r_computes_equal_mixed_models(
    experiment: Experiment, change: Callable[[Experiment], Experiment] | None, tmp_path: Path
) -> None:
    folder = export(change(experiment) if change else experiment, tmp_path)
    output = run_r(folder, MODELS[0], MODELS[2])
    assert ("have no side (column left)" in output) == (change is remove_sides)
    check_accuracies(output)
    if "install.packages" in output:
        pytest.skip("R has no package ordinal")
    assert "mixed models: the same order of models" in output
    rows = read_csv_rows(folder / "comparison.csv")
    assert {row["model"] for row in rows} == {MODELS[0], MODELS[2]}
    for row in rows:
        for name, rel in (("log_likelihood", 1e-6), ("estimate", 1e-3), ("standard_error", 2e-3)):
            ours, theirs = (float(row[f"{name}_{program}"]) for program in ("contstim", "R"))
            assert ours == pytest.approx(theirs, rel=rel, abs=1e-3 * (name == "estimate")), name


@pytest.mark.slow
def test_r_fits_choices_as_choices(experiment: Experiment, tmp_path: Path) -> None:
    """On the confidence scale, R would count every choice as a preference for sentence_1."""
    responses = tuple(replace(r, rating=r.choice, scale=Scale.CHOICE) for r in experiment.responses)
    folder = export(replace(experiment, responses=responses), tmp_path, scale=Scale.CHOICE)
    descriptions = {r["column"]: r["description"] for r in read_csv_rows(folder / "dictionary.csv")}
    assert descriptions["rating"].startswith("1: sentence_1 was chosen, 2: sentence_2")
    output = run_r(folder, MODELS[0])
    check_accuracies(output)
    if "install.packages" in output:
        pytest.skip("R has no package lme4")
    assert "mixed models (logit)" in output
    (row,) = read_csv_rows(folder / "comparison.csv")
    for name, rel in (("log_likelihood", 1e-5), ("estimate", 3e-3), ("standard_error", 1e-2)):
        assert float(row[f"{name}_contstim"]) == pytest.approx(float(row[f"{name}_R"]), rel=rel)


def test_sliders_with_two_categories_are_fitted_as_choices(tmp_path: Path) -> None:
    """Witness: the logistic model of the same responses on the scale choice."""
    simulated = simulate(MODELS[:2], (4, 4), conditions=(Condition.RANDOM_NATURAL,))
    slider_responses = [
        replace(r, rating={1: 34, 2: 41, 3: 49, 4: 51, 5: 60, 6: 66}[r.rating], scale=Scale.SLIDER)
        for r in simulated.responses
    ]
    choices = [replace(r, rating=r.choice, scale=Scale.CHOICE) for r in simulated.responses]
    trials = on_scale(simulated.trials, Scale.SLIDER)
    folder = export(replace(simulated, trials=trials, responses=tuple(slider_responses)), tmp_path)
    ratings = gather(on_scale(simulated.trials, Scale.CHOICE), choices, simulated.scores)
    for row in read_csv_rows(folder / "mixed.csv"):
        fit = fit_mixed(ratings, [row["model"]], MixedSettings(link="logit"))
        assert float(row["log_likelihood"]) == pytest.approx(fit.log_likelihood, abs=1e-6)


@pytest.mark.slow
def test_r_fits_sliders_and_missing_responses(experiment: Experiment, tmp_path: Path) -> None:
    """Witness: `ordinal::clmm` and accuracies in R, with responses that prefer neither sentence."""
    catch = {t.trial_id for t in experiment.trials if t.condition is Condition.CATCH}
    slid = {1: 3, 2: 25, 3: 44, 4: 56, 5: 80, 6: 97}
    responses = [
        replace(
            r,
            rating=slid[r.rating] if r.trial_id in catch or n % 9 else (50 if n % 2 else UNRATED),
            scale=Scale.SLIDER,
        )
        for n, r in enumerate(experiment.responses)
    ]
    trials = on_scale(experiment.trials, Scale.SLIDER)
    slider_experiment = replace(experiment, trials=trials, responses=tuple(responses))
    output = run_r(export(slider_experiment, tmp_path / "slid", max_missing=0.2))
    (difference,) = re.findall(r"accuracy: largest difference (\S+);", output)
    assert float(difference) < 1e-9
    if "install.packages" in output:
        pytest.skip("R has no package ordinal")
    (largest_difference,) = re.findall(r"largest difference of log-likelihoods (\S+)", output)
    assert float(largest_difference) < 1e-3


def test_exported_numbers_equal_those_of_the_analysis(experiment: Experiment, folder: Path) -> None:
    trials, responses, scores = experiment.trials, experiment.responses, experiment.scores
    analysis = run.analyze(trials, responses, scores, sampling=Sampling())
    rows = {(row["scope"], row["model"]): row for row in read_csv_rows(folder / "accuracies.csv")}
    for scope in (s for s in Scope if s not in (Scope.OVERALL, Scope.MINIMAL)):
        for model in analysis.result(scope, ACCURACY).models:
            row = rows.pop((str(scope), model.model))
            assert float(row["accuracy"]) == pytest.approx(model.value)
            assert float(row["lower_ceiling"]) == pytest.approx(model.lower)
            assert float(row["upper_ceiling"]) == pytest.approx(model.upper)
    assert not rows


def test_ratings_have_a_row_each_and_no_names(experiment: Experiment, folder: Path) -> None:
    rows = read_csv_rows(folder / "ratings.csv")
    assert len(rows) == len(experiment.responses)
    trials = {trial.trial_id: trial for trial in experiment.trials}
    numbers: dict[str, str] = {}
    texts = map(str, experiment.scores.sentences or ())
    log_probs = dict(zip(texts, experiment.scores.log_probs, strict=True))
    for row, response in zip(rows, experiment.responses, strict=True):
        trial = trials[response.trial_id]
        assert (row["trial_id"], int(row["rating"])) == (trial.trial_id, response.rating)
        assert numbers.setdefault(response.participant, row["participant"]) == row["participant"]
        ratio = log_probs[trial.sentence_2.text][1] - log_probs[trial.sentence_1.text][1]
        assert float(row[f"log_ratio {MODELS[1]}"]) == ratio
    assert len(set(numbers.values())) == len(numbers)
    assert not set(numbers) & set(numbers.values())
    described_columns = {row["column"] for row in read_csv_rows(folder / "dictionary.csv")}
    assert described_columns == set(rows[0])


def test_single_simulated_participant_is_exported(tmp_path: Path) -> None:
    """Without other participants there is no ceiling and no mixed model; R reports this."""
    single = simulate(("a", "b"), (1,))
    responses = tuple(replace(response, simulated=True) for response in single.responses)
    folder = export(replace(single, responses=responses), tmp_path)
    assert {row["simulated"] for row in read_csv_rows(folder / "ratings.csv")} == {"true"}
    assert re.search("artificial|simulated", (folder / "README.md").read_text())
    assert {row["lower_ceiling"] for row in read_csv_rows(folder / "accuracies.csv")} == {""}
    output = run_r(folder)
    assert "no mixed model of a: Too few participants" in output
    assert (folder / "accuracy.pdf").exists()


def test_hostile_sentences_reach_r_as_text(tmp_path: Path) -> None:
    trials = [make_trial(n, 1, Condition.RANDOM_NATURAL, text) for n, text in enumerate(HOSTILE)]
    people = {"=cmd()": 1, "<i>": 1}
    responses = make_responses(trials, people)
    experiment = Experiment(tuple(trials), tuple(responses), scores_of(trials))
    folder = export(experiment, tmp_path, keep_names=True)
    rows = read_csv_rows(folder / "ratings.csv")
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())
    assert "same order of models in 1 of 1 scopes" in run_r(folder, "none")
    # Another export replaces its own files only, not the output of R
    export(experiment, tmp_path)
    assert (folder / "accuracy.pdf").exists()


def test_catch_trials_alone_raise_an_error(experiment: Experiment, tmp_path: Path) -> None:
    catch = tuple(trial for trial in experiment.trials if trial.condition is Condition.CATCH)
    ids = {trial.trial_id for trial in catch}
    responses = tuple(response for response in experiment.responses if response.trial_id in ids)
    with pytest.raises(InputError, match="All trials are catch trials"):
        export(replace(experiment, trials=catch, responses=responses), tmp_path / "a")
    assert not (tmp_path / "a" / "out").exists()
    assert PLATFORM.reader is None
