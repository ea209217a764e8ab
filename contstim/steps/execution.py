"""Execution of a step's work: in this process, in several processes, or on a Ray cluster."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from contstim.errors import InputError
from contstim.options import Aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.jobs import Executor
    from contstim.models.base import Scorer
    from contstim.models.loading import Loading
    from contstim.models.specifications import Models
    from contstim.reporter import Reporter


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options for executing searches."""

    PANEL: ClassVar[str] = "Execution"

    executor: Annotated[
        Literal["local", "interleaved", "processes", "ray"],
        Aside(
            "Where tasks run. local: in this process, one after the other. interleaved: in this "
            "process, by default 8 tasks at once, which share the batches of a GPU. processes: in "
            "several processes. ray: on a Ray cluster."
        ),
    ] = "local"
    workers: Annotated[
        int | None,
        Aside(
            "Number of workers. By default, one per GPU or, without GPUs, one per processor.",
            at_least=1,
        ),
    ] = None
    task_timeout: Annotated[
        float | None,
        Aside(
            "Time limit of a task, seconds. A task is one search, or 200 sentences to score.",
            at_least=1,
        ),
    ] = None
    gpus_per_worker: Annotated[float | None, Aside("With ray: GPUs per worker.", at_least=0)] = None

    def new_executor(self) -> Executor:
        """Return a new executor.

        Raises:
            InputError: if a setting is for another executor.
        """
        from contstim.jobs import InterleavedExecutor, LocalExecutor, ProcessExecutor, RayExecutor

        # Refuse options without effect, because the user expects an effect
        if self.executor == "ray":
            return RayExecutor(self.workers, gpus_per_worker=self.gpus_per_worker)
        if self.gpus_per_worker is not None:
            raise InputError(
                "`gpus_per_worker` needs the `executor` ray. Set `executor`, or remove "
                "`gpus_per_worker`."
            )
        if self.executor == "processes":
            return ProcessExecutor(self.workers)
        if self.executor == "interleaved":
            return InterleavedExecutor(self.workers)
        if self.workers not in (None, 1):
            raise InputError(
                "`workers` must be 1 for the `executor` local. Use another executor for more."
            )
        if self.task_timeout is not None:
            raise InputError(
                "`task_timeout` needs another `executor` than local. Remove it, or set `executor`."
            )
        return LocalExecutor()


@dataclass(frozen=True, kw_only=True)
class ScoringExecution(Execution):
    """Options for executing the scoring of sentences."""

    # The executor `interleaved` is left out: it lets searches share batches, because one search
    # does not fill a batch. Scoring fills its batches without this executor
    executor: Annotated[
        Literal["local", "processes", "ray"],
        Aside("Where tasks run: in this process, in several processes, or on Ray."),
    ] = "local"
    models_in_memory: Annotated[int, Aside("Number of loaded models per worker.", at_least=1)] = 1

    @property
    def is_local(self) -> bool:
        """True if this process scores the sentences.

        Raises:
            InputError: if a setting is for another executor.
        """
        if self.executor != "local":
            return False
        self.new_executor()
        if self.models_in_memory != 1:
            raise InputError(
                "`models_in_memory` needs the `executor` processes or ray. Remove it, or set "
                "`executor`."
            )
        return True

    @contextmanager
    def scorers(
        self, models: Models, loading: Loading, say: Callable[[str], None]
    ) -> Iterator[list[Scorer]]:
        """Load models in this process, or in workers that exit at the end of the `with` statement.

        `say` prints messages, for example if a worker dies.

        Raises:
            InputError: if a setting needs another executor.
            ModelError: if a model cannot be loaded.
            WorkerError: if workers cannot be started.
        """
        from contstim.models.catalog import load_scorers

        if self.is_local or not models:
            yield load_scorers(models, loading)
            return
        from contstim.jobs.model_workers import remote_scorers
        from contstim.jobs.worker_context import WorkerContext

        context = WorkerContext(loading, self.models_in_memory)
        with remote_scorers(
            models, self.new_executor(), context, say=say, task_limit=self.task_timeout
        ) as scorers:
            yield scorers

    def progress(
        self, reporter: Reporter, n_sentences: int, items: str = ""
    ) -> Callable[[Scorer, int], None]:
        """Make a callback that shows a progress bar for each model.

        With workers, one bar shows the progress of all models.

        Args:
            reporter: shows the bars.
            n_sentences: number of distinct sentences per model.
            items: name of the scored items, if models score several kinds in turn.

        Returns:
            A function of a model and its number of newly scored sentences.
        """
        together = not self.is_local
        done: Counter[str] = Counter()
        names: set[str] = set()  # models that have scored at least one sentence

        def advance(model: Scorer, number: int) -> None:
            names.add(model.name)
            label = " ".join(filter(None, ("scores" if together else model.name, items)))
            done[label] += number
            reporter.progress(label, done[label], n_sentences * (len(names) if together else 1))

        return advance


LOCAL, LOCAL_SCORING = Execution(), ScoringExecution()
