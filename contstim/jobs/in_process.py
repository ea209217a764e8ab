"""Workers of this process: one, or several that take turns and share batches of a network."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import ExitStack
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.jobs.pool import Event, Executor
from contstim.jobs.worker_context import WorkerContext
from contstim.models.merging import Answer, NetworkCall, compute_all, runner

if TYPE_CHECKING:
    from contstim.jobs.worker_context import Reply, WorkerTask

DEFAULT_WORKERS = 8
# Seconds for a thread to end, which it does where it next needs a network; one that needs none
# goes on until its task is done, or this process ends
_PATIENCE = 5.0


class LocalExecutor(Executor):
    """One worker does each task when its answer is asked for; a task that kills it kills all."""

    size = 1

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`."""
        self._context = context

    def spawn(self, worker: int) -> None:  # noqa: ARG002
        """See `Executor.spawn`."""
        self._context = self._context.fresh()
        self._next: str | WorkerTask[Any] = f"process {os.getpid()}"

    def send(self, worker: int, task: WorkerTask[Any]) -> None:  # noqa: ARG002
        """See `Executor.send`."""
        self._next = task

    def wait(self, timeout: float) -> Event:  # noqa: ARG002
        """See `Executor.wait`."""
        told = self._next
        return 0, told if isinstance(told, str) else self._context.answer(told)

    def end(self, worker: int) -> None:
        """See `Executor.end`."""

    def close(self) -> None:
        """See `Executor.close`."""
        self._context = WorkerContext()  # the models go with the one before


class InterleavedExecutor(Executor):
    """Workers are threads of this process, of which one runs at a time, for one GPU.

    A worker runs until it needs a network or has done its task; then the next one does, in the
    order of their numbers. When all that have a task need a network, the one that most of them need
    computes their calls in common batches, see `contstim.models.merging`; the others wait on, and
    have more company next time. Nothing of this depends on how long anything
    takes, so that equal jobs give equal results; against another number of workers, or another
    executor, scores within a search may be rounded otherwise, as they are between batch sizes.

    Models are in memory once. A task that kills its worker kills all, and one that hangs stops all.

    Args:
        workers: how many; None for 8.

    Raises:
        InputError: fewer than one worker.
    """

    shares_models = True

    def __init__(self, workers: int | None = None) -> None:
        self.size = checked_number(workers) or DEFAULT_WORKERS
        self._workers: dict[int, _Thread] = {}
        self._ready: deque[int] = deque()
        self._open = ExitStack()

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`."""
        from contstim.models.batching import float32_products

        self._lender = context.fresh()
        # A setting of the whole process, which one worker must not undo while another computes
        self._open.enter_context(float32_products())

    def spawn(self, worker: int) -> None:
        """See `Executor.spawn`."""
        self._workers[worker] = _Thread(self._lender.borrower())
        self._ready.append(worker)

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        self._workers[worker].message = task

    def wait(self, timeout: float) -> Event | None:
        """See `Executor.wait`; how long it takes is asked between two turns of workers."""
        deadline = monotonic() + timeout
        while not self._ready:
            if monotonic() >= deadline:
                return None
            number = min((n for n, w in self._workers.items() if w.message is not None), default=-1)
            if number >= 0:
                reply = self._workers[number].run()
                if reply is not None:
                    return number, reply
                continue
            groups: dict[int, list[_Thread]] = {}
            for _, worker in sorted(self._workers.items()):
                if worker.call is not None:
                    groups.setdefault(id(worker.call.network), []).append(worker)
            assert groups, "no worker has a task"
            waiting = max(groups.values(), key=len)
            answers = compute_all([w.call for w in waiting if w.call is not None])
            for worker, answer in zip(waiting, answers, strict=True):
                worker.message = answer
        number = self._ready.popleft()
        return number, f"thread {number} of process {os.getpid()}"

    def end(self, worker: int) -> None:
        """See `Executor.end`."""
        self._workers.pop(worker).end()

    def close(self) -> None:
        """See `Executor.close`."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()
        self._ready.clear()
        self._open.close()


def checked_number(workers: int | None) -> int | None:
    """A number of workers that was asked for.

    Raises:
        InputError: fewer than one.
    """
    if workers is not None and workers < 1:
        raise InputError(f"`workers` must be 1 or more, not {workers}.")
    return workers


class _Thread:
    """A thread that runs while `run` waits for it, and else waits itself.

    Attributes:
        message: what it can go on with: a task, or the answer of a network; None for nothing.
        call: the network call that it waits for.
    """

    def __init__(self, context: WorkerContext) -> None:
        self.message: WorkerTask[Any] | Answer | None = None
        self.call: NetworkCall | None = None
        self._context = context
        # What goes to the thread, and what comes from it; None tells it to end
        self._turns: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[Reply | NetworkCall | BaseException] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def run(self) -> Reply | None:
        """Let it go on until it needs a network or has an answer, which is returned."""
        message, self.message, self.call = self.message, None, None
        self._turns.put(message)
        result = self._results.get()
        if isinstance(result, BaseException):  # that ended the thread
            raise result
        if isinstance(result, NetworkCall):
            self.call = result
            return None
        return result

    def end(self) -> None:
        """End the thread where it waits, or where it will wait next."""
        self._turns.put(None)
        self._thread.join(_PATIENCE)

    def _work(self) -> None:
        try:
            with runner(self._wait):
                while (task := self._turns.get()) is not None:
                    self._results.put(self._context.answer(task))
        except GeneratorExit:  # raised below: no error that a task handles
            return
        except BaseException as error:
            self._results.put(error)

    def _wait(self, call: NetworkCall) -> Answer:
        self._results.put(call)
        answer: Answer | None = self._turns.get()
        if answer is None:
            raise GeneratorExit
        return answer
