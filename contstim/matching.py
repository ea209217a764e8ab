"""How a synthetic sentence matches its natural one: words, parts of speech, length, frequency.

natural      The old man slept on the chair.
synthetic    The old dog slept of the chair.     two new words, one of another part of speech
                              ^^ misfit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.reviews import differing

if TYPE_CHECKING:
    from contstim.sentence import Sentence
    from contstim.tags import TagTable

MISFIT = 0.05
"""Share of a word's occurrences with a tag below which it does not fit in place of that tag."""


@dataclass(frozen=True)
class Match:
    """A synthetic sentence beside its natural one.

    Attributes:
        changed: positions, from 0, of the new words.
        misfits: those of them where the new word is of another part of speech: less than `MISFIT`
            of its occurrences have the tag of the word that it replaced. Words that the table does
            not list are none.
        characters: length of the synthetic sentence, less that of the natural one.
        zipf: mean Zipf frequency of its words, less that of the natural one's, in the text in which
            the tags were counted.
    """

    changed: frozenset[int]
    misfits: frozenset[int]
    characters: int
    zipf: float


def match(natural: Sentence, synthetic: Sentence, table: TagTable) -> Match:
    """Compare a synthetic sentence with its natural one.

    Args:
        natural: the sentence, which is tagged as it stands.
        synthetic: made from it.
        table: how often words have which tag.
    """
    changed = differing(synthetic, natural)
    tags = table.tags(natural) if changed else ()
    return Match(
        changed,
        frozenset(i for i in changed if _misfits(synthetic.words[i], tags[i], i, table)),
        len(synthetic.bare) - len(natural.bare),
        table.frequencies.mean_zipf(synthetic) - table.frequencies.mean_zipf(natural),
    )


def _misfits(word: str, tag: str, position: int, table: TagTable) -> bool:
    shares = table.shares(word, initial=position == 0)
    return bool(tag and shares) and shares.get(tag, 0.0) < MISFIT
