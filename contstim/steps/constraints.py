"""Constraints on the sentences of a search: files of words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from contstim.errors import InputError
from contstim.optimization.search.settings import SearchSettings
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Sequence

_Limits = TypeVar("_Limits", bound=SearchSettings)

Uncapped = Annotated[
    Path | None,
    Help(
        "With --word-cap: words that do not count, one a line, or a vocabulary file with "
        "a list [repeatable]; by default English articles and prepositions."
    ),
]


def words_read(limits: _Limits) -> _Limits:
    """The same limits with the words of files read.

    Raises:
        InputError: a file cannot be read.
    """
    return replace(limits, allow=_words(limits.allow), exclude=_words(limits.exclude))


def files_of_words(limits: SearchSettings) -> list[Path]:
    """The files of words among what may, and what may not, be put in."""
    from contstim.files import is_file

    return [Path(text) for text in (*limits.allow, *limits.exclude) if is_file(text)]


def _words(texts: Sequence[str]) -> tuple[str, ...]:
    from contstim.files import is_file
    from contstim.vocabulary import Vocabulary

    # What names a file is a file of words; a word of the same name needs another folder.
    words: set[str] = set()
    for text in texts:
        words |= set(Vocabulary.load(text).words) if is_file(text) else {text}
    return tuple(sorted(map(str.lower, words)))


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
