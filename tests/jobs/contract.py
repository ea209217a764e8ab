"""What every executor guarantees; each one's tests inherit these classes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError
from contstim.jobs.executors import Answered, Died, Executor, Ready
from contstim.jobs.queue import WorkerTask
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading
from tests.jobs.toy_tasks import Die, Nap, Refuse, Remember, Repeat, Sleep, Stop, Stumble

SILENCE = 4


class ExecutorContract:
    """Inherit, and define a fixture `executor`, not started."""

    @pytest.fixture
    def executor(self) -> Executor:
        raise NotImplementedError

    @pytest.fixture
    def started(self, executor: Executor, tmp_path: Path) -> Iterator[Executor]:
        with executor:
            executor.start(WorkerContext(Loading(device="cpu"), folder=tmp_path))
            ready = [executor.receive() for _ in range(executor.size)]
            workers = [event.worker for event in ready if isinstance(event, Ready)]
            assert sorted(workers) == [*range(executor.size)]
            yield executor

    def ask(self, executor: Executor, task: WorkerTask[Any], worker: int = 0) -> Answered:
        executor.send(worker, task)
        event = executor.receive()
        assert isinstance(event, Answered)
        assert event.worker == worker
        return event

    def test_every_task_is_answered_by_its_worker(self, started: Executor, tmp_path: Path) -> None:
        for worker in range(started.size):
            started.send(worker, Repeat(f"task {worker}"))
        events = [started.receive() for _ in range(started.size)]
        results = {e.worker: e.reply.result for e in events if isinstance(e, Answered)}
        assert results == {w: f"task {w} in {tmp_path.name}" for w in range(started.size)}

    def test_errors_are_answers(self, started: Executor) -> None:
        refused = self.ask(started, Refuse()).reply
        assert isinstance(refused.error, InputError)
        assert str(refused.error) == "this input is bad"
        assert not refused.detail
        stumbled = self.ask(started, Stumble()).reply
        assert "ZeroDivisionError" in str(stumbled.error)
        assert "1 / 0" in stumbled.detail
        assert self.ask(started, Repeat("still here")).reply.error is None

    def test_a_replaced_worker_remembers_nothing(self, started: Executor) -> None:
        assert [self.ask(started, Remember()).reply.result for _ in range(2)] == [1, 2]
        started.replace(0)
        event = started.receive()
        assert isinstance(event, Ready)
        assert event.worker == 0
        assert self.ask(started, Remember()).reply.result == 1


class SeparateWorkersContract(ExecutorContract):
    """For executors whose workers are other processes; `executor` waits `SILENCE` for signs."""

    def test_one_that_was_stopped_is_replaced_and_one_that_works_long_is_not(
        self, started: Executor
    ) -> None:
        assert self.ask(started, Remember(), worker=1).reply.result == 1
        started.send(0, Stop())
        started.send(1, Nap(SILENCE + 3))
        events = [started.receive() for _ in range(3)]
        died, ready = [event for event in events if not isinstance(event, Answered)]
        assert isinstance(died, Died)
        assert isinstance(ready, Ready)
        assert (died.worker, ready.worker) == (0, 0)
        assert died.reason == f"no sign of life for {SILENCE} seconds"
        assert self.ask(started, Remember(), worker=0).reply.result == 1
        assert self.ask(started, Remember(), worker=1).reply.result == 2

    def test_a_busy_worker_can_be_replaced(self, started: Executor) -> None:
        started.send(0, Sleep())
        assert started.receive(0.5) is None
        started.replace(0)
        event = started.receive()
        assert isinstance(event, Ready)
        assert self.ask(started, Remember()).reply.result == 1

    def test_the_dead_are_replaced_and_the_others_not_disturbed(self, started: Executor) -> None:
        assert self.ask(started, Remember(), worker=1).reply.result == 1
        started.send(0, Die())
        died, ready = started.receive(), started.receive()
        assert isinstance(died, Died)
        assert isinstance(ready, Ready)
        assert (died.worker, ready.worker) == (0, 0)
        assert died.reason
        assert self.ask(started, Remember(), worker=0).reply.result == 1
        assert self.ask(started, Remember(), worker=1).reply.result == 2

    def test_closing_ends_busy_workers_too(self, executor: Executor, tmp_path: Path) -> None:
        executor.start(WorkerContext(Loading(device="cpu"), folder=tmp_path))
        events = [executor.receive() for _ in range(executor.size)]
        executor.send(0, Sleep())
        executor.close()
        for event in events:
            assert isinstance(event, Ready)
            assert vanishes(process_of(event))


def process_of(ready: Ready) -> int:
    found = re.search(r"process (\d+)", ready.place)
    assert found is not None
    return int(found[1])


def vanishes(process: int) -> bool:
    """Whether a process is gone within some seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
