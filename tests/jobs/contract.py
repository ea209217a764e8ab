"""Guarantees of every executor, under a pool; each one's tests inherit these classes."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import ContstimError, InputError, WorkerError
from contstim.jobs.pool import Executor, Pool, worker_pool
from contstim.jobs.worker_context import Reply, WorkerContext, WorkerTask
from contstim.models.loading import Loading
from tests.jobs.toy_tasks import Die, Refuse, Remember, Repeat, Sleep, Stop, Stumble, Wait

SILENCE = 2


class ExecutorContract:
    """Inherit, and define `make`."""

    size = 2

    @classmethod
    def make(cls, workers: int) -> Executor:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def started(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
        """A pool for all tests of the class, each of which leaves all workers idle."""
        executor, folder = cls.make(cls.size), tmp_path_factory.mktemp("workers")
        with worker_pool(executor, WorkerContext(Loading(device="cpu"), folder=folder)) as pool:
            ready = [cls.next(pool, str)[0] for _ in range(cls.size)]
            assert sorted(ready) == [*range(cls.size)]
            yield pool

    @staticmethod
    def next(pool: Pool, kind: type[Any]) -> tuple[int, Any]:
        event = pool.receive()
        assert event is not None
        assert isinstance(event[1], kind)
        return event

    def ask(self, pool: Pool, task: WorkerTask[Any], worker: int = 0) -> Reply:
        pool.executor.send(worker, task)
        number, reply = self.next(pool, Reply)
        assert number == worker
        assert isinstance(reply, Reply)
        return reply

    def renew(self, pool: Pool, worker: int) -> None:
        pool.replace(worker)
        assert self.next(pool, str)[0] == worker

    def test_every_task_is_answered_by_its_worker(self, started: Pool) -> None:
        for worker in range(self.size):
            started.executor.send(worker, Repeat(f"task {worker}"))
        results = dict([self.next(started, Reply) for _ in range(self.size)])
        assert {*results} == {*range(self.size)}
        for worker, reply in results.items():
            assert reply.result.startswith(f"task {worker} in workers")

    def test_errors_are_answers(self, started: Pool) -> None:
        refused = self.ask(started, Refuse())
        assert isinstance(refused.error, InputError)
        assert str(refused.error) == "this input is bad"
        stumbled = self.ask(started, Stumble())
        assert type(stumbled.error) is ContstimError
        assert "ZeroDivisionError" in str(stumbled.error)
        assert self.ask(started, Repeat("still here")).error is None

    def test_a_replaced_worker_remembers_nothing(self, started: Pool) -> None:
        first, second = (self.ask(started, Remember()).result for _ in range(2))
        assert second == first + 1
        self.renew(started, 0)
        assert self.ask(started, Remember()).result == 1


class SeparateWorkersContract(ExecutorContract):
    """For executors whose workers are other processes."""

    def test_the_stopped_and_the_dead_are_replaced_and_others_not_disturbed(
        self, started: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor is one that works for longer than another may be silent."""
        before = self.ask(started, Remember(), worker=1).result
        for fatal, reason in ((Stop(), f"no sign of life for {SILENCE} seconds"), (Die(), "")):
            enough = tmp_path / type(fatal).__name__
            started.executor.send(1, Wait(enough))
            started.executor.send(0, fatal)
            # No longer than it must: a worker that starts on a busy machine may be silent, too
            with monkeypatch.context() as patched:
                patched.setattr(started.executor, "silence", SILENCE)
                worker, died = self.next(started, WorkerError)
            assert worker == 0
            assert str(died) if not reason else str(died) == reason
            assert self.next(started, str)[0] == 0
            assert self.ask(started, Remember(), worker=0).result == 1
            enough.touch()
            assert self.next(started, Reply)[0] == 1
        assert self.ask(started, Remember(), worker=1).result == before + 1

    def test_a_busy_worker_can_be_replaced(self, started: Pool) -> None:
        started.executor.send(0, Sleep())
        assert started.receive(0.5) is None
        self.renew(started, 0)
        assert self.ask(started, Remember()).result == 1

    def test_closing_ends_busy_workers_too(self) -> None:
        with worker_pool(self.make(1), WorkerContext(Loading(device="cpu"))) as pool:
            _, ready = self.next(pool, str)
            pool.executor.send(0, Sleep())
        assert vanishes(process_of(ready))


def process_of(ready: str) -> int:
    return int(re.findall(r"process (\d+)", ready)[0])


def vanishes(process: int) -> bool:
    """True if a process is gone within a minute."""
    for _ in range(1_200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
