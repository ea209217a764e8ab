"""Two-choice experiments as a user runs them, from the design to the analysis."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.responses.table import read_responses
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_stimuli, read_trials
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.stimuli import natural
from tests.study.small import blank_figures

TABLES = "--trials trials.csv --responses responses.csv --scores scores.csv".split()
DESIGN = (
    "design --sentences natural.txt --groups 2 --random-per-group 12 --catch-per-group 3".split()
)


@pytest.fixture(scope="module", autouse=True)
def _blank_figures() -> Iterator[None]:
    with blank_figures():
        yield


@pytest.fixture(scope="module")
def study_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices")
    (folder / "natural.txt").write_text("".join(f"{s.text}\n" for s in natural(60)))
    succeed(folder, *DESIGN, "--scale", "choice", "--out", "trials.csv")
    sentences = tuple(read_stimuli(folder / "trials.csv"))
    log_probs = -np.random.default_rng(1).gamma(9, 4, (len(sentences), 2))
    ScoreTable(sentences, ("truth", "rival"), log_probs).write(folder / "scores.csv")
    arguments = "--model truth --participants 10 --noise 5 --out responses.csv".split()
    succeed(folder, "simulate", *TABLES[:2], *TABLES[4:], *arguments)
    (folder / "earlier").mkdir()
    succeed(folder, *DESIGN, "--out", "earlier/trials.csv")
    return folder


@pytest.fixture(scope="module")
def analysis_output(study_template: Path) -> str:
    """The output of an analysis, which writes `results` into the template."""
    return succeed(study_template, "analyze", *TABLES, "--out", "results", "-q")


@pytest.fixture
def folder(study_template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(study_template, tmp_path / "study")


def copy_confidence_design(folder: Path) -> None:
    """Replace the trials by a design for the confidence scale."""
    for name in ("trials.csv", "trials.csv.meta.json"):
        shutil.copy(folder / "earlier" / name, folder)


def read_scale(path: Path) -> str:
    return str(json.loads(Path(f"{path}.meta.json").read_text())["scale"])


def test_all_steps_keep_the_scale_of_a_design_for_choices(
    analysis_output: str, folder: Path
) -> None:
    assert read_scale(folder / "trials.csv") == read_scale(folder / "responses.csv") == "choice"
    ratings = [response.rating for response in read_responses(folder / "responses.csv")]
    assert set(ratings) == {1, 2}
    assert "overall" in analysis_output
    rows = read_csv_rows(folder / "results" / "tables" / "models.csv")
    assert {row["measure"] for row in rows} == {"accuracy"}
    values = {row["model"]: float(row["value"]) for row in rows if row["scope"] == "random-natural"}
    assert values["truth"] > 0.75 > values["rival"] > 0.2
    assert read_scale(folder / "results" / "report.html") == "choice"
    succeed(folder, "review", "trials.csv", "--responses", "responses.csv", "--out", "r.html")
    data = "--trials trials.csv --responses responses.csv --simulated --out data".split()
    succeed(folder, "export", "psych-ds", *data)
    description = json.loads((folder / "data" / "dataset_description.json").read_text())
    (rating,) = (v for v in description["variableMeasured"] if v["name"] == "rating")
    assert (rating["minValue"], rating["maxValue"]) == (1, 2)
    succeed(folder, "export", "csv", "--trials", "trials.csv", "--out", "plain")
    readme = (folder / "plain" / "README.md").read_text()
    assert "with 2 buttons" in readme
    assert "3 minus the" in readme
    assert "confident" not in readme


def test_responses_without_a_recorded_scale_need_the_option(
    analysis_output: str, folder: Path
) -> None:
    """The trials have an older design and the responses no record, as a user's page writes them."""
    (folder / "responses.csv.meta.json").unlink()
    copy_confidence_design(folder)
    for command in ("analyze", "mixed", "controls", "export r"):
        options = ["--text", "natural.txt"] if command == "controls" else []
        result = run(folder, command, *TABLES, *options, "--out", "refused", status=2)
        assert "--scale: choice for 1 (sentence_1) or 2 (sentence_2)" in result.stderr
        assert not (folder / "refused").exists()
    output = succeed(folder, "analyze", *TABLES, "--scale", "choice", "--out", "stated", "-q")
    assert output == analysis_output
    tables = [(folder / out / "tables" / "models.csv").read_text() for out in ("results", "stated")]
    assert tables[0] == tables[1]


def test_import_converts_buttons_to_choices(folder: Path) -> None:
    """By hand: button 0 is on the left and chooses the sentence shown there."""
    trials = [t for t in read_trials(folder / "trials.csv") if t.group == 1]
    data = [
        {"trial_id": t.trial_id, "left": 1 + n % 2, "response": n % 3 % 2, "rt": 900}
        for n, t in enumerate(trials)
    ]
    (folder / "data.json").write_text(json.dumps(data))
    command = "import jspsych data.json --trials trials.csv --out read.csv".split()
    succeed(folder, *command)
    assert read_scale(folder / "read.csv") == "choice"
    for n, response in enumerate(read_responses(folder / "read.csv")):
        button, left = n % 3 % 2, 1 + n % 2
        assert response.rating == (left if button == 0 else 3 - left)
    copy_confidence_design(folder)
    result = run(folder, *command, status=2)
    assert "from left to right, are 1 or 2" in result.stderr
    imported = (folder / "read.csv").read_text()
    succeed(folder, *command, "--scale", "choice")
    assert (folder / "read.csv").read_text() == imported
    assert read_scale(folder / "read.csv") == "choice"
