"""Messages on standard error, and bars for long work; without a terminal a line a minute."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from contstim.cli.output import remark, terminal, warn
from contstim.reporter import Reporter
from contstim.wording import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress, TaskID

    from contstim.models.base import Scorer
    from contstim.sentence import Sentence

_SECONDS_PER_LINE = 60.0
_as_key = partial(re.compile(r"`([a-z][a-z0-9_]*)`").sub, r"\1")


@dataclass
class _Work:
    """A piece of work: how far it is, and how far it was when this process began with it."""

    done_before: float
    started: float
    done: float = 0.0
    total: float | None = None
    note: str = ""

    @property
    def finished(self) -> bool:
        return self.total is not None and self.done >= self.total

    @property
    def left(self) -> str:
        """Time left by the speed of this process, which an earlier run says nothing about."""
        done_now = self.done - self.done_before
        if self.total is None or self.finished or done_now <= 0:
            return ""
        seconds = (perf_counter() - self.started) * (self.total - self.done) / done_now
        return f"about {duration(seconds)} left"

    @property
    def amount(self) -> str:
        if not self.total:
            return f"{self.done:,.0f}"
        return f"{self.done:,.0f} of {self.total:,.0f} ({self.done / self.total:.0%})".replace(
            "%", " %"
        )


class ProgressBars(Reporter):
    """Shows what a step does, in a terminal or a notebook: its messages, and bars for long work.

    Every step takes it: `contstim.ScoreSentences(...).run(contstim.ProgressBars())`. In a
    notebook bars need ipywidgets; without it, and in a log, a line a minute tells the same.

    Args:
        quiet: whether warnings alone are printed.
        named: names the fields that a message has between backticks as whoever reads it gives them.
    """

    def __init__(self, *, quiet: bool = False, named: Callable[[str], str] = _as_key) -> None:
        self.quiet = quiet
        self._named = named
        console = terminal(stderr=True)
        in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
        self._draws = (console.is_terminal or in_notebook) and not quiet
        self._works: dict[str, _Work] = {}
        self._tasks: dict[str, TaskID] = {}
        self._bars: Progress | None = None
        self._over: Event | None = None

    def __enter__(self) -> Self:
        """Begin with no work."""
        self._works.clear()
        self._tasks.clear()
        return self

    def __exit__(self, *_raised: object) -> None:
        """Take the bars away."""
        if self._bars is not None:
            self._bars.stop()
        if self._over is not None:
            self._over.set()
        self._bars = self._over = None

    def say(self, text: str) -> None:
        """Print a line, unless quiet."""
        text = self._named(text)
        if self._bars is not None and not self.quiet:
            self._bars.console.print(text, highlight=False, soft_wrap=True)
        else:
            remark(text, quiet=self.quiet)

    def warn(self, text: str) -> None:
        """Print a warning, even if quiet."""
        text = self._named(text)
        if self._bars is not None and text:
            self._bars.console.print(f"warning: {text}", highlight=False, soft_wrap=True)
        else:
            warn(text)

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        """Move the bar of a piece of work; see `Reporter.progress`."""
        if self.quiet:
            return
        work = self._works.setdefault(what, _Work(done, perf_counter()))
        work.done, work.total, work.note = done, total, note
        if self._draws:
            self._draw(what, work)
        elif self._over is None:
            self._over = Event()
            Thread(target=self._print_every_minute, args=(self._over,), daemon=True).start()

    def _draw(self, what: str, work: _Work) -> None:
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        if self._bars is None:
            name = Column(overflow="fold")
            self._bars = Progress(
                TextColumn("{task.description}", markup=False, table_column=name),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[amount]}"),
                TextColumn("{task.fields[note]}", markup=False),
                TextColumn("{task.fields[left]}"),
                console=terminal(stderr=True),
                transient=True,
            )
            self._bars.start()
        texts: dict[str, Any] = {"amount": work.amount, "note": work.note, "left": work.left}
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=work.total, **texts)
        self._bars.update(self._tasks[what], completed=work.done, total=work.total, **texts)

    def _print_every_minute(self, over: Event) -> None:
        while not over.wait(_SECONDS_PER_LINE):
            for what, work in list(self._works.items()):
                if not work.finished:
                    minutes = f"{(perf_counter() - work.started) / 60:,.0f} min"
                    texts = (what, work.amount, work.note, minutes, work.left)
                    print(", ".join(filter(None, texts)), file=sys.stderr, flush=True)


@contextmanager
def scoring_progress(
    n_sentences: int, *, quiet: bool, together: bool = False
) -> Iterator[Callable[[Scorer, int], None]]:
    """Progress of scoring outside steps; see `contstim.steps.execution.scoring_progress`."""
    from contstim.steps.execution import scoring_progress as advance

    with ProgressBars(quiet=quiet) as reporter:
        yield advance(reporter, n_sentences, together=together)


@contextmanager
def training_progress(*, quiet: bool) -> Iterator[Callable[..., None]]:
    """Progress of training outside steps."""
    from contstim.steps.training import tell_training

    with ProgressBars(quiet=quiet) as reporter:
        yield lambda now, name="training": tell_training(reporter, name, now)


def reading_progress(sentences: Iterable[Sentence], *, quiet: bool) -> Iterator[Sentence]:
    """Progress of reading outside steps."""
    with ProgressBars(quiet=quiet) as reporter:
        yield from reporter.reading("sentences", sentences)
