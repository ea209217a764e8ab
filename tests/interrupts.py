"""Programs that a test ends with Ctrl-C or a kill, in the midst of their work."""

import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path


def hear_interrupts() -> None:
    """Given to a new process as `preexec_fn`, have it end at Ctrl-C.

    A shell's background jobs ignore Ctrl-C, and so would all processes that tests start there.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_rows(table: str, store: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process at work has kept rows in a table of its store."""
    deadline = time.monotonic() + 60
    while not has_rows(table, store):
        assert process.poll() is None, "finished before it could be ended"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_rows(table: str, store: Path) -> bool:
    """Whether a kill at this moment would leave rows in a table.

    The process at work holds the lock of its store, so that a copy is read.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / store.name
        try:
            for end in ("", "-wal"):
                shutil.copy(f"{store}{end}", f"{copy}{end}")
            with closing(sqlite3.connect(copy)) as connection:
                return bool(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except (FileNotFoundError, sqlite3.OperationalError):  # there is no table yet
            return False
