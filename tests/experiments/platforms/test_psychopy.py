"""PsychoPy: the exported conditions and script, and importing data of each component.

`CONTSTIM_PSYCHOPY` names a Python that has PsychoPy (`pip install psychopy`), for the slow tests.
"""

import ast
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from contstim.errors import InputError
from contstim.experiments.platforms.psychopy import PLATFORM, export_psychopy, import_psychopy
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from contstim.testing.platform import TRIALS as CONTRACT_TRIALS
from contstim.testing.platform import PlantedAnswers, PlatformContract, read_csv_rows
from tests.experiments.platforms.hostile import People, hostile_trials, write_rows

TRIALS = hostile_trials(brackets=False)
PEOPLE = {"ann": "L01", "=HYPERLINK(1)": "L04", "ben, jr.": "L02"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_psychopy(TRIALS, tmp_path_factory.mktemp("psychopy"), seed=4).path


def test_conditions_are_valid_in_psychopy(folder: Path) -> None:
    """Read by pandas, as in PsychoPy: valid names, numbers as sides, and strings as texts."""
    lists = read_csv_rows(folder / "lists.csv")
    assert [row["list_name"] for row in lists] == ["L01", "L02", "L03", "L04"]
    for row in lists:
        path = folder / f"{row['list_name']}.csv"
        table = pd.read_csv(path, encoding="utf-8-sig")
        assert all(name.isidentifier() for name in table.columns)
        assert set(table["left"]) == {1, 2}
        for name in ("trial_id", "left_sentence", "right_sentence"):
            assert table[name].tolist() == [cells[name] for cells in read_csv_rows(path)]


def test_error_lists_all_sentences_that_psychopy_evaluates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PsychoPy would change these") as error:
        export_psychopy(hostile_trials(), tmp_path / "out")
    lines = str(error.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in lines] == [f"trial-1-{n}" for n in range(14, 18)]
    assert [line.rpartition(": ")[2] for line in lines] == [
        *["PsychoPy evaluates text in square brackets"] * 2,
        "PsychoPy reads a backslash with n as a line break",
        "PsychoPy reads the text as a number",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["17", "=a", "[a]", "1e5", "NA"])
def test_trial_ids_that_psychopy_changes_raise_errors(tmp_path: Path, name: str) -> None:
    trials = [replace(TRIALS[0], trial_id=name)]
    with pytest.raises(InputError, match=f"the trial_id '{re.escape(name)}': (PsychoPy|it) "):
        export_psychopy(trials, tmp_path)


@pytest.fixture(scope="module")
def psychopy() -> list[str]:
    """Command of a Python with PsychoPy, on a virtual screen."""
    python, screen = os.environ.get("CONTSTIM_PSYCHOPY"), shutil.which("xvfb-run")
    if not python or not screen:
        pytest.skip("needs xvfb-run, and CONTSTIM_PSYCHOPY that names a Python with PsychoPy")
    return [screen, "-a", "-s", "-screen 0 1280x720x24", python]


IMPORT = """
import json, sys
from psychopy import data
read = [data.importConditions(path) for path in sys.argv[2:]]
json.dump(read, open(sys.argv[1], 'w'), default=str)
"""


@pytest.mark.slow
def test_psychopy_reads_the_conditions(psychopy: list[str], folder: Path, tmp_path: Path) -> None:
    """PsychoPy reads every sentence as the text in the table."""
    lists = sorted(folder.glob("L*.csv"))
    out = tmp_path / "read.json"
    subprocess.run([*psychopy, "-c", IMPORT, out, *lists], check=True, capture_output=True)
    for path, conditions in zip(lists, json.loads(out.read_text()), strict=True):
        rows = [{**row, "left": str(row["left"])} for row in conditions]
        names = ("trial_id", "list_name", "left", "left_sentence", "right_sentence")
        assert [[row[n] for n in names] for row in rows] == [
            [row[n] for n in names] for row in read_csv_rows(path)
        ]


# Presses a key as soon as PsychoPy has saved the previous response
PRESSES = """
import csv, pathlib, subprocess, sys, time
from Xlib import X, XK, display
from Xlib.ext import xtest

script, keys = pathlib.Path(sys.argv[1]), sys.argv[4:]
screen, end = display.Display(), time.time() + 240
running = subprocess.Popen([sys.executable, script, *sys.argv[2:4]])

def press(name):
    for window in screen.screen().root.query_tree().children:
        window.set_input_focus(X.RevertToParent, X.CurrentTime)
    for kind in (X.KeyPress, X.KeyRelease):
        xtest.fake_input(screen, kind, screen.keysym_to_keycode(XK.string_to_keysym(name)))
        screen.sync()

def count_answers():
    files = script.parent.glob(f'data/{sys.argv[3]}_*.csv')
    return sum(len(list(csv.reader(path.open(encoding='utf-8-sig')))) - 1 for path in files)

while running.poll() is None and time.time() < end:
    done = count_answers()
    windows = [w for w in screen.screen().root.query_tree().children
               if w.get_attributes().map_state == X.IsViewable]
    if windows and done == 0:
        press('space')
        time.sleep(1)
    if windows:
        press(keys[done] if done < len(keys) else 'space')
    late = time.time() + 3
    while running.poll() is None and count_answers() == done and time.time() < late:
        time.sleep(0.1)
    time.sleep(0.8)  # time to read
running.kill()
sys.exit(running.wait())
"""


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Scale.CONFIDENCE, Scale.CHOICE])
def test_psychopy_itself_runs_the_script(psychopy: list[str], tmp_path: Path, scale: Scale) -> None:
    """The keys pressed on its window are imported as ratings, given the sides of the sentences."""
    trials = on_scale(CONTRACT_TRIALS, scale)
    folder = export_psychopy(trials, tmp_path / "out").path
    rows = read_csv_rows(folder / "L03.csv")
    keys = [str(scale.answers[n % len(scale.answers)]) for n in range(len(rows))]
    script = folder / "experiment.py"
    command = [*psychopy, "-c", PRESSES, str(script), "ann, 2", "L03", *keys]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    result = import_psychopy([*(folder / "data").iterdir()], trials)
    assert result.report.findings == ()
    assert {r.participant for r in result.responses} == {"ann, 2"}
    left = {row["trial_id"]: int(row["left"]) for row in rows}
    assert [r.left for r in result.responses] == [left[r.trial_id] for r in result.responses]
    pressed = [r.rating if r.left == 1 else scale.mirrored(r.rating) for r in result.responses]
    assert list(map(str, pressed)) == keys
    assert all(0 < r.rt_ms < 30_000 for r in result.responses)


