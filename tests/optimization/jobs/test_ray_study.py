"""A study whose searches run on Ray."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from contstim.jobs import LocalExecutor, RayExecutor
from contstim.jobs.pool import Event
from tests.jobs.contract import process_of
from tests.optimization.jobs.studies import Study

pytest.importorskip("ray", reason="ray is not installed")


class MonitoredExecutor(RayExecutor):
    """Records the processes of its workers."""

    def __init__(self) -> None:
        super().__init__(2)
        self.processes: dict[int, int] = {}

    def wait(self, timeout: float) -> Event | None:
        event = super().wait(timeout)
        if event is not None and isinstance(event[1], str):
            self.processes[event[0]] = process_of(event[1])
        return event


@pytest.mark.slow
def test_a_killed_actor_does_not_change_the_results(study: Study, tmp_path: Path) -> None:
    """Witness: the same study in this process."""
    expected = study.find(tmp_path / "local.sqlite", LocalExecutor())
    executor, remarks = MonitoredExecutor(), list[str]()

    def replacements() -> list[str]:
        return [remark for remark in remarks if "is replaced" in remark]

    def kill_one(settled: int, _total: int) -> None:
        # Early, so that both workers still have searches to do
        if settled == 1 and not replacements():
            os.kill(next(iter(executor.processes.values())), signal.SIGKILL)

    results = study.find(tmp_path / "ray.sqlite", executor, say=remarks.append, progress=kill_one)
    assert results == expected
    assert len(replacements()) == 1
