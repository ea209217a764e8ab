"""What `contstim synthesize` is told about the words of a sentence, and who judges fluency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from contstim.errors import InputError
from contstim.tables import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.search.constraints import Constraint
    from contstim.sentence import Sentence

Fix = Annotated[
    list[str] | None,
    typer.Option(help="A word to leave as it is, or its position from 0. Repeatable."),
]
MaxChanges = Annotated[
    int | None, typer.Option(min=1, help="How many words may differ from the natural sentence's.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="A word that may be put in, or a file of words; no others may. Repeatable."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="A word that may not be put in, or a file of words. Repeatable."),
]
SameLength = Annotated[
    int | None,
    typer.Option(min=0, help="Keep the number of characters, within a margin of so many."),
]
Fluency = Annotated[
    str | None,
    typer.Option(
        metavar="[NAME=]MODEL:FLOOR",
        help="A further model, and the least log-probability (nats) that it must give.",
    ),
]


def read_constraints(
    natural: Sentence,
    *,
    fix: Sequence[str] | None,
    max_changes: int | None,
    allow: Sequence[str] | None,
    exclude: Sequence[str] | None,
    same_length: int | None,
) -> tuple[Constraint, ...]:
    """The constraints that the options name.

    Raises:
        InputError: a position or word to fix is not in the sentence, or a file cannot be read.
    """
    from contstim.optimization.search import constraints

    given: list[Constraint] = []
    if fix:
        positions = [position for text in fix for position in _positions(text, natural)]
        given.append(constraints.Fixed(frozenset(positions)))
    if max_changes is not None:
        given.append(constraints.MaxChanges(max_changes))
    if allow:
        given.append(constraints.OnlyWords(_words(allow)))
    if exclude:
        given.append(constraints.WithoutWords(_words(exclude)))
    if same_length is not None:
        given.append(constraints.SameLength(same_length))
    return tuple(given)


def read_fluency(text: str) -> tuple[str, float]:
    """A model's specification and a floor in nats, from `MODEL:FLOOR`.

    Raises:
        InputError: there is no number behind the last colon.
    """
    model, _, floor = text.rpartition(":")
    try:
        return model, number(floor)
    except ValueError:
        raise InputError(
            f"--fluency {text} has no floor: write the model, a colon and a log-probability in "
            f"nats, such as kenlm:trigram.arpa:-60."
        ) from None


def fluency_of(
    models: Sequence[LanguageModel], floor: float | None
) -> tuple[LanguageModel, float] | None:
    """The last of the models with its floor, if there is one."""
    return None if floor is None else (models[-1], floor)


def _positions(text: str, natural: Sentence) -> list[int]:
    found = [p for p, word in enumerate(natural.words) if word.lower() == text.lower()]
    if not found and text in map(str, range(len(natural))):
        found = [int(text)]
    if not found:
        raise InputError(
            f"--fix {text}: {natural.text!r} has no such word, and positions go from 0 to "
            f"{len(natural) - 1}."
        )
    return found


def _words(texts: Sequence[str]) -> frozenset[str]:
    from contstim.files import is_file
    from contstim.vocabulary import Vocabulary

    words: set[str] = set()
    for text in texts:
        words |= set(Vocabulary.load(text).words) if is_file(text) else {text}
    return frozenset(map(str.lower, words))
