"""`contstim train rnn|lstm|bilstm|gpt2|bert` as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from contstim.cli import app
from contstim.errors import ContstimError
from contstim.sentence import Sentence
from tests.interrupts import hear_interrupts

KINDS = ("rnn", "lstm", "bilstm", "gpt2", "bert")
TINY = "--embedding 8 --hidden 8 --epochs 3 --learning-rate 0.02 --device cpu".split()


@pytest.fixture
def folder(tmp_path: Path, english: list[Sentence]) -> Path:
    lines = "".join(f"{sentence.text}\n" for sentence in english[:150])
    (tmp_path / "corpus.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "more.txt").write_text("The dog sleeps\nShe likes it!\n", encoding="utf-8")
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "contstim", *arguments]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"},
        preexec_fn=hear_interrupts,
    )


def test_a_trained_model_is_scored_by_name_and_by_folder(folder: Path) -> None:
    runner, out = CliRunner(), str(folder / "lstm")
    train = ["train", "lstm", "--text", str(folder / "corpus.txt"), "--out", out, *TINY]
    done = runner.invoke(app, train)
    assert done.exit_code == 0, done.output
    assert f"Load it as lstm:{out}" in done.stderr
    assert "validation perplexity" in done.stderr
    record = json.loads((folder / "lstm" / "training.json").read_text())
    assert record["settings"]["embedding"] == 8
    scores = str(folder / "scores.csv")
    natural = ["--sentences", str(folder / "more.txt"), "--out", scores]
    log_probs = []
    for model in (f"lstm:{out}", out):
        done = runner.invoke(app, ["score", "--model", model, *natural, "--per-word"])
        assert done.exit_code == 0, done.output
        with Path(scores).open(encoding="utf-8") as file:
            log_probs.append([row["log_prob"] for row in csv.DictReader(file)])
    named, bare = log_probs
    assert named == bare
    assert len(named) == 8


def test_an_interrupted_training_goes_on_by_the_same_command(folder: Path) -> None:
    """Witness: the weights of the same training, never interrupted."""
    sizes = [*TINY, "--batch-size", "8", "--epochs", "16", "--out"]
    train = ["train", "rnn", "--text", str(folder / "corpus.txt"), *sizes]
    process = start(folder, *train, "parts")
    checkpoint = folder / "parts" / "checkpoint.safetensors"
    began, deadline = None, time.monotonic() + 120
    while began is None or checkpoint.stat().st_mtime_ns == began:  # until the first epoch is kept
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
        if began is None and checkpoint.exists():
            began = checkpoint.stat().st_mtime_ns
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert not (folder / "parts" / "training.json").exists()
    torch.set_num_threads(1)
    for out in ("parts", "whole"):
        done = CliRunner().invoke(app, [*train, str(folder / out), "--quiet"])
        assert done.exit_code == 0, done.output
        assert done.output == ""
    parts, whole = (
        safetensors.torch.load_file(folder / out / "model.safetensors")
        for out in ("parts", "whole")
    )
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("lstm --hidden 9", "hidden is not .* was begun"),
        ("rnn", "kind.? is not"),
        ("gpt2", "kind.? is not"),
        ("lstm --dropout 1", "dropout must be below 1"),
    ],
)
def test_what_cannot_go_on_is_refused(folder: Path, arguments: str, message: str) -> None:
    (folder / "out").mkdir()
    settings = {"kind": "lstm", "embedding": 256, "hidden": 512}
    record = {"settings": settings, "curve": [], "ended": "all epochs are done"}
    (folder / "out" / "training.json").write_text(json.dumps(record))
    given = [*arguments.split(), "--text", str(folder / "corpus.txt")]
    done = CliRunner().invoke(app, ["train", *given, "--out", str(folder / "out")])
    assert isinstance(done.exception, ContstimError)
    assert re.search(message, str(done.exception))
    assert [path.name for path in (folder / "out").iterdir()] == ["training.json"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_explains_its_options(kind: str) -> None:
    shown = CliRunner().invoke(app, ["train", kind, "--help"], env={"COLUMNS": "200"}).stdout
    assert f"contstim train {kind} --text corpus.txt" in shown
    for option in ("--epochs", "--seed", "--device", "--quiet", "--vocabulary-size", "--prose"):
        assert option in shown
    assert ("--mask-share" in shown) == (kind == "bert")
    assert ("--hidden" in shown) == (kind in ("rnn", "lstm", "bilstm"))
