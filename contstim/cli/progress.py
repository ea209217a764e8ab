"""Bars while long work goes on: on standard error, or in a notebook; elsewhere a line a minute."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any

from contstim.cli.output import remark, terminal, warn
from contstim.steps.watching import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

    from contstim.models.base import Scorer
    from contstim.models.training.loop import Progress
    from contstim.sentence import Sentence

_SENTENCES_PER_UPDATE = 10_000
_SECONDS_PER_LINE = 60.0


@contextmanager
def progress_bars(*columns: ProgressColumn, quiet: bool, passing: bool = False) -> Iterator[Bars]:
    """Bars on standard error or in a notebook; elsewhere a plain line a minute for each.

    Args:
        columns: what stands beside each other; by default a name, a bar, a share and the time left.
        quiet: show nothing.
        passing: whether the bars go away at the end.
    """
    from rich.progress import Progress

    console = terminal(stderr=True)
    # A log of a cluster, or a pipe; notebooks have bars where ipywidgets is installed
    in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
    plain = not (console.is_terminal or in_notebook or quiet)
    with Progress(*columns, console=console, disable=quiet or plain, transient=passing) as bars:
        if not plain:
            yield bars
            return
        # Rich would print bars once, at the end; a log wants to be told in between.
        over = Event()
        printer = Thread(target=_print_every_minute, args=(bars, over), daemon=True)
        printer.start()
        try:
            yield bars
        finally:
            over.set()
            printer.join()


def _print_every_minute(bars: Bars, over: Event) -> None:
    """Print how far each unfinished task is: its columns of text, how much is done, the time."""
    from rich.progress import TextColumn

    start = perf_counter()
    while not over.wait(_SECONDS_PER_LINE):
        seconds = perf_counter() - start
        for task in bars.tasks:
            if not task.started or task.finished:
                continue
            # The very class: Rich's column of shares derives from it, and is said in words below
            texts = [c(task) for c in bars.columns if type(c) is TextColumn]
            words = [str(text) for text in texts if str(text).strip()] or [task.description]
            if task.total:
                share = f"({task.percentage:.0f} %)"
                words.append(f"{task.completed:,.0f} of {task.total:,.0f} {share}")
            words.append(f"{seconds / 60:,.0f} min")
            if task.total and task.completed:
                left = seconds * (task.total - task.completed) / task.completed
                words.append(f"about {left / 60:,.0f} min left")
            print(", ".join(words), file=sys.stderr, flush=True)


@contextmanager
def step_progress(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """One bar for a single piece of work, to be told how many steps of how many are done."""
    with progress_bars(quiet=quiet, passing=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def reading_progress(sentences: Iterable[Sentence], *, quiet: bool) -> Iterator[Sentence]:
    """Pass sentences on, and show how many have been read."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} sentences"), TimeElapsedColumn())
    with progress_bars(*columns, quiet=quiet, passing=True) as progress:
        # A stream does not say how long it is
        task = progress.add_task("reading", total=None)
        for number, sentence in enumerate(sentences, start=1):
            if number % _SENTENCES_PER_UPDATE == 0:
                progress.update(task, completed=number)
            yield sentence


@contextmanager
def scoring_progress(
    n_sentences: int, *, quiet: bool, together: bool = False
) -> Iterator[Callable[[Scorer, int], None]]:
    """A bar for each model, or one for all where they are scored together; with the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    names: dict[str, None] = {}  # of the models that have begun
    with progress_bars(*columns, quiet=quiet) as bars:

        def advance(model: Scorer, more: int) -> None:
            # A bar appears when its model begins: models are loaded one after the other
            names[model.name] = None
            label = "scores" if together else model.name
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=n_sentences)
            # All of them tell at once what the store has, before any is scored
            bars.update(tasks[label], total=n_sentences * (len(names) if together else 1))
            bars.advance(tasks[label], more)

        yield advance


@contextmanager
def training_progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """A bar over all steps of a training, with losses, perplexities and the time left.

    What it yields takes where a training is, and the training's name where there are several.
    """
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        TextColumn("epoch {task.fields[epoch]} of {task.fields[epochs]}"),
        BarColumn(),
        TextColumn("{task.fields[losses]}"),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with progress_bars(*columns, quiet=quiet) as bars:

        def show(now: Progress, name: str = "") -> None:
            losses = f"loss {now.loss:.3f}, perplexity {math.exp(now.loss):,.1f}"
            if now.validation_loss is not None:
                losses += f" (validation {math.exp(now.validation_loss):,.1f})"
            texts: dict[str, Any] = {"epoch": now.epoch, "epochs": now.epochs, "losses": losses}
            if name not in tasks:
                # A training that goes on where it was interrupted does not start at 0
                tasks[name] = bars.add_task(name, total=now.steps, completed=now.step - 1, **texts)
            bars.update(tasks[name], completed=now.step, **texts)

        yield show


@contextmanager
def search_progress(
    *, quiet: bool
) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """A printer of remarks above a bar, and that bar over all searches, with the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with progress_bars(*columns, quiet=quiet) as bars:
        # Seconds: searches take minutes each, and Rich forgets after half a minute
        bars.speed_estimate_period = 3_600
        task = bars.add_task("models", total=None)
        started = False

        def advance(settled: int, wanted: int) -> None:
            nonlocal started
            if not started:  # what an earlier run settled says nothing about this one's speed
                bars.reset(task, total=wanted, completed=settled, description="triplets")
                started = True
            bars.update(task, total=wanted, completed=settled)

        yield partial(bars.console.print, highlight=False), advance


class ProgressBars(Watcher):
    """Shows what a step does, in a terminal or a notebook: its remarks, and bars for long work.

    Every step takes it as `watch`: `contstim.score(..., watch=contstim.ProgressBars())`. In a
    notebook bars need ipywidgets; without it, and in a log, a line a minute tells the same.

    Args:
        quiet: whether warnings alone are printed.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    def remark(self, text: str) -> None:
        """Print a line, unless quiet."""
        remark(text, quiet=self.quiet)

    def warn(self, text: str) -> None:
        """Print a warning, even if quiet."""
        warn(text)

    def reading(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """See `reading_progress`."""
        return reading_progress(sentences, quiet=self.quiet)

    @contextmanager
    def scoring(
        self, n_sentences: int, *, together: bool = False
    ) -> Iterator[Callable[[Scorer, int], None]]:
        """See `scoring_progress`."""
        with scoring_progress(n_sentences, quiet=self.quiet, together=together) as advance:
            yield advance

    @contextmanager
    def training(self) -> Iterator[Callable[..., None]]:
        """See `training_progress`."""
        with training_progress(quiet=self.quiet) as show:
            yield show

    @contextmanager
    def searching(self) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
        """See `search_progress`."""
        with search_progress(quiet=self.quiet) as (say, advance):
            yield say, advance

    @contextmanager
    def working(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """See `step_progress`."""
        with step_progress(what, quiet=self.quiet) as advance:
            yield advance
