"""Executors whose workers are processes on this machine."""

import os
import time
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.jobs.pool import Executor, worker_pool
from contstim.jobs.processes import ProcessExecutor, usable_processors, visible_gpus
from contstim.jobs.worker_context import Reply, WorkerContext
from contstim.models.loading import Loading
from tests.jobs.contract import SeparateWorkersContract
from tests.jobs.toy_tasks import Compute, Environment


class TestProcesses(SeparateWorkersContract):
    @classmethod
    def make(cls, workers: int) -> Executor:
        return ProcessExecutor(workers)


def test_a_task_that_blocks_all_threads_is_not_silent(tmp_path: Path) -> None:
    """Four signs of life differ; the blocked heartbeat thread could cause only one change."""
    signs: set[object] = set()
    deadline = time.monotonic() + 60
    with worker_pool(ProcessExecutor(1), WorkerContext(folder=tmp_path)) as pool:
        pool.receive()
        pool.executor.send(0, Compute())
        while not (tmp_path / "began").exists():
            assert time.monotonic() < deadline
        while len(signs) < 4:
            signs.add(pool.executor.signs_of_life()[0])
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(InputError, match="`workers` must be 1 or more, not 0"):
        ProcessExecutor(0)
    with (
        pytest.raises(InputError, match="`device_map` distributes a model over several GPUs"),
        worker_pool(ProcessExecutor(2), WorkerContext(Loading(device_map="auto"))),
    ):
        pass


def test_visible_gpus_are_those_of_cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_workers_receive_gpus_in_turn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    gpu_by_worker = {}
    with worker_pool(ProcessExecutor(3), WorkerContext(folder=tmp_path)) as pool:
        for _ in range(3):
            pool.receive()
        for worker in range(3):
            pool.executor.send(worker, Environment("CUDA_VISIBLE_DEVICES"))
            number, reply = pool.receive() or (-1, None)
            assert isinstance(reply, Reply)
            gpu_by_worker[number] = reply.result
    assert gpu_by_worker == {0: "5", 1: "7", 2: "5"}


def test_usable_processors_follow_the_cpu_affinity() -> None:
    """Witness: the CPU affinity of this process, before and after a restriction."""
    processors = os.sched_getaffinity(0)
    assert usable_processors() == len(processors)
    try:
        os.sched_setaffinity(0, {min(processors)})
        assert usable_processors() == 1
    finally:
        os.sched_setaffinity(0, processors)
