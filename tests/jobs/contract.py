"""Guarantees of every executor in a pool; the tests of an executor inherit these classes."""

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
from tests.jobs.toy_tasks import CountCalls, Die, Fail, Refuse, Repeat, Sleep, Stop, Wait

SILENCE = 2


class ExecutorContract:
    """Guarantees of all executors; subclasses define `make`."""

    size = 2

    @classmethod
    def make(cls, workers: int) -> Executor:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def shared_pool(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
        """A pool shared by the tests of a class; every test leaves all workers idle."""
        executor, folder = cls.make(cls.size), tmp_path_factory.mktemp("workers")
        with worker_pool(executor, WorkerContext(Loading(device="cpu"), folder=folder)) as pool:
            workers = [cls.receive_event(pool, str)[0] for _ in range(cls.size)]
            assert sorted(workers) == [*range(cls.size)]
            yield pool

    @staticmethod
    def receive_event(pool: Pool, kind: type[Any]) -> tuple[int, Any]:
        event = pool.receive()
        assert event is not None
        assert isinstance(event[1], kind)
        return event

    def request_reply(self, pool: Pool, task: WorkerTask[Any], worker: int = 0) -> Reply:
        pool.executor.send(worker, task)
        number, reply = self.receive_event(pool, Reply)
        assert number == worker
        assert isinstance(reply, Reply)
        return reply

    def replace_worker(self, pool: Pool, worker: int) -> None:
        pool.replace(worker)
        assert self.receive_event(pool, str)[0] == worker

    def test_every_worker_returns_the_result_of_its_task(self, shared_pool: Pool) -> None:
        for worker in range(self.size):
            shared_pool.executor.send(worker, Repeat(f"task {worker}"))
        results = dict([self.receive_event(shared_pool, Reply) for _ in range(self.size)])
        assert {*results} == {*range(self.size)}
        for worker, reply in results.items():
            assert reply.result.startswith(f"task {worker} in workers")

    def test_errors_are_returned_as_replies(self, shared_pool: Pool) -> None:
        refusal = self.request_reply(shared_pool, Refuse())
        assert isinstance(refusal.error, InputError)
        assert str(refusal.error) == "this input is bad"
        failure = self.request_reply(shared_pool, Fail())
        assert type(failure.error) is ContstimError
        assert "ZeroDivisionError" in str(failure.error)
        assert self.request_reply(shared_pool, Repeat("still here")).error is None

    def test_a_replaced_worker_has_no_state(self, shared_pool: Pool) -> None:
        first, second = (self.request_reply(shared_pool, CountCalls()).result for _ in range(2))
        assert second == first + 1
        self.replace_worker(shared_pool, 0)
        assert self.request_reply(shared_pool, CountCalls()).result == 1


class SeparateWorkersContract(ExecutorContract):
    """Guarantees of executors whose workers are other processes."""

    def test_only_stopped_and_killed_workers_are_replaced(
        self, shared_pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other worker is busy for longer than the silence limit."""
        n_requests = self.request_reply(shared_pool, CountCalls(), worker=1).result
        for fatal_task, reason in ((Stop(), f"no sign of life for {SILENCE} seconds"), (Die(), "")):
            stop_file = tmp_path / type(fatal_task).__name__
            shared_pool.executor.send(1, Wait(stop_file))
            shared_pool.executor.send(0, fatal_task)
            # The limit applies only here: on a busy machine, a starting worker may be silent too
            with monkeypatch.context() as patch:
                patch.setattr(shared_pool.executor, "silence", SILENCE)
                worker, error = self.receive_event(shared_pool, WorkerError)
            assert worker == 0
            assert str(error) if not reason else str(error) == reason
            assert self.receive_event(shared_pool, str)[0] == 0
            assert self.request_reply(shared_pool, CountCalls(), worker=0).result == 1
            stop_file.touch()
            assert self.receive_event(shared_pool, Reply)[0] == 1
        assert self.request_reply(shared_pool, CountCalls(), worker=1).result == n_requests + 1

    def test_a_busy_worker_can_be_replaced(self, shared_pool: Pool) -> None:
        shared_pool.executor.send(0, Sleep())
        assert shared_pool.receive(0.5) is None
        self.replace_worker(shared_pool, 0)
        assert self.request_reply(shared_pool, CountCalls()).result == 1

    def test_closing_the_pool_ends_busy_workers(self) -> None:
        with worker_pool(self.make(1), WorkerContext(Loading(device="cpu"))) as pool:
            _, message = self.receive_event(pool, str)
            pool.executor.send(0, Sleep())
        assert vanishes(process_of(message))


def process_of(message: str) -> int:
    return int(re.findall(r"process (\d+)", message)[0])


def vanishes(process: int) -> bool:
    """Return whether a process ends within a minute."""
    for _ in range(1_200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
