"""Time limits of tasks, workers that are silent, and what becomes of either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contstim.errors import ContstimError, WorkerError
from contstim.jobs.pool import SilenceWatch, TaskQueue, worker_pool
from contstim.jobs.processes import ProcessExecutor
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from tests.jobs.toy_tasks import Nap


class Naps(TaskQueue[Nap]):
    """Naps to be taken; those that fail are taken again, twice."""

    def __init__(self, naps: Sequence[float]) -> None:
        self.waiting = [Nap(seconds) for seconds in naps]
        self.out = 0
        self.results: list[tuple[float, str]] = []

    @property
    def finished(self) -> bool:
        return not self.waiting and not self.out

    def take(self, loaded: Sequence[str]) -> Nap | None:
        del loaded
        if not self.waiting:
            return None
        self.out += 1
        return self.waiting.pop(0)

    def done(self, task: WorkerTask[Any], result: str) -> None:
        assert isinstance(task, Nap)
        self.out -= 1
        self.results.append((task.seconds, result))

    def failed(self, task: Nap, error: ContstimError, attempt: int) -> None:
        assert isinstance(error, WorkerError)
        self.out -= 1
        if attempt == 3:
            self.results.append((task.seconds, str(error)))
        else:
            self.waiting.append(task)


def test_what_exceeds_the_time_limit_is_done_again_and_then_given_up(tmp_path: Path) -> None:
    remarks: list[str] = []
    context, queue = (
        WorkerContext(folder=tmp_path),
        Naps([600, 0.01, 0.02, 0.03]),
    )
    with worker_pool(ProcessExecutor(2), context, say=remarks.append, task_limit=2) as pool:
        pool.work_off(queue)
        short = Naps([0.3, 0.1])
        pool.work_off(short)
    reason = "its task took longer than the `task_timeout` of 2 seconds"
    lost = f"its worker was lost: {reason}"
    assert sorted(queue.results) == [(0.01, "awake"), (0.02, "awake"), (0.03, "awake"), (600, lost)]
    assert sorted(short.results) == [(0.1, "awake"), (0.3, "awake")]
    assert len(remarks) == 3
    assert all(text.endswith(f"is replaced: {reason}.") for text in remarks)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_is_silent_for_too_long_is_told_and_nobody_else() -> None:
    clock = Clock()
    watch = SilenceWatch(10, clock)
    told = []
    for second in range(1, 20):
        clock.now = second
        assert watch.due
        # The first beats always, the second until 5, the third begins at 8 and never beats
        signs: dict[int, object] = {0: second, 1: min(second, 5)}
        if second >= 8:
            signs[2] = "nothing"
        told += [(second, worker) for worker in watch.look(signs) if second <= 16]
    assert told == [(16, 1)]
    assert watch.look({0: 0, 1: 5, 2: "nothing"}) == [1, 2]
    assert not watch.due


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    """As where the driver is stopped with Ctrl-Z, and its workers with it."""
    clock = Clock()
    watch = SilenceWatch(10, clock)
    for hour in range(5):
        clock.now = 3_600.0 * hour
        assert not watch.look({0: "the same"})


def test_a_new_worker_of_the_same_number_begins_anew() -> None:
    clock = Clock()
    watch = SilenceWatch(3, clock)
    for second in range(4):
        clock.now = second
        watch.look({0: "first"})
    clock.now = 4
    assert watch.look({0: "second"}) == []
    for second in range(5, 8):
        clock.now = second
        assert watch.look({0: "second"}) == []
    clock.now = 8
    assert watch.look({0: "second"}) == [0]
