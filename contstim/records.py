"""What was run: a JSON record beside every output, so that no number travels without its origin."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from contstim.files import is_device, write_text
from contstim.version import __version__

_LIBRARIES = (
    "numpy",
    "scipy",
    "statsmodels",
    "matplotlib",
    "kenlm",
    "ortools",
    "nltk",
    "pyarrow",
    "tokenizers",
    "torch",
    "transformers",
)


def record_path(output: Path | str) -> Path:
    """Where the record of an output file stands: `scores.csv` has `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


def write_record(output: Path | str, **facts: Any) -> Path:
    """Write the command, the versions and the given facts (seed, conventions, counts) as JSON.

    The record holds no times, so that the same run gives the same bytes. Beside a device, such as
    `/dev/null`, nothing is written.

    Raises:
        InputError: the record cannot be written.
    """
    path = record_path(output)
    if is_device(output):
        return path
    write_text(path, _record(facts))
    return path


def write_private_record(output: Path | str, **facts: Any) -> Path:
    """The same, to be read by its owner alone: for commands that were told a secret.

    Raises:
        InputError: the record cannot be written.
    """
    path = record_path(output)
    if not is_device(output):
        write_text(path, _record(facts), private=True)
    return path


def _record(facts: dict[str, Any]) -> str:
    return json.dumps({**provenance(), **facts}, indent=2, ensure_ascii=False) + "\n"


def provenance() -> dict[str, Any]:
    """The command, its program without a folder, and the versions of everything that computes."""
    program = Path(sys.argv[0])
    # `python -m contstim` runs .../contstim/__main__.py: the folder names the program
    name = program.parent.name if program.name == "__main__.py" else program.name
    # From the metadata of what is installed, without importing any of it
    versions = {name: metadata.version(name) for name in _LIBRARIES}
    return {
        "command": [name, *sys.argv[1:]],
        "versions": {
            "contstim": __version__,
            "python": platform.python_version(),
            **versions,
        },
    }
