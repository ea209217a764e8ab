"""Scorers in this process that let workers load models and compute scores."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, ModelError, WorkerError
from contstim.files.documents import shortened
from contstim.jobs.pool import Executor, Pool, TaskQueue, worker_pool
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from contstim.models.catalog import check_model
from contstim.models.remote import ModelCall, RemoteModel
from contstim.models.specifications import Models, parse_models
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.models.base import Convention, Scorer

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
    """Provide scorers whose models are loaded by workers, not by this process.

    Requests are split into chunks of sentences. `score_sentences` submits the chunks of all models
    together. A worker prefers chunks of a model that it has loaded. If a worker dies or hangs, its
    chunk is repeated. Results do not depend on such failures, nor on the executor or the number of
    workers.

    A model is written `[NAME=]SPECIFICATION`, such as `hf:gpt2`. `worker_pool` explains `executor`,
    `context`, `say` and `task_limit`. A task scores one chunk. If the worker has to load the model
    first, `task_limit` includes the time of loading.

    Raises:
        ModelError: see `load_scorers`.
        WorkerError: if workers cannot be started, or if a chunk fails three times.
    """
    models = parse_models(specifications)
    for model in models:
        check_model(model, context.loading)
    names = {model.specification: model.name for model in models}
    context = replace(context, names=names)
    with worker_pool(executor, context, say=say, task_limit=task_limit) as pool:
        # Specification of a model → convention (how it scores sentences) and training text
        facts: dict[str, tuple[Convention, Path | None]] = {}
        loading = [ModelTask(ModelCall(model.specification, "facts", ())) for model in models]
        work_off(pool, loading, lambda task, result: facts.update({task.model: result}), names)

        def answer(calls: Iterable[ModelCall], receive: Callable[[ModelCall, Any], None]) -> None:
            tasks = [ModelTask(c, facts[c.model][0].fingerprint) for c in calls]
            work_off(pool, tasks, lambda task, answer: receive(task.call, answer), names)

        yield [RemoteModel(model, *facts[model.specification], answer) for model in models]


@dataclass(frozen=True, eq=False)
class ModelTask(WorkerTask[WorkerContext]):
    """Task that calls a method of a model, or only loads the model to get facts about it.

    Attributes:
        fingerprint: expected fingerprint, a digest that identifies the model and its scoring rule.
            If it is empty, the task loads the model, and returns the convention (how the model
            scores sentences) and the path of the training text.
    """

    call: ModelCall
    fingerprint: str = ""

    @property
    def model(self) -> str:
        """Specification of the model."""
        return self.call.model

    @property
    def text(self) -> str:
        """Description for messages: the method, the number of its items, and the first item."""
        if not self.fingerprint:
            return "Loading the model"
        items = self.call.arguments[0]
        if not isinstance(items, tuple) or not items:
            return self.call.method
        first = getattr(items[0], "text", items[0])
        return f"{self.call.method} of {len(items):,} items from {shortened(first)} on"

    def perform(self, context: WorkerContext) -> Any:
        """See `WorkerTask.perform`.

        Raises:
            ModelError: if the model has changed, or if the called method raises this error.
        """
        (scorer,) = context.scorers((self.model,))
        if not self.fingerprint:
            return scorer.convention, scorer.training_text
        # The model's file may have been overwritten. Scores of the old model and of the new model
        # would then have the same name
        if scorer.convention.fingerprint != self.fingerprint:
            raise ModelError(
                f"{scorer.name} has changed since scoring began. Run the same command again."
            )
        return getattr(scorer, self.call.method)(*self.call.arguments, **self.call.keywords)


class ModelTaskQueue(TaskQueue[Any]):
    """Independent tasks of several models.

    Args:
        tasks: tasks with the attributes `model` (a specification) and `text` (a noun phrase for
            messages). Workers take the tasks of a model in the order of `tasks`.
        receive: callback for each task and its result.

    Attributes:
        errors: specification of a model whose tasks were cancelled → error.
    """

    def __init__(self, tasks: Iterable[Any], receive: Callable[[Any, Any], None]) -> None:
        by_model = grouped((task.model, task) for task in tasks)
        self._waiting = {model: deque(of_model) for model, of_model in by_model.items()}
        self._running: Counter[str] = Counter()
        self._receive = receive
        self.errors: dict[str, ContstimError] = {}

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not any(self._waiting.values()) and not self._running.total()

    def take(self, loaded: Sequence[str]) -> Any:
        """See `TaskQueue.take`.

        Prefer a model that the worker has loaded; then the model with the fewest running tasks;
        then the model with the most waiting tasks.
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

        If a task lost its worker or failed unexpectedly, it is retried at most twice. If the last
        retry fails, or if the model reports an error, all waiting tasks of the model are cancelled.
        """
        self._running[task.model] -= 1
        # Unexpected errors have exactly the class `ContstimError`, see `Reply`
        can_retry = isinstance(error, WorkerError) or type(error) is ContstimError
        if can_retry and attempt < _ATTEMPTS and task.model not in self.errors:
            self._waiting[task.model].appendleft(task)
            return
        if can_retry:
            error = WorkerError(
                f"{task.text} failed {attempt} times: {error}. Finished results are stored. Check "
                "whether the model fits into memory, and whether the time limit of a task is long "
                "enough. Then run the same command again."
            )
        self.errors.setdefault(task.model, error)
        self._waiting[task.model].clear()


def work_off(
    pool: Pool, tasks: Iterable[Any], receive: Callable[[Any, Any], None], names: Mapping[str, str]
) -> None:
    """Perform tasks of models; see `ModelTaskQueue` for `tasks` and `receive`.

    `names` maps specifications to names of models, for messages.

    Raises:
        ModelError: if a model reports an error, or if several models fail.
        WorkerError: if a task failed three times.
    """
    queue = ModelTaskQueue(tasks, receive)
    pool.work_off(queue)
    errors = [f"{names.get(model, model)}: {error}" for model, error in queue.errors.items()]
    if len(errors) > 1:
        raise ModelError("\n".join([f"{len(errors)} models failed.", *errors]))
    for error in queue.errors.values():
        # Name the model in a WorkerError; errors of models already contain the name
        raise WorkerError(errors[0]) if isinstance(error, WorkerError) else error
