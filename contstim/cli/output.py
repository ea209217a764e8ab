"""What the commands print: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn
    from rich.progress import Task as BarTask
    from rich.table import Table
    from rich.text import Text

    from contstim.models.base import Scorer
    from contstim.models.contamination import Contamination
    from contstim.sentence import Sentence

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option(help="Where networks run; auto: a GPU where there is one."),
]
Dtype = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    typer.Option(help="What transformers compute in; auto: float32. Half precision makes ties."),
]
_MODEL = typer.Option(
    metavar="[NAME=]MODEL",
    help="A model, such as kenlm:trigram.arpa or gpt2=hf:gpt2@chain; NAME stands for it in files, "
    "figures and tables. Repeatable.",
)
Model = Annotated[list[str], _MODEL]
Models = Annotated[list[str] | None, _MODEL]
Prompt = Annotated[
    str | None,
    typer.Option(help="What causal transformers read before a sentence; it never counts."),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Let transformers run Python code that comes with a checkpoint. Read it first.",
    ),
]
KeptScores = Annotated[
    Path | None,
    typer.Option(help="Where scores are kept between runs; contstim.sqlite in --out."),
]
Seed = Annotated[int, typer.Option(min=0, help="Decides everything that is left to chance.")]

INCOMPLETE = 3
"""Exit status where a search found nothing, or some of what was wanted could not be found."""

_SHOW_EVERY = 10_000
_TELL_EVERY = 60.0  # seconds


def terminal(*, stderr: bool = False) -> Console:
    """Where tables and bars are printed: whatever a user calls things is shown as it is.

    Every command prints through this one, so that a model named `[bold]` breaks none.
    """
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False)


def results_table(*header: str, texts: int = 1, title: str | None = None) -> Table:
    """An empty table: texts first, then numbers; what is too wide is folded and never cut."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place < texts else "right", overflow="fold")
    return table


def names_for_tables(names: Sequence[str]) -> dict[str, str]:
    """What to call each model in a table: its name, or a shorter one where any name is long."""
    from contstim.reporting.names import LONGEST, short_names

    if all(len(name) <= LONGEST for name in names):
        return dict(zip(names, names, strict=True))
    return dict(zip(names, short_names(names), strict=True))


def print_table(table: Table, names: Mapping[str, str] | None = None) -> None:
    """Print a table and, under it, the full names of the models that it calls otherwise."""
    to = terminal()
    to.print(table)
    for name, short in (names or {}).items():
        if short != name:
            to.print(f"{short}: {name}", highlight=False, soft_wrap=True)


def remark(text: str, *, quiet: bool = False) -> None:
    """A line on standard error, unless quiet."""
    if not quiet:
        print(text, file=sys.stderr)


def warn_of_training_texts(
    found: Mapping[str, Contamination | None], what: str = "sentences"
) -> None:
    """Say, even if quiet, how many sentences models were trained on."""
    from contstim.models.contamination import contamination_warnings

    for warning in contamination_warnings(found, what):
        remark(f"warning: {warning}")


def show_warning(
    message: Warning | str, category: type[Warning], *_where: object, **_more: object
) -> None:
    """Print a warning as a sentence, without the line of code it came from."""
    del category
    print(f"warning: {message}", file=sys.stderr)


@contextmanager
def progress_bars(*columns: ProgressColumn, quiet: bool, passing: bool = False) -> Iterator[Bars]:
    """Bars on standard error; where that is no terminal, a plain line a minute for each.

    Args:
        columns: what stands beside each other; by default a name, a bar, a share and the time left.
        quiet: show nothing.
        passing: whether the bars go away at the end.
    """
    from rich.progress import Progress

    console = terminal(stderr=True)
    plain = not console.is_terminal and not quiet
    with Progress(*columns, console=console, disable=quiet or plain, transient=passing) as bars:
        if not plain:
            yield bars
            return
        over = Event()
        teller = Thread(target=_tell_now_and_then, args=(bars, over), daemon=True)
        teller.start()
        try:
            yield bars
        finally:
            over.set()
            teller.join()


def _tell_now_and_then(bars: Bars, over: Event) -> None:
    """Print where each task is, at most once a minute, until it is over."""
    began = perf_counter()
    while not over.wait(_TELL_EVERY):
        for task in bars.tasks:
            if task.started and not task.finished:
                print(_told(bars, task, perf_counter() - began), file=sys.stderr, flush=True)


def _told(bars: Bars, task: BarTask, seconds: float) -> str:
    """A task in words: its columns of text, how much is done, and how long it takes."""
    from rich.progress import TextColumn

    texts = [c(task) for c in bars.columns if type(c) is TextColumn]
    words = [str(text) for text in texts if str(text).strip()] or [task.description]
    if task.total:
        words.append(f"{task.completed:,.0f} of {task.total:,.0f} ({task.percentage:.0f} %)")
    words.append(f"{seconds / 60:,.0f} min")
    if task.total and task.completed:
        left = seconds * (task.total - task.completed) / task.completed
        words.append(f"about {left / 60:,.0f} min left")
    return ", ".join(words)


@contextmanager
def scoring_progress(n_sentences: int, *, quiet: bool) -> Iterator[Callable[[Scorer, int], None]]:
    """A bar per model on standard error, with the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft
    from rich.table import Column

    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeLeft(),
    )
    bars: dict[str, int] = {}
    with progress_bars(*columns, quiet=quiet) as progress:

        def advance(model: Scorer, more: int) -> None:
            if model.name not in bars:
                bars[model.name] = progress.add_task(model.name, total=n_sentences)
            progress.advance(progress.tasks[bars[model.name]].id, more)

        yield advance


@contextmanager
def simulation_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar of simulated experiments on standard error, with the time left."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("simulating"), BarColumn(), TimeRemainingColumn())
    with progress_bars(*columns, quiet=quiet, passing=True) as bars:
        task = bars.add_task("simulating", total=None)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance


def counting(sentences: Iterable[Sentence], *, quiet: bool) -> Iterator[Sentence]:
    """Pass sentences on, and show on standard error how many have been read."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,.0f} sentences"), TimeElapsedColumn())
    with progress_bars(*columns, quiet=quiet, passing=True) as progress:
        task = progress.add_task("reading", total=None)
        for number, sentence in enumerate(sentences, start=1):
            if number % _SHOW_EVERY == 0:
                progress.update(task, completed=number)
            yield sentence


def changed_words(sentence: Sentence, natural: Sentence) -> Text:
    """A sentence with the words that differ from the natural one in bold colour."""
    from rich.text import Text

    words = [
        Text(word, style="" if word == old else "bold magenta")
        for word, old in zip(sentence.words, natural.words, strict=True)
    ]
    return Text(" ").join(words) + sentence.end
