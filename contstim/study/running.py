"""Running a study: a walk over its stages, in order, that does what is stale and nothing else."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files import file_lock, write_text
from contstim.records import Record, recorded_as
from contstim.reporter import SILENT, Reporter
from contstim.steps.step import perform
from contstim.study.page import PAGE, LivePage
from contstim.study.places import LOCK, check_links
from contstim.study.stage_records import (
    Examination,
    State,
    basis_of,
    begun_path,
    begun_with,
    examine,
    record_of,
)
from contstim.study.stages import stages_of
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from contstim.study.stage import StudyStage
    from contstim.study.study import Study


@dataclass(frozen=True)
class StudyRun:
    """Outcome of a run.

    Attributes:
        done: the stages that were done now.
        unchanged: those that held, and were left.
        edited: files that were changed by hand since a stage wrote them; they are used as they are.
        incomplete: stages that could not find all that was wanted, with what they warned of.
    """

    done: tuple[str, ...]
    unchanged: tuple[str, ...]
    edited: tuple[str, ...]
    incomplete: Mapping[str, tuple[str, ...]]


def run_study(
    study: Study,
    *,
    first: str | None = None,
    last: str | None = None,
    overwrite: bool = False,
    reporter: Reporter = SILENT,
    begin: Callable[[StudyStage, Examination], None] = lambda _stage, _why: None,
    end: Callable[[StudyStage, Record], None] = lambda _stage, _record: None,
) -> StudyRun:
    """Do every stage of a study that has not been done, or no longer holds.

    Before each stage what it reads, its options and versions are compared with its record, so that
    a stage whose inputs were written anew, and are the same as before, is left. While it runs the
    study's folder is the current one of the process. The page of the study, `index.html`, is
    written anew whenever a stage begins or ends.

    Args:
        study: as `read_study` reads it.
        first: a stage, or the first word of several, to do again although it holds.
        last: a stage, or the first word of several, to stop behind.
        overwrite: whether files that were changed by hand may be written anew.
        reporter: told what steps do.
        begin: told each stage that is about to be done, and why.
        end: told each stage that has been done.

    Raises:
        InputError: there is no such stage, a file that was changed by hand would be written anew,
            `index.html` is not a page of contstim, or another process runs the study; and whatever
            a step raises.
    """
    with chdir(study.folder), _alone():
        _remove_partial_files()
        stages = stages_of(study)
        chosen = stages[: _place_of(last, stages)[-1] + 1] if last is not None else stages
        again = {stages[place].name for place in _place_of(first, stages)} if first else set()
        done: list[str] = []
        unchanged: list[str] = []
        edited: list[str] = []
        incomplete: dict[str, tuple[str, ...]] = {}
        page = LivePage(study, stages)
        for stage in chosen:
            examination = examine(stage)
            page.reach(examination)
            if examination.edited and stage.name not in again and not examination.reasons:
                edited += examination.edited
            if examination.state is State.DONE and stage.name not in again:
                unchanged.append(stage.name)
                record = examination.record
            else:
                if examination.edited and not overwrite:
                    raise InputError(_edited_text(examination, stage.name in again))
                begin(stage, examination)
                with page.doing(stage):
                    record = _do(stage, study, reporter)
                end(stage, record)
                done.append(stage.name)
            if record is not None and not record.complete:
                incomplete[stage.name] = tuple(record.warnings)
        page.close()
    return StudyRun(tuple(done), tuple(unchanged), tuple(edited), incomplete)


def _do(stage: StudyStage, study: Study, reporter: Reporter) -> Record:
    """Do a stage and write its record, which is what says that it has been done."""
    missing = [path.as_posix() for path in stage.reads if not path.exists()]
    if missing:
        raise InputError(
            f"The stage {stage.name!r} reads {', '.join(missing)}, which is not there. Run the "
            f"stages before it, too."
        )
    basis = basis_of(stage)
    if begun_with(stage) != basis:
        # Not what an interrupted attempt began: nothing of another one may be left in its folders
        for path in stage.writes:
            # An export replaces its own files, and keeps the texts that the user has edited
            if path.is_dir() and not stage.texts:
                _remove(path)
        write_text(begun_path(stage), _text(basis))
    with recorded_as(("contstim", "run", study.path.name)):
        stage.prepare()
        perform(stage.step, reporter)
    record = record_of(stage)
    if record is None:  # it was written a moment ago
        raise InputError(f"The record of {stage.name} was taken away while it was done.")
    _remove(begun_path(stage))
    return record


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes from running the same study at the same time."""
    check_links()  # before the lock, which is the first file that is written
    holder = f"process {os.getpid()}"
    with file_lock(LOCK, holder) as other:
        if other is not None:
            raise InputError(
                f"This study is being run already, by {other or 'another process'}. Wait until "
                "that has ended, or stop it."
            )
        yield


def _remove_partial_files() -> None:
    """Remove what a process that was killed was just writing; the lock says that none is."""
    for path in (*RESULTS.rglob(".*.partial"), *Path().glob(f".{PAGE}.*.partial")):
        _remove(path)


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"Cannot remove {path}: {error.strerror or error}.") from error


def _place_of(name: str, stages: Sequence[StudyStage]) -> list[int]:
    """Index of a stage, or of all stages whose names begin with a word.

    Raises:
        InputError: there is none.
    """
    places = [place for place, stage in enumerate(stages) if name in (stage.name, stage.kind)]
    if not places:
        raise InputError(
            f"This study has no stage {name!r}; it has {', '.join(s.name for s in stages)}."
        )
    return places


def _edited_text(examination: Examination, again: bool) -> str:
    """Why a stage whose files were changed by hand is not done."""
    why = "you asked to do it again" if again else "; ".join(examination.reasons)
    names = ", ".join(examination.edited)
    return (
        f"{names}: changed by hand since the stage {examination.stage.name!r} wrote it. It would "
        f"be done again ({why}) and lose the changes. To keep them, move the file, and name it in "
        f"the study file where a section takes a file; to lose them, run with --overwrite."
    )


def _text(basis: object) -> str:
    return json.dumps(basis, indent=2, ensure_ascii=False) + "\n"
