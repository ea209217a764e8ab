"""Run the stages of a study in order, and skip stages that are up to date.

A stage is one task of a study, such as a search or an analysis, with its input and output files.
"""

from __future__ import annotations

import os
import shutil
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from contstim.errors import ContstimError, InfeasibleError, InputError
from contstim.files.documents import write_json
from contstim.files.files import file_lock
from contstim.files.records import Record, recorded_as
from contstim.reporter import SILENT, Reporter, forwarding
from contstim.steps.step import perform
from contstim.steps.training import TrainNetwork, TrainNgram
from contstim.store.times import times_beside
from contstim.study.amounts import StudyNumbers, natural_supply, shortages
from contstim.study.page import refuse_foreign_page, write_page
from contstim.study.states import StageState, basis_of, begun_path, examine, record_of, stored_basis
from contstim.study.study import ARCHIVED, LOCK, PAGE, RESULTS, STORE, check_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.reporting.report import Part
    from contstim.study.study import Study, StudyStage


_PAGE_SECONDS = 30.0  # minimum time between two updates of preliminary results on the page


@dataclass(frozen=True)
class StudyRun:
    """Outcome of a run.

    Attributes:
        done: names of the stages that ran.
        edited: files that were changed by hand after a stage wrote them; later stages use the
            changed files.
        incomplete: name of each stage that found too few items → warnings of this stage.
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
    begin: Callable[[StudyStage, StageState], None] = lambda _stage, _why: None,
    end: Callable[[StudyStage, Record], None] = lambda _stage, _record: None,
) -> StudyRun:
    """Run the stages of a study, except stages that are up to date.

    A stage is up to date if its inputs, options and version equal those in its record, a JSON file
    next to its output. If an input is written again with the same content, the stage stays up to
    date. During a run, the study's folder is the current folder of the process. The page of the
    study, `index.html`, is updated when a stage begins, during searches for triplets, and at the
    end.

    Args:
        study: study from `read_study`.
        first: name of a stage to rerun even if it is up to date, or first word of the names of
            several such stages.
        last: name of the stage after which the run stops, or first word of the names of several
            stages.
        overwrite: whether files that were changed by hand may be overwritten.
        reporter: receives the messages of steps.
        begin: called with each stage and its state, before the stage runs.
        end: called with each stage and its record, after the stage has run.

    Raises:
        InputError: if no stage matches `first` or `last`; if an input is missing; if a file that
            was changed by hand would be overwritten; if another program wrote `index.html`; if a
            link leads out of the study's folder; or if another process runs the study.
        ContstimError: if a step raises it.
    """
    with chdir(study.folder), _hold_lock():
        stages = study.stages
        chosen = stages[: _indices(last, stages)[-1] + 1] if last is not None else stages
        again = {stages[index].name for index in _indices(first, stages)} if first else set()
        done: list[str] = []
        edited: list[str] = []
        few: list[str] = []  # warnings with remedies, if there are too few natural sentences
        incomplete: dict[str, tuple[str, ...]] = {}
        refuse_foreign_page(study)
        states, running = [_unexamined(stage) for stage in stages], None
        try:
            for index, stage in enumerate(chosen):
                states[index] = state = examine(stage)
                record = state.record
                if state.state == "done" and stage.name not in again:
                    edited += state.edited
                else:
                    if state.edited and not overwrite:
                        raise InputError(_edited_text(state, stage.name in again))
                    begin(stage, state)
                    running = stage
                    write_page(study, states, running)
                    try:
                        show = _showing(partial(write_page, study, states, running))
                        with reporter:
                            record = _run_stage(stage, study, forwarding(reporter, show=show))
                    except InfeasibleError as error:
                        raise InfeasibleError(" ".join((str(error), *few))) from error
                    if isinstance(stage.step, TrainNetwork | TrainNgram):
                        times, out = times_beside(STORE), stage.step.out.as_posix()
                        models = [model for model in study.models if model.location == out]
                        times.forget_models([model.specification for model in models])
                        times.save()
                    running, states[index] = None, StageState(stage, "done", record=record)
                    end(stage, record)
                    done.append(stage.name)
                if study.files.get("sentences") in stage.writes:
                    supply = natural_supply(study, states, reporter)
                    few = [*shortages(StudyNumbers(study), supply)]
                    reporter.warn("".join(few))
                if record is not None and not record.complete:
                    incomplete[stage.name] = tuple(record.warnings)
        except BaseException as error:
            with suppress(ContstimError):  # an error of the page must not hide the error of a stage
                write_page(study, states, running, error)
            raise
        write_page(study, states)
    unchanged = tuple(stage.name for stage in chosen if stage.name not in done)
    return StudyRun(tuple(done), unchanged, tuple(edited), incomplete)


def _showing(write: Callable[..., None]) -> Callable[[Callable[[], Iterable[Part]]], None]:
    """Return a callback that shows preliminary tables on the page, at most every 30 seconds."""
    written = -inf

    def show(tables: Callable[[], Iterable[Part]]) -> None:
        nonlocal written
        if monotonic() >= written + _PAGE_SECONDS:
            write(so_far=[*tables()])
            written = monotonic()

    return show


def _unexamined(stage: StudyStage) -> StageState:
    """Return the state of a stage that the run has not reached yet.

    The inputs of the stage are not compared with its record.
    """
    record = record_of(stage)
    if record is not None:
        return StageState(stage, "waits", ("earlier stages first",), record)
    return StageState(stage, "not done" if stored_basis(stage) is None else "interrupted")


def _run_stage(stage: StudyStage, study: Study, reporter: Reporter) -> Record:
    missing = [path.as_posix() for path in stage.reads if not path.exists()]
    if missing:
        raise InputError(
            f"The stage {stage.name!r} reads {', '.join(missing)}, but there is no such file. Run "
            "the earlier stages, too."
        )
    basis = basis_of(stage)
    if stored_basis(stage) != basis:
        # Remove earlier outputs, unless an interrupted run had the same inputs and options
        for path in stage.writes:
            # Keep the folders of exports, because users may have edited texts in these folders. The
            # step itself replaces all other files of the export
            if path.is_dir() and not stage.step.texts_to_edit():
                _remove(path)
        write_json(begun_path(stage), basis)
    with recorded_as(("contstim", "run", study.path.name)):
        _copy_archived_texts(stage.step.texts_to_edit())
        perform(stage.step, reporter)
    record = record_of(stage)
    if record is None:  # although `perform` has just written the record
        raise InputError(
            f"Another program removed the record of {stage.name}. Run the stage again."
        )
    _remove(begun_path(stage))
    return record


def _copy_archived_texts(texts: Sequence[Path]) -> None:
    """Copy missing texts from the results in an archive, where users may have edited the texts."""
    for text in texts:
        archived = ARCHIVED / text.relative_to(RESULTS)
        if archived.is_file() and not text.exists():
            text.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(archived, text)


@contextmanager
def _hold_lock() -> Iterator[None]:
    """Hold the lock of the study, and remove partial files of killed processes."""
    check_links()  # before the lock, which is the first file that is written
    with file_lock(LOCK, f"process {os.getpid()}") as holder:
        if holder is not None:
            raise InputError(
                f"This study is already being run by {holder or 'another process'}. Wait until "
                "that process has ended, or stop it."
            )
        for path in (*RESULTS.rglob(".*.partial"), *Path().glob(f".{PAGE}.*.partial")):
            _remove(path)
        yield


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"Cannot remove {path}: {error.strerror or error}.") from error


def _indices(name: str, stages: Sequence[StudyStage]) -> list[int]:
    """Return the indices of the stage with this name, or of all stages with this first word."""
    indices = [index for index, stage in enumerate(stages) if name in (stage.name, stage.kind)]
    if not indices:
        raise InputError(
            f"This study has no stage {name!r}; it has {', '.join(s.name for s in stages)}."
        )
    return indices


def _edited_text(state: StageState, again: bool) -> str:
    why = "you asked to rerun it" if again else "; ".join(state.reasons)
    return (
        f"{', '.join(state.edited)}: changed by hand after the last run of the stage "
        f"{state.stage.name!r}. The stage must run again ({why}) and would overwrite the changes. "
        "To keep the changes, move the file, and name its new path in the section that reads the "
        "file. To discard the changes, run with --overwrite."
    )
