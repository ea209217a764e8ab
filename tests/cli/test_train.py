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


def test_trained_model_is_scored_by_name_and_by_folder(folder: Path) -> None:
    out = str(folder / "lstm")
    result = invoke("train lstm", "--text", folder / "corpus.txt", "--out", out, *TINY)
    assert f"Load it as lstm:{out}" in result.stderr
    assert "validation perplexity" in result.stderr
    record = json.loads((folder / "lstm" / "training.json").read_text())
    assert record["settings"]["embedding"] == 8
    paths = ("--sentences", folder / "more.txt", "--out", folder / "scores.csv")
    log_probs = []
    for model in (f"lstm:{out}", out):
        invoke("score --per-word --model", model, *paths)
        log_probs.append([row["log_prob"] for row in read_csv_rows(folder / "scores.csv")])
    by_name, by_folder = log_probs
    assert by_name == by_folder
    assert len(by_name) == 8


def test_same_command_resumes_training(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Witness: the weights of the same training, never interrupted."""
    train = ["train", "rnn", "--text", "corpus.txt", *TINY, "--batch-size", "8", "--out"]

    def interrupt(_reporter: Reporter, _name: str, progress: Progress) -> None:
        if progress.epoch == 2:  # the checkpoint of the first epoch is stored
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("contstim.steps.training.tell_training", interrupt)
        interrupted = run(folder, *train, "parts")
    assert interrupted.returncode == 130
    assert (
        f"Run the same command to continue:\n  contstim {' '.join(train)} parts"
        in interrupted.stderr
    )
    assert "Traceback" not in interrupted.stderr
    assert (folder / "parts" / "checkpoint.safetensors").exists()
    assert not (folder / "parts" / "training.json").exists()
    for out in ("parts", "whole"):
        result = run(folder, *train, out, "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    resumed_weights, expected_weights = (
        safetensors.torch.load_file(folder / out / "model.safetensors")
        for out in ("parts", "whole")
    )
    assert all(
        torch.equal(resumed_weights[name], expected_weights[name]) for name in expected_weights
    )
