"""English words: indefinite articles, rules for suitable words, tags, and complements of verbs.

The word lists are in `words.toml` and `blocked.txt`. The tags (parts of speech) were counted in
textbooks by `benchmarks/english_tags.py`. The complement of a verb is what completes it,
such as an object or a clause. It is inferred from the tags before and after the verb:

The boy walked to the old school.       walked: to
He told me that she had slept well.     told: clause; slept: nothing
The book my wife wrote was sold.        wrote: something; sold: passive
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.files.documents import read_toml
from contstim.files.tables import read_table
from contstim.words.tags import TagTable, read_tags
from contstim.words.word_rules import WordRules, read_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLOCKED = Path(__file__).with_name("blocked.txt")
"""Profanity, slurs and explicit words; compiled for contstim, under the licence of contstim."""

# Words that begin with a consonant letter and a vowel sound (`hour`), or with a vowel letter and a
# consonant sound (`European`, `one`, `use`, `university`, but not `unimportant`)
_VOWEL_SOUND = re.compile(r"heir|hono|hones|hour", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(
    r"eu|ewe|(once|ones?|oneself)\b|u(biq|ga|k|ni([^nmd]|dir)|nanim|ra[nl]|rin|s[aeiu]|t[eio])",
    re.IGNORECASE,
)
# Words that are read letter by letter, and numbers
_SPELLED = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Za-z](?![\w'’])|\d")
_ELEVEN = re.compile(r"1[18](?!\d)")

# Start of a C5 tag -> letter for patterns of tags. Nouns are N, S (person) or T (time), with a full
# stop after plurals. Pronouns are I (subject), O (other pronoun for a person) or P (all others).
# Adverbs have no letter.
_LETTERS = dict(
    pair.split(":")
    for pair in (
        "PNQ:w DTQ:w CJT:w AVQ:q NN1:N NN:N. NP:S PN:P AT:D DPS:D DT0:D AJ:A CRD:C ORD:C VVD:v "
        "VVZ:v VVI:i VVB:i VVG:g VVN:n VB:b VH:h VM:m VD:m TO:2 AV0: AVP: XX:"
    ).split()
)
_PERSONS = ("me", "us", "him", "her", "them", "you", "one", "body", "self", "selves")
_SUBJECTS = ("i", "he", "she", "we", "they")
# A noun phrase: a noun with determiners and adjectives, a pronoun, or a determiner alone
_PHRASE = r"(?:[DCA]*[NST]++\.?|[OP]|[DC](?![DCANST]))"
# Pattern of the tags after a verb -> the verb's complement; the first match counts
_AFTER = {
    r"[DCA]*T+(?![NS])": "nothing",
    rf"I|{_PHRASE}[bhmv]|w|q": "clause",
    rf"{_PHRASE}[2i]": "object-infinitive",
    rf"{_PHRASE}(?:[DA]*[NS]++\.?|[OP])(?![bhmvin])": "two",
    rf"{_PHRASE}t": "something-to",
    r"[DCA]*[NST]*S(?![NS])|O": "somebody",
    _PHRASE: "something",
} | {"t": "to", "2": "infinitive", "A": "adjective", "g": "ing", "": "nothing"}
# Pattern of the tags before the verb of a relative clause. The object of the verb is the noun
# before the clause: "the book (that) my wife wrote", "the book that Ann wrote"
_OBJECT_BEFORE = r"[NS]\.?(?:w[DCA]*[NST]++\.?|D[CA]*[NST]++\.?|w?[OPI])[bhm2]*$"


def indefinite_article(next_word: str) -> str:
    """Return "an" if the next word begins with a vowel sound, otherwise "a"."""
    if _SPELLED.match(next_word):  # an FBI agent, a US senator, an x-ray, an 8-year-old
        return "an" if next_word[0].lower() in "aefhilmnorsx8" or _ELEVEN.match(next_word) else "a"
    if next_word[0].lower() in "aeiou":
        return "a" if _CONSONANT_SOUND.match(next_word) else "an"
    return "an" if _VOWEL_SOUND.match(next_word) else "a"


def english_rules(*, names: bool = False) -> WordRules:
    """Return the rules for English words, which exclude the words of `BLOCKED`.

    `names` is whether names are allowed.
    """
    lists: dict[str, Any] = {
        name: frozenset(words.split())
        for name, words in read_toml(Path(__file__).with_name("words.toml")).items()
    }
    letters, vowels = frozenset({"a", "I"}), frozenset("aeiouy")
    return WordRules(letters, vowels=vowels, blocked=read_words(BLOCKED), names=names, **lists)


@cache
def english_tags() -> TagTable:
    """Return tags of about 46,000 English words, in the C5 tagset of the British National Corpus.

    Sources: OpenStax's textbooks (CC BY 4.0), LemmInflect's list of words (MIT) and WordNet 3.1
    (licence in wordnet.txt).
    """
    folder = Path(__file__).parent
    tags, following, counts = read_table(folder / "tag_pairs.csv").values()
    pairs = dict(zip(zip(tags, following, strict=True), map(int, counts), strict=True))
    names = dict(zip(*read_table(folder / "tag_names.csv").values(), strict=True))
    table = read_tags(folder / "tags.csv")
    return replace(table, name="the embedded table of English tags", pairs=pairs, names=names)


def tag_table(path: Path | str | None) -> TagTable:
    """Return the table of tags in a file; without a file, the embedded table of English tags.

    The two tables that were read last are cached. A file is read again if it has changed.

    Raises:
        InputError: if the file cannot be read.
    """
    if path is None:
        return english_tags()
    return _read_tags(str(path), Path(path).stat().st_mtime_ns if Path(path).exists() else 0)


@lru_cache(maxsize=2)
def _read_tags(path: str, _changed: int) -> TagTable:
    return read_tags(path)


def verb_uses(
    words: Sequence[str], tags: Sequence[str], kind: Callable[[str, str], str]
) -> dict[int, str]:
    """Infer the complement of each verb of a sentence: index of the verb (from 0) → complement.

    Complements are: something, somebody, two (objects), something-to (somebody), to (somewhere),
    clause, infinitive, object-infinitive, ing, adjective, passive, nothing. `tags` are C5 tags;
    `kind` is a function of a word and its tag that returns the word's main kind, such as `person`.
    """
    letters = [_letter(w.lower(), tag, kind(w, tag)) for w, tag in zip(words, tags, strict=True)]
    uses = {}
    for index in (i for i, tag in enumerate(tags) if tag.startswith("VV")):
        tags_before, tags_after = "".join(letters[:index]), "".join(letters[index + 1 :])
        use = next(use for pattern, use in _AFTER.items() if re.match(pattern, tags_after))
        if letters[index] == "n" and not tags_before.endswith("h"):
            if tags_before.endswith("b") or not re.match(_PHRASE, tags_after):
                use = "object-infinitive" if use == "infinitive" else "passive"
        elif use == "nothing" and re.search(_OBJECT_BEFORE, tags_before):
            use = "something"
        uses[index] = use
    return uses


def _letter(word: str, tag: str, kind: str) -> str:
    """Return the letter of a tagged word for patterns of tags; see `_LETTERS`."""
    first = tag.partition("+")[0] or "NN1"  # most words without a tag are nouns
    letter = next((let for start, let in _LETTERS.items() if first.startswith(start)), "-")
    if letter[:1] in ("N", "S") and kind.startswith(("time", "person")):
        return ("S" if kind == "person" else "T") + letter[1:]
    if letter == "P":
        return "I" if word in _SUBJECTS else "O" if word.endswith(_PERSONS) else "P"
    return "t" if first == "PRP" and word == "to" else letter
