"""State of each stage: whether it has been done, and still holds.

The record beside what a stage wrote has the checksums of what it read and wrote, the options that
are not the defaults, and the step's version. What the stage would read now is compared with it:
content alone counts, never the time of a file, nor a new option that nobody has set.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.errors import ContstimError
from contstim.files import checksum, files_of, path_inside
from contstim.records import Record
from contstim.steps.step import fields_of
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.study.stage import StudyStage

BEGUN = RESULTS / "begun"
"""The folder of notes on stages that have begun and are not done."""


class State(StrEnum):
    """State of a stage: whether it has been done, and still holds."""

    DONE = "done"
    STALE = "stale"
    INTERRUPTED = "interrupted"
    NOT_DONE = "not done"


@dataclass(frozen=True)
class Examination:
    """State of a stage, with the reasons for it.

    Attributes:
        stage: which.
        state: as files are now.
        reasons: why it is stale, interrupted, or not done although it was.
        record: of when it was done; None if it never was.
        edited: files that it wrote and that have been changed since.
    """

    stage: StudyStage
    state: State
    reasons: tuple[str, ...] = ()
    record: Record | None = None
    edited: tuple[str, ...] = ()


def record_of(stage: StudyStage) -> Record | None:
    """The record of a stage; None where there is none, or it is damaged, or of something else."""
    path = stage.step.record_path()
    record = None if path is None else Record.read(path)
    return record if record is not None and record.step == stage.step.name else None


def checksums(paths: Iterable[Path], texts: Sequence[Path] = ()) -> dict[str, str]:
    """The checksum of each path, by its name; empty where nothing stands there.

    Args:
        paths: files and folders.
        texts: files in the folders that do not count, because they are the user's to edit.
    """

    def of_path(path: Path) -> str:
        own = [text.relative_to(path).as_posix() for text in texts if text.is_relative_to(path)]
        return checksum(path, own) if path.exists() else ""

    return {path.as_posix(): of_path(path) for path in paths}


def recorded_inputs(record: Record) -> dict[str, str]:
    """Checksums of what was read, by names from the study's folder."""
    return _from_here(record, record.inputs)


def size_of(paths: Iterable[Path]) -> int:
    """Bytes of files and folders."""
    size = 0
    for path in paths:
        files = [path / name for name in files_of(path)] if path.is_dir() else [path]
        size += sum(file.stat().st_size for file in files if file.is_file())
    return size


def examine(stage: StudyStage) -> Examination:
    """Compare what a stage would be done with now with what it was done with.

    The current folder is the study's.
    """
    record, begun = record_of(stage), begun_with(stage)
    if begun is not None:
        # Its files may be anything, maybe of other options
        known = begun.keys() == basis_of(stage).keys()
        changes = _changes(stage, basis_of(stage), begun) if known else ()
        reasons = ("a run ended before it was done", *changes)
        return Examination(stage, State.INTERRUPTED, reasons, record)
    if record is None:
        path = stage.step.record_path()
        damaged = path is not None and path.exists()
        reasons = (f"{path} cannot be read",) if damaged else ()
        return Examination(stage, State.NOT_DONE, reasons)
    before = {
        "options": record.options,
        "inputs": recorded_inputs(record),
        "version": record.step_version,
        "commits": record.commits,
    }
    now, written = checksums(stage.writes, stage.texts), _from_here(record, record.outputs)
    reasons = (
        *_changes(stage, basis_of(stage), before),
        *(f"{name} is missing" for name, checked in now.items() if not checked),
    )
    edited = [name for name, checked in now.items() if checked and checked != written.get(name)]
    if any(Path(name).is_dir() for name in edited):
        # Of a folder, the files that were changed, added or removed
        files = [path / name for path in stage.writes if path.is_dir() for name in files_of(path)]
        inside = checksums(file for file in files if file not in stage.texts)
        recorded = _from_here(record, record.files)
        differing = {n for n in (*inside, *recorded) if inside.get(n) != recorded.get(n)}
        edited = sorted({*differing, *(name for name in edited if Path(name).is_file())})
    state = State.STALE if reasons else State.DONE
    return Examination(stage, state, reasons, record, tuple(edited))


def basis_of(stage: StudyStage) -> dict[str, Any]:
    """All that decides a stage's result, as its record has it."""
    return {
        "options": stage.step.options(),
        "inputs": checksums((*stage.reads, *stage.texts)),
        "version": stage.step.version,
        "commits": stage.step.commits(),
    }


def _changes(stage: StudyStage, now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    """Why a stage would be done otherwise now than it was, or had begun."""
    defaults = {field.name: field.default for field in fields_of(type(stage.step))}
    names = dict.fromkeys((*before["options"], *now["options"]))
    yield from _option_changes(
        {**defaults, **before["options"]}, {**defaults, **now["options"]}, names
    )
    for name, checked in now["inputs"].items():
        if before["inputs"].get(name, "") != checked:
            yield f"{name} has changed" if checked else f"{name} is missing"
    gone = before["inputs"].keys() - now["inputs"].keys()
    yield from (f"{name} is no longer read" for name in before["inputs"] if name in gone)
    if before["version"] != now["version"]:
        yield "this version of contstim computes other results"
    for name, commit in now["commits"].items():
        if before["commits"].get(name) != commit:
            yield f"{name} {before['commits'].get(name, '(none)')} → {commit}"


def _option_changes(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Iterable[str]
) -> list[str]:
    changes = []
    for name in names:
        old, new = before.get(name), now.get(name)
        if old != new and name == "models" and isinstance(old, list) and isinstance(new, list):
            changes += [f"without the model {model}" for model in old if model not in new]
            changes += [f"with the model {model}" for model in new if model not in old]
            if {*old} == {*new}:
                changes.append("the order of models")
        elif old != new:
            changes.append(f"{name.replace('_', ' ')}: {_shown(old)} → {_shown(new)}")
    return changes


def _shown(value: object) -> str:
    if value is None:
        return "(none)"
    as_json = json.dumps(value, ensure_ascii=False, default=str)
    text = value if isinstance(value, str) else as_json
    return text if len(text) <= 60 else f"{text[:57]}…"


def _from_here(record: Record, named: Mapping[str, str]) -> dict[str, str]:
    """Checksums by names from the current folder, which a record has from its own."""
    folder = record.path.parent
    return {Path(os.path.normpath(folder / name)).as_posix(): v for name, v in named.items()}


def begun_path(stage: StudyStage) -> Path:
    """Path of the note that a stage has begun, which is there until it is done."""
    # Names of models have blanks and dashes, and no plus
    return path_inside(BEGUN, f"{stage.name.replace(' ', '+')}.json")


def begun_with(stage: StudyStage) -> dict[str, Any] | None:
    """Content of the note of an interrupted attempt at a stage; None if there was none."""
    path = begun_path(stage)
    try:
        return read_json_object(path) if path.is_file() else None
    except ContstimError:
        return {}
