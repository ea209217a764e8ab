"""Gorilla: filling the user's spreadsheet, and importing data of both task builders."""

from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.gorilla import PLATFORM, export_gorilla, import_gorilla
from contstim.experiments.responses.checks import Problem
from contstim.testing.platform import PlantedAnswers, PlatformContract, read_csv_rows
from tests.experiments.platforms.hostile import People, hostile_trials, write_rows

TRIALS = hostile_trials()
END = "END OF FILE\r\n"
AB = {"left": "a", "right": "b"}
PEOPLE = {"9001": "L01", "9002": "L04", "9003": "L02"}
TEMPLATE = """\
Display,randomise_blocks,randomise_trials,text A,text B,feedback,time limit
hello,,,,,,
trial,,1,The cat,The dog,none,8000
trial,,1,One more,Another,none,8000
goodbye,,,,,,
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gorilla")
    path = tmp_path_factory.mktemp("template") / "task.csv"
    path.write_text(TEMPLATE, encoding="utf-8-sig")
    columns = {"left": "Text a", "right": "text B"}
    return export_gorilla(TRIALS, out, template=path, **columns, seed=4).path


def test_template_is_filled_and_otherwise_unchanged(folder: Path) -> None:
    rows = read_csv_rows(folder / "L02.csv")
    header = TEMPLATE.splitlines()[0].split(",")
    assert list(rows[0]) == [*header, "trial_id", "list_name", "shown_left"]
    assert [row["Display"] for row in rows] == ["hello", *["trial"] * 20, "goodbye"]
    trials = rows[1:-1]
    assert {row["trial_id"] for row in trials} == {t.trial_id for t in TRIALS if t.group == 1}
    cells = {(row["randomise_trials"], row["feedback"], row["time limit"]) for row in trials}
    assert cells == {("1", "none", "8000")}
    assert not any(rows[0][name] for name in header[1:])


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
        ("display,a\ntrial,x\n", {}, "no column 'sentence_left'"),
        ("randomise,sentence_left,sentence_right\n1,2,3\n", {}, "no column 'display'"),
        ("display,a,b\ntask,x,y\n", AB, "display 'trial'; the displays are"),
        ("display,a\ntrial,x\n", {"left": "a", "right": "a"}, "must be in two columns, got 'a'"),
        ("display,a,b\ntrial,,\npause,,\ntrial,,\n", AB, "other rows between"),
    ],
)
def test_invalid_templates(tmp_path: Path, text: str, fields: dict[str, Any], message: str) -> None:
    path = tmp_path / "task.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        export_gorilla(TRIALS, tmp_path / "out", template=path, **fields)


def data(
    folder: Path,
    path: Path,
    planted: PlantedAnswers,
    *,
    prefix: str = "",
    people: People = PEOPLE,
) -> Path:
    """Write an event for each response, with fixations and instructions between them.

    Task Builder 2 puts `Spreadsheet: ` before the names of spreadsheet columns and calls buttons by
    Object Name; Task Builder 1 writes the names alone, and Zone Name.
    """
    zone = "Object Name" if prefix else "Zone Name"
    events: list[dict[str, object]] = []
    for participant, name in people.items():
        person = {"Participant Private ID": participant, "Participant Status": "complete"}
        events.append({**person, "Trial Number": "BEGIN TASK"})
        rows = planted.shuffled(read_csv_rows(folder / f"{name}.csv")[1:-1])
        for n, row in enumerate(rows, start=1):
            button, rt_ms = planted.press(participant, row["trial_id"], row["shown_left"], n)
            spreadsheet_cells = {f"{prefix}{column}": cell for column, cell in row.items()}
            event = {**person, **spreadsheet_cells, "Trial Number": n}
            events.append({**event, zone: "fixation", "Reaction Time": 500})
            press = {zone: f"resp{button}", "Response": "sure", "Reaction Time": rt_ms}
            events.append({**event, **press})
        events.append({**person, "Trial Number": "END TASK"})
    return write_rows(path, events, end=END)


class TestContract(PlatformContract):
    platform = PLATFORM
    left_column = "shown_left"
    sentence_columns = ("sentence_left", "sentence_right")
    is_html = True

    def data(self, folder: Path, out: Path, answers: PlantedAnswers, people: People) -> list[Path]:
        return [data(folder, out / "data.csv", answers, people=people)]


def test_task_builder_2_data_are_imported(folder: Path, tmp_path: Path) -> None:
    """Columns of sentences may have any names; trial_id and side suffice."""
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path / "data.csv", planted, prefix="Spreadsheet: ")
    result = import_gorilla([path], TRIALS)
    assert list(result.responses) == planted.responses
    assert result.report.findings == ()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_columns_of_two_files_are_merged(folder: Path, tmp_path: Path, delimiter: str) -> None:
    planted = PlantedAnswers(TRIALS)
    rows = read_csv_rows(data(folder, tmp_path / "data.csv", planted))[:-1]
    for row in rows:
        for name in ("trial_id", "shown_left"):
            is_second = row["Participant Private ID"] == "9002"
            row[f"{name}-ab12"] = row[name] if is_second else ""
            row[name] = "" if is_second else row[name]
    path = write_rows(tmp_path / "data.csv", rows, delimiter=delimiter, end=END)
    result = import_gorilla([path], TRIALS)
    assert list(result.responses) == planted.responses
    assert f"{path}: skipped 6 rows without a trial_id." in result.notes
    changed_row = next(row for row in rows if row["trial_id"])
    changed_row["trial_id-ab12"] = "another"
    (unreadable,) = import_gorilla([write_rows(path, rows, end=END)], TRIALS).unreadable
    row_location = f"{path}, line {rows.index(changed_row) + 2}"
    assert str(unreadable).startswith(f"{row_location}: trial_id, trial_id-ab12")


def test_missing_and_duplicate_ratings_are_reported(folder: Path, tmp_path: Path) -> None:
    """Two files: a missing rating, a duplicate one, and a participant without ratings."""
    planted = PlantedAnswers(TRIALS)
    rows = read_csv_rows(data(folder, tmp_path / "data.csv", planted))[:-1]
    ratings = [row for row in rows if row["Zone Name"].startswith("resp")]
    missing, duplicate = ratings[0], ratings[1]
    rows.remove(missing)
    rows.insert(rows.index(duplicate), {**duplicate, "Zone Name": "resp1"})
    unrated = dict.fromkeys(rows[0], "") | {"Participant Private ID": "9004"}
    parts = {"0.csv": rows, "1.csv": [unrated]}
    files = [write_rows(tmp_path / name, part, end=END) for name, part in parts.items()]
    result = import_gorilla(files, TRIALS)
    problems = {(f.problem, f.participant, f.about) for f in result.report.findings}
    assert problems == {
        (Problem.DUPLICATE, "9001", (duplicate["trial_id"],)),
        (Problem.NO_RATING, "9001", (missing["trial_id"],)),
        (Problem.UNFINISHED, "9001", (missing["trial_id"],)),
    }
    assert "These participants gave no ratings: 9004." in result.notes
    positions = [r.position for r in result.responses if r.participant == "9002"]
    assert positions == list(range(1, 21))


def test_data_of_another_task_raise_errors(folder: Path, tmp_path: Path) -> None:
    path = data(folder, tmp_path / "data.csv", PlantedAnswers(TRIALS))
    rows = read_csv_rows(path)[:-1]
    renamed_rows = [row | {"Zone Name": "scale"} for row in rows]
    with pytest.raises(InputError, match=r"No ratings found in .*Name the buttons resp1"):
        import_gorilla([write_rows(path, renamed_rows, end=END)], TRIALS)
    for row in rows:
        del row["shown_left"]
    with pytest.raises(InputError, match="has no column shown_left; its columns are"):
        import_gorilla([write_rows(path, rows, end=END)], TRIALS)
