from __future__ import annotations

import builtins
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError, WorkerError
from contstim.jobs.executors import (
    Answered,
    Executor,
    InterleavedExecutor,
    LocalExecutor,
    ProcessExecutor,
    RayExecutor,
    Ready,
)
from contstim.jobs.executors.processes import usable_processors, visible_gpus
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading
from tests.jobs.contract import SILENCE, ExecutorContract, SeparateWorkersContract
from tests.jobs.toy_tasks import CallNetwork, Compute, Environment, Exit, Interrupt, Repeat


class TestLocal(ExecutorContract):
    @pytest.fixture
    def executor(self) -> LocalExecutor:
        return LocalExecutor()


class TestInterleaved(ExecutorContract):
    @pytest.fixture
    def executor(self) -> InterleavedExecutor:
        return InterleavedExecutor(3)

    def test_a_worker_that_waits_for_a_network_can_be_replaced(self, started: Executor) -> None:
        """Its task ends where it waits; the others' calls are computed without it."""
        tried: list[str] = []
        waits, other = CallNetwork(tried), CallNetwork([])
        started.send(0, waits)
        started.send(1, Repeat("at once"))
        event = started.receive()
        assert isinstance(event, Answered)
        assert event.worker == 1
        assert tried == ["began"]
        started.replace(0)
        assert tried == ["began", "ended"]
        assert isinstance(started.receive(), Ready)
        assert self.ask(started, other, worker=2).reply.result == [2.0]

    def test_a_limit_of_time_is_asked_between_turns(self, started: Executor) -> None:
        started.send(0, CallNetwork([]))
        assert started.receive(0.0) is None
        event = started.receive(60.0)
        assert isinstance(event, Answered)

    def test_an_interrupt_reaches_the_main_thread_and_ends_all(self, started: Executor) -> None:
        threads = threading.active_count()
        tried: list[str] = []
        started.send(0, CallNetwork(tried))
        started.send(1, Interrupt())
        # Tests that run in the background of a shell have the signal ignored
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                started.receive()
        finally:
            signal.signal(signal.SIGINT, handler)
        started.close()
        assert tried == ["began", "ended"]
        assert threading.active_count() == threads - started.size

    def test_what_ends_a_thread_ends_the_program(self, started: Executor) -> None:
        """A worker that left without a word would be waited for without end."""
        started.send(0, Exit())
        with pytest.raises(SystemExit):
            started.receive()


class TestProcesses(SeparateWorkersContract):
    @pytest.fixture
    def executor(self) -> ProcessExecutor:
        return ProcessExecutor(2, silence=SILENCE)

    def test_work_that_lets_no_thread_run_is_no_silence(self, started: Executor) -> None:
        assert self.ask(started, Compute(SILENCE + 2)).reply.result == "done"


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="1 worker or more, not 0"):
        ProcessExecutor(0)
    with pytest.raises(InputError, match="1 worker or more, not 0"):
        InterleavedExecutor(0)
    with pytest.raises(InputError, match="1 worker or more, not 0"):
        RayExecutor(0)
    with pytest.raises(InputError, match="0 or more, not -1"):
        RayExecutor(1, gpus_per_worker=-1)


def test_without_ray_the_message_is_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = builtins.__import__

    def without_ray(name: str, *rest: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(WorkerError, match=r"pip install 'contstim\[ray\]'"):
        RayExecutor(2)


def test_gpus_are_those_that_cuda_may_see(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: H (UUID: GPU-1)'\necho 'GPU 1: H (UUID: GPU-2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert visible_gpus() == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-aa")
    assert visible_gpus() == ["3", "GPU-aa"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []
    program.write_text("#!/bin/sh\nexit 9\n")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus() == []


def test_processes_have_the_gpus_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    with ProcessExecutor(3) as executor:
        executor.start(WorkerContext(folder=tmp_path))
        for _ in range(3):
            executor.receive()
        seen = {}
        for worker in range(3):
            executor.send(worker, Environment("CUDA_VISIBLE_DEVICES"))
            seen[worker] = executor.receive().reply.result  # type: ignore[union-attr]
    assert seen == {0: "5", 1: "7", 2: "5"}


def test_a_model_is_not_spread_over_the_one_gpu_of_a_process() -> None:
    executor = ProcessExecutor(2)
    with pytest.raises(InputError, match="--device-map spreads a model over several GPUs"):
        executor.start(WorkerContext(Loading(device_map="auto")))


def test_a_job_that_may_use_one_processor_gets_one_process() -> None:
    """Witness: what the system says this process may use, before and after it is limited."""
    before = os.sched_getaffinity(0)
    assert usable_processors() == len(before)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, before)
