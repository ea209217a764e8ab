"""Constraints on the sentences of a search: words, fluency, number of searches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from contstim.errors import InputError
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.plausibility import Plausibility
    from contstim.optimization.search.constraints import WordLimits

AllowUnknown = Annotated[
    bool,
    Help("Also use words that a word-level model cannot tell.", flag="--allow-unknown"),
]
Fluency = Annotated[
    str | None,
    Help(
        "A further model, and the least log-probability (nats) that it must give.",
        metavar="[NAME=]MODEL:FLOOR",
    ),
]
Restarts = Annotated[
    int | None,
    Help(
        "Searches of a sentence, at most, each with another seed; the best result is kept. "
        "They end when five in a row gain next to nothing. By default 1; up to 20 between "
        "small networks, whose searches are cheap.",
        at_least=1,
    ),
]
SearchSeconds = Annotated[
    float | None,
    Help(
        "Search a sentence again as long as another search is expected to end within so many "
        "seconds. The first always finishes. Results then depend on the machine."
    ),
]
Uncapped = Annotated[
    Path | None,
    Help(
        "With --word-cap: words that do not count, one a line, or a vocabulary file with "
        "a list [repeatable]; by default English articles and prepositions."
    ),
]


@dataclass(frozen=True, kw_only=True)
class WordSettings:
    """Limits on replacing words of a sentence: which, how many, and by which others."""

    fix: Annotated[
        tuple[str, ...], Help("A word to leave as it is, or its position from 0. Repeatable.")
    ] = ()
    max_changes: Annotated[
        int | None,
        Help("How many words may differ from the natural sentence's.", at_least=1),
    ] = None
    allow: Annotated[
        tuple[str, ...],
        Help("A word that may be put in, or a file of words; no others may. Repeatable."),
    ] = ()
    exclude: Annotated[
        tuple[str, ...], Help("A word that may not be put in, or a file of words. Repeatable.")
    ] = ()
    same_length: Annotated[
        int | None,
        Help("Keep the number of characters, within a margin of so many.", at_least=0),
    ] = None

    def limits(self) -> WordLimits:
        """The same with the words of files read.

        Raises:
            InputError: a file cannot be read.
        """
        from contstim.optimization.search.constraints import WordLimits

        return WordLimits(
            fix=self.fix,
            max_changes=self.max_changes,
            allow=_words(self.allow) if self.allow else None,
            exclude=_words(self.exclude),
            same_length=self.same_length,
        )

    @property
    def files(self) -> list[Path]:
        """The files of words among what may, and what may not, be put in."""
        from contstim.files import is_file

        return [Path(text) for text in (*self.allow, *self.exclude) if is_file(text)]


def _words(texts: Sequence[str]) -> frozenset[str]:
    from contstim.files import is_file
    from contstim.vocabulary import Vocabulary

    # What names a file is a file of words; a word of the same name needs another folder.
    words: set[str] = set()
    for text in texts:
        words |= set(Vocabulary.load(text).words) if is_file(text) else {text}
    return frozenset(map(str.lower, words))


def uncapped_words(uncapped: Path | None, word_cap: int | None) -> frozenset[str]:
    """The words that do not count for a cap, as the file has them.

    Raises:
        InputError: there is no cap, or the file cannot be read.
    """
    from contstim.vocabulary import REPEATABLE_ENGLISH, read_repeatable

    if uncapped is None:
        return REPEATABLE_ENGLISH
    if word_cap is None:
        raise InputError("`uncapped` names the exceptions of `word_cap`: give both.")
    return read_repeatable(uncapped)


def read_plausible(text: str) -> tuple[Plausibility, Specification | None]:
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
            f"`fluency` {text} has no floor: write the model, a colon and a log-probability in "
            f"nats, such as kenlm:trigram.arpa:-60."
        ) from None
