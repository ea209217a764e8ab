"""Workers in this process: a single worker, or several workers that take turns.

If workers take turns, their calls of neural networks are computed in common batches.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import ExitStack
from queue import SimpleQueue
from time import monotonic
from typing import Any

from contstim.errors import InputError
from contstim.jobs.pool import Event, Executor
from contstim.jobs.worker_context import Reply, WorkerContext, WorkerTask
from contstim.models.merging import Answer, NetworkCall, compute_all, runner
from contstim.wording import grouped

DEFAULT_WORKERS = 8
# Seconds to wait for a thread to end. A thread can end only at a network call or after its task
_PATIENCE = 5.0


class LocalExecutor(Executor):
    """One worker, which performs its task when `wait` is called.

    If a task kills the worker, for instance for lack of memory, this process also ends.
    """

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
        message = self._next
        return 0, message if isinstance(message, str) else self._context.answer(message)

    def end(self, worker: int) -> None:
        """See `Executor.end`."""

    def shutdown(self) -> None:
        """See `Executor.shutdown`."""
        self._context = WorkerContext()  # releases the models of the previous context


class InterleavedExecutor(Executor):
    """Workers as threads of this process, for one GPU; only one thread runs at a time.

    A worker runs until it needs a neural network or finishes its task. Of the workers that can
    continue, the worker with the lowest number runs next. When all workers with a task wait for a
    network, the network with the most waiting workers computes. It computes the calls of these
    workers in common batches (see `contstim.models.merging`).

    The order of workers does not depend on timing, so equal jobs give equal results. The number of
    workers affects the sizes of batches. Batch sizes may change the rounding of scores within a
    search.

    All workers share one copy of each model. A task that kills its worker kills this process. A
    task that hangs blocks all workers.

    Args:
        workers: number of workers; None for `DEFAULT_WORKERS`.

    Raises:
        InputError: if there is fewer than one worker.
    """

    shares_models = True

    def __init__(self, workers: int | None = None) -> None:
        self.size = check_worker_count(workers) or DEFAULT_WORKERS
        self._workers: dict[int, _Thread] = {}
        self._ready: deque[int] = deque()
        self._open = ExitStack()

    def start(self, context: WorkerContext) -> None:
        """See `Executor.start`."""
        from contstim.models.batching import float32_products

        self._lender = context.fresh()
        # `float32_products` applies to all threads, so enter it here, not within tasks
        self._open.enter_context(float32_products())

    def spawn(self, worker: int) -> None:
        """See `Executor.spawn`."""
        self._workers[worker] = _Thread(self._lender.borrower())
        self._ready.append(worker)

    def send(self, worker: int, task: WorkerTask[Any]) -> None:
        """See `Executor.send`."""
        self._workers[worker].message = task

    def wait(self, timeout: float) -> Event | None:
        """See `Executor.wait`; this method checks the timeout only between two turns of workers."""
        deadline = monotonic() + timeout
        while not self._ready:
            if monotonic() >= deadline:
                return None
            number = min((n for n, w in self._workers.items() if w.message is not None), default=-1)
            if number >= 0:
                if (reply := self._workers[number].run()) is not None:
                    return number, reply
                continue
            workers = [worker for _, worker in sorted(self._workers.items())]
            groups = grouped((id(w.call.network), w) for w in workers if w.call is not None)
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

    def shutdown(self) -> None:
        """See `Executor.shutdown`."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()
        self._ready.clear()
        self._open.close()


def check_worker_count(workers: int | None) -> int | None:
    """Check a requested number of workers, and return it; None is allowed.

    Raises:
        InputError: if the number is below 1.
    """
    if workers is not None and workers < 1:
        raise InputError(f"`workers` must be 1 or more, not {workers}.")
    return workers


class _Thread:
    """A thread that runs only while `run` waits for it.

    Attributes:
        message: next input of the thread, which is a task or the answer to a network call. None if
            the thread is idle or waits for an answer.
        call: network call that has no answer yet; None if there is no such call.
    """

    def __init__(self, context: WorkerContext) -> None:
        self.message: WorkerTask[Any] | Answer | None = None
        self.call: NetworkCall | None = None
        self._context = context
        # `_turns` has inputs of the thread; the input None ends the thread. `_results` has outputs
        self._turns: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[Reply | NetworkCall | BaseException] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def run(self) -> Reply | None:
        """Run the thread until its task ends or needs a network.

        Return the reply of a finished task; None if the task needs a network.
        """
        message, self.message, self.call = self.message, None, None
        self._turns.put(message)
        result = self._results.get()
        if isinstance(result, BaseException):  # an error outside of tasks, which ended the thread
            raise result
        if isinstance(result, NetworkCall):
            self.call = result
            return None
        return result

    def end(self) -> None:
        """End the thread as soon as it waits for an input."""
        self._turns.put(None)
        self._thread.join(_PATIENCE)

    def _work(self) -> None:
        try:
            with runner(self._wait):
                while (task := self._turns.get()) is not None:
                    self._results.put(self._context.answer(task))
        except GeneratorExit:  # from `_wait`; tasks do not catch it, since it is no `Exception`
            return
        except BaseException as error:
            self._results.put(error)

    def _wait(self, call: NetworkCall) -> Answer:
        """Pass a network call to `run`, and return the answer; the answer None ends the thread."""
        self._results.put(call)
        answer: Answer | None = self._turns.get()
        if answer is None:
            raise GeneratorExit
        return answer
