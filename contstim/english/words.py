"""Rules of English words; the lists of words are in `words.toml` and `blocked.txt`."""

from __future__ import annotations

from pathlib import Path

from contstim.documents import read_toml
from contstim.word_rules import WordRules, read_words

BLOCKED = Path(__file__).with_name("blocked.txt")
"""Profanity, slurs and explicit words; compiled for this package, under its licence."""


def english_rules(
    *,
    blocked: frozenset[str] | None = None,
    excluded: frozenset[str] = frozenset(),
    names: bool = False,
    zipf: tuple[float, float] = (-float("inf"), float("inf")),
) -> WordRules:
    """The rules for English words.

    Args:
        blocked: words that nobody should meet in an experiment, in lower case; by default those of
            `BLOCKED`.
        excluded: further words to leave out, in lower case.
        names: whether names stay.
        zipf: lowest and highest frequency, on the Zipf scale.

    Raises:
        VocabularyError: the lowest frequency is above the highest.
    """
    lists = read_toml(Path(__file__).with_name("words.toml"))
    return WordRules(
        single_letters=frozenset({"a", "I"}),
        vowels=frozenset("aeiouy"),
        blocked=read_words(BLOCKED) if blocked is None else blocked,
        excluded=excluded,
        names=names,
        zipf=zipf,
        **{name: frozenset(words.split()) for name, words in lists.items()},
    )
