"""What long work tells where standard error is no terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from contstim.cli import progress as progress_module
from contstim.cli.progress import (
    progress_bars,
    reading_progress,
    scoring_progress,
    training_progress,
)
from contstim.models.ngram.adapter import NgramModel
from contstim.models.training.loop import Progress
from contstim.sentence import Sentence


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_SECONDS_PER_LINE", 0.02)


def wait_for(captured: pytest.CaptureFixture[str], text: str) -> str:
    """What was printed, as soon as it holds a text."""
    said = ""
    for _ in range(500):
        said += captured.readouterr().err
        if text in said:
            return said
        time.sleep(0.02)
    raise AssertionError(f"{text!r} is not in {said!r}")


@pytest.mark.usefixtures("_often")
def test_training_tells_losses_and_the_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress(quiet=False) as progress:
        progress(Progress(30, 120, 2, 6, 3.5, 4.0), "LSTM")
        said = wait_for(capsys, "LSTM, epoch 2 of 6, loss 3.500, perplexity 33.1 (validation 54.6)")
    assert "30 of 120 (25 %), 0 min, about 0 min left\n" in said


@pytest.mark.usefixtures("_often")
def test_scoring_tells_each_model_until_it_is_done(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (NgramModel(trained / "2gram.arpa", name=name) for name in ("a", "b[/v2]"))
    with scoring_progress(8, quiet=False) as progress:
        progress(first, 8)
        progress(second, 2)
        said = wait_for(capsys, "b[/v2], 2 of 8 (25 %)")
    assert "a, 8 of 8" not in said


@pytest.mark.usefixtures("_often")
def test_reading_tells_how_many_sentences(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "_SENTENCES_PER_UPDATE", 2)
    sentences = iter([Sentence.parse("a b")] * 9)
    reading = reading_progress(sentences, quiet=False)
    for _ in range(5):
        next(reading)
    wait_for(capsys, "4 sentences, 0 min\n")
    assert len(list(reading)) == 4


@pytest.mark.usefixtures("_often")
def test_quiet_is_quiet_and_nothing_is_told_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (True, False):
        with progress_bars(quiet=quiet) as bars:
            bars.add_task("work", total=9)
            time.sleep(0.1)
        told = capsys.readouterr().err
        assert ("work, 0 of 9 (0 %)" in told) is not quiet
        time.sleep(0.1)
        assert capsys.readouterr().err == ""


def test_at_most_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars(quiet=False) as bars:
        task = bars.add_task("work", total=9)
        for _ in range(9):
            bars.advance(task)
    assert capsys.readouterr().err == ""
    assert progress_module._SECONDS_PER_LINE == 60
