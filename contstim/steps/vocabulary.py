"""The words of a study, from a text."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from contstim.errors import InputError
from contstim.experiments.reproduce.published import read_vocabulary
from contstim.files.tables import columns_of, write_table
from contstim.models.base import conventions
from contstim.models.catalog import load_scorers
from contstim.models.loading import Loading, TrustRemoteCode
from contstim.models.vocabularies import shared_vocabulary, tokens_of_words
from contstim.options import Help, Models, Reads, Writes, WritesTable
from contstim.steps.fields import (
    TEXT,
    Blocked,
    Language,
    ModelContexts,
    Prose,
    language_rules,
    read_text,
)
from contstim.steps.step import Outcome, Step
from contstim.wording import quantity
from contstim.words.vocabulary import Vocabulary
from contstim.words.word_rules import MANY_NAMES, DroppedWord, read_words, sort_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.reporter import Reporter
    from contstim.words.sentence import Sentence
    from contstim.words.word_rules import TextWords, WordRules

# Names of the fields that decide which strings of a text are words
_ABOUT_WORDS = ("language", "names", "without", "blocked", "zipf", "every_word")


def keeps_names(names: str | None, language: str) -> bool:
    """Return True if names are included in the vocabulary."""
    return names == "keep" or (names is None and language == "any")


class MakeVocabulary(Step[Vocabulary], name="vocabulary", version=3):
    """Make a vocabulary: sentence-initial words, words for other positions, and repeatable words.

    The minimum count applies to the first position and to the other positions separately.

    The command excludes initials, parts of addresses, abbreviations, names and blocked words. It
    excludes words with capitals inside the word, and words that are capitalised inside a sentence.
    A table next to the vocabulary lists the excluded strings with the reasons
    (vocab.txt.dropped.csv).

    With --model, the vocabulary contains only words that every model knows. A comparison of models
    can be biased if a word has more tokens under one model than under another. Exclude such words
    with --same-token-count.

    Example: `contstim vocabulary --text corpus.txt --model kenlm:trigram.arpa --out vocab.txt`
    """

    out: Annotated[Path, Writes("Vocabulary to write.", kind="vocabulary", name="vocabulary.txt")]
    text: Annotated[Path | None, TEXT] = None
    published: Annotated[
        Path | None,
        Reads("Folder of the 2023 study; the vocabulary of this study is written.", folder=True),
    ] = None
    models: Annotated[
        tuple[str, ...],
        Models("Keep only words that this model knows.", flag="--model", kind="models"),
    ] = ()
    language: Language = "en"
    names: Annotated[
        Literal["keep", "drop"] | None,
        Help("Whether names are included; by default English names are excluded."),
    ] = None
    without: Annotated[Path | None, Help("Words to exclude, one per line.", content="words")] = None
    blocked: Blocked = None
    zipf: Annotated[
        str | None, Help("Range of Zipf frequencies, such as 3.5-7.", metavar="LOW-HIGH")
    ] = None
    every_word: Annotated[
        bool, Help("Include every string between spaces, without other rules than the count.")
    ] = False
    min_count: Annotated[int, Help("Minimum count of a word.", at_least=1)] = 5
    same_token_count: Annotated[
        bool, Help("Include only words with the same number of tokens under all models.")
    ] = False
    prose: Prose = False
    table: Annotated[Path | None, WritesTable("Also write the tokens of each word.")] = None
    trust_remote_code: TrustRemoteCode = False
    context: ModelContexts = ()

    def writes(self) -> tuple[Path, ...]:
        """Return the paths of the vocabulary, and of the tables that the settings request."""
        has_dropped = self.text is not None and not self.every_word
        return (*super().writes(), *([Path(f"{self.out}.dropped.csv")] if has_dropped else []))

    def check(self) -> None:
        """Check that options do not exclude each other, and that each option has an effect."""
        if (self.text is None) == (self.published is None):
            raise InputError("The words come from `text` or `published`. Set one of them.")
        if (self.same_token_count or self.table) and not self.models:
            raise InputError("`same_token_count` and `table` need models. Set `models`.")
        if self.published is not None and self.word_choice != _default_choice():
            raise InputError(
                "The words of `published` are not filtered: options about words need `text`. "
                "Remove these options."
            )
        self.rules()

    def work(self, reporter: Reporter) -> Outcome[Vocabulary]:
        """Choose the words, and write them."""
        text_words: TextWords | None = None
        if self.text is not None:
            words, text_words = self.choose(read_text(self.text, reporter, prose=self.prose))
        elif self.published is not None:
            words = read_vocabulary(self.published)
        offered = words
        # Do not load weights: tokenizers and word lists are enough to find words that a model knows
        loading = Loading(trust_remote_code=self.trust_remote_code, weights=False)
        scorers = load_scorers(self.models, loading)
        dropped: tuple[str, ...] = ()
        if scorers:
            words, dropped = shared_vocabulary(
                scorers, offered, same_token_count=self.same_token_count
            )
        words.save(self.out)
        left_out = Path(f"{self.out}.dropped.csv")
        if text_words is not None:
            write_table(left_out, columns_of(DroppedWord, text_words.dropped))
        if self.table is not None:
            write_table(self.table, tokens_of_words(scorers, offered))
        # Number of words that each model knows, before other models exclude some of these words.
        # The model with the smallest number excludes the most words
        n_words = {m.name: int(m.knows(offered.words).sum()) for m in scorers}
        counts = {"initial": len(words.initial), "inner": len(words.inner), "dropped": len(dropped)}
        reporter.say(
            f"{self.out}: {counts['initial']:,} sentence-initial and {counts['inner']:,} other "
            f"words" + (f"; {len(dropped):,} dropped." if scorers else ".")
        )
        if text_words is not None:
            _tell_of_dropped(
                text_words, left_out, reporter, keeps_names=keeps_names(self.names, self.language)
            )
        for name, number in n_words.items():
            reporter.say(f"  {name} knows {number:,} of {quantity(len(offered.words), 'word')}")
        facts = {
            "models": conventions(scorers),
            "min_count": self.min_count,
            "same_token_count": self.same_token_count,
            "words": counts,
            "choice": {name: v and str(v) for name, v in self.word_choice.items()},
            "left_out": {} if text_words is None else text_words.counts(),
            "known": n_words,
        }
        return Outcome(words, facts)

    @property
    def word_choice(self) -> dict[str, object]:
        """Name → value of the settings that decide which strings are words."""
        return {name: getattr(self, name) for name in _ABOUT_WORDS}

    def rules(self) -> WordRules | None:
        """Return the rules for words; None if every string is a word.

        Raises:
            InputError: if `every_word` and another rule are set, or `zipf` is not a range.
        """
        if self.every_word:
            if self.word_choice != _default_choice() | {"every_word": True}:
                raise InputError("`every_word` excludes no words. Remove it or the other rules.")
            return None
        band = (-float("inf"), float("inf"))
        if self.zipf is not None:
            ends = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", self.zipf)
            if ends is None:
                raise InputError(f"`zipf` must be a range such as 3.5-7, got {self.zipf!r}.")
            band = (float(ends[1]), float(ends[2]))
        rules = language_rules(self.language, self.blocked)
        rules = replace(rules, names=keeps_names(self.names, self.language), zipf=band)
        return rules if self.without is None else replace(rules, excluded=read_words(self.without))

    def choose(self, sentences: Iterable[Sentence]) -> tuple[Vocabulary, TextWords | None]:
        """Return the vocabulary of a text, and the text's words divided into suitable and excluded.

        If `every_word` is set, all words are suitable, and the second value is None.

        Raises:
            InputError: if `rules` raises it, or a list of words cannot be read.
            VocabularyError: if no word remains.
        """
        rules = self.rules()
        if rules is None:
            return Vocabulary.from_sentences(sentences, min_count=self.min_count), None
        words = sort_words(sentences, rules, min_count=self.min_count)
        return words.vocabulary, words


def _default_choice() -> dict[str, object]:
    return {name: getattr(MakeVocabulary, name) for name in _ABOUT_WORDS}


def _tell_of_dropped(
    words: TextWords, table: Path, reporter: Reporter, *, keeps_names: bool
) -> None:
    at = "counted separately for the first and other positions"
    reporter.say(f"{table}: {quantity(len(words.dropped), 'word')} of the text excluded, {at}")
    for reason, number in words.counts().items():
        reporter.say(f"  {number:>9,} {reason}")
    if words.with_address:
        sentences = quantity(words.with_address, "sentence")
        reporter.say(f"  {sentences} with a web address were not read")
    if words.name_share > MANY_NAMES and not keeps_names:
        reporter.warn(
            f"{words.name_share:.0%} of the words inside sentences are always capitalised, "
            "and are treated as names. In a language that capitalises nouns, set `names` to "
            "keep."
        )
