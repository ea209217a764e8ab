"""Signs in the tags of a sentence that it is a question or a part of a sentence (English).

    How might you decide who should be admitted     a question: no subject before the verb
    But is a major shift in our future              the subject is missing
    What happens to things that are not real        the only other verb is in a relative clause
    By his control extended across the region       the number after `By` was cut out
    What he said was true                           a statement, whose subject is a clause

Tags are those of the British National Corpus (C5), found by `TagTable.tags`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Forms of be, do, have and of other verbs, modal verbs
FINITE = frozenset("VBB VBD VBZ VDB VDD VDZ VHB VHD VHZ VVB VVD VVZ VM0".split())
INFINITIVE = frozenset("VBI VDI VHI VVI".split())
_AUXILIARY = FINITE - {"VVB", "VVD", "VVZ"}
_BASE_FORM = frozenset({"VVB", "VDB", "VHB"})  # of commands too
_WH = frozenset({"AVQ", "DTQ", "PNQ"})  # when, which, who
_SUBORDINATE = _WH | {"CJS", "CJT"}  # if, that
_BE = frozenset({"VBB", "VBD", "VBZ"})
_NOUN = frozenset({"NN0", "NN1", "NN2", "NP0"})
_DETERMINER = frozenset({"AT0", "DPS", "DT0"})
_BEFORE_NOUN = frozenset("AJ0 AJC AJS CRD ORD".split()) | _DETERMINER
_NOMINAL = _NOUN | _BEFORE_NOUN | {"PNP", "PNI", "PNX", "EX0"}
_ADVERB = frozenset({"AV0", "XX0"})

# Compounds, unless of a prefix as in re-register and co-occurs; endings of nouns and adjectives
_NO_VERB = re.compile(
    r"^(?!(?:co|re|de|pre|out|over|under)-).+-"
    r"|(?:[st]ion|ic|al|ity|ness|ism|ist|logy|ous|ive|[ai]ble|ly)s?$"
)
_QUESTION_LEADS = frozenset("so then now well first second finally or".split())
_NO_LEADS = frozenset("nor neither either both".split())  # Nor is it true
_SUBJECTS = frozenset("i you we they".split())
_OF_COMPARISON = frozenset("as than like".split())  # tagged as conjunctions, often without a clause
_BEFORE_DATES = frozenset("by in since until from between".split())
_LARGE_NUMBERS = frozenset("million billion trillion".split())
_COUNTED = frozenset("years months weeks days percent".split())
_ABOUT = frozenset("about almost approximately around nearly over roughly some".split())
_QUANTITY = frozenset("CRD DT0 AT0 AJ0 ORD DTQ".split())


def is_finite(tag: str) -> bool:
    """True for verbs in the present or past tense and modal verbs; isn't is VBZ+XX0."""
    return not FINITE.isdisjoint(tag.split("+"))


def may_be_verb(word: str) -> bool:
    """True if a rare word may be a finite verb: no name, compound or noun by its ending."""
    return word == word.lower() and _NO_VERB.search(word) is None


