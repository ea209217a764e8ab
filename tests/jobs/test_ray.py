"""Executors on Ray, with two workers on this machine."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import InputError, WorkerError
from contstim.jobs.model_workers import remote_scorers
from contstim.jobs.pool import Executor, worker_pool
from contstim.jobs.ray import RayExecutor
from contstim.jobs.worker_context import WorkerContext
from contstim.models.loading import Loading
from contstim.models.ngram.adapter import NgramModel
from contstim.models.remote import CHUNK
from contstim.words.sentence import Sentence
from tests.jobs.contract import SeparateWorkersContract, vanishes

pytest.importorskip("ray", reason="ray is not installed")


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """Ray, started once for all tests because it takes seconds to start."""
    import ray

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.mark.slow
class TestRay(SeparateWorkersContract):
    @classmethod
    def make(cls, workers: int) -> Executor:
        return RayExecutor(workers)


def test_actors_return_the_scores_of_the_model(trained: Path, english: list[Sentence]) -> None:
    """Witness: the model in this process."""
    path = trained / "2gram.arpa"
    executor = RayExecutor(2)
    sentences = english[: CHUNK + 60]
    with remote_scorers([f"two=kenlm:{path}"], executor, WorkerContext(Loading(device="cpu"))) as (
        scorer,
    ):
        scores = scorer.scores(sentences)
    np.testing.assert_array_equal(scores, NgramModel(path).log_probs(sentences))


def test_more_workers_than_processors_are_refused(tmp_path: Path) -> None:
    executor = RayExecutor(9, gpus_per_worker=0)
    with (
        pytest.raises(InputError, match="enough for 3 workers"),
        worker_pool(executor, WorkerContext(folder=tmp_path)),
    ):
        pass


def test_error_names_unreachable_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    ray.shutdown()
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    executor = RayExecutor(2)
    with pytest.raises(WorkerError, match=r"at 127\.0\.0\.1:1 .*refused.* unset RAY_ADDRESS"):
        executor.start(WorkerContext(folder=tmp_path))
    executor.shutdown()


@pytest.mark.slow
def test_processes_of_ray_end_after_a_killed_driver() -> None:
    """Witness: the descendants of the driver that the system lists before the kill."""
    program = Path(__file__).with_name("ray_driver.py")
    environment = {**os.environ, "PYTHONPATH": str(program.parents[2])}
    job = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, env=environment)
    assert job.stdout is not None
    assert job.stdout.readline() == b"ready\n"
    descendant_ids = list_descendants(job.pid)
    job.kill()
    job.communicate()
    assert (
        len(descendant_ids) >= 6
    )  # two workers, the scheduler, the store, agents, and the watcher
    assert all(map(vanishes, descendant_ids))


def list_descendants(process: int) -> list[int]:
    direct = [
        child
        for thread in Path(f"/proc/{process}/task").glob("*")
        for child in list_children(thread)
    ]
    return direct + [descendant for child in direct for descendant in list_descendants(child)]


def list_children(thread: Path) -> list[int]:
    path = thread / "children"
    if not path.exists():
        pytest.skip("this system does not list the children of a process")
    return [int(child) for child in path.read_text().split()]
