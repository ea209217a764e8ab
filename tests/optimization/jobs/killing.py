"""Kill a command at random moments; a program of its own, so that it can fork without threads.

Usage: python killing.py KILLS SEED STORE OUT -- ARGUMENTS OF contstim …

Everything is imported once and each command runs in a fork, which saves the start-up; the kill is a
real SIGKILL. Prints a JSON object: how many runs were killed, how many triplets each had kept, and
the exit statuses of those that came to their end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import contstim.cli

_JOBS = "contstim.optimization.jobs.triplets"
for _module in ("kenlm", "pandas", "pyarrow.csv", "rich.progress", _JOBS):
    with suppress(ModuleNotFoundError):  # kenlm is an extra
        import_module(_module)  # what commands load when they need it


def run(arguments: list[str]) -> int:
    """Start a command in a fork; the number of the process."""
    process = os.fork()
    if process:
        return process
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # its tables are not ours
    sys.argv = ["contstim", *arguments]
    try:
        contstim.cli.main()
    except SystemExit as end:
        os._exit(int(end.code or 0))
    os._exit(0)


def jobs_kept(store: Path) -> int:
    """How many jobs a dead process left in its store."""
    try:
        with sqlite3.connect(store) as connection:
            return int(connection.execute("SELECT count(*) FROM result").fetchone()[0])
    except sqlite3.OperationalError:  # killed before there were tables
        return 0
    finally:
        connection.close()


def main() -> None:
    kills, seed, store, out = int(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:5])
    arguments = sys.argv[6:]
    chance = random.Random(seed)
    start = time.monotonic()
    os.waitpid(run(arguments), 0)
    whole = time.monotonic() - start
    texts = {out.read_text()}
    kept: list[int] = []
    statuses: list[int] = []
    renewed = True
    while len(kept) < kills:
        if renewed:
            for file in store.parent.glob(f"{store.name}*"):
                file.unlink()
            out.unlink()
        process = run(arguments)
        time.sleep(chance.uniform(0, 0.8 * whole))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            kept.append(jobs_kept(store))
        else:
            statuses.append(os.WEXITSTATUS(status))
        renewed = out.exists()
        if renewed:
            texts.add(out.read_text())
    statuses.append(os.WEXITSTATUS(os.waitpid(run(arguments), 0)[1]))
    texts.add(out.read_text())
    print(json.dumps({"kept": kept, "statuses": statuses, "different": len(texts)}))


if __name__ == "__main__":
    main()
