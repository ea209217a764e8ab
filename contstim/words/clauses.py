"""Detect questions and incomplete sentences (English), from the tags of words.

A tag is a part of speech with features, such as `VVZ`: verb, third person singular.

    How might you decide who should be admitted     question: no subject before the verb
    But is a major shift in our future              incomplete: the subject is missing
    What happens to things that are not real        question: `are` is in a relative clause
    By his control extended across the region       incomplete: the year after `By` is missing
    What he said was true                           statement: the subject is a clause

`TagTable.tags` assigns the tags, which are from the C5 tagset of the British National Corpus.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Finite forms of `be`, `do`, `have` and all other verbs; and modal verbs (VM0)
FINITE = frozenset("VBB VBD VBZ VDB VDD VDZ VHB VHD VHZ VVB VVD VVZ VM0".split())
INFINITIVE = frozenset("VBI VDI VHI VVI".split())
_AUXILIARY = FINITE - {"VVB", "VVD", "VVZ"}
_BASE_FORM = frozenset({"VVB", "VDB", "VHB"})  # present tense, also used for commands
_WH = frozenset({"AVQ", "DTQ", "PNQ"})  # when, which, who
_SUBORDINATE = _WH | {"CJS", "CJT"}  # if, that
_BE = frozenset({"VBB", "VBD", "VBZ"})
_NOUN = frozenset({"NN0", "NN1", "NN2", "NP0"})
_DETERMINER = frozenset({"AT0", "DPS", "DT0"})
_BEFORE_NOUN = frozenset("AJ0 AJC AJS CRD ORD".split()) | _DETERMINER
_NOMINAL = _NOUN | _BEFORE_NOUN | {"PNP", "PNI", "PNX", "EX0"}
_ADVERB = frozenset({"AV0", "XX0"})

# Words with endings of nouns, adjectives or adverbs are not verbs. Nor are words with a hyphen,
# unless the hyphen follows a prefix: `re-register`, `co-occurs`
_NO_VERB = re.compile(
    r"^(?!(?:co|re|de|pre|out|over|under)-).+-"
    r"|(?:[st]ion|ic|al|ity|ness|ism|ist|logy|ous|ive|[ai]ble|ly)s?$"
)
_QUESTION_LEADS = frozenset("so then now well first second finally or".split())
_NO_LEADS = frozenset("nor neither either both".split())  # "Nor is it true" is a statement
_SUBJECTS = frozenset("i you we they".split())
# These words are tagged as conjunctions, but often no clause follows
_OF_COMPARISON = frozenset("as than like".split())
_BEFORE_DATES = frozenset("by in since until from between".split())
_AFTER_NUMBERS = frozenset("million billion trillion percent".split())
_COUNTED = frozenset("years months weeks days".split())
_ABOUT = frozenset("about almost approximately around nearly over roughly some".split())
_QUANTITY = frozenset("CRD DT0 AT0 AJ0 ORD DTQ".split())


def is_finite(tag: str) -> bool:
    """Return True for a tag of the present or past tense, or of a modal verb.

    A contraction has several tags, such as VBZ+XX0 for isn't. One finite tag is sufficient.
    """
    return not FINITE.isdisjoint(tag.split("+"))


def may_be_verb(word: str) -> bool:
    """Return True if a word without a tag may be a finite verb, judging by its spelling."""
    return word == word.lower() and _NO_VERB.search(word) is None


def has_order_of_question(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True if a sentence has the word order of a question, or lacks a subject.

    Such sentences are wh-questions, questions with "do" or "have", questions after a conjunction
    ("But is …"), and wh-clauses without a main clause. For other sentences that begin with a verb
    ("Is it true"), the result is False; `filters.whole_statement` detects these sentences. Words
    must be in lower case.
    """
    start = _count_lead_words(words, tags)
    tags = [tag.split("+")[0] for tag in tags]
    if start == len(tags):
        return False
    if tags[start] in _WH:
        return _is_wh_question(words[start:], tags[start:])
    if words[start] in ("do", "have") and tags[start] in _BASE_FORM | INFINITIVE:
        return _is_question_with_do(words[start:], tags[start:])
    if start:
        return tags[0] == "CJC" and tags[start] in FINITE - _BASE_FORM
    return False


def _count_lead_words(words: Sequence[str], tags: Sequence[str]) -> int:
    """Return 1 if the clause begins with the second word, as in "But is", or "So what"; else 0."""
    if tags[0] == "CJC" and words[0] not in _NO_LEADS:
        return 1
    return int(words[0] in _QUESTION_LEADS and len(tags) > 1 and tags[1] in _WH)


