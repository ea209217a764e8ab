"""Settings of the words and sentences of a text. Light: commands read it first."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.options import Help

if TYPE_CHECKING:
    from contstim.item_flags import FlagSettings
    from contstim.word_rules import WordRules

Language = Annotated[
    Literal["en", "any"],
    Help("en: rules for English; any: what Unicode says of every script."),
]
Blocked = Annotated[
    Path | None, Help("The block list, one word a line, instead of the one for English.")
]
Prose = Annotated[bool, Help("The text is running prose: split it into sentences.", flag="--prose")]
# Fields of the settings of a vocabulary that say which words are taken, and not how often
_ABOUT_WORDS = ("language", "names", "without", "blocked", "zipf", "every_word")


@dataclass(frozen=True, kw_only=True)
class VocabularySettings:
    """Options of choosing the words of a vocabulary from a text."""

    language: Language = "en"
    names: Annotated[
        Literal["keep", "drop"] | None,
        Help("Words that are always capitalised; by default dropped from English."),
    ] = None
    without: Annotated[Path | None, Help("Leave out these words, one a line.")] = None
    blocked: Blocked = None
    zipf: Annotated[
        str | None,
        Help(
            "Keep words of these frequencies in the text, on the Zipf scale, such as 3.5-7.",
            metavar="LOW-HIGH",
        ),
    ] = None
    every_word: Annotated[bool, Help("Take whatever the text holds, words or not.")] = False
    min_count: Annotated[int, Help("How often a word must occur.", at_least=1)] = 5
    same_token_count: Annotated[
        bool,
        Help(
            "Keep only words that all tokenizers cut into equally many tokens.",
        ),
    ] = False
    prose: Prose = False

    @property
    def keeps_names(self) -> bool:
        """True if names stay."""
        return self.names == "keep" or (self.names is None and self.language == "any")

    @property
    def word_choice(self) -> dict[str, object]:
        """Settings about the words of a text, by name: all but those of counting."""
        return {name: getattr(self, name) for name in _ABOUT_WORDS}

    def rules(self) -> WordRules | None:
        """Rules for words; None where everything counts as a word.

        Raises:
            InputError: every word is asked for and words are chosen, or `zipf` is not a band.
        """
        from contstim.english.words import english_rules
        from contstim.word_rules import WordRules, read_words

        if self.every_word:
            # Whatever else was given would change nothing
            if self.word_choice != VocabularySettings(every_word=True).word_choice:
                raise InputError("`every_word` leaves no word out: give it without other choices.")
            return None
        band = (-float("inf"), float("inf"))
        if self.zipf is not None:
            ends = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", self.zipf)
            if ends is None:
                raise InputError(
                    f"`zipf` is {self.zipf!r}; expected the lowest and the highest, such as 3.5-7."
                )
            band = (float(ends[1]), float(ends[2]))
        lists = {
            name: read_words(path)
            for name, path in (("blocked", self.blocked), ("excluded", self.without))
            if path is not None
        }
        make = english_rules if self.language == "en" else WordRules
        return make(names=self.keeps_names, zipf=band, **lists)


@dataclass(frozen=True, kw_only=True)
class SentenceSettings:
    """Options of choosing natural sentences for a study from a text."""

    words: Annotated[
        str, Help("Number of words a sentence, such as 8 or 7-9.", metavar="N or N-M")
    ] = "8"
    without: Annotated[
        Path | None, Help("Leave out sentences with one of these phrases, one a line.")
    ] = None
    repeats: Annotated[bool, Help("Also keep sentences in which a word occurs twice.")] = False
    language: Language = "en"
    names: Annotated[int, Help("How many names a sentence may hold.", at_least=0)] = 1
    blocked: Blocked = None
    finite_verb: Annotated[
        bool,
        Help("Keep sentences with a finite verb only (English; NLTK's tagger)."),
    ] = False
    every_line: Annotated[bool, Help("Also keep headings, references and near-duplicates.")] = False
    prose: Prose = False

    def lengths(self) -> tuple[int, int | None]:
        """The least and, where two numbers are asked for, the largest number of words.

        Raises:
            InputError: it is not a number or two.
        """
        length = re.fullmatch(r"([1-9][0-9]{0,3})(?:-([0-9]{1,4}))?", self.words)
        if length is None or (length[2] and int(length[2]) < int(length[1])):
            raise InputError(
                f"`words` is {self.words!r}; expected a number or two, such as 8 or 7-9."
            )
        return int(length[1]), int(length[2]) if length[2] else None


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """Options of flagging items on a page of review."""

    text: Annotated[
        Path | None,
        Help(
            "What tells rare words and names: a text, a table with the columns word and count, "
            "or a model of words."
        ),
    ] = None
    rare: Annotated[float, Help("Words below it are rare, on the Zipf scale.")] = 3.0
    often: Annotated[
        int | None,
        Help("Words in more items than this are flagged; by default 5, or 2 in 100.", at_least=1),
    ] = None
    language: Language = "en"
    blocked: Blocked = None

    def flags(self) -> FlagSettings:
        """The same with files read.

        Raises:
            InputError: a file cannot be read.
        """
        from contstim.frequencies import read_frequencies
        from contstim.item_flags import FlagSettings
        from contstim.vocabulary import REPEATABLE_ENGLISH

        return FlagSettings(
            language_rules(self.language, self.blocked),
            REPEATABLE_ENGLISH if self.language == "en" else frozenset(),
            None if self.text is None else read_frequencies(self.text),
            "" if self.text is None else self.text.name,
            self.rare,
            self.often,
        )


def language_rules(language: str, blocked: Path | None) -> WordRules:
    """Rules for the words of a language, names included, with the block list that is given."""
    from contstim.english.words import english_rules
    from contstim.word_rules import WordRules, read_words

    rules = english_rules(names=True) if language == "en" else WordRules()
    return rules if blocked is None else replace(rules, blocked=read_words(blocked))
