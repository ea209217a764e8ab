"""No output of a step is an input, another output, a record or a file of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.steps.design import MakeDesign
from contstim.steps.scoring import ScoreSentences
from contstim.steps.selection import SelectPairs
from contstim.steps.step import Step
from contstim.steps.training import TrainNgram
from tests.cli.running import run

SCORE: dict[str, Any] = {"models": ("kenlm:m.arpa",), "sentences": "text.txt"}

CLASHES: dict[str, tuple[type[Step[Any]], dict[str, Any], str]] = {
    "an input": (TrainNgram, {"text": "text.txt", "out": "text.txt"}, "`text`"),
    "by another path": (TrainNgram, {"text": "text.txt", "out": "a/../text.txt"}, "`text`"),
    "in capitals": (TrainNgram, {"text": "text.txt", "out": "TEXT.txt"}, "`text`"),
    "by a link": (TrainNgram, {"text": "text.txt", "out": "link/text.txt"}, "`text`"),
    "a file next to the output": (
        TrainNgram,
        {"text": "m.arpa.counts.csv", "out": "m.arpa"},
        "`text`",
    ),
    "another output": (
        ScoreSentences,
        {**SCORE, "out": "s.csv", "standard_errors": "./s.csv"},
        "`standard_errors` and `out`",
    ),
    "a model that is loaded": (ScoreSentences, {**SCORE, "out": "M.csv"}, "an input"),
    "the store": (ScoreSentences, {**SCORE, "out": "s.csv", "store": "s.csv"}, "the store"),
    "a file of SQLite": (
        ScoreSentences,
        {**SCORE, "out": "s.csv-wal/../x.csv", "bounds": "x.csv", "store": "x"},
        "`bounds` and `out`",
    ),
    "the record of the output": (
        SelectPairs,
        {"scores": "pairs.csv.meta.json", "out": "pairs.csv"},
        "the record of the output",
    ),
    "a certificate": (
        MakeDesign,
        {"pairs": "t.csv.certificate.json", "out": "t.csv"},
        "`out` would overwrite `pairs`",
    ),
    "a record": (TrainNgram, {"text": "text.txt", "out": "x.meta.json"}, "must not end in"),
    "behind a file": (
        TrainNgram,
        {"text": "text.txt", "out": "text.txt/x.arpa"},
        "is a file, not a folder",
    ),
}


@pytest.mark.parametrize(("step", "options", "message"), CLASHES.values(), ids=CLASHES)
def test_clashing_outputs_are_refused_before_work_begins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: type[Step[Any]],
    options: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("The cat sat.\n")
    Path("link").symlink_to(tmp_path)
    Path("a").mkdir()
    if options.get("out") == "M.csv":
        options = {**options, "models": ("kenlm:m.csv",)}
        Path("m.csv").write_text("")
    mtimes = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(InputError, match=message):
        step.of(options).run()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == mtimes


def test_command_names_clashing_options(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The cat sat.\n")
    result = run(tmp_path, "train", "ngram", "--text", "text.txt", "--out", "text.txt")
    assert (result.returncode, "--out would overwrite --text" in result.stderr) == (2, True)
