"""Select the words of a text that are suitable for experiments.

Text from the web or from books contains non-words: initials, parts of addresses, fragments from a
tokenizer, words in capitals. Three criteria decide whether a string is a suitable word:

    spelling   letters of one script, with apostrophes and hyphens inside; no digits, no addresses
    case       capitals only at the start of a word; inside a sentence, only names have capitals
    use        names are words that are nearly always capitalised *inside* sentences

        "Congress"  inside sentences: 1,013 times, 20 times as "congress"   -> a name
        "The"       inside sentences: 1,111 times, 120,267 times as "the"   -> a common word; its
                    capitalised form may only start a sentence

Rules of spelling and case use Unicode's properties, so they apply to every script. `WordRules`
holds facts about a language, such as its abbreviations. `contstim.english` has the facts about
English.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import regex

from contstim.errors import VocabularyError
from contstim.words.corpus import read_lines
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence, special_sign
from contstim.words.vocabulary import Vocabulary, require_single_word

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


APOSTROPHES = "'’ʼ׳״"
_JOINERS = f"{APOSTROPHES}-‐·\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
_BETWEEN_PARTS = re.compile(f"[{re.escape(_JOINERS)}]")
# Letters with their marks. Between two letters, a single joiner (apostrophe or hyphen) is allowed
_LETTERS = regex.compile(rf"\p{{L}}[\p{{L}}\p{{M}}]*(?:[{re.escape(_JOINERS)}][\p{{L}}\p{{M}}]+)*")
_PART_START = regex.compile(r"^(?:Ma?c(?=\p{Upper}))?.")  # first letter; `McD` in `McDonald`
_WRITTEN_TOGETHER = {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"}
# Some letters occur with every script. Their Unicode names begin with these words
_OF_NO_SCRIPT = {"MODIFIER", "COMBINING"}
NAMES_ARE_CAPITALISED = 0.95
"""A word is a name if at least this share of its occurrences inside sentences is capitalised."""
MANY_NAMES = 0.12
"""If names are more than this share of the words inside sentences, capitals do not indicate names.

