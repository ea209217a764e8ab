"""Records of what was done for each stage, and whether it still holds.

The record of a stage, `results/stages/NAME.json`, is written when all its files are. It has the
checksums of what was read and written, the options and the versions. What a stage would read now
is compared with it: content alone counts, never the time of a file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.checksums import checksum, files_of, is_record
from contstim.documents import read_json_object
from contstim.errors import ContstimError
from contstim.files import path_inside, write_text
from contstim.models.origins import model_origins
from contstim.records import record_path as record_path_of
from contstim.records import versions
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.study.stage import StudyStage

FOLDER = RESULTS / "stages"
_BASIS = ("options", "reads", "versions", "commits")


@dataclass(frozen=True)
class StageRecord:
    """Inputs of a stage that was done, and what came of it.

    Attributes:
        stage: its name.
        options: as in `Stage.options`.
        reads: the checksum of each path that was read.
        versions: of contstim and of the stage's libraries.
        commits: of models on the hub, by their names there.
        writes: the checksum of each path that was written.
        files: the checksum of each file in the folders that were written.
        records: the checksum of each record beside or in what was written.
        date: when it was done, UTC.
        seconds: how long it took, interrupted attempts left out.
        size: bytes of all that was written.
        warnings: what the step warned of.
        complete: False where something that was wanted could not be found.
    """

    stage: str
    options: dict[str, Any]
    reads: dict[str, str]
    versions: dict[str, str]
    writes: dict[str, str]
    files: dict[str, str]
    records: dict[str, str]
    date: str
    seconds: float
    size: int
    commits: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    complete: bool = True

    def write(self) -> None:
        """Write it into the folder of the study's records."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=False)
        write_text(record_path(self.stage), text + "\n")


def record_path(stage: str) -> Path:
    """Path of a stage's record, from the study's folder."""
    # Names of models have blanks and dashes, and no plus
    return path_inside(FOLDER, f"{stage.replace(' ', '+')}.json")


def read_stage_record(stage: str) -> StageRecord | None:
    """The record of a stage; None where there is none, or it is damaged and nothing holds."""
    path = record_path(stage)
    if not path.is_file():
        return None
    try:
        record: StageRecord = _validator().validate_python(read_json_object(path))
    except (ContstimError, ValueError):  # pydantic's errors are ValueErrors
        return None
    return record


@cache
def _validator() -> Any:
    # Made once: it takes longer than all reading
    from pydantic import TypeAdapter

    return TypeAdapter(StageRecord)


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
    record: StageRecord | None = None
    edited: tuple[str, ...] = ()


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


def read_by(stage: StudyStage) -> dict[str, str]:
    """The checksum of all that a stage reads, texts that the user may have edited among it."""
    return checksums((*stage.reads, *stage.texts))


def written_by(stage: StudyStage) -> dict[str, str]:
    """The checksum of all that a stage writes, but for texts that are the user's to edit."""
    return checksums(stage.writes, stage.texts)


def files_in_folders(stage: StudyStage) -> dict[str, str]:
    """The checksum of each file in the folders that a stage writes, by which changes are named."""
    files = [path / name for path in stage.writes if path.is_dir() for name in files_of(path)]
    return checksums(file for file in files if file not in stage.texts)


def records_of(stage: StudyStage) -> dict[str, str]:
    """The checksum of each record that a stage writes, of commands and of trainings."""
    beside = [record_path_of(path) for path in stage.writes]
    inside = [
        path
        for folder in stage.writes
        if folder.is_dir()
        for path in sorted(folder.rglob("*.json"))
        if is_record(path)
    ]
    return checksums(path for path in (*beside, *inside) if path.is_file())


def stage_versions(stage: StudyStage) -> dict[str, str]:
    """The versions of what may change a stage's result, of those libraries that are installed."""
    installed = versions()
    names = ("contstim", *stage.libraries)
    return {name: installed[name] for name in names if name in installed}


def commits_of(stage: StudyStage) -> dict[str, str]:
    """The commits of the models that a stage loads from the hub, where the local cache has them."""
    return dict(model_origins(stage.models).commits)


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
    record = read_stage_record(stage.name)
    begun = begun_with(stage)
    if begun is not None:
        # Its files may be anything, maybe of other options
        before = [begun[part] for part in _BASIS if isinstance(begun.get(part), dict)]
        changes = _changes(stage, *before) if len(before) == len(_BASIS) else ()
        reasons = ("a run ended before it was done", *changes)
        return Examination(stage, State.INTERRUPTED, reasons, record)
    if record is None:
        damaged = record_path(stage.name).exists()
        reasons = (f"{record_path(stage.name)} cannot be read",) if damaged else ()
        return Examination(stage, State.NOT_DONE, reasons)
    now = written_by(stage)
    reasons = (
        *_changes(stage, record.options, record.reads, record.versions, record.commits),
        *(f"{name} is missing" for name, checked in now.items() if not checked),
    )
    edited = [
        name for name, checked in now.items() if checked and checked != record.writes.get(name)
    ]
    if any(Path(name).is_dir() for name in edited):
        # Of a folder, the files that were changed, added or removed
        files = files_in_folders(stage)
        differing = {n for n in (*files, *record.files) if files.get(n) != record.files.get(n)}
        edited = sorted({*differing, *(name for name in edited if Path(name).is_file())})
    kept = checksums(map(Path, record.records))
    edited += [
        name for name, checked in kept.items() if checked and checked != record.records[name]
    ]
    state = State.STALE if reasons else State.DONE
    return Examination(stage, state, reasons, record, tuple(edited))


def _changes(
    stage: StudyStage,
    options: Mapping[str, Any],
    reads: Mapping[str, str],
    versions: Mapping[str, str],
    commits: Mapping[str, str],
) -> Iterator[str]:
    """Why a stage would be done otherwise now than with these options, files, versions, commits."""
    yield from _option_changes(options, _as_json(stage.options))
    now = read_by(stage)
    for name, checked in now.items():
        if reads.get(name) != checked:
            yield f"{name} has changed" if checked else f"{name} is missing"
    yield from (f"{name} is no longer read" for name in reads if name not in now)
    for before, of_now in ((versions, stage_versions(stage)), (commits, commits_of(stage))):
        for name, value in of_now.items():
            if before.get(name) != value:
                yield f"{name} {before.get(name, '(none)')} → {value}"


def _option_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    changes = []
    for name in dict.fromkeys((*before, *now)):
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
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a record that is read has them: tuples as lists, paths as texts."""
    as_json: dict[str, Any] = json.loads(json.dumps(options, default=str))
    return as_json


def basis_of(stage: StudyStage) -> dict[str, Any]:
    """All that decides a stage's result, as its record has it."""
    return {
        "options": _as_json(stage.options),
        "reads": read_by(stage),
        "versions": stage_versions(stage),
        "commits": commits_of(stage),
    }


def begun_path(stage: StudyStage) -> Path:
    """Path of the note that a stage has begun, which is there until it is done."""
    return FOLDER / "begun" / record_path(stage.name).name


def begun_with(stage: StudyStage) -> dict[str, Any] | None:
    """Content of the note of an interrupted attempt at a stage; None if there was none."""
    path = begun_path(stage)
    try:
        return read_json_object(path) if path.is_file() else None
    except ContstimError:
        return {}
