"""Tables on the terminal, and messages about long work where standard error is none."""

from __future__ import annotations

import time

import pytest

from contstim.cli import output as progress_module
from contstim.cli.output import ProgressBars


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


def test_at_most_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as reporter:
        for done in range(9):
            reporter.progress("work", done, 9)
    assert capsys.readouterr().err == ""
    assert progress_module._SECONDS_PER_LINE == 60