English textbooks have a share of 0.06. German texts exceed the limit, because all nouns have
capitals.
"""


class Reason(StrEnum):
    """Reason why a word is left out of a vocabulary."""

    SIGN = "a special token of a language model"
    DIGIT = "contains a digit"
    CHARACTER = "contains a character that is not a letter"
    SCRIPTS = "mixes scripts"
    ADDRESS = "part of an address"
    SINGLE_LETTER = "a single letter"
    ABBREVIATION = "an abbreviation"
    CAPITALS = "capitals inside the word"
    MISPLACED_CAPITAL = "capitalised inside a sentence, and not a name"
    SMALL_AT_THE_START = "in lower case at the start of a sentence"
    NAME = "a name"
    BLOCKED = "on the block list"
    EXCLUDED = "excluded by the user"
    FREQUENCY = "outside the range of frequencies"
    RARE = "occurs too rarely"


@dataclass(frozen=True)
class WordRules:
    """Rules that decide whether a string is a suitable word.

    All sets except `single_letters` are in lower case. If the set of vowels, onsets or short words
    is empty, the check that uses this set is omitted.

    Attributes:
        single_letters: one-letter words, spelled as inside a sentence, such as `a` and `I`; None if
            every letter may be a word.
        vowels: vowels without accents. A word in the script of the vowels must have a vowel.
        onsets: pairs of consonants that may begin a word in lower case. Other pairs indicate a
            fragment of a word. For example, `ndez` is a fragment of a name with an accent.
        short_words: all short words of the language. Other lower-case words of the same lengths are
            abbreviations.
        common: words that are never names, such as `why`. In a small text, such a word may occur
            only at the start of sentences, and its capital would indicate a name.
        unfinished: words that cannot end a sentence, such as `the`.
        blocked: words that are unsuitable for experiments.
        excluded: further words that the user excludes.
        names: whether names are suitable words.
        zipf: minimum and maximum frequency on the Zipf scale (see `contstim.words.frequencies`).
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
            raise VocabularyError(
                f"`zipf` must be a range from a low to a high frequency, got {low:g} to {high:g}."
            )

    def misspelled(self, word: str) -> Reason | None:
        """Return why a string is not spelled like a word; None if it is spelled like a word."""
        folded = word.lower()
        if special_sign(word) is not None:
            return Reason.SIGN
        if not word.isalpha() and any(unicodedata.category(sign)[0] == "N" for sign in word):
            return Reason.DIGIT
        # Addresses contain non-letters, so this test precedes the test of letters
        if self._address.search(word):
            return Reason.ADDRESS
        if not _LETTERS.fullmatch(word):
            return Reason.CHARACTER
        scripts = _scripts(word)
        if len(scripts) > 1:
            return Reason.SCRIPTS
        if len(word) == 1 and folded != word.upper():  # scripts without case have one-letter words
            letters = self.single_letters
            is_word_of_one = letters is None or word in letters or folded in letters
            return None if is_word_of_one else Reason.SINGLE_LETTER
        # Decomposition separates letters and accents, so that "é" counts as a vowel
        bare = unicodedata.normalize("NFD", folded)
        has_vowels = bool(self.vowels) and scripts == _scripts("".join(self.vowels))
        is_shortened = folded in self.abbreviations or (has_vowels and not self.vowels & {*bare})
        if word == folded:  # other words may be names, which may be short or have other onsets
            start = bare[:2]
            has_onset = bool(self.vowels & {*start}) or start in self.onsets
            is_short = len(word) in self._short_lengths and word not in self.short_words
            is_shortened |= is_short or (bool(self.onsets) and not has_onset)
        if is_shortened or (len(word) > 1 and word.isupper()):
            return Reason.ABBREVIATION
        return None if _is_well_capitalised(word) else Reason.CAPITALS

    def is_capitalised(self, word: str) -> bool:
        """Return True if a word begins with a capital; False for words such as `I` and `I'm`."""
        return word[0] != word[0].lower() and _parts(word)[0] not in (self.single_letters or ())

    def is_name(self, word: str, inside: Counter[str]) -> bool:
        """Return True if a word is a name: almost always capitalised inside sentences.

        A capitalised word that does not occur inside sentences is also a name. `inside` counts the
        words inside sentences.
        """
        if not self.is_capitalised(word) or word.lower() in self.common:
            return False
        capitalised, small = inside[word], inside[word[0].lower() + word[1:]]
        return capitalised >= NAMES_ARE_CAPITALISED * (capitalised + small)

    def has_address(self, sentence: Sentence) -> bool:
        """Return True if a sentence contains a web address or a fragment of one."""
        return self._address.search(sentence.bare) is not None

    def unwanted(self, word: str) -> Reason | None:
        """Return why a word, or a part of it, is excluded or blocked; None if it is neither."""
        parts = {word.lower(), *_parts(word.lower())}
        if parts & self.excluded:
            return Reason.EXCLUDED
        return Reason.BLOCKED if parts & self.blocked else None

    @cached_property
    def _address(self) -> re.Pattern[str]:
        parts = "|".join(map(re.escape, sorted(self.addresses)))
        return re.compile(rf"(?<!\S)(?:{parts})(?!\S)|://|(?<!\S)www\.", re.IGNORECASE)

    @cached_property
    def _short_lengths(self) -> frozenset[int]:
        return frozenset(map(len, self.short_words))


@dataclass(frozen=True)
class DroppedWord:
    """A word that was left out of a vocabulary.

    Attributes:
        place: `initial` (start of a sentence) or `inner` (other positions).
        count: number of occurrences at this place.
    """

    word: str
    place: str
    count: int
    reason: Reason


