"""Workers of this process."""

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
    def fresh(self, tmp_path: Path) -> Iterator[Pool]:
        """A pool that may come to an end."""
        with worker_pool(InterleavedExecutor(3), WorkerContext(folder=tmp_path)) as pool:
            for _ in range(3):
                self.next(pool, str)
            yield pool

    def test_a_worker_that_waits_for_a_network_can_be_replaced(self, started: Pool) -> None:
        """Its task ends where it waits; the others' calls are computed without it."""
        tried: list[str] = []
        waits, other = CallNetwork(tried), CallNetwork([])
        started.executor.send(0, waits)
        started.executor.send(1, Repeat("at once"))
        assert self.next(started, Reply)[0] == 1
        assert tried == ["began"]
        self.renew(started, 0)
        assert tried == ["began", "ended"]
        assert self.ask(started, other, worker=2).result == [2.0]

    def test_a_limit_of_time_is_asked_between_turns(self, started: Pool) -> None:
        started.executor.send(0, CallNetwork([]))
        assert started.receive(0.0) is None
        event = started.receive(60.0)
        assert event is not None
        assert isinstance(event[1], Reply)

    def test_an_interrupt_reaches_the_main_thread_and_ends_all(self, fresh: Pool) -> None:
        threads = threading.active_count()
        tried: list[str] = []
        fresh.executor.send(0, CallNetwork(tried))
        fresh.executor.send(1, Interrupt())
        # Tests that run in the background of a shell have the signal ignored
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                fresh.receive()
        finally:
            signal.signal(signal.SIGINT, handler)
        fresh.executor.shutdown()
        assert tried == ["began", "ended"]
        assert threading.active_count() == threads - fresh.executor.size

    def test_what_ends_a_thread_ends_the_program(self, fresh: Pool) -> None:
        """A worker that left without a word would be waited for without end."""
        fresh.executor.send(0, Exit())
        with pytest.raises(SystemExit):
            fresh.receive()


def test_no_worker_is_refused() -> None:
    with pytest.raises(InputError, match="`workers` must be 1 or more, not 0"):
        InterleavedExecutor(0)
