"""Output of the commands: results on standard output; remarks and bars on standard error.

Bars are for long work; without a terminal a line a minute tells the same.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from importlib.util import find_spec
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contstim.reporter import Reporter
from contstim.wording import duration, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from contstim.steps.step import ChangedSentences

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is left to chance.")]

_WITH_LINES = 6  # columns
INCOMPLETE = 3
"""Exit status where a search found nothing, or some of what was wanted could not be found."""


def terminal(*, stderr: bool = False) -> Console:
    """Console for tables and bars, which shows names that a user gave as they are.

    Every command prints through this one, so that a model named `[bold]` breaks none.
    """
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


def results_table(*header: str, texts: int = 1, title: str | None = None) -> Table:
    """An empty table: texts first, then numbers; what is too wide is folded and never cut."""
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table

    # Of many columns, lines between them would take the width
    box = HEAVY_HEAD if len(header) <= _WITH_LINES else SIMPLE_HEAD
    table = Table(title=title, title_justify="left", box=box)
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place < texts else "right", overflow="fold")
    return table


def print_table(table: Table, names: Mapping[str, str]) -> None:
    """Print a table and, under it, the full names of the models that it calls otherwise."""
    console = terminal()
    console.print(table)
    for name, short in names.items():
        if short != name:
            console.print(f"{short}: {name}", highlight=False, soft_wrap=True)


def print_rows(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, texts: int = 1, title: str = ""
) -> None:
    """Print a table: texts first, then numbers, of which whole ones get commas.

    Names of models that are long stand shortened in the table, and in full below it.

    Args:
        header: of the columns.
        rows: their cells.
        texts: how many columns, from the left, hold texts.
        title: above the table; empty for none.
    """
    from contstim.files.plugins import plugin_names
    from contstim.models.families import FAMILIES, GROUP
    from contstim.reporting.names import names_for_tables

    cells = [
        [f"{cell:,}" if isinstance(cell, int) else printable(str(cell)) for cell in row]
        for row in rows
    ]
    header, title = [*map(printable, header)], printable(title)
    # Of all texts, specifications of models alone begin with a family and a colon
    begins = tuple(f"{name}:" for name in (*FAMILIES, *plugin_names(GROUP)))
    every = dict.fromkeys(cell for row in (header, *cells) for cell in row)
    names = names_for_tables([text for text in every if text.startswith(begins)])
    shown = results_table(*(names.get(n, n) for n in header), texts=texts, title=title or None)
    for row in cells:
        shown.add_row(*(names.get(cell, cell) for cell in row))
    print_table(shown, names)


def print_sentences(changed: ChangedSentences) -> None:
    """Print a table of sentences, with words that differ from the natural one in bold colour."""
    from rich.text import Text

    columns = list(changed.names.values())
    if changed.roles:
        columns = [f"{role}: {name}" for role, name in zip(changed.roles, columns, strict=True)]
    table = results_table("", "sentence", *columns, texts=2)
    for label, sentence, scores in changed.rows:
        words = [
            Text(word, style="" if word == old else "bold magenta")
            # Searches replace words and never add one: both have equally many
            for word, old in zip(sentence.words, changed.natural.words, strict=True)
        ]
        shown = Text(" ").join(words) + sentence.end
        table.add_row(label, shown, *(f"{score:.2f}" for score in scores))
    print_table(table, changed.names)


def remark(text: str, *, quiet: bool = False) -> None:
    """A line on standard error, unless quiet."""
    if not quiet:
        print(printable(text), file=sys.stderr)


def warn(text: str) -> None:
    """A warning on standard error, even if quiet; nothing where there is nothing to warn of."""
    if text:
        print(f"warning: {printable(text)}", file=sys.stderr)


def show_warning(
    message: Warning | str, category: type[Warning], *_where: object, **_more: object
) -> None:
    """Print a warning of Python's as a sentence, without the line of code it came from."""
    del category
    warn(str(message))


_SECONDS_PER_LINE = 60.0
_as_key = partial(re.compile(r"`([a-z][a-z0-9_]*)`").sub, r"\1")


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
        self._tasks: dict[str, TaskID] = {}
        self._bars: Progress | None = None
        self._over = Event()

    def __exit__(self, *_raised: object) -> None:
        """Take the bars away."""
        if self._bars is not None and self._draws:
            self._bars.stop()
        self._over.set()
        self._tasks.clear()
        self._bars = None

    def say(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self.quiet:
            self._print(self._named(text))

    def warn(self, text: str) -> None:
        """Print a warning, even if quiet."""
        if text:
            self._print(f"warning: {self._named(text)}")

    def _print(self, text: str) -> None:
        if self._bars is not None and self._draws:
            self._bars.console.print(printable(text), highlight=False, soft_wrap=True)
        else:
            print(printable(text), file=sys.stderr)

    def progress(self, what: str, done: float, total: float | None, note: str = "") -> None:
        """Move the bar of a piece of work; see `Reporter.progress`."""
        if self.quiet:
            return
        bars = self._bars or self._begun()
        if what not in self._tasks:
            texts: dict[str, Any] = {"before": done, "amount": "", "left": "", "note": ""}
            self._tasks[what] = bars.add_task(what, **texts)
        task = bars.tasks[self._tasks[what]]
        amount, left = f"{done:,.0f}", ""
        if total:
            percent = f"{100 * done / total:.0f} %"
            # A fraction is work that is weighed by its cost, and no number of anything
            amount = f"{amount} of {total:,.0f} ({percent})" if done == int(done) else percent
            # By the speed of this process, which an earlier run says nothing about
            done_now = done - task.fields["before"]
            if done_now > 0 and done < total:
                left = f"about {duration((task.elapsed or 0) * (total - done) / done_now)} left"
        bars.update(task.id, completed=done, total=total, amount=amount, left=left, note=note)

    def _begun(self) -> Progress:
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        self._bars = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[note]}", markup=False),
            TextColumn("{task.fields[left]}"),
            console=terminal(stderr=True),
            transient=True,
            get_time=lambda: perf_counter(),
        )
        if self._draws:
            self._bars.start()
        else:
            self._over = Event()
            lines = partial(self._print_every_minute, self._bars, self._over)
            Thread(target=lines, daemon=True).start()
        return self._bars

    @staticmethod
    def _print_every_minute(bars: Progress, over: Event) -> None:
        while not over.wait(_SECONDS_PER_LINE):
            for task in bars.tasks:
                if task.total is None or task.completed < task.total:
                    minutes, of = f"{(task.elapsed or 0) / 60:,.0f} min", task.fields
                    texts = (task.description, of["amount"], of["note"], minutes, of["left"])
                    print(", ".join(filter(None, texts)), file=sys.stderr, flush=True)
