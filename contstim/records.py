"""What was run: a JSON record beside every output, so that no number travels without its origin."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from contstim.files import write_text
from contstim.version import __version__

_LIBRARIES = ("numpy", "kenlm", "ortools", "nltk", "pyarrow", "scipy", "torch", "transformers")


def record_path(output: Path | str) -> Path:
    """Where the record of an output file stands: `scores.csv` has `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


def write_record(output: Path | str, **facts: Any) -> Path:
    """Write the command, the versions and the given facts (seed, conventions, counts) as JSON.

    The record holds no times, so that the same run gives the same bytes.
    """
    record = {
        "command": _command(),
        "versions": {
            "contstim": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in _LIBRARIES},
        },
        **facts,
    }
    path = record_path(output)
    write_text(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return path


def _command() -> list[str]:
    """The program that runs, without its folder, and its arguments."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return [name, *sys.argv[1:]]
