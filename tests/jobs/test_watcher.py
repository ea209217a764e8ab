"""What a driver that was killed leaves behind is ended; what it has not started is left alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.jobs import watcher

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

_IDLE = "print('ready', flush=True); import time; time.sleep(600)"


def idler(code: str = _IDLE, *, mark: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, watcher.VARIABLE: mark}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    (tmp_path / "log").write_text("x")
    started = {
        "marked": idler(mark="ours"),
        "writer": idler(f"f = open({str(tmp_path / 'log')!r}, 'a'); {_IDLE}"),
        "reader": idler(f"f = open({str(tmp_path / 'log')!r}); {_IDLE}"),
        "stranger": idler(mark="theirs"),
    }
    yield started
    for process in started.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("done", [False, True])
def test_a_driver_that_dies_takes_its_own_processes_along(
    processes: dict[str, subprocess.Popen[bytes]], tmp_path: Path, done: bool
) -> None:
    """Unless it has said that it is done."""
    program = subprocess.Popen(
        [sys.executable, watcher.__file__, "ours"], stdin=subprocess.PIPE, start_new_session=True
    )
    program.communicate(f"{tmp_path}\n".encode() + watcher.DONE * done, timeout=60)
    assert program.returncode == 0
    ended = {name for name, process in processes.items() if process.poll() is not None}
    assert ended == (set() if done else {"marked", "writer"})


def test_a_driver_that_dies_before_naming_it(processes: dict[str, subprocess.Popen[bytes]]) -> None:
    subprocess.run([sys.executable, watcher.__file__, "ours"], input=b"", check=True, timeout=60)
    assert processes["marked"].wait(10) == -signal.SIGKILL
    assert processes["writer"].poll() is None
