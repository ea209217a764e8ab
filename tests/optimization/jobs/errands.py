"""Tasks for tests of executors; a module of its own, because other processes import it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from contstim.errors import InputError
from contstim.optimization.jobs.bench import Bench, Task


@dataclass(frozen=True)
class Repeat(Task):
    text: str

    def perform(self, bench: Bench) -> str:
        return f"{self.text} in {bench.folder.name}"


@dataclass(frozen=True)
class Refuse(Task):
    def perform(self, bench: Bench) -> None:
        del bench
        raise InputError("this input is bad")


@dataclass(frozen=True)
class Stumble(Task):
    def perform(self, bench: Bench) -> float:
        del bench
        return 1 / 0


@dataclass(frozen=True)
class Remember(Task):
    """Counts on the worker's own bench how often it was asked."""

    def perform(self, bench: Bench) -> int:
        bench.loads += 1
        return bench.loads


@dataclass(frozen=True)
class Die(Task):
    def perform(self, bench: Bench) -> None:
        del bench
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Sleep(Task):
    def perform(self, bench: Bench) -> None:
        del bench
        time.sleep(600)


@dataclass(frozen=True)
class Surroundings(Task):
    name: str

    def perform(self, bench: Bench) -> str:
        del bench
        return os.environ[self.name]
