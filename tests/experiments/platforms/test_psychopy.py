"""PsychoPy: conditions by its rules, the script run, and answers of keyboard, mouse and slider.

`CONTSTIM_PSYCHOPY` names a Python that has PsychoPy (`pip install psychopy`), for the slow tests.
"""

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
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
from tests.experiments.platforms.hostile import hostile_trials, write_rows

TRIALS = hostile_trials(brackets=False)
PEOPLE = {"ann": "L01", "=HYPERLINK(1)": "L04", "ben, jr.": "L02"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_psychopy(TRIALS, tmp_path_factory.mktemp("psychopy"), seed=4).path


def test_conditions_are_as_psychopy_wants_them(folder: Path) -> None:
    """Read by pandas, as PsychoPy does: valid names, sides as numbers, and texts as texts."""
    lists = read_csv_rows(folder / "lists.csv")
    assert [row["list_name"] for row in lists] == ["L01", "L02", "L03", "L04"]
    for row in lists:
        path = folder / f"{row['list_name']}.csv"
        read = pd.read_csv(path, encoding="utf-8-sig")
        assert all(name.isidentifier() for name in read.columns)
        assert set(read["left"]) == {1, 2}
        for name in ("trial_id", "left_sentence", "right_sentence"):
            assert read[name].tolist() == [cells[name] for cells in read_csv_rows(path)]


def test_sentences_that_would_be_evaluated_are_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PsychoPy would change these") as refused:
        export_psychopy(hostile_trials(), tmp_path / "out")
    named = str(refused.value).splitlines()[1:]
    assert [line.split(":")[0].strip() for line in named] == [f"trial-1-{n}" for n in range(14, 18)]
    assert [line.rpartition(": ")[2] for line in named] == [
        *["PsychoPy evaluates text in square brackets"] * 2,
        "PsychoPy reads a backslash with n as a line break",
        "PsychoPy reads the text as a number",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["17", "=a", "[a]", "1e5", "NA"])
def test_identifiers_that_would_not_come_back_are_refused(tmp_path: Path, name: str) -> None:
    trials = [replace(TRIALS[0], trial_id=name)]
    with pytest.raises(InputError, match=f"the trial_id '{re.escape(name)}': (PsychoPy|it) "):
        export_psychopy(trials, tmp_path)


@pytest.fixture(scope="module")
def psychopy() -> list[str]:
    """Command of a Python with PsychoPy, on a screen of its own."""
    python, screen = os.environ.get("CONTSTIM_PSYCHOPY"), shutil.which("xvfb-run")
    if not python or not screen:
        pytest.skip("needs xvfb-run, and CONTSTIM_PSYCHOPY that names a Python with PsychoPy")
    return [screen, "-a", "-s", "-screen 0 1280x720x24", python]


IMPORTED = """
import json, sys
from psychopy import data
read = [data.importConditions(path) for path in sys.argv[2:]]
json.dump(read, open(sys.argv[1], 'w'), default=str)
"""


@pytest.mark.slow
def test_psychopy_reads_the_conditions(psychopy: list[str], folder: Path, tmp_path: Path) -> None:
    """Every sentence is a text to it, as it stands in the table."""
    lists = sorted(folder.glob("L*.csv"))
    out = tmp_path / "read.json"
    subprocess.run([*psychopy, "-c", IMPORTED, out, *lists], check=True, capture_output=True)
    for path, read in zip(lists, json.loads(out.read_text()), strict=True):
        rows = [{**row, "left": str(row["left"])} for row in read]
        names = ("trial_id", "list_name", "left", "left_sentence", "right_sentence")
        assert [[row[n] for n in names] for row in rows] == [
            [row[n] for n in names] for row in read_csv_rows(path)
        ]


# Presses a key when the answer to the one before is in the data, as PsychoPy saves them
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

def answered():
    files = script.parent.glob(f'data/{sys.argv[3]}_*.csv')
    return sum(len(list(csv.reader(path.open(encoding='utf-8-sig')))) - 1 for path in files)

while running.poll() is None and time.time() < end:
    done = answered()
    shown = [w for w in screen.screen().root.query_tree().children
             if w.get_attributes().map_state == X.IsViewable]
    if shown and done == 0:
        press('space')
        time.sleep(1)
    if shown:
        press(keys[done] if done < len(keys) else 'space')
    late = time.time() + 3
    while running.poll() is None and answered() == done and time.time() < late:
        time.sleep(0.1)
    time.sleep(0.8)  # as a person needs who reads
running.kill()
sys.exit(running.wait())
"""


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Scale.CONFIDENCE, Scale.CHOICE])
def test_psychopy_itself_runs_the_script(psychopy: list[str], tmp_path: Path, scale: Scale) -> None:
    """Keys pressed on its window come back as ratings from the side that each sentence stood on."""
    trials = on_scale(CONTRACT_TRIALS, scale)
    folder = export_psychopy(trials, tmp_path / "out").path
    shown = read_csv_rows(folder / "L03.csv")
    keys = [str(scale.answers[n % len(scale.answers)]) for n in range(len(shown))]
    script = folder / "experiment.py"
    command = [*psychopy, "-c", PRESSES, str(script), "ann, 2", "L03", *keys]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    found = import_psychopy([*(folder / "data").iterdir()], trials)
    assert found.report.findings == ()
    assert {r.participant for r in found.responses} == {"ann, 2"}
    left = {row["trial_id"]: int(row["left"]) for row in shown}
    assert [r.left for r in found.responses] == [left[r.trial_id] for r in found.responses]
    pressed = [r.rating if r.left == 1 else scale.mirrored(r.rating) for r in found.responses]
    assert list(map(str, pressed)) == keys
    assert all(0 < r.rt_ms < 30_000 for r in found.responses)


def test_the_script_compiles_with_the_keys_of_the_scale(folder: Path, tmp_path: Path) -> None:
    choices = export_psychopy(on_scale(CONTRACT_TRIALS, Scale.CHOICE), tmp_path / "out").path
    for out, keys in ((folder, "123456"), (choices, "12")):
        code = (out / "experiment.py").read_text(encoding="utf-8")
        (given,) = (
            node.value
            for node in ast.parse(code).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KEYS"
        )
        assert ast.literal_eval(given) == [*keys]


def data(
    folder: Path, out: Path, planted: PlantedAnswers, kind: str, people: Mapping[str, str] = PEOPLE
) -> list[Path]:
    """One file for each participant, as PsychoPy saves wide text: a trailing delimiter included."""
    files: list[Path] = []
    for participant, name in people.items():
        rows = planted.shuffled(read_csv_rows(folder / f"{name}.csv"))
        about = {"participant": participant, "session": "001", "list": name, "date": "2026-11-21"}
        written: list[dict[str, object]] = [{**about, "begin.keys": "space", "begin.rt": 2.5}]
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
            about_trial = {"trials.thisN": n, "trials.thisIndex": 3, **answers[kind]}
            written.append({**row, **about_trial, **about})
        files.append(out / f"{len(files)}_sentences_2026.csv")
        columns = [*dict.fromkeys(key for row in written for key in row), ""]
        write_rows(files[-1], written, columns)
    return files


class TestContract(PlatformContract):
    platform = PLATFORM

    def data(
        self, folder: Path, out: Path, answers: PlantedAnswers, people: Mapping[str, str]
    ) -> list[Path]:
        return data(folder, out, answers, "keyboard", people)


@pytest.mark.parametrize("kind", ["mouse", "slider"])
def test_answers_of_other_components_come_back(folder: Path, tmp_path: Path, kind: str) -> None:
    planted = PlantedAnswers(TRIALS)
    found = import_psychopy(data(folder, tmp_path, planted, kind), TRIALS)
    assert list(found.responses) == planted.responses
    assert found.report.findings == ()
    assert sum("skipped 1 row without" in note for note in found.notes) == 3


def test_other_components_and_people_without_names(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path, planted, "keyboard")[0]
    rows = read_csv_rows(path)
    for row in rows:
        row["choice.keys"] = row.pop("rating.keys")
        row["participant"] = ""
    write_rows(path, rows)
    with pytest.raises(InputError, match=r"no column rating.keys .*; its columns are"):
        import_psychopy([path], TRIALS)
    found = import_psychopy([path], TRIALS, component="choice")
    assert {r.participant for r in found.responses} == {path.stem}
    assert any(f"as one participant, named {path.stem}" in note for note in found.notes)


def test_leaving_before_the_first_trial_stops_no_others(folder: Path, tmp_path: Path) -> None:
    planted = PlantedAnswers(TRIALS)
    path = data(folder, tmp_path, planted, "keyboard", {"ann": "L01"})[0]
    left = write_rows(tmp_path / "left.csv", [{"participant": "bob", "begin.keys": "space"}])
    found = import_psychopy([left, path], TRIALS)
    assert list(found.responses) == planted.responses
    assert any(note.startswith(f"{left} has no row with a trial_id") for note in found.notes)


def test_ratings_that_are_coded_from_0_are_refused(folder: Path, tmp_path: Path) -> None:
    """Of 0 to 5 only the zeros are outside the scale, and all others would be read off by one."""
    path = data(folder, tmp_path, PlantedAnswers(TRIALS), "keyboard", {"ann": "L01"})[0]
    rows = read_csv_rows(path)
    for n, row in enumerate(rows[1:]):
        row["rating.keys"] = str(n % 6)
    with pytest.raises(InputError, match="shifted by one"):
        import_psychopy([write_rows(path, rows)], TRIALS)
