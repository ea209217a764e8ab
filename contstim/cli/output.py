"""Output of the commands: results on standard output; remarks and progress on standard error.

Long tasks have progress bars. Without a terminal, each task prints a line per minute.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from importlib.util import find_spec
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from contstim.reporter import Reporter
from contstim.wording import duration, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from contstim.steps.step import Shown

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]

_MAX_COLUMNS_WITH_LINES = 6
_STYLES = {"mark": "bold magenta", "strong": "bold"}  # HTML tag → style in a table
INCOMPLETE = 3
"""Exit status if a step produced fewer results than requested, or none."""


def terminal(*, stderr: bool = False) -> Console:
    """Return a console that prints a text such as `[bold]` unchanged."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


def print_parts(parts: Iterable[Shown]) -> None:
    """Print texts and tables."""
    for part in parts:
        if isinstance(part, str):
            print(printable(part))
        else:
            print_rows(part.header, part.rows, texts=part.texts)


def print_rows(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, texts: int = 1, title: str = ""
) -> None:
    """Print a table; integers have thousands separators.

    The first `texts` columns have texts; other columns are right-aligned. Long names of models are
    shortened in the table and printed in full below it. A cell with formatted words is a tuple of
    texts and formatted runs (see `contstim.reporting.report.Text`). A run with the tag `mark`, such
    as a changed word, is bold and coloured. A run with the tag `strong` is bold.
    """
    from rich.box import HEAVY_HEAD, SIMPLE_HEAD
    from rich.table import Table

    from contstim.files.plugins import plugin_names
    from contstim.models.families import FAMILIES, GROUP
    from contstim.reporting.report import names_for_tables

    cells = [[_cell(value) for value in row] for row in rows]
    header, title = [*map(printable, header)], printable(title)
    # Only specifications of models begin with the name of a family of models and a colon
    begins = tuple(f"{name}:" for name in (*FAMILIES, *plugin_names(GROUP)))
    plain_cells = (cell for row in cells for cell in row if isinstance(cell, str))
    unique_texts = dict.fromkeys((*header, *plain_cells))
    names = names_for_tables([text for text in unique_texts if text.startswith(begins)])
    # A table of many columns has no lines between them, because the lines need width
    box = HEAVY_HEAD if len(header) <= _MAX_COLUMNS_WITH_LINES else SIMPLE_HEAD
    table = Table(title=title or None, title_justify="left", box=box)
    for index, name in enumerate(header):
        justify: Literal["left", "right"] = "left" if index < texts else "right"
        table.add_column(names.get(name, name), justify=justify, overflow="fold")
    for row in cells:
        table.add_row(*(names.get(c, c) if isinstance(c, str) else c for c in row))
    console = terminal()
    console.print(table)
    for name, short in names.items():
        if short != name:
            console.print(f"{short}: {name}", highlight=False, soft_wrap=True)


def _cell(value: object) -> str | Text:
    from contstim.reporting.report import Span, spans

    if isinstance(value, Span | tuple):
        from rich.text import Text

        runs = (
            (r, "") if isinstance(r, str) else (r.text, _STYLES.get(r.tag, ""))
            for r in spans(value)
        )
        return Text.assemble(*((printable(text), style) for text, style in runs))
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def remark(text: str, *, quiet: bool = False) -> None:
    """Print a line on standard error, unless `quiet` is set."""
    if not quiet:
        print(printable(text), file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error; an empty text prints nothing."""
    if text:
        print(f"warning: {printable(text)}", file=sys.stderr)


_SECONDS_PER_LINE = 60.0
_as_key = partial(re.compile(r"`([a-z][a-z0-9_]*)`").sub, r"\1")


class ProgressBars(Reporter):
    """Messages and progress bars of a step, in a terminal or a notebook.

    Pass an instance to a step's `run`: `contstim.ScoreSentences(...).run(contstim.ProgressBars())`.
    In a notebook, bars need ipywidgets. Where bars are impossible, each task prints a line per
    minute.

    Args:
        quiet: whether to print only warnings.
        name_field: function that replaces field names in backticks in a message. For example, the
            command line replaces them by options.
    """

    def __init__(self, *, quiet: bool = False, name_field: Callable[[str], str] = _as_key) -> None:
        self.quiet = quiet
        self._name_field = name_field
        console = terminal(stderr=True)
        in_notebook = console.is_jupyter and find_spec("ipywidgets") is not None
        self._has_bars = (console.is_terminal or in_notebook) and not quiet

        self._bars: Progress | None = None
        self._over = Event()

    def __exit__(self, *_raised: object) -> None:
        """Remove the bars."""
        if self._bars is not None and self._has_bars:
            self._bars.stop()
        self._over.set()
        self._bars = None

    def say(self, text: str) -> None:
        """Print a line, unless `quiet` is set."""
        if not self.quiet:
            self._print(self._name_field(text))

    def warn(self, text: str) -> None:
        """Print a warning, even if `quiet` is set."""
        if text:
            self._print(f"warning: {self._name_field(text)}")

    def _print(self, text: str) -> None:
        if self._bars is not None and self._has_bars:
            self._bars.console.print(printable(text), highlight=False, soft_wrap=True)
        else:
            print(printable(text), file=sys.stderr)

    def progress(self, task: str, done: float, total: float | None, note: str = "") -> None:
        """Update the bar of a task; see `Reporter.progress`."""
        if self.quiet:
            return
        bars = self._bars or self._start_bars()
        bar = next((bar for bar in bars.tasks if bar.description == task), None)
        if bar is None:
            texts: dict[str, Any] = {"before": done, "amount": "", "left": "", "note": ""}
            bars.add_task(task, **texts)
            bar = bars.tasks[-1]
        amount, remaining = f"{done:,.0f}", ""
        if total:
            percent = f"{100 * done / total:.0f} %"
            # If `done` is not an integer, it is a sum of weights instead of a number of items, so
            # print only the percentage
            amount = f"{amount} of {total:,.0f} ({percent})" if done == int(done) else percent
            # An earlier, interrupted process may have made a part of the progress in an unknown
            # time. So estimate the remaining time from the progress of this process only
            done_now = done - bar.fields["before"]
            if done_now > 0 and done < total:
                remaining = f"about {duration((bar.elapsed or 0) * (total - done) / done_now)} left"
        bars.update(bar.id, completed=done, total=total, amount=amount, left=remaining, note=note)

    def _start_bars(self) -> Progress:
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
        if self._has_bars:
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
                    minutes = f"{(task.elapsed or 0) / 60:,.0f} min"
                    amount, note, left = (task.fields[name] for name in ("amount", "note", "left"))
                    texts = filter(None, (task.description, amount, note, minutes, left))
                    print(", ".join(texts), file=sys.stderr, flush=True)
