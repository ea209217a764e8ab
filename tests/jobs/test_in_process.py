"""Executors whose workers run in this process."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.jobs.in_process import InterleavedExecutor, LocalExecutor
from contstim.jobs.pool import Executor, Pool, worker_pool
from contstim.jobs.worker_context import Reply, WorkerContext
from tests.jobs.contract import ExecutorContract
from tests.jobs.toy_tasks import CallNetwork, Exit, Interrupt, Repeat


class TestLocal(ExecutorContract):
    size = 1

    @classmethod
    def make(cls, workers: int) -> Executor:
        assert workers == 1
        return LocalExecutor()


class TestInterleaved(ExecutorContract):
    size = 3

    @classmethod
    def make(cls, workers: int) -> Executor:
        return InterleavedExecutor(workers)

    @pytest.fixture
    def new_pool(self, tmp_path: Path) -> Iterator[Pool]:
        """A pool for one test, which may end it."""
        with worker_pool(InterleavedExecutor(3), WorkerContext(folder=tmp_path)) as pool:
            for _ in range(3):
                self.receive_event(pool, str)
            yield pool

    def test_a_worker_that_waits_for_a_network_can_be_replaced(self, shared_pool: Pool) -> None:
        """The waiting task is ended; the calls of other workers are still computed."""
        events: list[str] = []
        waiting_call, other_call = CallNetwork(events), CallNetwork([])
        shared_pool.executor.send(0, waiting_call)
        shared_pool.executor.send(1, Repeat("at once"))
        assert self.receive_event(shared_pool, Reply)[0] == 1
        assert events == ["began"]
        self.replace_worker(shared_pool, 0)
        assert events == ["began", "ended"]
        assert self.request_reply(shared_pool, other_call, worker=2).result == [2.0]

    def test_the_time_limit_is_checked_between_turns(self, shared_pool: Pool) -> None:
        shared_pool.executor.send(0, CallNetwork([]))
        assert shared_pool.receive(0.0) is None
        event = shared_pool.receive(60.0)
        assert event is not None
        assert isinstance(event[1], Reply)

    def test_an_interrupt_ends_all_workers(self, new_pool: Pool) -> None:
        threads = threading.active_count()
        events: list[str] = []
        new_pool.executor.send(0, CallNetwork(events))
        new_pool.executor.send(1, Interrupt())
        # Background jobs of a shell ignore the signal
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                new_pool.receive()
        finally:
            signal.signal(signal.SIGINT, handler)
        new_pool.executor.shutdown()
        assert events == ["began", "ended"]
        assert threading.active_count() == threads - new_pool.executor.size

    def test_an_exit_in_a_worker_ends_the_program(self, new_pool: Pool) -> None:
        """Otherwise the pool would wait for the worker without end."""
        new_pool.executor.send(0, Exit())
        with pytest.raises(SystemExit):
            new_pool.receive()


def test_zero_workers_are_refused() -> None:
    with pytest.raises(InputError, match="`workers` must be 1 or more, not 0"):
        InterleavedExecutor(0)
