"""A study whose searches run on Ray."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from contstim.jobs import LocalExecutor, RayExecutor
from contstim.jobs.pool import Event, Ready
from contstim.models.loading import Loading
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.triplets import find_triplets
from contstim.store import Store
from tests.jobs.contract import process_of

pytest.importorskip("ray", reason="ray is not installed")


class Watched(RayExecutor):
    """Tells in which processes its workers are."""

    def __init__(self) -> None:
        super().__init__(2)
        self.processes: dict[int, int] = {}

    def wait(self, timeout: float) -> Event | None:
        event = super().wait(timeout)
        if event is not None and isinstance(event[1], Ready):
            self.processes[event[0]] = process_of(event[1])
        return event


def test_an_actor_killed_in_the_midst_changes_nothing(study: SynthesisPlan, tmp_path: Path) -> None:
    """Witness: the same study in this process."""
    context = SearchContext(Loading(device="cpu"), vocabulary=study.vocabulary)
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
    assert "is replaced" in remarks[0]
