"""A program that outlives a driver to end the processes which the driver has started.

Run as a script with a mark; it imports nothing of contstim, so that it is ready at once. Processes
are known by an environment variable that holds the mark, which every process hands down to those
that it starts, and, since some overwrite their environment with a title, by the files that they
write: the driver names their folder on a line of standard input. When that ends without the word
`done`, the driver has died in whatever way, and all those processes are killed. On systems without
/proc it does nothing.
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

_CALM = 5  # looks in a row that find nobody, before the watcher believes it
_PAUSE = 0.2  # seconds between two looks
_LOOKS = 300


def belonging(mark: str, folder: str) -> list[int]:
    """The processes of this user that carry a mark or write files of a folder."""
    marked = f"{VARIABLE}={mark}".encode()
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            variables = (process / "environ").read_bytes().split(b"\0")
            if marked in variables or (folder and _writes_into(process, folder)):
                processes.append(int(process.name))
    return processes


def _writes_into(process: Path, folder: str) -> bool:
    for opened in (process / "fd").iterdir():
        if str(opened.readlink()).startswith(f"{folder}/"):
            lines = (process / "fdinfo" / opened.name).read_text().splitlines()
            # Flags are octal; masked, they tell how the file was opened (proc(5)).
            (flags,) = (line.split()[1] for line in lines if "flags:" in line)
            if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                return True
    return False


def main() -> None:
    """Wait for the driver's end, and kill what it leaves behind."""
    *folders, last = sys.stdin.buffer.read().split(b"\n")
    if last == DONE:
        return
    folder = os.fsdecode(folders[0]) if folders else ""
    calm = 0
    for _ in range(_LOOKS):
        left = belonging(sys.argv[1], folder)
        # A process that is just being started may escape a single look.
        calm = 0 if left else calm + 1
        if calm == _CALM:
            return
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main()
