"""Models that workers hold, for all that scores sentences under them."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, ModelError, WorkerError
from contstim.files.documents import shortened
from contstim.jobs.pool import TaskQueue, worker_pool
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from contstim.models.catalog import check_model
from contstim.models.remote import ModelCall, RemoteModel
from contstim.models.specifications import parse_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.jobs.pool import Executor, Pool
    from contstim.models.base import Convention, Scorer
    from contstim.models.specifications import Models

_ATTEMPTS = 3


@contextmanager
def remote_scorers(
    specifications: Models,
    executor: Executor,
    context: WorkerContext,
    *,
    say: Callable[[str], None] = lambda _text: None,
    task_limit: float | None = None,
) -> Iterator[list[Scorer]]:
    """Models that workers load and hold; this process loads none.

    What is asked of one of them is cut into chunks, which workers answer; `score_sentences` deals
    the chunks of all models at once. A worker takes chunks of a model that it has loaded if there
    are any. Chunks whose worker dies or hangs are done again; results do not depend on that, nor on
    the executor and the number of workers.

    Args:
        specifications: `[NAME=]SPECIFICATION` each.
        executor: spawns the workers; is started and closed here.
        context: what every worker begins with.
        say: told what the user should know, such as the death of a worker.
        task_limit: seconds that a chunk may take, with loading the model; None for any time.

    Raises:
        ModelError: see `load_scorers`.
        WorkerError: workers cannot be started, or die three times of the same chunk.
    """
    models = parse_models(specifications)
    for named in models:
        check_model(named, context.loading)
    names = {named.specification: named.name for named in models}
    if not models:
        yield []
        return
    context = replace(context, names=names)
    with worker_pool(executor, context, say=say, task_limit=task_limit) as pool:
        # Each model is loaded once, to know what it is
        facts: dict[str, tuple[Convention, Path | None]] = {}
        loading = [ModelTask(ModelCall(named.specification, "facts", ())) for named in models]
        work_off(pool, loading, lambda task, told: facts.update({task.model: told}), names)

        def answer(calls: Iterable[ModelCall], receive: Callable[[ModelCall, Any], None]) -> None:
            tasks = [ModelTask(c, facts[c.model][0].fingerprint) for c in calls]
            work_off(pool, tasks, lambda task, answer: receive(task.call, answer), names)

        yield [RemoteModel(named, *facts[named.specification], answer) for named in models]


@dataclass(frozen=True, eq=False)
class ModelTask(WorkerTask[WorkerContext]):
    """Load a model and say what it is, or call a method of it.

    Attributes:
        call: the model, the method and what it is given.
        fingerprint: of the model when it was first loaded; empty to load it and say what it is.
    """

    call: ModelCall
    fingerprint: str = ""

    @property
    def model(self) -> str:
        """Specification of the model."""
        return self.call.model

    @property
    def text(self) -> str:
        """A noun phrase for the method, and the first of the items that it is about."""
        if not self.fingerprint:
            return "Loading the model"
        items = self.call.arguments[0]
        if not isinstance(items, tuple) or not items:
            return f"{self.call.method}"
        first = getattr(items[0], "text", items[0])
        return f"{self.call.method} of {len(items):,} items from {shortened(first)} on"

    def perform(self, context: WorkerContext) -> Any:
        """See `WorkerTask.perform`.

        Raises:
            ModelError: the model is no longer what it was, or see the method.
        """
        (scorer,) = context.scorers((self.model,))
        if not self.fingerprint:
            return scorer.convention, scorer.training_text
        # Files may have been overwritten since, and scores of two models must not share a name.
        if scorer.convention.fingerprint != self.fingerprint:
            raise ModelError(f"{scorer.name} has changed since scoring began; start it again.")
        return getattr(scorer, self.call.method)(*self.call.arguments, **self.call.keywords)


class ModelTaskQueue(TaskQueue[Any]):
    """Tasks of several models, none of which depends on another.

    Args:
        tasks: in the order in which each model's are taken; each has the specification of its
            `model`, and a `text`, a noun phrase.
        receive: told a task and its result, as it comes.

    Attributes:
        errors: why models were given up, by their specifications.
    """

    def __init__(self, tasks: Iterable[Any], receive: Callable[[Any, Any], None]) -> None:
        self._waiting: dict[str, deque[Any]] = {}
        for task in tasks:
            self._waiting.setdefault(task.model, deque()).append(task)
        self._running: Counter[str] = Counter()
        self._receive = receive
        self.errors: dict[str, ContstimError] = {}

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not any(self._waiting.values()) and not self._running.total()

    def take(self, loaded: Sequence[str]) -> Any:
        """See `TaskQueue.take`.

        Of a model that the worker has loaded if there is one; else of one at which fewest workers
        are, and of these the one with most to do.
        """
        waiting = [model for model, tasks in self._waiting.items() if tasks]
        if not waiting:
            return None
        model = min(
            waiting, key=lambda m: (m not in loaded, self._running[m], -len(self._waiting[m]))
        )
        self._running[model] += 1
        return self._waiting[model].popleft()

    def done(self, task: Any, result: Any) -> None:
        """See `TaskQueue.done`."""
        self._running[task.model] -= 1
        self._receive(task, result)

    def failed(self, task: Any, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`.

        A task whose worker was lost, or that failed in a way that nobody foresaw, is taken again,
        twice at most; a model that refuses is given up at once, and the others go on.
        """
        self._running[task.model] -= 1
        # What nobody foresaw comes as the very class, see `WorkerContext.answer`.
        may_pass = isinstance(error, WorkerError) or type(error) is ContstimError
        if may_pass and attempt < _ATTEMPTS and task.model not in self.errors:
            self._waiting[task.model].appendleft(task)
            return
        if may_pass:
            error = WorkerError(
                f"{task.text} failed {attempt} times: {error}. What is done so far is kept; see "
                f"whether the model fits the memory and the time limit of a task, and run the same "
                f"command again."
            )
        self.errors.setdefault(task.model, error)
        self._waiting[task.model].clear()


def work_off(
    pool: Pool,
    tasks: Iterable[Any],
    receive: Callable[[Any, Any], None],
    names: Mapping[str, str],
) -> None:
    """Have tasks of models done; see `ModelTaskQueue`.

    Args:
        pool: the workers.
        tasks: what to do.
        receive: told a task and its result, as it comes.
        names: what models are called, by their specifications.

    Raises:
        ModelError: a model refuses, or several failed.
        WorkerError: a task failed three times.
    """
    queue = ModelTaskQueue(tasks, receive)
    pool.work_off(queue)
    errors = [f"{names.get(model, model)}: {error}" for model, error in queue.errors.items()]
    if len(errors) > 1:
        raise ModelError("\n".join([f"{len(errors)} models failed.", *errors]))
    for error in queue.errors.values():
        # A model's own error names it; that of workers does not
        raise WorkerError(errors[0]) if isinstance(error, WorkerError) else error
