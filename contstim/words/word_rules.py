"""Selection of those words of a text that one can put before people.

Text from the web or from books holds much besides words: initials, parts of addresses, what a
tokenizer cut off, words in capitals. Whether something is a word is told from three things:

    spelling   letters of one script, with apostrophes and hyphens inside; no digits, no addresses
    case       capitals only where a word begins, all small inside a sentence unless it is a name
    use        how often a word stands capitalised *inside* sentences, where common words do not

        "Congress"  inside sentences: 1,013 times so, 20 times as "congress"   -> a name
        "The"       inside sentences: 1,111 times so, 120,267 times as "the"   -> a common word; its
                    capitalised form may start a sentence and stand nowhere else

Rules of spelling and case rest on Unicode's properties and hold for every script; what is known of
one language alone (its words of one letter, its abbreviations) is in `WordRules`, which
`contstim.english` fills for English.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from contstim.errors import VocabularyError
from contstim.words.corpus import read_lines
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import is_word, special_sign
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contstim.words.sentence import Sentence

APOSTROPHES = "'’ʼ׳״"
_JOINERS = f"{APOSTROPHES}-‐·\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_BETWEEN_PARTS = re.compile(f"[{re.escape(_JOINERS)}]")
_WRITTEN_TOGETHER = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}
_OF_NO_SCRIPT = {"MODIFIER", "COMBINING"}  # first words of the names of signs that any letter takes
NAMES_ARE_CAPITALISED = 0.95
"""A word is a name if at least this share of its occurrences inside sentences is capitalised."""
MANY_NAMES = 0.12
"""Share of all words inside sentences above which capitals do not tell names, as in German.

