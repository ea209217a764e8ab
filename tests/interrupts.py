"""Helpers for tests that interrupt or kill a running program."""

import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path


def hear_interrupts() -> None:
    """Make a new process end at Ctrl-C; pass this function as `preexec_fn`.

    Background jobs of a shell ignore Ctrl-C, and so do the processes that they start.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_rows(table: str, store: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a running process has written rows to a table of its store."""
    deadline = time.monotonic() + 60
    while not has_rows(table, store):
        assert process.poll() is None, "finished before it could be interrupted"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def has_rows(table: str, store: Path) -> bool:
    """Return whether a table has rows.

    The running process locks its store, so a copy is read.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / store.name
        try:
            for suffix in ("", "-wal"):
                shutil.copy(f"{store}{suffix}", f"{copy}{suffix}")
            with closing(sqlite3.connect(copy)) as connection:
                return bool(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except (FileNotFoundError, sqlite3.OperationalError):  # the table does not exist yet
            return False
