"""Rules that leave whole sentences of a text, and leave out its headings, references and debris.

A text from books or the web has lines that are not sentences: titles, references, parts of lists,
what stands beside a picture. Each rule here sees one sign of that; `contstim.filters` asks them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.filters import SentenceRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.sentence import Sentence
    from contstim.word_rules import WordRules

_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("“", "”"), ("«", "»"), ("„", "“"))
_FINITE = frozenset({"VBD", "VBZ", "VBP", "MD"})
"""Tags of the Penn Treebank: past tense, present tense, modal verb."""


@dataclass(frozen=True)
class StartsLikeASentence(SentenceRule):
    """The first letter is a capital, in scripts that have such."""

    reason = "it does not start with a capital letter"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        # The first letter, behind quotation marks; a letter without case is not small
        letters = filter(str.isalpha, sentence.words[0])
        return next(letters, "").islower()


@dataclass(frozen=True)
class EndsLikeASentence(SentenceRule):
    """The last word does not ask for another, as `the` or `of` does (`WordRules.unfinished`)."""

    rules: WordRules
    reason = "its last word asks for another one"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return sentence.words[-1].lower() in self.rules.unfinished


@dataclass(frozen=True)
class Balanced(SentenceRule):
    """Quotation marks and brackets come in pairs."""

    reason = "a quotation mark or bracket has no partner"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        signs = Counter(sentence.bare)
        if signs["„"]:  # closed by the sign that opens in English
            return signs["„"] != signs["“"] + signs["”"]
        # Straight quotation marks open and close alike: there must be an even number
        return signs['"'] % 2 == 1 or any(signs[a] != signs[b] for a, b in _PAIRS if a != "„")


@dataclass(frozen=True)
class CleanWords(SentenceRule):
    """Every word is one by its spelling, and none is blocked or excluded."""

    rules: WordRules
    reason = "it holds something that is not a word, or a word to leave out"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        words = sentence.words
        return any(self.rules.misspelled(word) or self.rules.unwanted(word) for word in words)


@dataclass(frozen=True)
class CapitalsOfNames(SentenceRule):
    """Inside the sentence only names are capitalised: headings have more.

    Attributes:
        rules: tell what is a capital.
        names: words that are names, as `sort_words` finds them.
    """

    rules: WordRules
    names: frozenset[str]
    reason = "a word that is not a name is capitalised inside it"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        inner = sentence.words[1:]
        return any(self.rules.is_capitalised(w) and w not in self.names for w in inner)


@dataclass(frozen=True)
class FewNames(SentenceRule):
    """At most so many names.

    Attributes:
        names: words that are names, as `sort_words` finds them.
        most: how many a sentence may hold.

    Raises:
        InputError: fewer than no names are asked for.
    """

    names: frozenset[str]
    most: int

    def __post_init__(self) -> None:
        if self.most < 0:
            raise InputError(f"Sentences hold 0 names or more, not {self.most}.")

    @property
    def reason(self) -> str:  # type: ignore[override]
        """In words."""
        return f"it holds more than {self.most} names" if self.most else "it holds a name"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return sum(word in self.names for word in sentence.words) > self.most


@dataclass(frozen=True)
class HasFiniteVerb(SentenceRule):
    """A word is a verb in the present or past tense, or a modal verb (English).

    Attributes:
        tag: gives each of some words its tag of the Penn Treebank; see `nltk_tagger`.
    """

    tag: Callable[[Sequence[str]], Sequence[str]]
    reason = "it has no finite verb"

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        return _FINITE.isdisjoint(self.tag(sentence.words))


def nltk_tagger() -> Callable[[Sequence[str]], Sequence[str]]:
    """NLTK's perceptron tagger of English.

    Raises:
        InputError: its data are not on this machine; says how to get them.
    """
    from nltk.tag import pos_tag

    try:
        # NLTK looks for its data when it tags, not when it is imported
        pos_tag(["A"])
    except LookupError as error:
        raise InputError(
            "Finite verbs are found by NLTK's tagger, whose data are not on this machine. Get them "
            "by 'python -m nltk.downloader averaged_perceptron_tagger_eng'."
        ) from error
    return lambda words: [tag for _, tag in pos_tag(list(words))]


class UnlikeEarlier(SentenceRule):
    """Differs from every earlier sentence of its length by two words or more.

    To be asked last: a sentence that it lets pass counts as an earlier one.
    """

    reason = "it differs from an earlier sentence by one word"

    def __init__(self) -> None:
        # A sentence with each of its words left out in turn: two sentences of one length that
        # differ by one word share the entry of that word's place.
        self._seen: set[tuple[int, tuple[str, ...], tuple[str, ...]]] = set()

    def rejects(self, sentence: Sentence) -> bool:
        """See `SentenceRule.rejects`."""
        words = tuple(map(str.lower, sentence.words))
        entries = {(i, words[:i], words[i + 1 :]) for i in range(len(words))}
        if not entries.isdisjoint(self._seen):
            return True
        self._seen |= entries
        return False

    def fresh(self) -> UnlikeEarlier:
        """See `SentenceRule.fresh`."""
        return UnlikeEarlier()


def whole_sentence_rules(
    rules: WordRules, names: Iterable[str], *, most_names: int = 1
) -> list[SentenceRule]:
    """All rules of this file that need no further data, in the order in which to ask them.

    Args:
        rules: what counts as a word.
        names: the names of the text, as `sort_words` finds them.
        most_names: how many of them a sentence may hold.
    """
    names = frozenset(names)
    # Cheap rules first; UnlikeEarlier last, since it remembers whatever reaches it
    return [
        StartsLikeASentence(),
        EndsLikeASentence(rules),
        Balanced(),
        CleanWords(rules),
        CapitalsOfNames(rules, names),
        FewNames(names, most_names),
        UnlikeEarlier(),
    ]