def has_order_of_question(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True if a verb or a question word stands where questions have it, or the subject is missing.

    Args:
        words: of the sentence, in lower case.
        tags: of each word.
    """
    start = _lead(words, tags)
    tags = [tag.split("+")[0] for tag in tags]
    if start == len(tags):
        return False
    if tags[start] in _WH:
        return _asks(words[start:], tags[start:])
    if words[start] in ("do", "have") and tags[start] in _BASE_FORM | INFINITIVE:
        return _is_question_with_do(words[start:], tags[start:])
    if start:
        return tags[0] == "CJC" and tags[start] in FINITE - _BASE_FORM
    return False


def _lead(words: Sequence[str], tags: Sequence[str]) -> int:
    """Number of words before the clause, such as `But` or the `So` of `So what`."""
    if tags[0] == "CJC" and words[0] not in _NO_LEADS:
        return 1
    return int(words[0] in _QUESTION_LEADS and len(tags) > 1 and tags[1] in _WH)


def _asks(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True if a clause that begins with a question word asks, or is no main clause."""
    if words[0] == "that":
        return False
    if is_exclamation(words):
        return False
    if words[0] == "which" and not {*tags[1:2]} <= _NOUN | _BEFORE_NOUN | {"PRF"}:
        return True  # Which means that
    verb = 1
    if tags[0] == "DTQ" or (words[0] == "how" and tags[1:2] != ["NN2"]):
        # What type of chin will, how many sites do
        while verb < len(tags) and tags[verb] in _NOUN | _BEFORE_NOUN | {"AV0", "PRF"}:
            verb += 1
    else:
        while verb < len(tags) and tags[verb] in _ADVERB:
            verb += 1
    if tags[verb : verb + 1] and tags[verb] in _AUXILIARY:
        if tags[0] == "AVQ" and verb == 1:
            return True
        following = next((tag for tag in tags[verb + 1 :] if tag not in _ADVERB), "")
        # What was surprising may be a subject, and what are we not
        if following == "PNP" or (following in _NOMINAL and (verb > 1 or tags[verb] not in _BE)):
            return True
    return n_main_verbs(words, tags) < 2


def is_exclamation(words: Sequence[str]) -> bool:
    """True of What a day it was."""
    return words[0] == "what" and words[1:2] in (("a",), ("an",))


def _is_question_with_do(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True of Do you, Have they and Do people learn; not of commands, such as Do your best."""
    if words[1:2] and words[1] in _SUBJECTS:
        return True
    verb = 1
    while verb < len(tags) and tags[verb] in _NOUN | _BEFORE_NOUN:
        verb += 1
    return words[0] == "do" and 1 < verb < len(tags) and tags[verb] in _BASE_FORM | INFINITIVE


def n_main_verbs(words: Sequence[str], tags: Sequence[str]) -> int:
    """Number of finite verbs less those of subordinate clauses inside the sentence."""
    finite = [is_finite(tag) for tag in tags]
    inner = sum(
        tag.split("+")[0] in _SUBORDINATE
        and words[place] not in _OF_COMPARISON
        and tags[place + 1 : place + 2] != ["TO0"]  # how to swim
        and any(finite[place:])
        for place, tag in enumerate(tags)
        if place > 0
    )
    return sum(finite) - inner


def is_subordinate(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True if a sentence that begins so needs a main clause; not of That seemed right."""
    is_pronoun = words[0] == "that" and is_finite(tags[1] if len(tags) > 1 else "")
    return tags[0].split("+")[0] in _SUBORDINATE and not is_pronoun


def lacks_a_part(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True if a number was cut out, or what follows a preposition.

    Args:
        words: of the sentence, in lower case.
        tags: of each word.
    """
    return (
        _lacks_date(words, tags)
        or any(_lacks_number(words, tags, place) for place in range(len(words)))
        or any(_lacks_object(words, tags, place) for place in range(len(words) - 1))
    )


def _lacks_date(words: Sequence[str], tags: Sequence[str]) -> bool:
    """True of By his control extended across: one noun phrase where two are needed."""
    if words[0] not in _BEFORE_DATES or len(words) < 2:
        return False
    if words[0] == "by" and words[1:2] == ("however",):
        return True
    verb = 1 + (tags[1] in _DETERMINER)
    while verb < len(tags) and tags[verb] in _BEFORE_NOUN - _DETERMINER:
        verb += 1
    noun = verb
    while verb < len(tags) and tags[verb] in _NOUN:
        verb += 1
    if not (noun < verb if words[0] == "by" else verb == noun + 1):
        return False
    while verb < len(tags) and tags[verb] in _ADVERB:
        verb += 1
    # Of the past tense and the participle, which look alike, a sentence needs the past tense
    may_be_past = verb < len(tags) and tags[verb] == "VVN" and not any(map(is_finite, tags))
    if verb >= len(tags) or not (is_finite(tags[verb]) or may_be_past):
        return False
    if tags[verb] in ("VHB", "VHD", "VHZ", "VM0"):
        return True
    # In the corner sat a man: the subject may follow
    return not {*tags[verb + 1 : verb + 2]} <= _NOMINAL


def _lacks_number(words: Sequence[str], tags: Sequence[str], place: int) -> bool:
    word, before = words[place], tags[place - 1] if place else ""
    if word in _LARGE_NUMBERS or word == "percent":
        return before not in _QUANTITY
    if word not in _COUNTED:
        return False
    is_ago = words[place + 1 : place + 2] in (("ago",), ("old",)) or words[
        place + 1 : place + 3
    ] == ("of", "age")
    is_counted = before != "PRP" and words[place - 1] not in _ABOUT
    return (is_ago and not is_counted) or words[max(place - 2, 0) : place] in (
        ("age", "of"),
        ("ages", "of"),
    )


def _lacks_object(words: Sequence[str], tags: Sequence[str], place: int) -> bool:
    """True of from to, in and, to was."""
    if tags[place] != "PRP":
        return False
    following = tags[place + 1]
    if following == "TO0":
        return place + 2 == len(tags)
    return words[place : place + 2] in (("from", "to"), ("between", "and"), ("around", "to"))
