"""Export to platforms, plant responses, import them, and go on to the analysis."""

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.questionnaire import QuestionAnswer, read_answers
from contstim.experiments.responses.table import read_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import read_trials, trial_columns
from contstim.testing.platform import PlantedAnswers, read_csv_rows
from tests.cli.running import run, succeed, write_experiment
from tests.experiments.analysis.simulation import simulate
from tests.experiments.platforms import test_gorilla as gorilla
from tests.experiments.platforms import test_pcibex as pcibex
from tests.experiments.platforms import test_psychopy as psychopy
from tests.experiments.platforms import test_qualtrics as qualtrics
from tests.experiments.platforms.hostile import hostile_trials
from tests.experiments.platforms.test_jspsych_reading import page
from tests.experiments.platforms.test_jspsych_reading import write as write_data
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = hostile_trials(brackets=False)
PCIBEX_LISTS = {"ann": "L01", "=HYPERLINK(1, 2)": "L04"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    return tmp_path


def answer_pcibex(folder: Path, answers: PlantedAnswers) -> None:
    text = pcibex.results(folder / "out", PCIBEX_LISTS, answers)
    (folder / "data.csv").write_text(text, encoding="utf-8")


def answer_psychopy(folder: Path, answers: PlantedAnswers) -> None:
    for n, path in enumerate(psychopy.data(folder / "out", folder, answers, "keyboard")):
        path.rename(folder / f"data{n}.csv")


ROUTES: dict[str, tuple[Callable[[Path, PlantedAnswers], object], str, str]] = {
    "pcibex": (answer_pcibex, "", "data.csv"),
    "psychopy": (answer_psychopy, "", "data0.csv data1.csv data2.csv"),
    "gorilla": (
        lambda folder, answers: gorilla.data(folder / "out", folder / "data.csv", answers),
        "",
        "data.csv",
    ),
    "qualtrics": (
        lambda folder, answers: qualtrics.data(folder / "out", folder / "data.csv", answers),
        "--lists-per-group 2 --timing",
        "data.csv --key out/key.csv",
    ),
}


@pytest.mark.parametrize("platform", ROUTES)
def test_planted_ratings_are_imported_and_admitted(folder: Path, platform: str) -> None:
    """Ratings are planted as button presses and imported in canonical order."""
    answer, options, files = ROUTES[platform]
    command = f"export {platform} --trials trials.csv --out out --seed 4 {options}"
    assert succeed(folder, command) == ""
    assert (folder / "out" / "README.md").read_text(encoding="utf-8").startswith("# ")
    record = json.loads((folder / "out" / "export.meta.json").read_text())
    assert (record["platform"], record["seed"]) == (platform, 4)
    answers = PlantedAnswers(TRIALS)
    answer(folder, answers)
    command = f"import {platform} {files} --trials trials.csv --out responses.csv"
    assert "every participant rated every trial" in succeed(folder, command)
    responses = read_responses(folder / "responses.csv")
    assert list(responses) == answers.responses
    trials = read_trials(folder / "trials.csv")
    admission = admit(trials, responses, exclusions=Exclusions(min_catch=0))
    assert len(admission.participants) == len({r.participant for r in answers.responses})


def test_psych_ds_export_passes_its_check(folder: Path) -> None:
    command = "export psych-ds --trials trials.csv --out set --author Ada --licence CC0 --name p"
    assert "set follows the rules of Psych-DS 1.5." in run(folder, command).stderr
    succeed(folder, "check psych-ds set")
    (folder / "set" / "data" / "extra.csv").write_text("a\n1\n")
    check = run(folder, "check psych-ds set", status=1)
    assert check.stdout == "error: FILENAME_KEYWORD_FORMATTING_ERROR: data/extra.csv\n"
    assert "has no rules" in run(folder, "check", "csv", "set").stderr


def test_export_r_writes_an_analysis_from_three_tables(tmp_path: Path) -> None:
    experiment = simulate(("a", "b"), (4, 4))
    write_experiment(tmp_path, experiment)
    command = "export r --trials trials.csv --responses responses.csv --out in-r".split()
    assert "--scores" in run(tmp_path, *command, status=2).stderr
    assert succeed(tmp_path, *command, "--scores", "scores.csv") == ""
    assert (tmp_path / "in-r" / "analysis.R").is_file()
    record = json.loads((tmp_path / "in-r" / "export.meta.json").read_text())
    assert record["platform"] == "r"
    assert len(read_csv_rows(tmp_path / "in-r" / "ratings.csv")) == len(experiment.responses)


PAGE_TRIALS = make_trials(2, catch=1)


def test_export_jspsych(tmp_path: Path) -> None:
    write_table(tmp_path / "trials.csv", trial_columns(PAGE_TRIALS))
    practice = "sentence_1;sentence_2\nDogs bark;Bark dogs the\n"
    (tmp_path / "practice.csv").write_text(practice)
    command = "export jspsych --trials trials.csv --out experiment --title Pairs --language de"
    command += " --practice practice.csv --save datapipe --datapipe-id abc123"
    redirect = "https://app.prolific.com/submissions/complete?cc=C1"
    result = run(tmp_path, command, "--redirect", redirect, status=0)
    assert "18 pairs in 2 groups" in result.stderr
    assert "warning: the texts of experiment still contain placeholders" in result.stderr
    assert "[Kontakt]" in result.stderr
    study = json.loads((tmp_path / "experiment" / "study.json").read_text())
    assert {name: len(trials) for name, trials in study["groups"].items()} == {"1": 9, "2": 9}
    assert study["save"]["experiment"] == "abc123"
    assert study["completion"]["redirect"].endswith("cc=C1")
    assert study["texts"]["practice.csv"] == practice
    index = (tmp_path / "experiment" / "index.html").read_text()
    assert '<html lang="de">' in index
    assert "<title>Pairs</title>" in index
    path = tmp_path / "experiment.meta.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # the completion link is in the command
    record = json.loads(path.read_text())
    assert record["study"] == study["id"]
    assert record["command"][1:3] == ["export", "jspsych"]


RATED_TRIALS = make_trials()
RESPONSES = make_responses(RATED_TRIALS, {"9001": 1, "9002": 2})
IMPORT = "import jspsych data.json --trials trials.csv --out responses.csv"


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    write_table(tmp_path / "trials.csv", trial_columns(RATED_TRIALS))
    return tmp_path


def test_import_gorilla_reports_incomplete_participants(rated: Path) -> None:
    responses = [r for r in RESPONSES if r.participant == "9001" or r.position <= 10]
    rows = [
        {
            "Participant Private ID": r.participant,
            "trial_id": r.trial_id,
            "shown_left": r.left,
            "Zone Name": f"resp{r.rating if r.left == 1 else 7 - r.rating}",
            "Reaction Time": r.rt_ms,
        }
        for r in responses
    ]
    write_data(rated / "export.csv", rows)
    output = succeed(rated, "import gorilla export.csv --trials trials.csv --out responses.csv")
    assert "9002 did not rate every trial of the group (10:" in output
    assert list(read_responses(rated / "responses.csv")) == responses
    record = json.loads((rated / "responses.csv.meta.json").read_text())
    assert record["problems"][0]["participant"] == "9002"
    assert "--trials" in run(rated, "import gorilla export.csv --out r.csv", status=2).stderr


def test_import_keeps_columns_about_participants(rated: Path) -> None:
    """They are stored with the questionnaire answers, where exclusion rules find them."""
    rows = page(RESPONSES)
    for row in rows:
        row["age"] = {"9001": 31, "9002": "=1+1"}.get(row.get("participant", ""))
    write_data(rated / "data.json", rows)
    succeed(rated, IMPORT, "--keep", "age")
    answers = read_answers(rated / "responses.csv.questions.csv")
    assert answers == [QuestionAnswer("9001", "age", "31"), QuestionAnswer("9002", "age", "=1+1")]
    result = run(rated, IMPORT, "--keep", "trial_id", status=2)
    assert "names trial_id, which has several values for 9001" in result.stderr


def test_import_keeps_the_first_or_last_of_several_ratings(rated: Path) -> None:
    repeat = replace(RESPONSES[0], rating=7 - RESPONSES[0].rating)
    write_data(rated / "data.json", page([*RESPONSES, repeat]))
    assert "9001 rated the same trial more than once" in succeed(rated, IMPORT)
    for order, expected in (("first", RESPONSES[0]), ("last", repeat)):
        result = run(rated, IMPORT, "--duplicates", order)
        assert "every participant rated every trial" in result.stdout
        assert f"1 rating by 9001, of {repeat.trial_id}." in result.stderr
        response, *other_responses = read_responses(rated / "responses.csv")
        assert response.rating == expected.rating
        assert other_responses == RESPONSES[1:]
