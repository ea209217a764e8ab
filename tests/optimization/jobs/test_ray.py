"""Jobs on Ray: two workers on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from contstim.errors import InputError, WorkerError
from contstim.optimization.jobs.executors import LocalExecutor, RayExecutor, Ready
from contstim.optimization.jobs.executors.base import Event
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.jobs.worker_context import WorkerContext
from contstim.store import Store
from tests.optimization.jobs.contract import SeparateWorkersContract, process_of, vanishes

pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """One Ray for all tests here, because it takes seconds to start."""
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


class TestRay(SeparateWorkersContract):
    @pytest.fixture
    def executor(self) -> RayExecutor:
        return RayExecutor(2)


class Watched(RayExecutor):
    """Tells in which processes its workers are."""

    def __init__(self) -> None:
        super().__init__(2)
        self.processes: dict[int, int] = {}

    def receive(self) -> Event:
        event = super().receive()
        if isinstance(event, Ready):
            self.processes[event.worker] = process_of(event)
        return event


def test_an_actor_killed_in_the_midst_changes_nothing(study: SynthesisPlan, tmp_path: Path) -> None:
    """Witness: the same study in this process."""
    context = WorkerContext("cpu", vocabulary=study.vocabulary)
    with Store(tmp_path / "local.sqlite") as store:
        expected = find_triplets(study, store, LocalExecutor(), context)
    executor, remarks = Watched(), list[str]()

    def kill_one(settled: int, _wanted: int) -> None:
        if settled == 3 and not remarks:
            os.kill(next(iter(executor.processes.values())), signal.SIGKILL)

    with Store(tmp_path / "ray.sqlite") as store:
        found = find_triplets(
            study, store, executor, context, say=remarks.append, progress=kill_one
        )
    assert found == expected
    assert len(remarks) == 1
    assert "died" in remarks[0]


def test_more_workers_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    executor = RayExecutor(9, gpus_per_worker=0)
    with pytest.raises(InputError, match="room for 2"):
        executor.start(WorkerContext(folder=tmp_path))


def test_a_cluster_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    import ray

    ray.shutdown()
    executor = RayExecutor(2, address="127.0.0.1:1")
    with pytest.raises(WorkerError, match=r"Cannot reach or start Ray at 127\.0\.0\.1:1 .*refused"):
        executor.start(WorkerContext(folder=tmp_path))


def test_a_killed_driver_leaves_no_process_of_ray_behind() -> None:
    """Witness: all descendants of the driver, as the system lists them before the kill."""
    program = Path(__file__).with_name("ray_driver.py")
    environment = {**os.environ, "PYTHONPATH": str(program.parents[2])}
    driver = subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, env=environment
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"ready\n"
    left = descendants(driver.pid)
    driver.kill()
    driver.communicate()
    assert len(left) >= 6  # two workers, the scheduler, the store, agents, and the watcher
    assert all(map(vanishes, left))


def descendants(process: int) -> list[int]:
    found = [
        child for thread in Path(f"/proc/{process}/task").glob("*") for child in children(thread)
    ]
    return found + [one for child in found for one in descendants(child)]


def children(thread: Path) -> list[int]:
    listed = thread / "children"
    if not listed.exists():
        pytest.skip("this system does not tell a process's children")
    return [int(child) for child in listed.read_text().split()]
