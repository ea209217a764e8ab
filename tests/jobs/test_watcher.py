"""The watcher ends the processes of a killed driver, and no other processes."""

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


def start_idle_process(code: str = _IDLE, *, mark: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, watcher.VARIABLE: mark}
    child = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    (tmp_path / "log").write_text("x")
    process_by_name = {
        "marked": start_idle_process(mark="ours"),
        "writer": start_idle_process(f"f = open({str(tmp_path / 'log')!r}, 'a'); {_IDLE}"),
        "reader": start_idle_process(f"f = open({str(tmp_path / 'log')!r}); {_IDLE}"),
        "stranger": start_idle_process(mark="theirs"),
    }
    yield process_by_name
    for process in process_by_name.values():
        process.kill()
        process.communicate()


@pytest.mark.parametrize("done", [False, True])
def test_processes_of_a_killed_driver_are_ended(
    processes: dict[str, subprocess.Popen[bytes]], tmp_path: Path, done: bool
) -> None:
    """Processes end unless the driver has reported that it is done."""
    watcher_process = subprocess.Popen(
        [sys.executable, watcher.__file__, "ours"], stdin=subprocess.PIPE, start_new_session=True
    )
    watcher_process.communicate(f"{tmp_path}\n".encode() + watcher.DONE * done, timeout=60)
    assert watcher_process.returncode == 0
    ended_names = {name for name, process in processes.items() if process.poll() is not None}
    assert ended_names == (set() if done else {"marked", "writer"})


def test_driver_killed_before_naming_its_folder(
    processes: dict[str, subprocess.Popen[bytes]],
) -> None:
    subprocess.run([sys.executable, watcher.__file__, "ours"], input=b"", check=True, timeout=60)
    assert processes["marked"].wait(10) == -signal.SIGKILL
    assert processes["writer"].poll() is None
