"""The options of searches about the words of a sentence, and about its fluency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.specifications import NamedSpecification
    from contstim.optimization.jobs.plausibility import Plausibility
    from contstim.optimization.search.constraints import WordLimits

Fluency = Annotated[
    str | None,
    typer.Option(
        metavar="[NAME=]MODEL:FLOOR",
        help="A further model, and the least log-probability (nats) that it must give.",
    ),
]


Plausible = Annotated[
    str | None,
    typer.Option(
        metavar="[[NAME=]MODEL:]QUANTILE",
        help="No sentence may be rarer than this quantile of natural ones with as many words, "
        "under a further model or each under the one that accepts it; none for no floor. By "
        "default 0.25 with the default recipe.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WordOptions:
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

    def limits(self) -> WordLimits:
        """The same with the words of files read.

        Raises:
            InputError: a file cannot be read.
        """
        from contstim.optimization.search.constraints import WordLimits

        return WordLimits(
            fix=tuple(self.fix or ()),
            max_changes=self.max_changes,
            allow=_words(self.allow) if self.allow else None,
            exclude=_words(self.exclude or ()),
            same_length=self.same_length,
        )


def read_plausible(text: str) -> tuple[Plausibility, NamedSpecification | None]:
    """A floor of plausibility, and the model that judges if one is named.

    Raises:
        InputError: there is no quantile.
        ModelError: the model is not a specification.
    """
    from dataclasses import replace

    from contstim.models.specifications import parse_models
    from contstim.optimization.jobs.plausibility import Plausibility

    plausible = Plausibility.parse(text)
    if not plausible.model:
        return plausible, None
    (judge,) = parse_models([plausible.model])
    return replace(plausible, model=judge.specification), judge


def _words(texts: Sequence[str]) -> frozenset[str]:
    from contstim.files import is_file
    from contstim.vocabulary import Vocabulary

    # What names a file is a file of words; a word of the same name needs another folder.
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

    # Specifications have colons of their own, as kenlm:trigram.arpa, so the last one counts.
    model, _, floor = text.rpartition(":")
    try:
        return [model], number(floor)
    except ValueError:
        raise InputError(
            f"--fluency {text} has no floor: write the model, a colon and a log-probability in "
            f"nats, such as kenlm:trigram.arpa:-60."
        ) from None
