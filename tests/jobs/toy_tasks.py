"""Tasks for tests of executors, in a module that other processes can import."""

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
class Fail(WorkerTask[WorkerContext]):
    def perform(self, context: WorkerContext) -> float:
        del context
        return 1 / 0


@dataclass(frozen=True)
class CountCalls(WorkerTask[WorkerContext]):
    """Counts its calls in the context of the worker."""

    def perform(self, context: WorkerContext) -> int:
        attributes = vars(context)
        attributes["n_calls"] = attributes.get("n_calls", 0) + 1
        return int(attributes["n_calls"])


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
    """Stops its process until another process sends a signal to continue."""

    def perform(self, context: WorkerContext) -> None:
        del context
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(1)  # see `Die`


@dataclass(frozen=True)
class Nap(WorkerTask[WorkerContext]):
    seconds: float

    def perform(self, context: WorkerContext) -> str:
        del context
        time.sleep(self.seconds)
        return "awake"


@dataclass(frozen=True)
class Wait(WorkerTask[WorkerContext]):
    """Works until a file exists."""

    file: Path

    def perform(self, context: WorkerContext) -> str:
        del context
        while not self.file.exists():
            time.sleep(0.02)
        return "it is there"


@dataclass(frozen=True)
class Compute(WorkerTask[WorkerContext]):
    """Blocks all other threads of its process without end.

    Libraries that read large files also block them.
    """

    def perform(self, context: WorkerContext) -> None:
        (context.folder / "began").touch()
        sys.setswitchinterval(1_000)
        while True:
            pass


@dataclass(frozen=True)
class Interrupt(WorkerTask[WorkerContext]):
    """Sends the signal of Ctrl-C to the process of a busy worker."""

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
    """Doubles a number by a network and records its start and end in `events`."""

    events: list[str]

    def perform(self, context: WorkerContext) -> list[float]:
        del context
        from tests.models.test_merging import doubled

        self.events.append("began")
        try:
            return doubled(1.0)
        finally:
            self.events.append("ended")