English textbooks have half of that.
"""


class Reason(StrEnum):
    """Why a word is left out of a vocabulary."""

    SIGN = "a sign of language models"
    DIGIT = "holds a digit"
    CHARACTER = "holds a character that is not a letter"
    SCRIPTS = "mixes scripts"
    ADDRESS = "part of an address"
    SINGLE_LETTER = "a single letter"
    ABBREVIATION = "an abbreviation"
    CAPITALS = "capitals inside the word"
    MISPLACED_CAPITAL = "capitalised inside a sentence, and not a name"
    SMALL_AT_THE_START = "small at the start of a sentence"
    NAME = "a name"
    BLOCKED = "on the block list"
    EXCLUDED = "excluded by the user"
    FREQUENCY = "outside the band of frequency"
    RARE = "occurs too rarely"


@dataclass(frozen=True)
class WordRules:
    """Rules by which something counts as a word.

    Attributes:
        single_letters: words of one letter, as they are spelled inside a sentence; None: every
            letter may be a word.
        abbreviations: in lower case; words that are only ever shortened others.
        addresses: in lower case; what is left of web addresses.
        vowels: letters without accents, in lower case, of which every word in their script has one;
            empty: words need none.
        onsets: two consonants with which words begin; empty: any do. Other beginnings are left
            where a word was cut, such as `ndez` of a name with an accent.
        short_words: in lower case, the words of as many letters as these have; empty: every
            spelling may be one.
        common: in lower case; words that are not names, even where a text has them only at the
            start of sentences, as a small text has `Why`.
        unfinished: in lower case; words after which a sentence goes on, such as `the`.
        blocked: in lower case; words that nobody should meet in an experiment.
        excluded: in lower case; words that the user does not want.
        names: whether names stay.
        zipf: lowest and highest frequency, on the Zipf scale (see `contstim.words.frequencies`).
    """

    single_letters: frozenset[str] | None = None
    abbreviations: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset({"http", "https", "www"})
    vowels: frozenset[str] = frozenset()
    onsets: frozenset[str] = frozenset()
    short_words: frozenset[str] = frozenset()
    common: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    names: bool = True
    zipf: tuple[float, float] = (-float("inf"), float("inf"))

    def __post_init__(self) -> None:
        low, high = self.zipf
        if not low <= high:
            raise VocabularyError(f"No word is rarer than Zipf {high:g} and not below {low:g}.")

    def misspelled(self, word: str) -> Reason | None:
        """Why a word is not one by its spelling, wherever it stands; None where it is."""
        folded = word.lower()
        if special_sign(word) is not None:
            return Reason.SIGN
        if not word.isalpha() and any(unicodedata.category(sign)[0] == "N" for sign in word):
            return Reason.DIGIT
        # An address has its own signs, and is recognised before these are held against it.
        if self._address.search(word):
            return Reason.ADDRESS
        if not _is_lettered(word):
            return Reason.CHARACTER
        scripts = _scripts(word)
        if len(scripts) > 1:
            return Reason.SCRIPTS
        if len(word) == 1 and folded != word.upper():  # scripts without case have words of one sign
            letters = self.single_letters
            is_word_of_one = letters is None or word in letters or folded in letters
            return None if is_word_of_one else Reason.SINGLE_LETTER
        # Decomposed, an accent is a sign of its own: "é" begins with e
        bare = unicodedata.normalize("NFD", folded)
        has_vowels = bool(self.vowels) and scripts == _scripts("".join(self.vowels))
        is_shortened = folded in self.abbreviations or (has_vowels and not self.vowels & {*bare})
        if word == folded:  # names have beginnings and shortness of their own
            start = bare[:2]
            odd_start = (
                bool(self.onsets) and not self.vowels & {*start} and start not in self.onsets
            )
            is_short = len(word) in self._short_lengths
            is_shortened |= odd_start or (is_short and word not in self.short_words)
        if is_shortened or (len(word) > 1 and word.isupper()):
            return Reason.ABBREVIATION
        return None if _capitals_lead(word) else Reason.CAPITALS

    def is_capitalised(self, word: str) -> bool:
        """True if a word has a capital that it does not have everywhere, as I has."""
        return word[0] != word[0].lower() and _parts(word)[0] not in (self.single_letters or ())

    def is_name(self, word: str, inside: Counter[str]) -> bool:
        """True if a word is a name: hardly ever small inside sentences, or never seen there.

        Args:
            word: as it is written.
            inside: how often each word stands inside sentences.
        """
        if not self.is_capitalised(word) or word.lower() in self.common:
            return False
        capitalised, small = inside[word], inside[word[0].lower() + word[1:]]
        # Never seen inside a sentence, 0 >= 0 holds: capitalised at the start alone, it counts as a
        # name
        return capitalised >= NAMES_ARE_CAPITALISED * (capitalised + small)

    def has_address(self, sentence: Sentence) -> bool:
        """True if a sentence holds a web address, or what is left of one."""
        return self._address.search(sentence.bare) is not None

    def unwanted(self, word: str) -> Reason | None:
        """Reason to leave out a word that is on a list, alone or as a part; None for others."""
        parts = {word.lower(), *_parts(word.lower())}
        if parts & self.excluded:
            return Reason.EXCLUDED
        return Reason.BLOCKED if parts & self.blocked else None

    @cached_property
    def _address(self) -> re.Pattern[str]:
        """Finds parts of addresses, as whole words, and the beginnings of whole ones."""
        parts = "|".join(map(re.escape, sorted(self.addresses)))
        return re.compile(rf"(?<!\S)(?:{parts})(?!\S)|://|(?<!\S)www\.", re.IGNORECASE)

    @cached_property
    def _short_lengths(self) -> frozenset[int]:
        return frozenset(map(len, self.short_words))


@dataclass(frozen=True)
class DroppedWord:
    """A word that a vocabulary does not have.

    Attributes:
        word: as it was written.
        place: `initial` where it starts a sentence, else `inner`.
        count: how often it stands there.
        reason: why it was left out.
    """

    word: str
    place: str
    count: int
    reason: Reason


@dataclass(frozen=True)
class TextWords:
    """The words of a text: those for sentences, and the others.

    Attributes:
        vocabulary: the words for sentences.
        names: the names of the text, whether they stayed or not, most frequent first.
        name_share: the share of names among all words inside sentences. Where nouns are
            capitalised, as in German, it is far above a tenth: then case does not tell names.
        with_address: how many sentences hold a web address, and were not read.
        dropped: what was left out, most frequent first.
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    name_share: float
    with_address: int
    dropped: tuple[DroppedWord, ...] = field(repr=False)

    def counts(self) -> dict[Reason, int]:
        """Number of words left out for each reason, of either place, most frequent reason first."""
        return dict(Counter(each.reason for each in self.dropped).most_common())


