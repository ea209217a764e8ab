"""Record of a run: JSON beside every output, so that no number travels without its origin."""

from __future__ import annotations

import json
import os
import platform
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.checksums import checksum
from contstim.documents import read_json_object
from contstim.files import is_device, write_text
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_LIBRARIES = (
    "accelerate",
    "bitsandbytes",
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


_command: ContextVar[tuple[str, ...] | None] = ContextVar("command", default=None)


def record_path(output: Path | str) -> Path:
    """Path of the record of an output file: `scores.csv` has `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


def write_record(
    output: Path | str,
    inputs: Iterable[Path | str | None] = (),
    outputs: Iterable[Path | str] | None = (),
    private: bool = False,
    /,
    **facts: Any,
) -> Path:
    """Write how an output came about as JSON beside it, when all files that it tells of are there.

    The command, date, environment and versions, the checksums of what was read and written, and the
    facts. All paths are relative to the record's folder, so that a folder can be handed on. Beside
    a device, such as `/dev/null`, nothing is written.

    Args:
        output: the file, or the stem of several.
        inputs: files and folders that were read; None, the standard input (`-`), devices and what
            is gone by now have no checksum and are left out.
        outputs: further files that were written with it, such as a certificate; None where the
            output goes on changing, as a database does, and has no checksum.
        private: whether the record is for its owner alone, because a command was told a secret.
        facts: seed, conventions, counts; `to_edit` names files of a folder that are there to be
            edited, and do not count in its checksum.

    Raises:
        InputError: the record cannot be written, or a file cannot be read.
    """
    path = record_path(output)
    if is_device(output):
        return path
    entries = {
        # A dictionary, because a file may be given twice
        "inputs": _checksums((p for p in inputs if p is not None and str(p) != "-"), path.parent),
        "outputs": _checksums(
            () if outputs is None else (output, *outputs), path.parent, facts.get("to_edit", ())
        ),
    }
    record = {**provenance(), **entries, **facts}
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    write_text(path, text, private=private)
    return path


def complete_record(
    output: Path | str, inputs: Iterable[Path | str | None], outputs: Iterable[Path | str]
) -> None:
    """Add checksums to a record whose writer did not know all files; see `write_record`.

    Raises:
        InputError: the record or a file cannot be read, or the record cannot be written.
    """
    path = record_path(output)
    record = read_json_object(path)
    record["inputs"] = _checksums(
        (p for p in inputs if p is not None and str(p) != "-"), path.parent
    )
    record["outputs"] = _checksums(outputs, path.parent)
    write_text(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _checksums(
    paths: Iterable[Path | str], folder: Path, to_edit: Collection[str] = ()
) -> dict[str, str]:
    checksums = {}
    for path in map(Path, paths):
        if path.exists() and not is_device(path):
            checksums[path_from(folder.resolve(), path.resolve())] = checksum(path, to_edit)
    return checksums


def path_from(folder: Path, path: Path) -> str:
    """A file's path from a folder; its whole path where it lies on another drive of Windows."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return path.as_posix()


@contextmanager
def recorded_as(command: Sequence[str]) -> Iterator[None]:
    """Records that are written meanwhile name this command, and not that of the process."""
    token = _command.set(tuple(command))
    try:
        yield
    finally:
        _command.reset(token)


def provenance() -> dict[str, Any]:
    """The command, its program without a folder, date, environment and versions.

    Where the environment variable SOURCE_DATE_EPOCH is set, it is the date, in seconds since 1970,
    as builds that are to be the same twice have it (reproducible-builds.org).
    """
    program = Path(sys.argv[0])
    # `python -m contstim` runs .../contstim/__main__.py: the folder names the program
    name = program.parent.name if program.name == "__main__.py" else program.name
    return {
        "command": list(_command.get() or (name, *sys.argv[1:])),
        "date": now(),
        "environment": environment(),
        "versions": versions(),
    }


def now() -> str:
    """Date and time in UTC, to the second, or that of SOURCE_DATE_EPOCH."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, Any]:
    """The machine: its system, processors, and GPUs where PyTorch was used."""
    machine: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }
    # Asked only where something has loaded PyTorch, which takes seconds
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        count = torch.cuda.device_count()
        machine["gpus"] = [torch.cuda.get_device_name(number) for number in range(count)]
    return machine


def versions() -> dict[str, str]:
    """Of contstim, Python and every library that computes and is installed."""
    installed = {name: _installed(name) for name in _LIBRARIES}
    return {
        "contstim": __version__,
        "python": platform.python_version(),
        **{name: version for name, version in installed.items() if version is not None},
    }


@cache
def _installed(library: str) -> str | None:
    """The version of a library, from the metadata of what is installed, without importing it."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None  # of an extra, such as kenlm
