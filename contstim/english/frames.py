"""Complements of English verbs in a sentence, inferred from the surrounding parts of speech.

The boy walked to the old school.       walked: to
He told me that she had slept well.     told: clause; slept: nothing
The book my wife wrote was sold.        wrote: something; sold: passive
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A letter for each C5 tag, by the start of the tag. Nouns are N, S (person) or T (time), with a
# full stop after plurals. Pronouns are O (person), P, or I as a subject. Adverbs have no letter.
_LETTERS = dict(
    pair.split(":")
    for pair in (
        "PNQ:w DTQ:w CJT:w AVQ:q NN1:N NN:N. NP:S PN:P AT:D DPS:D DT0:D AJ:A CRD:C ORD:C VVD:v "
        "VVZ:v VVI:i VVB:i VVG:g VVN:n VB:b VH:h VM:m VD:m TO:2 AV0: AVP: XX:"
    ).split()
)
_PERSONS = ("me", "us", "him", "her", "them", "you", "one", "body", "self", "selves")
_SUBJECTS = ("i", "he", "she", "we", "they")
# A noun phrase: determiners, adjectives and nouns, a pronoun, or a determiner alone
_PHRASE = r"(?:[DCA]*[NST]++\.?|[OP]|[DC](?![DCANST]))"
# Tags after a verb -> the verb's complement; the first match counts
_AFTER = {
    r"[DCA]*T+(?![NS])": "nothing",
    rf"I|{_PHRASE}[bhmv]|w|q": "clause",
    rf"{_PHRASE}[2i]": "object-infinitive",
    rf"{_PHRASE}(?:[DA]*[NS]++\.?|[OP])(?![bhmvin])": "two",
    rf"{_PHRASE}t": "something-to",
    r"[DCA]*[NST]*S(?![NS])|O": "somebody",
    _PHRASE: "something",
} | {"t": "to", "2": "infinitive", "A": "adjective", "g": "ing", "": "nothing"}
# The tags before a verb in a relative clause whose object is the noun before that clause:
# "the book (that) my wife wrote" and "the book that Ann wrote"
_OBJECT_BEFORE = r"[NS]\.?(?:w[DCA]*[NST]++\.?|D[CA]*[NST]++\.?|w?[OPI])[bhm2]*$"


def verb_uses(
    words: Sequence[str], tags: Sequence[str], kind: Callable[[str, str], str]
) -> dict[int, str]:
    """Infer the complement of each verb of a sentence, by the verb's index (from 0).

    A complement is something, somebody, two (objects), something-to (somebody), to (somewhere),
    clause, infinitive, object-infinitive, ing, adjective, passive or nothing.

    Args:
        words: words of the sentence.
        tags: C5 tags of the words.
        kind: function that returns the main kind of a word with a tag.
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
    first = tag.partition("+")[0] or "NN1"  # as most words that are not listed
    letter = next((let for start, let in _LETTERS.items() if first.startswith(start)), "-")
    if letter[:1] in ("N", "S") and kind.startswith(("time", "person")):
        return ("S" if kind == "person" else "T") + letter[1:]
    if letter == "P":
        return "I" if word in _SUBJECTS else "O" if word.endswith(_PERSONS) else "P"
    return "t" if first == "PRP" and word == "to" else letter