def _is_wh_question(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True if a sentence is a question, or lacks a main clause.

    The sentence must begin with a wh-word.
    """
    if words[0] == "that" or is_exclamation(words):
        return False
    if words[0] == "which" and not {*tags[1:2]} <= _NOUN | _BEFORE_NOUN | {"PRF"}:
        return True  # "Which means that …"
    # The verb may follow a noun phrase: "What type of chin will …", "How many sites do …"
    has_phrase = tags[0] == "DTQ" or (words[0] == "how" and tags[1:2] != ["NN2"])
    verb = _skip(tags, 1, _NOUN | _BEFORE_NOUN | {"AV0", "PRF"} if has_phrase else _ADVERB)
    if tags[verb : verb + 1] and tags[verb] in _AUXILIARY:
        if tags[0] == "AVQ" and verb == 1:
            return True
        following = next((tag for tag in tags[verb + 1 :] if tag not in _ADVERB), "")
        # "What was surprising" can be the subject of a statement; "What are we" cannot
        if following == "PNP" or (following in _NOMINAL and (verb > 1 or tags[verb] not in _BE)):
            return True
    return n_main_verbs(words, tags) < 2


def is_exclamation(words: Sequence[str]) -> bool:
    """Return True for words such as "what a day it was"."""
    return words[0] == "what" and words[1:2] in (("a",), ("an",))


def _is_question_with_do(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True for "Do you", "Have they" and "Do people learn", but not for "Do your best"."""
    if words[1:2] and words[1] in _SUBJECTS:
        return True
    verb = _skip(tags, 1, _NOUN | _BEFORE_NOUN)
    return words[0] == "do" and 1 < verb < len(tags) and tags[verb] in _BASE_FORM | INFINITIVE


def _skip(tags: Sequence[str], start: int, skipped: frozenset[str]) -> int:
    return next((i for i in range(start, len(tags)) if tags[i] not in skipped), len(tags))


def n_main_verbs(words: Sequence[str], tags: Sequence[str]) -> int:
    """Count finite verbs, and subtract one for each subordinate clause after the first word."""
    finite = [is_finite(tag) for tag in tags]
    inner = sum(
        tag.split("+")[0] in _SUBORDINATE
        and words[index] not in _OF_COMPARISON
        and "TO0" not in tags[index + 1 : index + 2]  # "how to swim" has no finite verb
        and any(finite[index:])
        for index, tag in enumerate(tags)
        if index > 0
    )
    return sum(finite) - inner


def is_subordinate(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True if a sentence begins with a subordinating word.

    "That seemed right" begins with a pronoun, so the result is False.
    """
    is_pronoun = words[0] == "that" and is_finite(tags[1] if len(tags) > 1 else "")
    return tags[0].split("+")[0] in _SUBORDINATE and not is_pronoun


def lacks_a_part(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True if a sentence lacks a date, a number or the object of a preposition.

    Words must be in lower case.
    """
    return (
        _lacks_date(words, tags)
        or any(_lacks_number(words, tags, index) for index in range(len(words)))
        or any(_lacks_object(words, tags, index) for index in range(len(words) - 1))
    )


def _lacks_date(words: Sequence[str], tags: Sequence[str]) -> bool:
    """Return True if the date after the first word is missing ("By his control extended across").

    In such sentences, only one noun phrase precedes the verb. A complete sentence has two ("By 1900
    his control extended …").
    """
    if words[0] not in _BEFORE_DATES or len(words) < 2:
        return False
    if words[0] == "by" and words[1:2] == ("however",):
        return True
    noun = _skip(tags, 1 + (tags[1] in _DETERMINER), _BEFORE_NOUN - _DETERMINER)
    end = _skip(tags, noun, _NOUN)
    if not (noun < end if words[0] == "by" else end == noun + 1):
        return False
    verb = _skip(tags, end, _ADVERB)
    # If no other word is a finite verb, a word tagged as a participle may be in the past tense
    may_be_past = verb < len(tags) and tags[verb] == "VVN" and not any(map(is_finite, tags))
    if verb >= len(tags) or not (is_finite(tags[verb]) or may_be_past):
        return False
    if tags[verb] in ("VHB", "VHD", "VHZ", "VM0"):
        return True
    # The subject may follow the verb: "In the corner sat a man"
    return not {*tags[verb + 1 : verb + 2]} <= _NOMINAL


def _lacks_number(words: Sequence[str], tags: Sequence[str], index: int) -> bool:
    """Return True for a unit without its number, as in "costs million" or "about years ago"."""
    word, tag_before = words[index], tags[index - 1] if index else ""
    if word in _AFTER_NUMBERS:
        return tag_before not in _QUANTITY
    if word not in _COUNTED:
        return False
    before, after = words[max(index - 2, 0) : index], words[index + 1 : index + 3]
    is_ago = after[:1] in (("ago",), ("old",)) or after == ("of", "age")
    is_counted = tag_before != "PRP" and words[index - 1] not in _ABOUT
    return (is_ago and not is_counted) or before in (("age", "of"), ("ages", "of"))


def _lacks_object(words: Sequence[str], tags: Sequence[str], index: int) -> bool:
    """Return True if a preposition lacks its object, as in "from to" or "between and"."""
    if tags[index] != "PRP":
        return False
    if tags[index + 1] == "TO0":
        return index + 2 == len(tags)
    return words[index : index + 2] in (("from", "to"), ("between", "and"), ("around", "to"))
