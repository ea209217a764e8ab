"""State of each stage: whether it is done and up to date.

Each stage has a record next to its output. The record contains checksums of inputs and outputs, the
options that differ from the defaults, and the version of the step. `examine` compares the record
with the current files and options. A stage stays up to date if only the modification time of a file
changes. It also stays up to date if a new version of contstim adds an option that is not set.
"""

from __future__ import annotations

import json
import os
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.filesize import decimal

from contstim.errors import ContstimError
from contstim.files.documents import read_json_object
from contstim.files.files import checksum, files_of, lock_holder, path_inside
from contstim.files.records import Record, path_from
from contstim.files.tables import join_names
from contstim.steps.step import fields_of
from contstim.study.study import BEGUN, LOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.study.study import Study, StudyStage

State = Literal["done", "stale", "interrupted", "not done", "waits", "running"]
"""State of a stage.

`waits` means that the stage is up to date, but reads files of a stage that is not done. `examine`
considers only a single stage, and never returns `waits` or `running`.
"""


@dataclass(frozen=True)
class StageState:
    """State of a stage, with the reasons for it.

    Attributes:
        reasons: why the stage is not done, or which process runs it.
        record: record of the stage's last run without an error, if any.
        edited: output files that were changed after this run.
    """

    stage: StudyStage
    state: State
    reasons: tuple[str, ...] = ()
    record: Record | None = None
    edited: tuple[str, ...] = ()

    @property
    def because(self) -> str:
        """The reasons in one line, followed by notes on too few items and on edited files."""
        missing = self.record is not None and not self.record.complete
        notes = ["fewer items were found than requested"] if missing else []
        return "; ".join(
            (*self.reasons, *notes, *(f"{name} was changed by hand" for name in self.edited))
        )

    @property
    def row(self) -> tuple[str, str, str, str, str, str]:
        """Name of the stage, state, date of the last run (UTC), seconds, size and reasons.

        The current folder must be the study's folder.
        """
        date, seconds, size = "", "", ""
        if self.record is not None:
            date = self.record.date.replace("T", " ").removesuffix("Z")
            seconds, size = f"{self.record.seconds:,.1f}", size_of(self.stage.writes)
        return (self.stage.name, self.state, date, seconds, size, self.because)


def stage_states(study: Study) -> list[StageState]:
    """Return the states of all stages, in order."""
    with chdir(study.folder):
        states: list[StageState] = []
        holder = lock_holder(LOCK)
        unsettled: dict[Path, str] = {}  # output of a stage that is not done → name of the stage
        for stage in study.stages:
            state = examine(stage)
            read = (path for read_path in stage.reads for path in (read_path, *read_path.parents))
            waits_for = sorted({unsettled[path] for path in read if path in unsettled})
            if state.state == "interrupted" and holder is not None:
                # The process with the lock works on the first of the stages that have begun
                state, holder = replace(state, state="running", reasons=(holder,)), None
            elif state.state == "done" and waits_for:
                # The stage may become stale when the earlier stages run
                state = replace(state, state="waits", reasons=(f"{', '.join(waits_for)} first",))
            states.append(state)
            if state.state != "done":
                unsettled |= dict.fromkeys(stage.writes, stage.name)
        return states


def examine(stage: StudyStage) -> StageState:
    """Compare the current inputs, options and step version of a stage with its record.

    The current folder must be the study's folder.
    """
    record, begun = record_of(stage), stored_basis(stage)
    if begun is not None:
        now = basis_of(stage)
        changes = _changes(stage, now, begun) if begun.keys() == now.keys() else ()
        reasons = ("a run ended before the stage was done", *changes)
        return StageState(stage, "interrupted", reasons, record)
    if record is None:
        path = stage.step.record_path()
        damaged = path is not None and path.exists() and Record.from_file(path) is None
        return StageState(stage, "not done", (f"{path} cannot be read",) if damaged else ())
    basis = {
        "options": record.options,
        "inputs": {_name(Path(n)): v for n, v in with_local_names(record, record.inputs).items()},
        "version": record.step_version,
        "commits": record.commits,
    }
    written = _checksums(stage.writes, stage.step.texts_to_edit())
    recorded = with_local_names(record, record.outputs)
    reasons = (
        *_changes(stage, basis_of(stage), basis),
        *(f"{name} is missing" for name, checked in written.items() if not checked),
    )
    edited = [name for name, checked in written.items() if checked not in ("", recorded.get(name))]
    if any(Path(name).is_dir() for name in edited):
        # Instead of a folder, name the files in it that were changed, added or removed
        files = [path / name for path in stage.writes if path.is_dir() for name in files_of(path)]
        inside = _checksums(file for file in files if file not in stage.step.texts_to_edit())
        recorded = with_local_names(record, record.files)
        differing = {n for n in (*inside, *recorded) if inside.get(n) != recorded.get(n)}
        edited = sorted({*differing, *(name for name in edited if Path(name).is_file())})
    return StageState(stage, "stale" if reasons else "done", reasons, record, tuple(edited))


