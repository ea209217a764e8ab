"""Word-level models whose words are all in small letters, or all in capitals.

Most public n-gram models are made from text in small letters. Such a model does not know `The`:
the first word of every sentence gets the score of an unknown word. `kenlm:FILE@lower` reads all
words in small letters, `@upper` in capitals; recurrent models take the same two rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from contstim.models.base import Continuation, Convention, LanguageModel, Replacements, TokenScore
from contstim.models.caching import WORDS, SizedCache
from contstim.vocabulary import Vocabulary, WordTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import Scorer
    from contstim.models.training_text import TrainingText
    from contstim.sentence import Sentence

LETTER_CASES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}
"""The rules of word-level models, by what they do to a word before the model reads it."""

_SENTENCES = 4_096  # whose words in the model's case are remembered
LOUD = 0.02
"""Share of unknown words above which a command warns."""


class InLetterCase(LanguageModel):
    """A word-level model that reads every word in small letters, or in capitals.

    Scores, replacements, known words and terms are those of the model for the words in its case.
    Words of its vocabulary are given as sentences show them: in small letters, those that start a
    sentence capitalised.

    Args:
        model: the word-level model.
        case: a key of `LETTER_CASES`.
    """

    def __init__(self, model: LanguageModel, case: str) -> None:
        self.name = model.name
        self.cheap_replacements = model.cheap_replacements
        self.reports_passes = model.reports_passes
        self._model, self.case = model, case
        change = LETTER_CASES[case]
        # Cached: a search asks about the same lists of words again and again
        self._words = SizedCache(lambda words: WordTuple(map(change, words)), len, WORDS)
        self._sentence = lru_cache(_SENTENCES)(
            lambda sentence: replace(sentence, words=tuple(map(change, sentence.words)))
        )

    @property
    def convention(self) -> Convention:
        """The convention of the model, with the case in its rule and fingerprint."""
        plain = self._model.convention
        return replace(
            plain,
            rule=f"{plain.rule}@{self.case}",
            fingerprint=f"{plain.fingerprint}-{self.case}",
        )

    @property
    def training_text(self) -> TrainingText | None:
        """See `LanguageModel.training_text`; sentences are compared whatever their case."""
        return self._model.training_text

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        return type(self)(self._model.for_another_search(), self.case)

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`."""
        self._model.forget_prefixes()

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        return self._model.log_probs(self._all(sentences))

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`."""
        return self._model.replacements(
            self._sentence(sentence), position, self._words(_hashable(words))
        )

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        return self._model.replacement_log_probs(
            self._sentence(sentence), position, self._words(_hashable(words))
        )

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        return self._model.continuation_log_probs(
            [Continuation(self._sentence(sentence), start) for sentence, start in continuations]
        )

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`."""
        return self._model.token_log_probs(self._all(sentences))

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`."""
        return self._model.completed_word_log_probs(self._all(sentences))

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`."""
        return self._model.knows(self._words(_hashable(words)))

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `LanguageModel.vocabulary`."""
        words = self._model.vocabulary(min_count)
        if words is None:
            return None
        small = [word.lower() for word in words.initial]
        return Vocabulary(
            tuple(dict.fromkeys(word[:1].upper() + word[1:] for word in small)),
            tuple(dict.fromkeys(word.lower() for word in words.inner)),
            words.repeatable,
        )

    def _all(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        return [self._sentence(sentence) for sentence in sentences]


def _hashable(words: Sequence[str]) -> tuple[str, ...]:
    return words if isinstance(words, tuple) else tuple(words)


@dataclass(frozen=True)
class UnknownWords:
    """Words of sentences that a word-level model does not know.

    Attributes:
        model: its name.
        n_words: how many words the sentences have, repeated ones counted.
        n_unknown: how many of them the model does not know.
        examples: the most frequent of these.
        case: the key of `LETTER_CASES` that the model's words have: as the sentences write them it
            knows few of the words that the case changes, and in it more than half of those that it
            does not know; empty if there is none.
    """

    model: str
    n_words: int
    n_unknown: int
    examples: tuple[str, ...]
    case: str

    @property
    def is_loud(self) -> bool:
        """True if so many words are unknown that scores say little."""
        return self.n_unknown > LOUD * self.n_words

    @property
    def text(self) -> str:
        """The share of unknown words, and what to do about it; empty where all are known."""
        if not self.n_unknown:
            return ""
        text = (
            f"{self.model} does not know {self.n_unknown:,} of {self.n_words:,} words "
            f"({100 * self.n_unknown / self.n_words:.1f} %), such as {', '.join(self.examples)}; "
            f"all unknown words have one score."
        )
        if self.case:
            letters = {"lower": "small letters", "upper": "capitals"}[self.case]
            text += (
                f" It knows most of them in {letters}: write @{self.case} after its file, as in "
                f"kenlm:FILE@{self.case}."
            )
        return text

    def tell(self, warn: Callable[[str], None], remark: Callable[[str], None]) -> None:
        """Say it, if any word is unknown: as a warning where scores say little."""
        if self.is_loud:
            warn(self.text)
        elif self.n_unknown:
            remark(self.text)


def unknown_words(model: Scorer, sentences: Sequence[Sentence]) -> UnknownWords:
    """Count the words of sentences that a model does not know; sub-word models know all."""

    def unknown(words: Counter[str]) -> Counter[str]:
        known = model.knows(tuple(words))
        pairs = zip(words.items(), known, strict=True)
        return Counter({word: n for (word, n), is_known in pairs if not is_known})

    words = Counter(word for sentence in sentences for word in sentence.words)
    missing = unknown(words)
    n_missing = missing.total()
    case = ""
    for name, change in LETTER_CASES.items() if missing else ():
        # A model with words of both cases knows most of those that the case would change
        others = [word for word in words if change(word) != word]
        if 2 * sum(missing[word] for word in others) <= sum(words[word] for word in others):
            continue
        changed: Counter[str] = Counter()
        for word, n in missing.items():
            changed[change(word)] += n
        if not case and unknown(changed).total() < n_missing / 2:
            case = name
    examples = tuple(word for word, _ in missing.most_common(3))
    return UnknownWords(model.name, words.total(), n_missing, examples, case)
