"""What English verbs take in a sentence, read from the parts of speech around them.

The boy walked to the old school.       walked: to
He told me that she had slept well.     told: clause; slept: nothing
The book my wife wrote was sold.        wrote: something; sold: passive
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A letter for each tag of C5, by what it begins with. Nouns are N, S of somebody or T of time, with
# a full stop after plurals; pronouns O of somebody or P, and I as a subject. Adverbs have none.
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
# What follows a verb, and what the verb takes: the first that is found
_AFTER = {
    r"[DCA]*T+(?![NS])": "nothing",
    rf"I|{_PHRASE}[bhmv]|w|q": "clause",
    rf"{_PHRASE}[2i]": "object-infinitive",
    rf"{_PHRASE}(?:[DA]*[NS]++\.?|[OP])(?![bhmvin])": "two",
    rf"{_PHRASE}t": "something-to",
    r"[DCA]*[NST]*S(?![NS])|O": "somebody",
    _PHRASE: "something",
} | {"t": "to", "2": "infinitive", "A": "adjective", "g": "ing", "": "nothing"}
# In "the book (that) my wife wrote" and "the book that Ann wrote", what wife and Ann stand behind
_OBJECT_BEFORE = r"[NS]\.?(?:w[DCA]*[NST]++\.?|D[CA]*[NST]++\.?|w?[OPI])[bhm2]*$"


def verb_uses(
    words: Sequence[str], tags: Sequence[str], kind: Callable[[str, str], str]
) -> dict[int, str]:
    """What each verb of a sentence takes, by its position from 0.

    It is something, somebody, two (objects), something-to (somebody), to (somewhere), clause,
    infinitive, object-infinitive, ing, adjective, passive or nothing.

    Args:
        words: of the sentence.
        tags: of the words, of the tagset C5.
        kind: the main kind of a word with a tag.
    """
    letters = [_letter(w.lower(), tag, kind(w, tag)) for w, tag in zip(words, tags, strict=True)]
    found = {}
    for index in (i for i, tag in enumerate(tags) if tag.startswith("VV")):
        before, after = "".join(letters[:index]), "".join(letters[index + 1 :])
        use = next(use for pattern, use in _AFTER.items() if re.match(pattern, after))
        if letters[index] == "n" and not before.endswith("h"):
            if before.endswith("b") or not re.match(_PHRASE, after):
                use = "object-infinitive" if use == "infinitive" else "passive"
        elif use == "nothing" and re.search(_OBJECT_BEFORE, before):
            use = "something"
        found[index] = use
    return found


def _letter(word: str, tag: str, kind: str) -> str:
    first = tag.partition("+")[0] or "NN1"  # as most words that are not listed
    letter = next((let for start, let in _LETTERS.items() if first.startswith(start)), "-")
    if letter[:1] in ("N", "S") and kind.startswith(("time", "person")):
        return ("S" if kind == "person" else "T") + letter[1:]
    if letter == "P":
        return "I" if word in _SUBJECTS else "O" if word.endswith(_PERSONS) else "P"
    return "t" if first == "PRP" and word == "to" else letter
