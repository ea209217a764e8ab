"""A program that outlives the driver (the process that started Ray) and kills Ray's processes.

The driver runs the program as a script. The argument of the script is a mark, a random text that
identifies the driver. The program does not import contstim, because this import would delay the
start. If the standard input of the program ends without the word `done`, the driver has died. The
program then kills two kinds of processes:

* Processes with the mark in an environment variable, which the driver's child processes inherit.
* Processes that write to the folder of the Ray session. Some of them have no mark, because they
  overwrite their environment. The driver sends the path of this folder as a line of standard input.

On systems without /proc the program does nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

VARIABLE = "CONTSTIM_STARTED_BY"
DONE = b"done"

_EMPTY_CHECKS = 5  # number of consecutive checks without a process after which the program exits
_PAUSE = 0.2  # seconds between two checks
_CHECKS = 300  # maximum number of checks


def belonging(mark: str, folder: str) -> list[int]:
    """Return the numbers of this user's processes that have the mark or write into the folder."""
    marked = f"{VARIABLE}={mark}".encode()
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
            variables = (process / "environ").read_bytes().split(b"\0")
            if marked in variables or (folder and _writes_into(process, folder)):
                processes.append(int(process.name))
    return processes


def _writes_into(process: Path, folder: str) -> bool:
    for opened in (process / "fd").iterdir():
        if str(opened.readlink()).startswith(f"{folder}/"):
            lines = (process / "fdinfo" / opened.name).read_text().splitlines()
            # The flags are octal, see proc(5)
            (flags,) = (line.split()[1] for line in lines if "flags:" in line)
            if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                return True
    return False


def main() -> None:
    """Wait until the driver ends. If it died, kill the remaining processes of Ray."""
    *folders, last = sys.stdin.buffer.read().split(b"\n")
    if last == DONE:
        return
    folder = os.fsdecode(folders[0]) if folders else ""
    empty_checks = 0
    for _ in range(_CHECKS):
        remaining = belonging(sys.argv[1], folder)
        # A single check may miss a process that is just starting
        empty_checks = 0 if remaining else empty_checks + 1
        if empty_checks == _EMPTY_CHECKS:
            return
        for process in remaining:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main()
