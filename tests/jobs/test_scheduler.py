"""Time limits of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import ContstimError, WorkerError
from contstim.jobs.executors import ProcessExecutor
from contstim.jobs.queue import TaskQueue, WorkerTask
from contstim.jobs.scheduler import Scheduler
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading
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
    with ProcessExecutor(2) as executor:
        executor.start(WorkerContext(Loading(device="cpu"), folder=tmp_path))
        queue = Naps([600, 0.01, 0.02, 0.03])
        Scheduler(executor, remarks.append, task_limit=2).work_off(queue)
    lost = "its worker was lost: its task took longer than --task-timeout 2"
    assert sorted(queue.results) == [(0.01, "awake"), (0.02, "awake"), (0.03, "awake"), (600, lost)]
    assert len(remarks) == 3
    assert all(
        text.endswith("is replaced: its task took longer than --task-timeout 2.")
        for text in remarks
    )


@pytest.mark.parametrize("limit", [None, 60.0])
def test_short_tasks_are_not_disturbed(tmp_path: Path, limit: float | None) -> None:
    with ProcessExecutor(1) as executor:
        executor.start(WorkerContext(Loading(device="cpu"), folder=tmp_path))
        queue = Naps([0.3, 0.1, 0.2])
        Scheduler(executor, pytest.fail, task_limit=limit).work_off(queue)
    assert queue.results == [(0.3, "awake"), (0.1, "awake"), (0.2, "awake")]
