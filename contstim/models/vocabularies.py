"""Vocabularies of word-level models and of searches; end marks that are words.

A table next to a word-level model stores the words of its training text and their counts. A search
synthesizes sentences on which models disagree. Its vocabulary, the words that these sentences may
contain, consists of words that all models of the search know.

An end mark is the punctuation at the end of a sentence, such as `.` or `?"`. Most word-level models
are trained on text without punctuation and have no end marks. Other models are trained on tokenised
text, in which the full stop is a word:

    model                   The dog sleeps.  is read as
    has no word `.`         <s> The dog sleeps </s>
    has the word `.`        <s> The dog sleeps . </s>

If the vocabulary of a model contains the first character of a sentence's end mark, the model reads
this character as an additional word. `@no-end-mark` after the file name disables this.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, compress, repeat
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from contstim.errors import InputError, ModelError, VocabularyError
from contstim.files.tables import read_table, write_table
from contstim.models.base import Convention, LanguageModel, Scorer, TokenScore
from contstim.words.sentence import ALL_END_MARKS, Sentence, is_word, normalise_text
from contstim.words.vocabulary import REPEATABLE_ENGLISH, Vocabulary, count_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.files.arrays import BoolArray, IntArray

BOUNDARY, UNKNOWN = 0, 1
"""Ids of sentence boundaries and of unknown words in a recurrent network."""

_FIRST = 2  # id of the first word

_RESERVED = frozenset({"<s>", "<unk>", "</s>"})


_STRAIGHT, _CURLY = "'", "’"
NO_END_MARK = "no-end-mark"
"""Rule that ignores end marks."""

# If a model reads end marks, this suffix is added to two fields of its `Convention`: `rule` (name
# of the scoring rule) and `fingerprint` (key of cached scores)
_SUFFIX = "end-mark"


def with_spellings(ids: dict[str, int]) -> dict[str, int]:
    """Return the ids of words and of their alternative spellings; see `spellings`.

    If an alternative spelling of one word is itself a word of `ids`, it keeps its own id.
    """
    id_by_spelling: dict[str, int] = {}
    for word, id_ in ids.items():
        if word.isascii() and _STRAIGHT not in word:
            continue
        for spelling in spellings(word):
            id_by_spelling.setdefault(spelling, id_)
    return id_by_spelling | ids


def spellings(word: str) -> tuple[str, ...]:
    """Return alternative spellings of a word.

    These are the normalised word, and its variants with curly and with straight apostrophes.
    """
    normal = normalise_text(word)
    swapped = (normal.replace(_STRAIGHT, _CURLY), normal.replace(_CURLY, _STRAIGHT))
    return tuple(dict.fromkeys(variant for variant in (normal, *swapped) if variant != word))


def counts_path(model: Path | str) -> Path:
    """Return the path of a model's word counts, such as `a.arpa.counts.csv` for `a.arpa`."""
    return Path(f"{model}.counts.csv")


