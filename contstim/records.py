"""What was run: a JSON record beside every output, so that no number travels without its origin."""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files import is_device, write_text
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    write_text(path, json.dumps({**provenance(), **facts}, indent=2, ensure_ascii=False) + "\n")
    return path


def require_log_probabilities(scores: Path | str, models: Iterable[str], purpose: str) -> None:
    """Refuse a table of scores whose record says that they are not log-probabilities.

    Args:
        scores: the table; without a record beside it nothing is known, and nothing refused.
        models: whose columns are to be used.
        purpose: what needs log-probabilities; a noun phrase that begins a sentence.

    Raises:
        ModelError: the scores of a model are something else; says what.
        InputError: the record cannot be read.
    """
    from contstim.models.base import Convention

    path = record_path(scores)
    try:
        told = dict(json.loads(path.read_text(encoding="utf-8"))).get("models", {})
        known = {model: Convention(**told[model]) for model in models if model in told}
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is not the record of a table of scores: {error}. Score the sentences again, "
            f"or move the record away."
        ) from error
    for model, convention in known.items():
        convention.require_log_probability(model, purpose)


def provenance() -> dict[str, Any]:
    """The command and the versions of everything that computes."""
    versions = {name: metadata.version(name) for name in _LIBRARIES}
    return {
        "command": _command(),
        "versions": {
            "contstim": __version__,
            "python": platform.python_version(),
            **versions,
        },
    }


def _command() -> list[str]:
    """The program that runs, without its folder, and its arguments."""
    program = Path(sys.argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return [name, *sys.argv[1:]]
