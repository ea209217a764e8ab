"""Rules for English words; the word lists are in `words.toml` and `blocked.txt`."""

from __future__ import annotations

import re
from pathlib import Path

from contstim.files.documents import read_toml
from contstim.words.word_rules import WordRules, read_words

BLOCKED = Path(__file__).with_name("blocked.txt")
"""Profanity, slurs and explicit words; compiled for this package, under its licence."""

# Words whose first letter does not suggest their first sound: `hour`; `European`, `one`,
# `university` but not `unimportant`, `use`
_VOWEL_SOUND = re.compile(r"heir|hono|hones|hour", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(
    r"eu|ewe|(once|ones?|oneself)\b|u(biq|ga|k|ni([^nmd]|dir)|nanim|ra[nl]|rin|s[aeiu]|t[eio])",
    re.IGNORECASE,
)
# Words read letter by letter or as numbers
_SPELLED = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Za-z](?![\w'’])|\d")
_ELEVEN = re.compile(r"1[18](?!\d)")


def indefinite_article(next_word: str) -> str:
    """Return the indefinite article before a word: "an" before a vowel sound, else "a"."""
    if _SPELLED.match(next_word):  # an FBI agent, a US senator, an x-ray, an 8-year-old
        return "an" if next_word[0].lower() in "aefhilmnorsx8" or _ELEVEN.match(next_word) else "a"
    if next_word[0].lower() in "aeiou":
        return "a" if _CONSONANT_SOUND.match(next_word) else "an"
    return "an" if _VOWEL_SOUND.match(next_word) else "a"


def english_rules(
    *,
    blocked: frozenset[str] | None = None,
    excluded: frozenset[str] = frozenset(),
    names: bool = False,
    zipf: tuple[float, float] = (-float("inf"), float("inf")),
) -> WordRules:
    """Return the rules for English words.

    Args:
        blocked: offensive words to exclude from experiments, in lower case; by default `BLOCKED`.
        excluded: further words to exclude, in lower case.
        names: whether names are allowed.
        zipf: lowest and highest frequency, on the Zipf scale.

    Raises:
        VocabularyError: if the lowest frequency is above the highest.
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