@dataclass(frozen=True)
class WordList:
    """Words of a text, the most frequent first. Word i has the id i + 2.

    Attributes:
        words: words in the letter case of the text.
        initial: count of each word at the start of a sentence.
        inner: count of each word at other positions.
    """

    words: tuple[str, ...]
    initial: tuple[int, ...]
    inner: tuple[int, ...]

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sentence], *, size: int | None = None, min_count: int = 1
    ) -> WordList:
        """Select the `size` most frequent words of a text.

        Equally frequent words are in the order of their first occurrence. Words with fewer than
        `min_count` occurrences are never selected. Without `size`, at most 20,000 words are
        selected.

        Raises:
            InputError: if no word has at least `min_count` occurrences, or if fewer than `size`
                words have at least `min_count` occurrences.
        """
        initial, inner = count_words(sentences)
        counts = initial + inner
        frequent = [
            word
            for word, count in counts.most_common()
            if count >= min_count and word.lower() not in _RESERVED
        ]
        if not frequent or (size is not None and not 0 < size <= len(frequent)):
            size_text = "" if size is None else f" of {size:,}"
            raise InputError(
                f"The text has {len(frequent):,} distinct words that occur at least "
                f"{min_count:,} times. These are too few for a vocabulary{size_text}. Set a "
                "smaller size, or a lower minimum count."
            )
        words = tuple(frequent[: size or 20_000])
        columns = (tuple(map(count_of.__getitem__, words)) for count_of in (initial, inner))
        return cls(words, *columns)

    def __len__(self) -> int:
        """Number of ids, including those of the boundary and of unknown words."""
        return _FIRST + len(self.words)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return with_spellings({word: i for i, word in enumerate(self.words, start=_FIRST)})

    def numbers(self, words: Sequence[str]) -> IntArray:
        """Return the id of each word, (n_words,); `UNKNOWN` for words outside the vocabulary."""
        numbers = (self._numbers.get(word, UNKNOWN) for word in words)
        return np.fromiter(numbers, np.int64, len(words))

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return a mask of the words that are in the vocabulary, (n_words,)."""
        return np.not_equal(self.numbers(words), UNKNOWN)

    def vocabulary(self, min_count: int) -> Vocabulary:
        """Return the words that are frequent at the start of sentences or inside sentences.

        A word is allowed at the start of sentences if it starts at least `min_count` sentences of
        the text. It is allowed inside sentences if it has at least `min_count` occurrences there.

        Raises:
            VocabularyError: if no word is frequent enough.
        """
        counts = (self.initial, self.inner)
        initial, inner = (Counter(dict(zip(self.words, column, strict=True))) for column in counts)
        return Vocabulary.from_counts(initial, inner, min_count=min_count)

    def write(self, path: Path) -> None:
        """Write a table of words and counts.

        Raises:
            InputError: if the file cannot be written.
        """
        write_table(path, {"word": self.words, "initial": self.initial, "inner": self.inner})

    @classmethod
    def from_file(cls, path: Path) -> WordList:
        """Read the table of `write`.

        Raises:
            ModelError: if the table is missing or damaged, or if it contains a word twice.
        """
        try:
            table = read_table(path)
            initial, inner = (tuple(map(_count, table[name])) for name in ("initial", "inner"))
            words = tuple(table["word"])
            for word, count in Counter(words).items():
                if count > 1:
                    raise ValueError(f"{word[:40]!r} occurs twice")
                if not is_word(word) or word in _RESERVED:
                    raise ValueError(f"{word[:40]!r} is not a word")
            return cls(words, initial, inner)
        except (InputError, KeyError, ValueError) as error:
            raise ModelError(
                f"{path} is not a table of words and counts ({error}). Train the model again."
            ) from error


def _count(text: str) -> int:
    # Counts of more than 18 digits do not fit 64 bits
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"{text[:40]!r} is not a count")
    return int(text)


DEFAULT_MIN_COUNT = 5


def shared_vocabulary(
    models: Sequence[Scorer], vocabulary: Vocabulary, *, same_token_count: bool = False
) -> tuple[Vocabulary, tuple[str, ...]]:
    """Return the words of a vocabulary that all models know, and the other words.

    Args:
        models: models of a search.
        vocabulary: words to choose from.
        same_token_count: whether to drop words whose number of tokens differs between the models'
            tokenizers. A model that splits a word into more tokens mostly gives it a lower score,
            so models could disagree only because of their tokenizers. Word-level models have no
            tokenizer; they are ignored in this comparison.

    Raises:
        VocabularyError: if no word remains for the start of a sentence; if no word remains for
            other positions; or if `same_token_count` is set and fewer than two models have
            sub-word tokens.
    """

    def with_same_count(words: tuple[str, ...], *, initial: bool) -> tuple[str, ...]:
        counts = [model.tokens_per_word(words, initial=initial) for model in models]
        by_tokenizer = [count for count in counts if count is not None]
        if len(by_tokenizer) < 2:
            raise VocabularyError(
                f"To compare numbers of tokens, two models must have sub-word tokens, got {names}."
            )
        # (n_tokenizers, n_words) == (n_words,)
        return tuple(compress(words, np.all(np.stack(by_tokenizer) == by_tokenizer[0], axis=0)))

    names = ", ".join(model.name for model in models)
    # Drop unknown words first, since a tokenizer may have no tokens for them
    shared, _ = vocabulary.restrict(
        lambda words: np.logical_and.reduce([model.knows(words) for model in models])
    )
    how = ""
    if same_token_count:
        how = " and has the same number of tokens under all sub-word models"
        initial = with_same_count(shared.initial, initial=True)
        inner = with_same_count(shared.inner, initial=False)
        shared = Vocabulary(initial, inner, shared.repeatable)
    for position, words in (("start a sentence", shared.initial), ("follow another", shared.inner)):
        if not words:
            raise VocabularyError(
                f"No word of the vocabulary that may {position} is known to all models{how}. "
                f"Models: {names}."
            )
    remaining = set(shared.words)
    return shared, tuple(word for word in vocabulary.words if word not in remaining)


def tokens_of_words(
    models: Sequence[Scorer], vocabulary: Vocabulary
) -> dict[str, list[str] | list[int]]:
    """Return a table with the number of tokens of each word.

    The columns are `word`, `place`, and one column for each model. A word has a row for each
    `place` at which it is allowed: `initial` (the start of a sentence) or `inner` (all other
    positions). In a word-level model, each known word has 1 token. Words that a model does not know
    have 0 tokens.
    """
    table: dict[str, list[str] | list[int]] = {
        "word": [*vocabulary.initial, *vocabulary.inner],
        "place": ["initial"] * len(vocabulary.initial) + ["inner"] * len(vocabulary.inner),
    }
    for model in models:
        column: list[int] = []
        for words, initial in ((vocabulary.initial, True), (vocabulary.inner, False)):
            is_known = model.knows(words)
            # Only known words can be tokenized
            counts = model.tokens_per_word([*compress(words, is_known)], initial=initial)
            numbers = is_known.astype(np.int64)
            if counts is not None:
                numbers[is_known] = counts
            column += numbers.tolist()
        table[model.name] = column
    return table


def default_vocabulary(models: Sequence[Scorer], min_count: int = DEFAULT_MIN_COUNT) -> Vocabulary:
    """Return the words that are frequent in the training texts of all word-level models.

    If there is no word-level model, return the embedded English lexicon.

    Raises:
        ModelError: if a word-level model has no counts.
        VocabularyError: if no word is frequent enough for every model.
    """
    vocabularies = [v for v in (model.vocabulary(min_count) for model in models) if v is not None]
    if not vocabularies:
        from contstim.english.lexicon import lexicon

        # Every word may also start a sentence; it then begins with a capital
        forms = tuple(sorted(lexicon().forms))
        capitalised = tuple(form[:1].upper() + form[1:] for form in forms)
        return Vocabulary(capitalised, forms, REPEATABLE_ENGLISH.intersection(forms))
    return reduce(Vocabulary.intersect, vocabularies)


class WordModel(LanguageModel):
    """Word-level language model.

    The score is a sum of log-probabilities, the terms of the score. Each word has a term. If the
    model reads the end mark as a word, the end mark has a term. If `end_scored` is True, the end of
    the sentence has a term.

    Attributes:
        rule: name of the scoring rule. If the model reads end marks, the rule in its `Convention`
            has a suffix.
        end_scored: whether the end of the sentence (`</s>`) is scored.
    """

    reports_passes = True
    rule: ClassVar[str] = "log-likelihood"
    end_scored: ClassVar[bool] = True
    _end_marks: frozenset[str]  # end marks, single characters, that the model reads as words

    def _read_end_marks(self, holds: Callable[[str], bool], *, end_mark: bool) -> None:
        """Set which end marks the model reads as words.

        `holds` returns whether the vocabulary contains a character. The model reads the end marks
        for which `holds` returns True. If `end_mark` is False, it reads no end marks.
        """
        self._end_marks = frozenset(filter(holds, ALL_END_MARKS if end_mark else ()))

    def _convention(self, fingerprint: str) -> Convention:
        """Return the convention of a model with this fingerprint, the key of cached scores.

        If the model reads end marks, the rule and the fingerprint get a suffix.
        """
        plain = Convention(self.rule, "<s>", self.end_scored, fingerprint)
        return plain.with_suffix(_SUFFIX) if self._end_marks else plain

    def _with_mark(self, sentence: Sentence) -> Sentence:
        """Append the end mark to the words of a sentence, if the model reads this end mark."""
        mark, marks = sentence.end[0], self._end_marks
        return Sentence((*sentence.words, mark), sentence.end) if mark in marks else sentence

    def _token_scores(
        self, sentence: Sentence, log_probs: Iterable[float], entropies: Iterable[float] = ()
    ) -> list[TokenScore]:
        """Return the terms of a sentence's score.

        Args:
            sentence: sentence whose end mark is not one of its words.
            log_probs: log p of each term, nats.
            entropies: entropy of the prediction of each term, nats; empty if unknown.
        """
        tokens, n_words = (*self._with_mark(sentence).words, "</s>"), len(sentence)
        rows = zip(tokens, log_probs, chain(entropies, repeat(math.nan)), strict=False)
        return [
            TokenScore(position if position < n_words else -1, token, *map(float, values))
            for position, (token, *values) in enumerate(rows)
        ]

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`. The tokens are the terms of the score."""
        marked = map(self._with_mark, sentences)
        return np.array([len(sentence) + self.end_scored for sentence in marked], np.int64)

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """Return `token_log_probs`, because no token is only a part of a word."""
        return self.token_log_probs(sentences)


def reads_end_mark(rule: str) -> bool:
    """Return True if a model with this rule reads end marks as words."""
    return f"@{_SUFFIX}" in rule
