"""Importing data of jsPsych, which are generated from known responses."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.jspsych import PLATFORM, import_jspsych
from contstim.experiments.responses.checks import Problem
from contstim.experiments.responses.table import Response
from contstim.testing.platform import PlantedAnswers, PlatformContract
from tests.experiments.platforms.hostile import People, write_rows
from tests.experiments.responses.experiment import make_responses, make_trials

TRIALS = make_trials()
RESPONSES = make_responses(TRIALS, {"ann": 1, "bob": 2})
OBSERVED = [
    replace(response, input="touch", blurs=1, away_ms=40.5, simulated=response.participant == "bob")
    for response in RESPONSES
]


def page(responses: list[Response], *, rating: bool = True, button: bool = True) -> list[Any]:
    """Return rows as jsPsych 8 writes them: a consent page, then a row for each trial."""
    rows: list[dict[str, Any]] = [
        {"rt": 812, "trial_type": "instructions", "trial_index": 0, "view_history": "[]"}
    ]
    for index, response in enumerate(responses, start=1):
        pressed = response.rating if response.left == 1 else 7 - response.rating
        row = {
            "rt": int(response.rt_ms),
            "stimulus": "<p>…</p>",
            "response": pressed - 1,
            "trial_type": "html-button-response",
            "trial_index": index,
            "time_elapsed": 1_000 * index,
            "participant": response.participant,
            "trial_id": response.trial_id,
            "left": response.left,
            "rating": response.rating,
        }
        is_recorded = {"rating": rating, "response": button}
        rows.append({key: cell for key, cell in row.items() if is_recorded.get(key, True)})
    return rows


def write(path: Path, rows: list[Any]) -> Path:
    if path.suffix == ".csv":
        return write_rows(path, rows)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def study_lists(study: dict[str, Any]) -> dict[str, list[dict[str, str]]]:
    """Return the trials of each group; the sides alternate."""
    lists: dict[str, list[dict[str, str]]] = {}
    for group, trials in study["groups"].items():
        for n, trial in enumerate(trials):
            pair = (trial["sentence_1"], trial["sentence_2"])
            left, right = pair[:: 1 if n % 2 else -1]
            row = {"trial_id": trial["trial_id"], "left": "1" if n % 2 else "2"}
            row |= {"left_sentence": left, "right_sentence": right}
            lists.setdefault(group, []).append(row)
    return lists


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize(("rating", "button"), [(True, True), (True, False), (False, True)])
def test_responses_are_imported(tmp_path: Path, suffix: str, rating: bool, button: bool) -> None:
    path = write(tmp_path / f"data{suffix}", page(RESPONSES, rating=rating, button=button))
    result = import_jspsych([path], TRIALS)
    assert list(result.responses) == RESPONSES
    assert result.report.findings == ()
    assert f"{path}: skipped 1 row without a trial_id." in result.notes


class TestContract(PlatformContract):
    """Sentences are from study.json; sides, which the page draws, alternate here."""

    platform = PLATFORM

    def lists(self, folder: Path) -> dict[str, list[dict[str, str]]]:
        return study_lists(json.loads((folder / "study.json").read_text(encoding="utf-8")))

    def data(self, folder: Path, out: Path, answers: PlantedAnswers, people: People) -> list[Path]:
        lists = self.lists(folder)
        for name, group in people.items():
            for position, row in enumerate(answers.shuffled(lists[group]), start=1):
                answers.press(name, row["trial_id"], row["left"], position)
        return [write(out / "data.json", page(answers.responses))]


def test_file_without_names_is_one_participant(tmp_path: Path) -> None:
    files = []
    for name in ("ann", "bob"):
        rows = page([r for r in RESPONSES if r.participant == name])
        for row in rows:
            row.pop("participant", None)
        files.append(write(tmp_path / f"{name}.json", rows))
    result = import_jspsych(files, TRIALS)
    assert list(result.responses) == RESPONSES
    assert any("one participant with the name ann" in note for note in result.notes)


def test_identical_jatos_rows_count_once_but_conflicts_remain(tmp_path: Path) -> None:
    """A reload before the reply of JATOS begins a second result with the same row."""
    rows = [asdict(response) for response in OBSERVED]
    path = tmp_path / "jatos_results.txt"
    for change in ({}, {"rating": 7 - RESPONSES[1].rating}, {"rt_ms": 1.0}, {"position": 99}):
        repeated_row = rows[1] | change
        path.write_text("\n".join(map(json.dumps, [rows[:2], [repeated_row, *rows[2:]]])))
        result = import_jspsych([path], TRIALS)
        duplicates = result.report.of(Problem.DUPLICATE)
        is_noted = f"{path}: skipped 1 row identical to earlier rows." in result.notes
        assert (list(result.responses) == OBSERVED, is_noted) == (not change, not change)
        assert [f.about for f in duplicates] == ([(RESPONSES[1].trial_id,)] if change else [])


def test_ratings_by_side_raise_an_error(tmp_path: Path) -> None:
    """The page records the button, counted from 1: half of the ratings are mirrored."""
    rows = page(RESPONSES)
    for row in rows[1:]:
        row["rating"] = row["response"] + 1
    with pytest.raises(InputError, match="does not match the response 3"):
        import_jspsych([write(tmp_path / "data.json", rows)], TRIALS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "no row with a trial_id"),
        ("[1, 2]", "lists of objects"),
        ("rt;response", "no readable rows"),
    ],
)
def test_other_files_raise_errors(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        import_jspsych([path], TRIALS)