def sort_words(sentences: Iterable[Sentence], rules: WordRules, *, min_count: int = 1) -> TextWords:
    """Sort the words of a text into those for sentences and those to leave out.

    Sentences with a web address count for nothing: what stands beside one is seldom language.

    Args:
        sentences: the text.
        rules: what counts as a word.
        min_count: how often a word must stand in a place to stand there again.

    Raises:
        VocabularyError: `min_count` is below 1, or no word is left.
    """
    if min_count < 1:
        raise VocabularyError(f"The least count must be 1 or more, not {min_count}.")
    counts: dict[str, Counter[str]] = {"initial": Counter(), "inner": Counter()}
    with_address = 0
    for sentence in sentences:
        if rules.has_address(sentence):
            with_address += 1
            continue
        counts["initial"][sentence.words[0]] += 1
        counts["inner"].update(sentence.words[1:])

    every = counts["initial"] + counts["inner"]
    if not every:
        raise VocabularyError("The text has no sentence without a web address.")
    # Once for each word: spelling is the same in every place
    misspelled = {word: rules.misspelled(word) for word in every}
    inside = Counter({w: n for w, n in counts["inner"].items() if misspelled[w] is None})
    names = {w for w in every if misspelled[w] is None and rules.is_name(w, inside)}
    frequencies, (low, high) = WordFrequencies(every), rules.zipf

    def reason_against(word: str, place: str) -> Reason | None:
        reason = misspelled[word] or rules.unwanted(word)
        if reason is not None:
            return reason
        if counts[place][word] < min_count:
            return Reason.RARE
        # "Journal of …", "Bureau of …": such a word at the start is mostly the first of a name
        mostly_capitalised = (
            inside[word] > inside[word.lower()]
            and word.lower() not in rules.common
            and len(word) > 1  # I
        )
        if word in names or (place == "initial" and mostly_capitalised):
            if not rules.names:
                return Reason.NAME
        elif place == "initial" and word[0].islower():
            return Reason.SMALL_AT_THE_START
        elif place == "inner" and rules.is_capitalised(word):
            return Reason.MISPLACED_CAPITAL
        return None if low <= frequencies.zipf(word) <= high else Reason.FREQUENCY

    dropped: list[DroppedWord] = []
    for place, of_place in counts.items():
        # A copy, since words that are left out are deleted from the counter on the way
        for word, count in list(of_place.items()):
            reason = reason_against(word, place)
            if reason is not None:
                dropped.append(DroppedWord(word, place, count, reason))
                del of_place[word]
    if not any(counts.values()):
        reasons = Counter(each.reason for each in dropped).most_common()
        raise VocabularyError(
            f"No word that occurs {min_count} times or more is left of {len(dropped):,}: "
            + ", ".join(f"{n:,} {reason}" for reason, n in reasons)
            + ". Loosen the rules, lower --min-count, or give more text."
        )
    return TextWords(
        Vocabulary.from_counts(counts["initial"], counts["inner"]),
        tuple(sorted(names, key=lambda word: (-every[word], word))),
        sum(inside[word] for word in names) / max(1, inside.total()),
        with_address,
        tuple(sorted(dropped, key=lambda each: -each.count)),
    )


def read_words(path: Path | str) -> frozenset[str]:
    """A list of words, one a line, in lower case; lines that begin with # are remarks.

    Raises:
        CorpusError: the file is missing, empty or not UTF-8.
        VocabularyError: a line holds several words.
    """
    words = [line for line in read_lines(path) if not line.startswith("#")]
    for word in words:
        if not is_word(word):
            raise VocabularyError(f"{path}: {word!r} is not one word; write one word a line.")
    return frozenset(map(str.lower, words))


def _is_lettered(word: str) -> bool:
    """True if a word is letters and the marks on them, with joiners only between letters."""
    if word.isascii() and word.isalpha():  # most words: looking up categories takes longer
        return True
    categories = [unicodedata.category(sign)[0] for sign in word]
    for place, (sign, category) in enumerate(zip(word, categories, strict=True)):
        if category == "L" or (category == "M" and place > 0):
            continue
        if (
            sign not in _JOINERS
            or not 0 < place < len(word) - 1
            or categories[place - 1] not in "LM"
        ):
            return False
    return True


def _scripts(word: str) -> set[str]:
    """The scripts of a word's letters, by the first word of their names in Unicode."""
    if word.isascii():
        return {"LATIN"}
    scripts = {
        unicodedata.name(sign, "").partition(" ")[0]
        for sign in word
        if unicodedata.category(sign).startswith("L")
    }
    written_together = scripts & _WRITTEN_TOGETHER
    # Japanese and Korean mix their scripts inside a word: these count as one
    return scripts - _OF_NO_SCRIPT - written_together | ({"CJK"} if written_together else set())


def _parts(word: str) -> list[str]:
    """Parts of a word between apostrophes and hyphens."""
    return [word] if word.isalpha() else _BETWEEN_PARTS.split(word)


def _capitals_lead(word: str) -> bool:
    """True if capitals stand only where a part of the word begins; Mc and Mac begin one too.

    The first part has one where any has: not so `vi-Strauss`, which a tokenizer cut.
    """
    if word[0].islower() and word != word.lower():
        return False
    for part in _parts(word):
        rest = part[1:]
        for prefix in ("Mc", "Mac"):
            if part.startswith(prefix) and part[len(prefix) :][:1].isupper():
                rest = part[len(prefix) + 1 :]
        if rest != rest.lower():
            return False
    return True
