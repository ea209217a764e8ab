"""The state of every stage of a study."""

from __future__ import annotations

from contextlib import chdir
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contstim.files import lock_holder
from contstim.study.places import LOCK
from contstim.study.stage_records import Examination, State, examine, size_of
from contstim.study.stages import stages_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.study.study import Study


RUNNING, WAITS = "running", "waits"


@dataclass(frozen=True)
class StageState:
    """A row of the table that `contstim status` prints.

    Attributes:
        stage: its name.
        state: done, stale, interrupted or not done; `waits` for a stage before it; or `running`.
        date: when it was done, UTC; empty if it never was.
        seconds: how long it took.
        size: of what it wrote.
        because: why it is stale or interrupted, and which of its files were changed by hand; who
            does what is running.
    """

    stage: str
    state: str
    date: str
    seconds: str
    size: str
    because: str


def stage_states(study: Study) -> list[StageState]:
    """The state of every stage, in order, without doing any."""
    with chdir(study.folder):
        states: list[StageState] = []
        holder = lock_holder(LOCK)
        unsettled: dict[Path, str] = {}  # what a stage writes that is not done → its name
        for stage in stages_of(study):
            examination = examine(stage)
            before = {
                unsettled[path]
                for read in stage.reads
                for path in (read, *read.parents)
                if path in unsettled
            }
            state = state_of(examination, sorted(before))
            if examination.state is State.INTERRUPTED and holder is not None:
                # A run goes from stage to stage: it is at the first that has begun
                state, holder = replace(state, state=RUNNING, because=holder), None
            states.append(state)
            if examination.state is not State.DONE or before:
                unsettled |= dict.fromkeys(stage.writes, stage.name)
        return states


def state_of(examination: Examination, before: Sequence[str] = ()) -> StageState:
    """The row of a stage.

    Args:
        examination: of the stage.
        before: names of the stages that write what it reads, and are to be done first.
    """
    record = examination.record
    because = list(examination.reasons)
    state: str = examination.state
    if before and examination.state is State.DONE:
        # Whether it will be stale shows when those before it have been done
        state, because = WAITS, [f"{', '.join(before)} first"]
    if record is not None and not record.complete:
        because.append("not everything was found")
    because += [f"{name} was changed by hand" for name in examination.edited]
    return StageState(
        examination.stage.name,
        state,
        record.date.replace("T", " ").removesuffix("Z") if record else "",
        f"{record.seconds:,.1f}" if record else "",
        size_text(size_of(examination.stage.writes)) if record else "",
        "; ".join(because),
    )


def size_text(size: int) -> str:
    """Bytes in the unit in which they are easiest to read, such as `1.4 MB`."""
    number = float(size)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
