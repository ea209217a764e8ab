"""`contstim export …`, a platform's answers, `contstim import …`, and on to the analysis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.table import read_responses, write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import read_trials, trial_columns
from contstim.testing.platform import PlantedAnswers, read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.analysis.simulation import simulate
from tests.experiments.platforms import test_gorilla as gorilla
from tests.experiments.platforms import test_pcibex as pcibex
from tests.experiments.platforms import test_psychopy as psychopy
from tests.experiments.platforms import test_qualtrics as qualtrics
from tests.experiments.platforms.hostile import hostile_trials

TRIALS = hostile_trials(brackets=False)
PCIBEX_PEOPLE = {"ann": "L01", "=HYPERLINK(1, 2)": "L04"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    return tmp_path


def answer_pcibex(folder: Path, planted: PlantedAnswers) -> None:
    text = pcibex.results(folder / "out", PCIBEX_PEOPLE, planted)
    (folder / "data.csv").write_text(text, encoding="utf-8")


def answer_psychopy(folder: Path, planted: PlantedAnswers) -> None:
    for n, path in enumerate(psychopy.data(folder / "out", folder, planted, "keyboard")):
        path.rename(folder / f"data{n}.csv")


def answer_gorilla(folder: Path, planted: PlantedAnswers) -> None:
    gorilla.data(folder / "out", folder / "data.csv", planted)


def answer_qualtrics(folder: Path, planted: PlantedAnswers) -> None:
    qualtrics.data(folder / "out", folder / "data.csv", planted)


ROUTES: dict[str, tuple[Callable[[Path, PlantedAnswers], None], str, str]] = {
    "pcibex": (answer_pcibex, "", "data.csv"),
    "psychopy": (answer_psychopy, "", "data0.csv data1.csv data2.csv"),
    "gorilla": (answer_gorilla, "", "data.csv"),
    "qualtrics": (answer_qualtrics, "--lists-per-group 2 --timing", "data.csv --key out/key.csv"),
}


@pytest.mark.parametrize("platform", ROUTES)
def test_planted_ratings_come_back_and_are_admitted(folder: Path, platform: str) -> None:
    """Ratings drawn as people press buttons on the exported files, in canonical order again."""
    answer, options, files = ROUTES[platform]
    command = f"export {platform} --trials trials.csv --out out --seed 4 {options}"
    assert succeed(folder, *command.split()) == ""
    assert (folder / "out" / "README.md").read_text(encoding="utf-8").startswith("# ")
    record = json.loads((folder / "out" / "export.meta.json").read_text())
    assert (record["platform"], record["seed"]) == (platform, 4)
    planted = PlantedAnswers(TRIALS)
    answer(folder, planted)
    command = f"import {platform} {files} --trials trials.csv --out responses.csv"
    assert "every participant rated every trial" in succeed(folder, *command.split())
    responses = read_responses(folder / "responses.csv")
    assert list(responses) == planted.responses
    trials = read_trials(folder / "trials.csv")
    admission = admit(trials, responses, exclusions=Exclusions(min_catch=0))
    assert len(admission.participants) == len({r.participant for r in planted.responses})


def test_psych_ds_is_written_and_checked(folder: Path) -> None:
    command = (
        "export psych-ds --trials trials.csv --out set --name pairs --author Ada --licence CC0"
    )
    said = run(folder, *command.split())
    assert "set follows the rules of Psych-DS 1.5." in said.stderr
    assert run(folder, *"check psych-ds set".split()).returncode == 0
    (folder / "set" / "data" / "extra.csv").write_text("a\n1\n")
    checked = run(folder, *"check psych-ds set".split())
    assert checked.returncode == 1
    assert checked.stdout == "error: FILENAME_KEYWORD_FORMATTING_ERROR: data/extra.csv\n"
    assert "has no rules" in run(folder, "check", "csv", "set").stderr


def test_an_analysis_in_r_is_written_from_three_tables(tmp_path: Path) -> None:
    experiment = simulate(("a", "b"), (4, 4))
    write_table(tmp_path / "trials.csv", trial_columns(experiment.trials))
    write_responses(tmp_path / "responses.csv", experiment.responses)
    experiment.scores.write(tmp_path / "scores.csv")
    command = "export r --trials trials.csv --responses responses.csv --out in-r".split()
    failed = run(tmp_path, *command)
    assert failed.returncode == 2
    assert "--scores" in failed.stderr
    assert succeed(tmp_path, *command, "--scores", "scores.csv") == ""
    assert (tmp_path / "in-r" / "analysis.R").is_file()
    record = json.loads((tmp_path / "in-r" / "export.meta.json").read_text())
    assert record["platform"] == "r"
    assert len(read_csv_rows(tmp_path / "in-r" / "ratings.csv")) == len(experiment.responses)
