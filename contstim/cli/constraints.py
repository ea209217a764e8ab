"""The options of `contstim synthesize` about the words of a sentence, and about its fluency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.optimization.search.constraints import Constraint
    from contstim.sentence import Sentence

Fluency = Annotated[
    str | None,
    typer.Option(
        metavar="[NAME=]MODEL:FLOOR",
        help="A further model, and the least log-probability (nats) that it must give.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WordLimits:
    """Which words of a natural sentence may be replaced, how many, and by which others."""

    fix: Annotated[
        list[str] | None,
        typer.Option(help="A word to leave as it is, or its position from 0. Repeatable."),
    ] = None
    max_changes: Annotated[
        int | None,
        typer.Option(min=1, help="How many words may differ from the natural sentence's."),
    ] = None
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="A word that may be put in, or a file of words; no others may. Repeatable."
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="A word that may not be put in, or a file of words. Repeatable."),
    ] = None
    same_length: Annotated[
        int | None,
        typer.Option(min=0, help="Keep the number of characters, within a margin of so many."),
    ] = None

    def constraints(self, natural: Sentence) -> tuple[Constraint, ...]:
        """The same as constraints of a search that starts from a natural sentence.

        Raises:
            InputError: a position or word to fix is not in the sentence, or a file cannot be read.
        """
        from contstim.optimization.search import constraints

        chosen: list[Constraint] = []
        if self.fix:
            positions = [place for text in self.fix for place in _positions(text, natural)]
            chosen.append(constraints.Fixed(frozenset(positions)))
        if self.max_changes is not None:
            chosen.append(constraints.MaxChanges(self.max_changes))
        if self.allow:
            chosen.append(constraints.OnlyWords(_words(self.allow)))
        if self.exclude:
            chosen.append(constraints.WithoutWords(_words(self.exclude)))
        if self.same_length is not None:
            chosen.append(constraints.SameLength(self.same_length))
        return tuple(chosen)


def _positions(text: str, natural: Sentence) -> list[int]:
    """Where a word stands; a number is a position only where the sentence has no such word."""
    positions = [p for p, word in enumerate(natural.words) if word.lower() == text.lower()]
    if not positions and text in map(str, range(len(natural))):
        positions = [int(text)]
    if not positions:
        raise InputError(
            f"--fix {text}: {natural.text!r} has no such word, and positions go from 0 to "
            f"{len(natural) - 1}."
        )
    return positions


def _words(texts: Sequence[str]) -> frozenset[str]:
    from contstim.files import is_file
    from contstim.vocabulary import Vocabulary

    words: set[str] = set()
    for text in texts:
        words |= set(Vocabulary.load(text).words) if is_file(text) else {text}
    return frozenset(map(str.lower, words))


def read_fluency(text: str) -> tuple[list[str], float]:
    """A model and a floor in nats, from `MODEL:FLOOR`.

    Raises:
        InputError: there is no number behind the last colon.
    """
    from contstim.tables import number

    model, _, floor = text.rpartition(":")
    try:
        return [model], number(floor)
    except ValueError:
        raise InputError(
            f"--fluency {text} has no floor: write the model, a colon and a log-probability in "
            f"nats, such as kenlm:trigram.arpa:-60."
        ) from None
