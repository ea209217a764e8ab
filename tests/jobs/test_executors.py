from __future__ import annotations

import builtins
import os
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError, WorkerError
from contstim.jobs.executors import Executor, LocalExecutor, ProcessExecutor, RayExecutor
from contstim.jobs.executors.processes import usable_processors, visible_gpus
from contstim.jobs.worker_context import WorkerContext
from tests.jobs.contract import SILENCE, ExecutorContract, SeparateWorkersContract
from tests.jobs.toy_tasks import Compute, Environment


class TestLocal(ExecutorContract):
    @pytest.fixture
    def executor(self) -> LocalExecutor:
        return LocalExecutor()


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
        executor.start(WorkerContext(device_map="auto"))


def test_a_job_that_may_use_one_processor_gets_one_process() -> None:
    """Witness: what the system says this process may use, before and after it is limited."""
    before = os.sched_getaffinity(0)
    assert usable_processors() == len(before)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, before)