@dataclass(frozen=True)
class TextWords:
    """The suitable words of a text, and the words that were left out.

    Attributes:
        names: all names in the text, most frequent first.
        name_share: share of names among all words inside sentences; see `MANY_NAMES`.
        with_address: number of sentences that were skipped because of a web address.
        dropped: words that were left out, most frequent first.
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    name_share: float
    with_address: int
    dropped: tuple[DroppedWord, ...] = field(repr=False)

    def counts(self) -> dict[Reason, int]:
        """Count dropped words by reason, the most frequent reason first."""
        return dict(Counter(word.reason for word in self.dropped).most_common())


def sort_words(sentences: Iterable[Sentence], rules: WordRules, *, min_count: int = 1) -> TextWords:
    """Sort the words of a text into suitable words and words to leave out.

    Sentences with a web address are skipped, because they rarely contain ordinary language.

    A word must occur at least `min_count` times. Occurrences at the start of sentences and inside
    sentences count separately.

    Raises:
        VocabularyError: if `min_count` is below 1, or no word is left.
    """
    if min_count < 1:
        raise VocabularyError(f"min_count must be at least 1, got {min_count}.")
    counts: dict[str, Counter[str]] = {"initial": Counter(), "inner": Counter()}
    with_address = 0
    for sentence in sentences:
        if rules.has_address(sentence):
            with_address += 1
            continue
        counts["initial"][sentence.words[0]] += 1
        counts["inner"].update(sentence.words[1:])

    all_counts = counts["initial"] + counts["inner"]
    if not all_counts:
        raise VocabularyError("All sentences of the text contain web addresses. Use another text.")
    misspelled = {word: rules.misspelled(word) for word in all_counts}
    inside = Counter({w: n for w, n in counts["inner"].items() if misspelled[w] is None})
    names = {w for w in all_counts if misspelled[w] is None and rules.is_name(w, inside)}
    frequencies, (low, high) = WordFrequencies(all_counts), rules.zipf

    def reason_against(word: str, position: str) -> Reason | None:
        reason = misspelled[word] or rules.unwanted(word)
        if reason is not None:
            return reason
        if counts[position][word] < min_count:
            return Reason.RARE
        # At the start of a sentence, a word is usually part of a name if most of its occurrences
        # inside sentences are capitalised: "Journal of …"
        is_common = word.lower() in rules.common or len(word) == 1  # such as "I"
        mostly_capitalised = inside[word] > inside[word.lower()] and not is_common
        if word in names or (position == "initial" and mostly_capitalised):
            if not rules.names:
                return Reason.NAME
        elif position == "initial" and word[0].islower():
            return Reason.SMALL_AT_THE_START
        elif position == "inner" and rules.is_capitalised(word):
            return Reason.MISPLACED_CAPITAL
        return None if low <= frequencies.zipf(word) <= high else Reason.FREQUENCY

    dropped = [
        DroppedWord(word, position, count, reason)
        for position, position_counts in counts.items()
        for word, count in position_counts.items()
        if (reason := reason_against(word, position)) is not None
    ]
    for left_out in dropped:
        del counts[left_out.place][left_out.word]
    if not any(counts.values()):
        reasons = Counter(word.reason for word in dropped).most_common()
        raise VocabularyError(
            f"None of {len(dropped):,} words remains (minimum count {min_count}): "
            + ", ".join(f"{n:,} {reason}" for reason, n in reasons)
            + ". Loosen the rules, lower --min-count, or use a longer text."
        )
    return TextWords(
        Vocabulary.from_counts(counts["initial"], counts["inner"]),
        tuple(sorted(names, key=lambda word: (-all_counts[word], word))),
        sum(inside[word] for word in names) / max(1, inside.total()),
        with_address,
        tuple(sorted(dropped, key=lambda word: -word.count)),
    )


def read_words(path: Path | str) -> frozenset[str]:
    """Read a list of words, one per line, and return the words in lower case.

    Lines that begin with `#` are skipped.

    Raises:
        CorpusError: if the file is missing, empty or not UTF-8.
        VocabularyError: if a line holds several words.
    """
    words = [line for line in read_lines(path) if not line.startswith("#")]
    for word in words:
        require_single_word(word, path)
    return frozenset(map(str.lower, words))


def _scripts(word: str) -> set[str]:
    if word.isascii():
        return {"LATIN"}
    # The Unicode name of a letter begins with its script
    scripts = {unicodedata.name(sign, "").partition(" ")[0] for sign in filter(str.isalpha, word)}
    written_together = scripts & _WRITTEN_TOGETHER
    # Japanese and Korean words mix several scripts, which count as one script
    return scripts - _OF_NO_SCRIPT - written_together | ({"CJK"} if written_together else set())


def _parts(word: str) -> list[str]:
    return [word] if word.isalpha() else _BETWEEN_PARTS.split(word)


def _is_well_capitalised(word: str) -> bool:
    """Return True if all capitals are at the start of the word's parts, or follow `Mc` or `Mac`.

    If a part has a capital, the first part must also have a capital: `vi-Strauss` is a fragment.
    """
    is_fragment = word[0].islower() and word != word.lower()
    tails = (_PART_START.sub("", part) for part in _parts(word))
    return not is_fragment and all(tail == tail.lower() for tail in tails)
