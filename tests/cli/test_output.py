"""Tables on the terminal, and messages about long work where standard error is none."""

from __future__ import annotations

import time

import pytest

from contstim.cli import output as progress_module
from contstim.cli.output import ProgressBars, print_rows
from contstim.models.training.loop import Progress
from contstim.steps.training import tell_training


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
    raise AssertionError(f"{text!r} is not in {said[-300:]!r}")


@pytest.mark.usefixtures("_often")
def test_training_tells_epochs_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        tell_training(reporter, "LSTM", Progress(30, 120, 2, 6, 3.5, 4.0))
        wait_for(
            capsys,
            "LSTM, 30 of 120 (25 %), epoch 2 of 6, loss 3.500, perplexity 33.1 (validation 54.6), "
            "0 min\n",
        )


@pytest.mark.usefixtures("_often")
def test_each_work_is_told_until_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        reporter.progress("a", 8, 8)
        reporter.progress("b[/v2]", 2, 8)
        said = wait_for(capsys, "b[/v2], 2 of 8 (25 %)")
    assert "a, 8 of 8" not in said


@pytest.mark.usefixtures("_often")
def test_time_left_follows_from_what_this_process_has_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: 600 of 1,000 were there before; 100 took 60 seconds, so that 300 take 180."""
    now = [0.0]
    monkeypatch.setattr(progress_module, "perf_counter", lambda: now[0])
    with ProgressBars() as reporter:
        reporter.progress("triplets", 600, 1000)
        now[0] = 60.0
        reporter.progress("triplets", 700, 1000)
        wait_for(capsys, "triplets, 700 of 1,000 (70 %), 1 min, about 3.0 min left\n")


def test_reading_tells_how_many_items_it_passes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []

    class Telling(ProgressBars):
        def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
            assert (what, total, note) == ("sentences", None, "")
            told.append(done)

    monkeypatch.setattr("contstim.reporter._ITEMS_PER_UPDATE", 4)
    assert list(Telling().reading("sentences", range(9))) == [*range(9)]
    assert told == [4, 8]


@pytest.mark.usefixtures("_often")
def test_quiet_is_quiet_and_nothing_is_told_afterwards(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (True, False):
        with ProgressBars(quiet=quiet) as reporter:
            reporter.progress("work", 0, 9)
            time.sleep(0.1)
        told = capsys.readouterr().err
        assert ("work, 0 of 9 (0 %)" in told) is not quiet
        time.sleep(0.1)
        assert capsys.readouterr().err == ""


def test_at_most_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        for done in range(9):
            reporter.progress("work", done, 9)
    assert capsys.readouterr().err == ""
    assert progress_module._SECONDS_PER_LINE == 60


def test_models_with_long_names_are_shortened_in_tables_and_sentences_never(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    sentence, model = "https://www.example.com/page is a page.", f"hf:{'organisation' * 3}/gpt2"
    print_rows(("sentence", model), [(sentence, 2)])
    above, _, below = capsys.readouterr().out.partition(f": {model}")
    assert sentence in above
    assert model not in above
    assert not below.strip()
