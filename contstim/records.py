"""What was run: a JSON record beside every output, so that no number travels without its origin."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from contstim.version import __version__

_LIBRARIES = ("numpy", "kenlm", "ortools", "nltk", "pyarrow", "torch", "transformers")


def record_path(output: Path | str) -> Path:
    """Where the record of an output file stands: `scores.csv` has `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


def write_record(output: Path | str, **facts: Any) -> Path:
    """Write the command, the versions and the given facts (seed, conventions, counts) as JSON.

    The record holds no times, so that the same run gives the same bytes.
    """
    record = {
        "command": ["contstim", *sys.argv[1:]],
        "versions": {
            "contstim": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in _LIBRARIES},
        },
        **facts,
    }
    path = record_path(output)
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
