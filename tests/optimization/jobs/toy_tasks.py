"""Tasks for tests of executors; a module of its own, because other processes import it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from contstim.errors import InputError
from contstim.optimization.jobs.tasks import SynthesisTask
from contstim.optimization.jobs.worker_context import WorkerContext


@dataclass(frozen=True)
class Repeat(SynthesisTask):
    text: str

    def perform(self, context: WorkerContext) -> str:
        return f"{self.text} in {context.folder.name}"


@dataclass(frozen=True)
class Refuse(SynthesisTask):
    def perform(self, context: WorkerContext) -> None:
        del context
        raise InputError("this input is bad")


@dataclass(frozen=True)
class Stumble(SynthesisTask):
    def perform(self, context: WorkerContext) -> float:
        del context
        return 1 / 0


@dataclass(frozen=True)
class Remember(SynthesisTask):
    """Counts on the worker's own context how often it was asked."""

    def perform(self, context: WorkerContext) -> int:
        context.loads += 1
        return context.loads


@dataclass(frozen=True)
class Die(SynthesisTask):
    def perform(self, context: WorkerContext) -> None:
        del context
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Sleep(SynthesisTask):
    def perform(self, context: WorkerContext) -> None:
        del context
        time.sleep(600)


@dataclass(frozen=True)
class Environment(SynthesisTask):
    name: str

    def perform(self, context: WorkerContext) -> str:
        del context
        return os.environ[self.name]