def test_script_compiles_with_the_keys_of_the_scale(folder: Path, tmp_path: Path) -> None:
    choices = export_psychopy(on_scale(CONTRACT_TRIALS, Scale.CHOICE), tmp_path / "out").path
    for out, keys in ((folder, "123456"), (choices, "12")):
        code = (out / "experiment.py").read_text(encoding="utf-8")
        (value,) = (
            node.value
            for node in ast.parse(code).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KEYS"
        )
        assert ast.literal_eval(value) == [*keys]


def data(
    folder: Path, out: Path, planted: PlantedAnswers, kind: str, people: People = PEOPLE
) -> list[Path]:
    """Write a file for each participant in PsychoPy's wide format, with its trailing delimiter."""
    files: list[Path] = []
    for participant, name in people.items():
        rows = planted.shuffled(read_csv_rows(folder / f"{name}.csv"))
        info = {"participant": participant, "session": "001", "list": name, "date": "2026-11-21"}
        table: list[dict[str, object]] = [{**info, "begin.keys": "space", "begin.rt": 2.5}]
        for n, row in enumerate(rows):
            button, rt_ms = planted.press(participant, row["trial_id"], row["left"], n + 1)
            answers: dict[str, dict[str, object]] = {
                "keyboard": {"rating.keys": button, "rating.rt": rt_ms / 1_000},
                "mouse": {
                    "rating.clicked_name": f"['button_{button}']",
                    "rating.time": f"[{rt_ms / 1_000}]",
                },
                "slider": {"rating.response": f"{button}.0", "rating.rt": rt_ms / 1_000},
            }
            trial_cells = {"trials.thisN": n, "trials.thisIndex": 3, **answers[kind]}
            table.append({**row, **trial_cells, **info})
        files.append(out / f"{len(files)}_sentences_2026.csv")
        columns = [*dict.fromkeys(key for row in table for key in row), ""]
        write_rows(files[-1], table, columns)
    return files


class TestContract(PlatformContract):
    platform = PLATFORM

    def data(self, folder: Path, out: Path, answers: PlantedAnswers, people: People) -> list[Path]:
        return data(folder, out, answers, "keyboard", people)


@pytest.mark.parametrize("kind", ["mouse", "slider"])
def test_data_of_other_components_are_imported(folder: Path, tmp_path: Path, kind: str) -> None:
    planted = PlantedAnswers(TRIALS)
    result = import_psychopy(data(folder, tmp_path, planted, kind), TRIALS)
    assert list(result.responses) == planted.responses
    assert result.report.findings == ()
    assert sum("skipped 1 row without" in note for note in result.notes) == 3


def test_component_option_and_missing_participant_names(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path, planted, "keyboard")[0]
    rows = read_csv_rows(path)
    for row in rows:
        row["choice.keys"] = row.pop("rating.keys")
        row["participant"] = ""
    write_rows(path, rows)
    with pytest.raises(InputError, match=r"no column rating.keys .*; its columns are"):
        import_psychopy([path], TRIALS)
    result = import_psychopy([path], TRIALS, component="choice")
    assert {r.participant for r in result.responses} == {path.stem}
    assert any(f"one participant with the name {path.stem}" in note for note in result.notes)


def test_file_without_trials_is_skipped(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path, planted, "keyboard", {"ann": "L01"})[0]
    empty = write_rows(tmp_path / "left.csv", [{"participant": "bob", "begin.keys": "space"}])
    result = import_psychopy([empty, path], TRIALS)
    assert list(result.responses) == planted.responses
    assert any(note.startswith(f"{empty} has no row with a trial_id") for note in result.notes)


def test_ratings_coded_from_0_raise_an_error(folder: Path, tmp_path: Path) -> None:
    """Of 0 to 5, only 0 is outside the scale; all other ratings would be wrong by one."""
    path = data(folder, tmp_path, PlantedAnswers(TRIALS), "keyboard", {"ann": "L01"})[0]
    rows = read_csv_rows(path)
    for n, row in enumerate(rows[1:]):
        row["rating.keys"] = str(n % 6)
    with pytest.raises(InputError, match="shifted by one"):
        import_psychopy([write_rows(path, rows)], TRIALS)
