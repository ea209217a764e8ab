"""Sentences that people judged, and the minimal pairs that they form."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contstim.sentence import Sentence

_SHOWN = 5  # of the mistakes of a kind
_Value = TypeVar("_Value", str, tuple[str, str])


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence and how acceptable people find it: the more, the better; nan where unknown."""

    id: str
    sentence: Sentence
    judgement: float = math.nan


@dataclass(frozen=True)
class JudgedPair:
    """Two sentences, by their identifiers, of which experts call the first acceptable.

    Attributes:
        acceptable: identifier of the sentence that experts accept.
        unacceptable: identifier of the one they reject.
        phenomenon: what the pair is about.
        source: the collection that it comes from; empty where there is one only.
        discarded: whether the collection's makers left it out.
    """

    acceptable: str
    unacceptable: str
    phenomenon: str = ""
    source: str = ""
    discarded: bool = False


@dataclass(frozen=True)
class Judgements:
    """Judged sentences and their minimal pairs.

    Attributes:
        sentences: with distinct identifiers.
        pairs: distinct pairs of these sentences.
        files: where they were read.
        named: whether the identifiers are the data's own, not numbers of its rows.

    Raises:
        InputError: an identifier or a pair is given twice, or a pair names an unknown sentence.
    """

    sentences: tuple[JudgedSentence, ...]
    pairs: tuple[JudgedPair, ...]
    files: tuple[Path, ...] = ()
    named: bool = True

    def __post_init__(self) -> None:
        # every mistake is told with its examples, the most elementary first
        ids = [judged.id for judged in self.sentences]
        _refuse("These identifiers of sentences are given twice", repeated(ids))
        both = [(pair.acceptable, pair.unacceptable) for pair in self.pairs]
        _refuse("These pairs are given twice", (" / ".join(pair) for pair in repeated(both)))
        unknown = {name for pair in both for name in pair} - set(ids)
        _refuse("Pairs name sentences that there are not", sorted(unknown))
        if not self.pairs:
            raise InputError(
                "There are no minimal pairs. Give a table of pairs, or items that have acceptable "
                "and unacceptable sentences."
            )


def repeated(values: Iterable[_Value]) -> list[_Value]:
    """Values that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def _refuse(what: str, names: Iterable[str]) -> None:
    listed = list(names)
    if listed:
        more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
        raise InputError(f"{what}: {', '.join(listed[:_SHOWN])}{more}.")
