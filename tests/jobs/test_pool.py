"""Time limits of tasks, and detection of silent workers."""

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


class NapQueue(TaskQueue[Nap]):
    """A queue of naps; a failed nap is repeated at most twice."""

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


def test_a_task_over_the_time_limit_is_retried_twice(tmp_path: Path) -> None:
    remarks: list[str] = []
    context, queue = (WorkerContext(folder=tmp_path), NapQueue([600, 0.01, 0.02, 0.03]))
    with worker_pool(ProcessExecutor(2), context, say=remarks.append, task_limit=1) as workers:
        workers.work_off(queue)
        second_queue = NapQueue([0.3, 0.1])
        workers.work_off(second_queue)
    reason = "its task took longer than the `task_timeout` of 1 seconds"
    error_message = f"its worker was lost: {reason}"
    awake = [(seconds, "awake") for seconds in (0.01, 0.02, 0.03)]
    assert sorted(queue.results) == [*awake, (600, error_message)]
    assert sorted(second_queue.results) == [(0.1, "awake"), (0.3, "awake")]
    assert len(remarks) == 3
    assert all(text.endswith(f"is replaced: {reason}.") for text in remarks)


class WatchedExecutor(LocalExecutor):
    """An executor whose clock and signs of life a test sets."""

    def __init__(self, silence: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.silence, self.now = silence, 0.0
        self.signs: dict[int, object] = {}
        monkeypatch.setattr(pool, "monotonic", lambda: self.now)
        self.pool = Pool(self, print, inf)

    def signs_of_life(self) -> dict[int, object]:
        return self.signs

    def check_silence(self, now: float, signs: dict[int, object]) -> list[int]:
        self.now, self.signs = now, signs
        return self.pool.silent_workers()


def test_only_silent_workers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WatchedExecutor(10, monkeypatch)
    silent = []
    for second in range(1, 20):
        # Worker 0 always gives signs, worker 1 until second 5, worker 2 starts at 8 and gives none
        signs: dict[int, object] = {0: second, 1: min(second, 5)}
        if second >= 8:
            signs[2] = "nothing"
        silent += [(second, worker) for worker in pool.check_silence(second, signs) if second <= 16]
    assert silent == [(16, 1)]
    assert pool.check_silence(19.5, {0: 0, 1: 5, 2: "nothing"}) == []  # too soon for another check
    assert pool.check_silence(20, {0: 0, 1: 5, 2: "nothing"}) == [1, 2]


def test_time_without_checks_does_not_count_as_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-Z, for example, stops the driver together with its workers."""
    executor = WatchedExecutor(10, monkeypatch)
    for hour in range(5):
        assert not executor.check_silence(3_600.0 * hour, {0: "the same"})


def test_silence_of_a_replaced_worker_is_counted_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = WatchedExecutor(3, monkeypatch)
    for second in range(4):
        executor.check_silence(second, {0: "first"})
    for second in range(4, 8):
        assert executor.check_silence(second, {0: "second"}) == []
    assert executor.check_silence(8, {0: "second"}) == [0]
