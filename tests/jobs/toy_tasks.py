"""Tasks for tests of executors; a module of its own, because other processes import it."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from contstim.errors import InputError
from contstim.jobs.worker_context import WorkerContext, WorkerTask


@dataclass(frozen=True)
class Repeat(WorkerTask[WorkerContext]):
    text: str

    def perform(self, context: WorkerContext) -> str:
        return f"{self.text} in {context.folder.name}"


@dataclass(frozen=True)
class Refuse(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> None:
        del context
        raise InputError("this input is bad")


@dataclass(frozen=True)
class Stumble(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> float:
        del context
        return 1 / 0


@dataclass(frozen=True)
class Remember(WorkerTask[WorkerContext]):
    """Counts on the worker's own context how often it was asked."""

    def perform(self, context: WorkerContext) -> int:
        own = vars(context)
        own["asked"] = own.get("asked", 0) + 1
        return int(own["asked"])


@dataclass(frozen=True)
class Die(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> None:
        del context
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # another thread may receive the signal, a little later


@dataclass(frozen=True)
class Sleep(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> None:
        del context
        time.sleep(600)


@dataclass(frozen=True)
class Environment(WorkerTask[WorkerContext]):
    name: str

    def perform(self, context: WorkerContext) -> str:
        del context
        return os.environ[self.name]


@dataclass(frozen=True)
class Stop(WorkerTask[WorkerContext]):
    """Stops its process, which goes on when it is told to and not before."""

    def perform(self, context: WorkerContext) -> None:
        del context
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)  # as above


@dataclass(frozen=True)
class Nap(WorkerTask[WorkerContext]):
    seconds: float

    def perform(self, context: WorkerContext) -> str:
        del context
        time.sleep(self.seconds)
        return "awake"


@dataclass(frozen=True)
class Wait(WorkerTask[WorkerContext]):
    """Works until there is a file."""

    file: Path

    def perform(self, context: WorkerContext) -> str:
        del context
        while not self.file.exists():
            time.sleep(0.02)
        return "it is there"


@dataclass(frozen=True)
class Compute(WorkerTask[WorkerContext]):
    """Lets no other thread of its process run, as libraries do that read large files; endless."""

    def perform(self, context: WorkerContext) -> None:
        (context.folder / "began").touch()
        sys.setswitchinterval(1_000)
        while True:
            pass


@dataclass(frozen=True)
class Interrupt(WorkerTask[WorkerContext]):
    """What Ctrl-C does, while a worker is busy."""

    def perform(self, context: WorkerContext) -> None:
        del context
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)


@dataclass(frozen=True)
class Exit(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> None:
        del context
        sys.exit(3)


@dataclass(frozen=True)
class CallNetwork(WorkerTask[WorkerContext]):
    """Double a number by a network; what becomes of it is written down in this process."""

    tried: list[str]

    def perform(self, context: WorkerContext) -> list[float]:
        del context
        from tests.models.test_merging import doubled

        self.tried.append("began")
        try:
            return doubled(1.0)
        finally:
            self.tried.append("ended")
