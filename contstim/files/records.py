"""Record of a run: JSON beside every output, so that no number travels without its origin."""

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
    """Path of the record of an output file: `scores.csv` has `scores.csv.meta.json`."""
    return Path(f"{output}.meta.json")


@dataclass(frozen=True, kw_only=True)
class Record:
    """Record of how an output came about, as JSON beside it.

    Attributes:
        path: of the record; paths in it are relative to its folder, so that it can be handed on.
        format: of the record and of what it is of.
        step: name of the step that wrote the output; empty for none.
        step_version: of the step, raised when it computes other results of the same files.
        options: choices that are not defaults and that results depend on.
        commits: of models on the Hugging Face hub, by their names there.
        inputs: checksum of each file and folder that was read.
        outputs: checksum of each file and folder that was written.
        files: checksum of each file in folders that were written, by which changes are named.
        seconds: how long it took.
        warnings: what the step warned of.
        complete: False where not all that was wanted could be found.
        command: as it was given.
        date: when it was done, UTC.
        environment: the machine.
        versions: of contstim, Python and libraries.
        facts: seed, conventions, counts: what the step found out.
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
        """A record of now, with the checksums of files.

        Args:
            path: of the record.
            inputs: checksums of files and folders that were read, from before.
            outputs: files and folders that were written.
            facts: `to_edit` names files of a folder that are there to be edited, and do not count
                in its checksum.
            about: further fields.

        Raises:
            InputError: a file cannot be read.
        """
        folder, written = path.parent, [Path(each) for each in outputs]
        inside = [
            each / name
            for each in written
            if each.is_dir()
            for name in files_of(each)
            if name not in facts.get("to_edit", ())
        ]
        return cls(
            path=path,
            inputs=dict(inputs),
            outputs=checksums(written, folder, facts.get("to_edit", ())),
            files=checksums(inside, folder),
            facts=dict(facts),
            **provenance(),
            **about,
        )

    def write(self, *, private: bool = False) -> None:
        """Write it, for its owner alone if it is private.

        Raises:
            InputError: it cannot be written.
        """
        write_json(self.path, self.content(), private=private)

    def content(self) -> dict[str, Any]:
        """Content as JSON has it: facts beside the fields that hold anything."""
        names = [each.name for each in fields(self) if each.name not in ("path", "facts")]
        own = {name: getattr(self, name) for name in names}
        if not self.step:
            for name in ("step_version", "seconds", "complete"):
                del own[name]
        kept = {n: v for n, v in own.items() if v not in ({}, [], "") or n in ("inputs", "outputs")}
        return {**kept, **self.facts}

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """The record at a path; None where there is none, or it is damaged.

        Raises:
            InputError: it has another format.
        """
        if not path.is_file():
            return None
        try:
            content = read_json_object(path)
        except ContstimError:
            return None
        refuse_other_format(path, content)
        try:
            names = {each.name for each in fields(cls)} - {"path", "facts"}
            own = {name: content.pop(name) for name in names if name in content}
            record: Record = _validator().validate_python({"path": path, "facts": content, **own})
        except ValueError:  # pydantic's errors are such
            return None
        return record


@cache
def _validator() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)  # made once: it takes longer than all reading


def write_record(
    output: Path | str,
    inputs: Iterable[Path | str | None] = (),
    outputs: Iterable[Path | str] | None = (),
    /,
    **facts: Any,
) -> Path:
    """Write the record of an output that no step writes, as JSON beside it; see `Record`.

    Args:
        output: the file, or the stem of several. Beside a device nothing is written.
        inputs: files and folders that were read; None, the standard input (`-`), devices and what
            is gone by now have no checksum and are left out.
        outputs: further files that were written with it, such as a certificate; None where the
            output goes on changing, as a database does, and has no checksum.
        facts: what the record says further.

    Raises:
        InputError: the record cannot be written, or a file cannot be read.
    """
    path = record_path(output)
    if not is_device(output):
        written = () if outputs is None else (output, *outputs)
        read = checksums((p for p in inputs if p is not None and str(p) != "-"), path.parent)
        Record.of(path, inputs=read, outputs=written, facts=facts).write()
    return path


def checksums(
    paths: Iterable[Path | str], folder: Path, to_edit: Collection[str] = ()
) -> dict[str, str]:
    """The checksum of each path that is there, by its path from a folder."""
    found = {}
    for path in map(Path, paths):
        if path.exists() and not is_device(path):
            found[path_from(folder.resolve(), path.resolve())] = checksum(path, to_edit)
    return found


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
    """The format, the command, its program without a folder, date, environment and versions.

    Where the environment variable SOURCE_DATE_EPOCH is set, it is the date, in seconds since 1970,
    as builds that are to be the same twice have it (reproducible-builds.org).
    """
    program = Path(sys.argv[0])
    # `python -m contstim` runs .../contstim/__main__.py: the folder names the program
    name = program.parent.name if program.name == "__main__.py" else program.name
    return {
        "format": FORMAT,
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


def total_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not tell, as Windows."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
