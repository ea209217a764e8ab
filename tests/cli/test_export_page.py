"""`contstim export jspsych` and `contstim export jatos` as a user runs them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from tests.cli.running import run
from tests.experiments.responses.experiment import make_trials

TRIALS = make_trials(2, catch=1)


def test_export_jspsych(tmp_path: Path) -> None:
    write_table(tmp_path / "trials.csv", trial_columns(TRIALS))
    practice = "sentence_1;sentence_2\nDogs bark;Bark dogs the\n"
    (tmp_path / "practice.csv").write_text(practice)
    command = "export jspsych --trials trials.csv --out experiment --title Pairs --language de"
    done = run(
        tmp_path,
        *command.split(),
        *"--practice practice.csv --save datapipe --datapipe-id abc123".split(),
        *"--redirect https://app.prolific.com/submissions/complete?cc=C1".split(),
    )
    assert done.returncode == 0, done.stderr
    assert "18 pairs in 2 groups" in done.stderr
    assert "warning: the texts of experiment still contain placeholders" in done.stderr
    assert "[Kontakt]" in done.stderr
    study = json.loads((tmp_path / "experiment" / "study.json").read_text())
    assert {name: len(own) for name, own in study["groups"].items()} == {"1": 9, "2": 9}
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