def record_of(stage: StudyStage) -> Record | None:
    """Return the record of a stage.

    Return None if the record is missing or damaged, or if another command wrote it.
    """
    path = stage.step.record_path()
    record = None if path is None else Record.from_file(path)
    return record if record is not None and record.step == stage.step.name else None


def basis_of(stage: StudyStage) -> dict[str, Any]:
    """Return everything that determines the result of a stage, in the format of its record."""
    return {
        "options": stage.step.options(),
        "inputs": _checksums((*stage.reads, *stage.step.texts_to_edit())),
        "version": stage.step.version,
        "commits": stage.step.commits(),
    }


def begun_path(stage: StudyStage) -> Path:
    """Return the path of the file that exists while a stage has begun and is not done."""
    # The name of a stage can contain the name of a model. Names of models can have spaces and
    # dashes, but no plus sign, so a plus sign can replace each space
    return path_inside(BEGUN, f"{stage.name.replace(' ', '+')}.json")


def stored_basis(stage: StudyStage) -> dict[str, Any] | None:
    """Return the value of `basis_of` that was stored when an unfinished stage began.

    Return None for a stage that has not begun or is done. If the stored file is damaged, return an
    empty dictionary.
    """
    path = begun_path(stage)
    try:
        return read_json_object(path) if path.is_file() else None
    except ContstimError:
        return {}


def with_local_names(record: Record, checksums: Mapping[str, str]) -> dict[str, str]:
    """Return each recorded file's path (relative to the current folder) and checksum."""
    folder = record.path.parent
    return {Path(os.path.normpath(folder / name)).as_posix(): v for name, v in checksums.items()}


def _name(path: Path) -> str:
    """Make a path, which may be absolute or a link, relative to the current folder."""
    return path_from(Path.cwd(), path.resolve())


def _checksums(paths: Iterable[Path], texts: Sequence[Path] = ()) -> dict[str, str]:
    """Return name → checksum of each path; the checksum is empty if the path does not exist.

    `texts` are files that users may edit. Checksums of folders ignore these files.
    """
    checksums = {}
    for path in paths:
        ignored = [text.relative_to(path).as_posix() for text in texts if text.is_relative_to(path)]
        checksums[_name(path)] = checksum(path, ignored) if path.exists() else ""
    return checksums


def _changes(
    stage: StudyStage, now: Mapping[str, Any], earlier: Mapping[str, Any]
) -> Iterator[str]:
    defaults = {field.name: field.default for field in fields_of(type(stage.step))}
    for name in dict.fromkeys((*earlier["options"], *now["options"])):
        old, new = (basis["options"].get(name, defaults.get(name)) for basis in (earlier, now))
        if name == "models" and isinstance(old, list) and isinstance(new, list):
            yield from (f"without the model {model}" for model in old if model not in new)
            yield from (f"with the model {model}" for model in new if model not in old)
            if old != new and {*old} == {*new}:
                yield "another order of the models"
        elif old != new:
            yield f"{name.replace('_', ' ')}: {_format_value(old)} → {_format_value(new)}"
    old, new = earlier["inputs"], now["inputs"]
    differing = [name for name, checked in new.items() if old.get(name, "") != checked]
    for change, names in (
        ("changed", [name for name in differing if new[name]]),
        ("missing", [name for name in differing if not new[name]]),
        ("no longer read", [name for name in old if name not in new]),
    ):
        if names:
            yield f"{change}: {join_names(names, 3)}"
    if earlier["version"] != now["version"]:
        yield "this version of contstim computes other results"
    for name, commit in now["commits"].items():
        if earlier["commits"].get(name) != commit:
            yield f"{name} {earlier['commits'].get(name, '(none)')} → {commit}"


def _format_value(value: object) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def size_of(paths: Iterable[Path]) -> str:
    """Return the total size of files and folders, such as `1.4 MB`."""
    files = (path / name for path in paths for name in (files_of(path) if path.is_dir() else [""]))
    return decimal(sum(file.stat().st_size for file in files if file.is_file()))
