"""Stimulus lists with balanced sides, export folders, and the plain table of presentations."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.experiments.design.assignment import presentation
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import PLATFORM, export_csv, stimulus_lists
from contstim.items.stimuli import Condition
from contstim.testing.platform import ExportContract, read_csv_rows
from contstim.words.sentence import Sentence
from tests.experiments.platforms.hostile import hostile_trials
from tests.experiments.responses.experiment import make_trials

TRIALS = make_trials(groups=3)


@pytest.mark.parametrize("per_group", [2, 4])
def test_sides_balance_within_and_between_lists(per_group: int) -> None:
    lists = stimulus_lists(TRIALS, str, per_group=per_group, seed=3)
    assert len(lists) == 3 * per_group
    for rows in lists:
        for condition in Condition:
            left = [row["left"] for row in rows if row["condition"] == condition]
            assert left.count(1) == left.count(2)
    for rows, next_rows in zip(lists[::2], lists[1::2], strict=True):
        assert rows[0]["group"] == next_rows[0]["group"]
        sides_of = {row["trial_id"]: row["left"] for row in rows}
        assert all(sides_of[row["trial_id"]] + row["left"] == 3 for row in next_rows)


def test_full_stops_are_not_displayed_but_question_marks_are() -> None:
    question, statement = map(Sentence.parse, ("The one?", "The other\none."))
    trial = replace(TRIALS[0], sentence_1=question, sentence_2=statement)
    for (row,) in stimulus_lists([trial], str):
        first, second = ("left", "right") if row["left"] == 1 else ("right", "left")
        assert row[f"{first}_sentence"] == "The one?"
        assert row[f"{second}_sentence"] == "The other one"


@pytest.mark.parametrize("sign", list("=+-@\t\r"))
def test_trial_ids_like_formulas_raise_errors(sign: str) -> None:
    """The characters of OWASP's page on CSV injection; inside a trial_id they are harmless."""
    stimulus_lists([replace(TRIALS[0], trial_id=f"a{sign}1"), *TRIALS[1:]], str)
    with pytest.raises(InputError, match=r"trial_id '.*1\+1' begins like a spreadsheet formula"):
        stimulus_lists([*TRIALS[1:], replace(TRIALS[0], trial_id=f"{sign}1+1")], str)


def test_folder_with_other_files_raises_error(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="contains other files"):
        ExportFolder(tmp_path, "csv")
    with pytest.raises(InputError, match="is a file"):
        ExportFolder(tmp_path / "thesis.txt", "csv")


def test_added_file_in_export_folder_is_not_replaced(tmp_path: Path) -> None:
    folder = ExportFolder(tmp_path / "out", "csv")
    folder.text("L01.csv", "one")
    folder.finish()
    (tmp_path / "out" / "L02.csv").write_text("mine")
    second_export = ExportFolder(tmp_path / "out", "csv")
    second_export.text("L01.csv", "two")
    with pytest.raises(InputError, match=r"contains a file L02.csv that no export wrote"):
        second_export.text("L02.csv", "two")
    contents = {path.name: path.read_text() for path in (tmp_path / "out").glob("*.csv")}
    assert contents == {"L01.csv": "one", "L02.csv": "mine"}


def test_new_export_replaces_only_exported_files(tmp_path: Path) -> None:
    """A record that names files outside the folder does not delete them."""
    out, outside = tmp_path / "out", tmp_path / "outside.txt"
    outside.write_text("not yours")
    folder = ExportFolder(out, "csv")
    folder.text("L01.csv", "one")
    folder.text("L02.csv", "two")
    folder.finish()
    (out / "data.csv").write_text("answers")
    record = json.loads((out / "export.meta.json").read_text())
    assert record["files"] == ["L01.csv", "L02.csv"]
    record["files"].append("../outside.txt")
    (out / "export.meta.json").write_text(json.dumps(record))
    second_export = ExportFolder(out, "csv")
    second_export.text("L01.csv", "new")
    second_export.finish()
    assert {path.name for path in out.iterdir()} == {"L01.csv", "data.csv", "export.meta.json"}
    assert (out / "L01.csv").read_text() == "new"
    assert outside.read_text() == "not yours"


HOSTILE_TRIALS = hostile_trials()


def test_table_matches_presentation_order(tmp_path: Path) -> None:
    """The contract compares the sentences."""
    out = export_csv(HOSTILE_TRIALS, tmp_path, participants=3, seed=9).path
    rows = read_csv_rows(out / "presentation.csv")
    assert len(rows) == 2 * 3 * 20
    for group, person in product((1, 2), (1, 2, 3)):
        table = [r for r in rows if (r["group"], r["participant"]) == (str(group), str(person))]
        order = [(row["position"], row["trial_id"], row["left"]) for row in table]
        expected = presentation(HOSTILE_TRIALS, group=group, participant=person, seed=9)
        assert order == [(str(n), t.trial_id, str(left)) for n, (t, left) in enumerate(expected, 1)]


class TestContract(ExportContract):
    platform = PLATFORM
    list_columns = ("group", "participant")
