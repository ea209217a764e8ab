"""Seconds that a bare `import contstim` and `contstim --help` take, beside Python's own start."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

CASES = {
    "python -c pass": ["-c", "pass"],
    "import contstim": ["-c", "import contstim"],
    "contstim --help": ["-m", "contstim", "--help"],
}


def seconds(arguments: list[str], repeats: int) -> float:
    """The fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    repeats = 3 if "--quick" in sys.argv else 10
    for name, arguments in CASES.items():
        print(f"{name:20} {seconds(arguments, repeats):.3f} s")
