"""Output of the commands: results on standard output, remarks on standard error."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from contstim.models.base import Scorer
    from contstim.reporting.report import Table as ReportTable
    from contstim.sentence import Sentence

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
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for place, name in enumerate(header):
        table.add_column(name, justify="left" if place < texts else "right", overflow="fold")
    return table


def names_for_tables(names: Sequence[str]) -> dict[str, str]:
    """Name of each model in a table: its own, or a shorter one where any name is long."""
    from contstim.reporting.names import LONGEST, short_names

    # Shortened all together or not at all, so that what tells models apart stays visible.
    if all(len(name) <= LONGEST for name in names):
        return dict(zip(names, names, strict=True))
    return dict(zip(names, short_names(names), strict=True))


def print_table(table: Table, names: Mapping[str, str] | None = None) -> None:
    """Print a table and, under it, the full names of the models that it calls otherwise."""
    console = terminal()
    console.print(table)
    for name, short in (names or {}).items():
        if short != name:
            console.print(f"{short}: {name}", highlight=False, soft_wrap=True)


def print_summary(title: str, table: ReportTable, models: Sequence[str]) -> None:
    """Print a table of a report, in which models have short names."""
    names = names_for_tables(models)
    shown = results_table(*(names.get(n, n) for n in table.header), texts=table.texts, title=title)
    for row in table.rows:
        texts = map(str, row)
        shown.add_row(*(names.get(text, text) for text in texts))
    print_table(shown, names)


def changed_words(sentence: Sentence, natural: Sentence) -> Text:
    """A sentence with the words that differ from the natural one in bold colour."""
    from rich.text import Text

    words = [
        Text(word, style="" if word == old else "bold magenta")
        # Searches replace words and never add one: both have equally many
        for word, old in zip(sentence.words, natural.words, strict=True)
    ]
    return Text(" ").join(words) + sentence.end


def remark(text: str, *, quiet: bool = False) -> None:
    """A line on standard error, unless quiet."""
    if not quiet:
        print(text, file=sys.stderr)


def warn(text: str) -> None:
    """A warning on standard error, even if quiet; nothing where there is nothing to warn of."""
    if text:
        print(f"warning: {text}", file=sys.stderr)


def tell_unknown_words(
    models: Sequence[Scorer], sentences: Sequence[Sentence], *, quiet: bool = False
) -> None:
    """Say which share of the words each model does not know; a large one even if quiet."""
    from contstim.models.letter_case import unknown_words

    for model in models:
        unknown_words(model, sentences).tell(warn, partial(remark, quiet=quiet))


def show_warning(
    message: Warning | str, category: type[Warning], *_where: object, **_more: object
) -> None:
    """Print a warning of Python's as a sentence, without the line of code it came from."""
    del category
    warn(str(message))


def remark_folder(page: Path, *, quiet: bool) -> None:
    """Say, as the end of a command that writes a folder, which page of it to look at first."""
    verb, where = ("open", " in a browser") if page.suffix == ".html" else ("read", "")
    remark(f"Everything is in {page.parent}/; {verb} {page}{where}.", quiet=quiet)
