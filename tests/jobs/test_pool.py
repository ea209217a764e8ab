"""Time limits of tasks, workers that are silent, and what becomes of either."""

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import ContstimError, WorkerError
from contstim.jobs import pool
from contstim.jobs.in_process import LocalExecutor
from contstim.jobs.pool import Pool, TaskQueue, worker_pool
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
    context, queue = (WorkerContext(folder=tmp_path), Naps([600, 0.01, 0.02, 0.03]))
    with worker_pool(ProcessExecutor(2), context, say=remarks.append, task_limit=1) as workers:
        workers.work_off(queue)
        short = Naps([0.3, 0.1])
        workers.work_off(short)
    reason = "its task took longer than the `task_timeout` of 1 seconds"
    lost = f"its worker was lost: {reason}"
    assert sorted(queue.results) == [(0.01, "awake"), (0.02, "awake"), (0.03, "awake"), (600, lost)]
    assert sorted(short.results) == [(0.1, "awake"), (0.3, "awake")]
    assert len(remarks) == 3
    assert all(text.endswith(f"is replaced: {reason}.") for text in remarks)


class Watched(LocalExecutor):
    """Workers whose signs of life a test gives, at times that it gives too."""

    def __init__(self, silence: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.silence, self.now = silence, 0.0
        self.signs: dict[int, object] = {}
        monkeypatch.setattr(pool, "monotonic", lambda: self.now)
        self.pool = Pool(self, print, inf)

    def signs_of_life(self) -> dict[int, object]:
        return self.signs

    def silent(self, now: float, signs: dict[int, object]) -> list[int]:
        self.now, self.signs = now, signs
        return self.pool.silent_workers()


def test_silent_workers_are_named_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(10, monkeypatch)
    told = []
    for second in range(1, 20):
        # The first beats always, the second until 5, the third begins at 8 and never beats
        signs: dict[int, object] = {0: second, 1: min(second, 5)}
        if second >= 8:
            signs[2] = "nothing"
        told += [(second, worker) for worker in watched.silent(second, signs) if second <= 16]
    assert told == [(16, 1)]
    assert watched.silent(19.5, {0: 0, 1: 5, 2: "nothing"}) == []  # too soon for another look
    assert watched.silent(20, {0: 0, 1: 5, 2: "nothing"}) == [1, 2]


def test_time_in_which_nobody_looked_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the driver is stopped with Ctrl-Z, and its workers with it."""
    watched = Watched(10, monkeypatch)
    for hour in range(5):
        assert not watched.silent(3_600.0 * hour, {0: "the same"})


def test_a_new_worker_of_the_same_number_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(3, monkeypatch)
    for second in range(4):
        watched.silent(second, {0: "first"})
    for second in range(4, 8):
        assert watched.silent(second, {0: "second"}) == []
    assert watched.silent(8, {0: "second"}) == [0]
