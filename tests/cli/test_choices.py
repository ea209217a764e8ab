"""Two-choice experiments as a user runs them: from the design to the analysis."""

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
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def told(made: Path) -> str:
    """What an analysis prints, of which `results` are in the folder from then on."""
    return succeed(made, "analyze", *TABLES, "--out", "results", "-q")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "study")


def design_for_confidence(folder: Path) -> None:
    """Put the same trials there as a design for the other scale."""
    for name in ("trials.csv", "trials.csv.meta.json"):
        shutil.copy(folder / "earlier" / name, folder)


def scale_in(path: Path) -> str:
    return str(json.loads(Path(f"{path}.meta.json").read_text())["scale"])


def test_a_design_for_choices_is_followed_to_the_end(told: str, folder: Path) -> None:
    assert scale_in(folder / "trials.csv") == scale_in(folder / "responses.csv") == "choice"
    ratings = [response.rating for response in read_responses(folder / "responses.csv")]
    assert set(ratings) == {1, 2}
    assert "overall" in told
    rows = read_csv_rows(folder / "results" / "tables" / "models.csv")
    assert {row["measure"] for row in rows} == {"accuracy"}
    values = {row["model"]: float(row["value"]) for row in rows if row["scope"] == "random-natural"}
    assert values["truth"] > 0.75 > values["rival"] > 0.2
    assert scale_in(folder / "results" / "report.html") == "choice"
    succeed(folder, "review", "trials.csv", "--responses", "responses.csv", "--out", "r.html")
    data = "--trials trials.csv --responses responses.csv --simulated --out data".split()
    succeed(folder, "export", "psych-ds", *data)
    described = json.loads((folder / "data" / "dataset_description.json").read_text())
    (rating,) = (v for v in described["variableMeasured"] if v["name"] == "rating")
    assert (rating["minValue"], rating["maxValue"]) == (1, 2)
    succeed(folder, "export", "csv", "--trials", "trials.csv", "--out", "plain")
    readme = (folder / "plain" / "README.md").read_text()
    assert "with 2 buttons" in readme
    assert "3 minus the" in readme
    assert "confident" not in readme


def test_tables_that_do_not_say_it_are_refused_until_it_is_named(told: str, folder: Path) -> None:
    """As a page of one's own writes them: with trials of an older design, and no record."""
    (folder / "responses.csv.meta.json").unlink()
    design_for_confidence(folder)
    for command in ("analyze", "mixed", "controls", "export r"):
        more = ["--text", "natural.txt"] if command == "controls" else []
        failed = run(folder, command, *TABLES, *more, "--out", "refused", status=2)
        assert "--scale: choice for 1 (sentence_1) or 2 (sentence_2)" in failed.stderr
        assert not (folder / "refused").exists()
    stated = succeed(folder, "analyze", *TABLES, "--scale", "choice", "--out", "stated", "-q")
    assert stated == told
    tables = [(folder / out / "tables" / "models.csv").read_text() for out in ("results", "stated")]
    assert tables[0] == tables[1]


def two_buttons(folder: Path, buttons: dict[str, int]) -> None:
    """Data of a jsPsych page with two buttons, counted from the left, 0 and 1."""
    trials = [t for t in read_trials(folder / "trials.csv") if t.group == 1]
    data = [
        {"trial_id": t.trial_id, "left": 1 + n % 2, "response": buttons[t.trial_id], "rt": 900}
        for n, t in enumerate(trials)
    ]
    (folder / "data.json").write_text(json.dumps(data))


def test_imports_turn_choices_as_choices(folder: Path) -> None:
    """By hand: everybody presses left, so that the sentence shown left is chosen."""
    trials = [t for t in read_trials(folder / "trials.csv") if t.group == 1]
    two_buttons(folder, {t.trial_id: n % 3 % 2 for n, t in enumerate(trials)})
    command = "import jspsych data.json --trials trials.csv --out read.csv".split()
    succeed(folder, *command)
    assert scale_in(folder / "read.csv") == "choice"
    for n, response in enumerate(read_responses(folder / "read.csv")):
        pressed, left = n % 3 % 2, 1 + n % 2
        assert response.rating == (left if pressed == 0 else 3 - left)
    design_for_confidence(folder)
    failed = run(folder, *command, status=2)
    assert "from left to right, are 1 or 2" in failed.stderr
    first = (folder / "read.csv").read_text()
    succeed(folder, *command, "--scale", "choice")
    assert (folder / "read.csv").read_text() == first
    assert scale_in(folder / "read.csv") == "choice"
