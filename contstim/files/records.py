"""Records of outputs. A record is a JSON file that describes how an output was made."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError
from contstim.files.documents import FORMAT, read_json_object, refuse_other_format, write_json
from contstim.files.files import checksum, files_of, is_device
from contstim.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pydantic import TypeAdapter

_LIBRARIES = """
accelerate bitsandbytes numpy scipy statsmodels matplotlib kenlm ortools nltk pyarrow tokenizers
torch transformers
""".split()
_command: ContextVar[tuple[str, ...] | None] = ContextVar("command", default=None)


def record_path(output: Path | str) -> Path:
    """Return the path of the record of an output, such as `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record of how an output was made, stored as a JSON file next to the output.

    Attributes:
        path: path of the record. Paths in the record are relative to the record's folder, so that
            users can move this folder.
        format: format number of the record and of its output.
        step: name of the step that wrote the output, such as `score`; empty if no step wrote it.
        step_version: version of the step. It changes if the step's results for the same inputs
            change.
        options: options that affect the results and differ from the defaults.
        commits: name of each model from the Hugging Face hub → commit.
        inputs: path of each file and folder that was read → checksum.
        outputs: path of each file and folder that was written → checksum.
        files: path of each file in written folders → checksum.
        seconds: duration of the step.
        complete: False if the step produced fewer results than requested.
        date: date and time, UTC.
        versions: versions of contstim, Python and libraries.
        facts: further entries, such as the seed, scoring conventions of models, and counts.
    """

    path: Path
    format: int = FORMAT
    step: str = ""
    step_version: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    complete: bool = True
    command: list[str] = field(default_factory=list)
    date: str = ""
    environment: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        path: Path,
        *,
        inputs: Mapping[str, str],
        outputs: Iterable[Path | str],
        facts: Mapping[str, Any],
        **about: Any,
    ) -> Record:
        """Make a record with the current date and the checksums of the outputs.

        `inputs` are checksums computed before the run. The entry `to_edit` of `facts` names files
        that users edit; checksums of folders ignore these files.

        Raises:
            InputError: if a file cannot be read.
        """
        folder, output_paths = path.parent, [Path(output) for output in outputs]
        folder_files = [
            output / name
            for output in output_paths
            if output.is_dir()
            for name in files_of(output)
            if name not in facts.get("to_edit", ())
        ]
        return cls(
            path=path,
            inputs=dict(inputs),
            outputs=checksums(output_paths, folder, facts.get("to_edit", ())),
            files=checksums(folder_files, folder),
            facts=dict(facts),
            **provenance(),
            **about,
        )

    def write(self, *, private: bool = False) -> None:
        """Write the record; if it is private, only the owner may read it.

        Raises:
            InputError: if the file cannot be written.
        """
        write_json(self.path, self.content(), private=private)

    def content(self) -> dict[str, Any]:
        """Return the JSON object of the record: its fields and facts, without `path`.

        Empty fields are omitted, except `inputs` and `outputs`. If no step wrote the record,
        `step_version`, `seconds` and `complete` are also omitted.
        """
        of_steps = () if self.step else ("step_version", "seconds", "complete")
        left_out = {"path", "facts", *of_steps}
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        stored = {
            n: v for n, v in values.items() if v not in ({}, [], "") or n in ("inputs", "outputs")
        }
        return {**stored, **self.facts}

    @classmethod
    def from_file(cls, path: Path) -> Record | None:
        """Read a record; return None if it is missing or damaged.

        Raises:
            InputError: if the record has the format of another version of contstim.
        """
        try:
            content = read_json_object(path)
        except ContstimError:
            return None
        refuse_other_format(path, content)
        try:
            names = {field.name for field in fields(cls)} - {"path", "facts"}
            values = {name: content.pop(name) for name in names if name in content}
            values |= {"path": path, "facts": content}
            record: Record = _validator().validate_python(values)
        except ValueError:  # pydantic's errors are of this class, too
            return None
        return record


@cache
def _validator() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)  # cached, because it is slow


def write_record(
    output: Path | str,
    inputs: Iterable[Path | str | None] = (),
    outputs: Iterable[Path | str] | None = (),
    /,
    **facts: Any,
) -> Path:
    """Write the record of an output that was not made by a step; return the path of the record.

    Args:
        output: output file, or common beginning of the paths of several output files. Devices get
            no record.
        inputs: files and folders that were read. None, standard input (`-`), devices and removed
            files are ignored.
        outputs: further output files, such as a certificate. If `outputs` is None, the record has
            no checksums of outputs. Use None for a database, because its content still changes.
        facts: further entries of the record.

    Raises:
        InputError: if the record cannot be written, or a file cannot be read.
    """
    path = record_path(output)
    if not is_device(output):
        output_paths = () if outputs is None else (output, *outputs)
        input_paths = (p for p in inputs if p is not None and str(p) != "-")
        input_checksums = checksums(input_paths, path.parent)
        Record.of(path, inputs=input_checksums, outputs=output_paths, facts=facts).write()
    return path


def checksums(
    paths: Iterable[Path | str], folder: Path, to_edit: Collection[str] = ()
) -> dict[str, str]:
    """Return the checksum of each path: path relative to `folder` → checksum.

    Missing paths and devices are ignored. Checksums of folders ignore the files that `to_edit`
    names, because users may edit these files.
    """
    existing = [path for path in map(Path, paths) if path.exists() and not is_device(path)]
    return {path_from(folder.resolve(), p.resolve()): checksum(p, to_edit) for p in existing}


def path_from(folder: Path, path: Path) -> str:
    """Return a path relative to a folder; return a path on another drive (Windows) unchanged."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return path.as_posix()


@contextmanager
def recorded_as(command: Sequence[str]) -> Iterator[None]:
    """Within the `with` statement, store `command` instead of the command line in all records."""
    token = _command.set(tuple(command))
    try:
        yield
    finally:
        _command.reset(token)


def provenance() -> dict[str, Any]:
    """Return a record's fields about the current run: command, date, machine and versions."""
    program = Path(sys.argv[0])
    # `python -m contstim` runs contstim/__main__.py
    name = program.parent.name if program.name == "__main__.py" else program.name
    return {
        "format": FORMAT,
        "command": list(_command.get() or (name, *sys.argv[1:])),
        "date": now(),
        "environment": environment(),
        "versions": versions(),
    }


def now() -> str:
    """Return the date and time in UTC, to the second.

    For reproducible outputs, the environment variable SOURCE_DATE_EPOCH (seconds since 1970)
    replaces the current time; see reproducible-builds.org.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, Any]:
    """Describe the machine: system, processors, and GPUs if PyTorch is loaded."""
    machine: dict[str, Any] = {
        "system": platform.system(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }
    # Do not import PyTorch for this, because it takes seconds
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        count = torch.cuda.device_count()
        machine["gpus"] = [torch.cuda.get_device_name(number) for number in range(count)]
    return machine


def versions() -> dict[str, str]:
    """Return the versions of contstim, Python, and libraries that may affect results."""
    libraries = {name: _library_version(name) for name in _LIBRARIES}
    named = {"contstim": __version__, "python": platform.python_version(), **libraries}
    return {name: version for name, version in named.items() if version is not None}


@cache
def _library_version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None  # optional libraries may be missing


def total_memory() -> int | None:
    """Return the memory of this machine in bytes; None if unknown, as on Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
