"""`contstim train rnn|lstm|bilstm|gpt2|bert` as a user runs it."""

import json
import signal
from pathlib import Path

import pytest
import safetensors.torch
import torch

from contstim.models.training.loop import Progress
from contstim.reporter import Reporter
from contstim.testing.platform import read_csv_rows
from contstim.words.sentence import Sentence
from tests.cli.running import invoke, run

TINY = "--embedding 8 --hidden 8 --epochs 3 --learning-rate 0.02 --device cpu".split()


@pytest.fixture
def folder(tmp_path: Path, english: list[Sentence]) -> Path:
    lines = "".join(f"{sentence.text}\n" for sentence in english[:150])
    (tmp_path / "corpus.txt").write_text(lines, encoding="utf-8")
    (tmp_path / "more.txt").write_text("The dog sleeps\nShe likes it!\n", encoding="utf-8")
    return tmp_path


def test_a_trained_model_is_scored_by_name_and_by_folder(folder: Path) -> None:
    out = str(folder / "lstm")
    done = invoke("train lstm", "--text", folder / "corpus.txt", "--out", out, *TINY)
    assert f"Load it as lstm:{out}" in done.stderr
    assert "validation perplexity" in done.stderr
    record = json.loads((folder / "lstm" / "training.json").read_text())
    assert record["settings"]["embedding"] == 8
    paths = ("--sentences", folder / "more.txt", "--out", folder / "scores.csv")
    log_probs = []
    for model in (f"lstm:{out}", out):
        invoke("score --per-word --model", model, *paths)
        log_probs.append([row["log_prob"] for row in read_csv_rows(folder / "scores.csv")])
    named, bare = log_probs
    assert named == bare
    assert len(named) == 8


def test_the_same_command_resumes_a_training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the weights of the same training, never interrupted."""
    train = ["train", "rnn", "--text", "corpus.txt", *TINY, "--batch-size", "8", "--out"]

    def interrupt(_reporter: Reporter, _name: str, now: Progress) -> None:
        if now.epoch == 2:  # the first is kept
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("contstim.steps.training.tell_training", interrupt)
        stopped = run(folder, *train, "parts")
    assert stopped.returncode == 130
    assert (
        f"Run the same command to continue:\n  contstim {' '.join(train)} parts" in stopped.stderr
    )
    assert "Traceback" not in stopped.stderr
    assert (folder / "parts" / "checkpoint.safetensors").exists()
    assert not (folder / "parts" / "training.json").exists()
    for out in ("parts", "whole"):
        done = run(folder, *train, out, "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    parts, whole = (
        safetensors.torch.load_file(folder / out / "model.safetensors")
        for out in ("parts", "whole")
    )
    assert all(torch.equal(parts[name], whole[name]) for name in whole)
