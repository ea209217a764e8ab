"""Models whose scores are another model's, made comparable between sentences.

    +mean   log p / number of tokens that the rule scores
    +slor   (log p - unigram log p of the words) / number of words (Pauls & Klein 2012; Lau et al.
            2017)

Both keep the order of two scores of the same sentence, so what is known about candidates, exact
values and upper bounds included, is transformed like a score.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import Convention, LanguageModel, Replacements
from contstim.models.ngram.adapter import KenlmModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


def transformed(model: LanguageModel, transform: str, argument: str, *, name: str) -> LanguageModel:
    """The model with the transform that a specification names.

    Raises:
        ModelError: no such transform, or its unigram model is missing or of another order.
    """
    if transform == "mean":
        return MeanPerToken(model, name=name)
    if transform == "slor":
        return Slor(model, KenlmModel(argument), name=name)
    raise ModelError(f"There is no transform {transform!r}; there are mean and slor.")


class Transformed(LanguageModel):
    """A model whose scores are increasing functions of another's, one function a sentence."""

    def __init__(self, model: LanguageModel, name: str) -> None:
        self.name = name
        self._model = model

    @abstractmethod
    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        """What to subtract, nats, and then to divide by, positive: (n_sentences,) each."""

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`; no probabilities any more, they may be positive."""
        less, by = self._parts(sentences)
        scores: FloatArray = (self._model.log_probs(sentences) - less) / by
        return scores

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.float32_log_probs`."""
        less, by = self._parts(sentences)
        scores: FloatArray = (self._model.float32_log_probs(sentences) - less) / by
        return scores

    def refusals(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `LanguageModel.refusals`."""
        return self._model.refusals(sentences)

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """See `LanguageModel.exact`."""
        return self._model.exact(sentences)

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.standard_errors`."""
        _, by = self._parts(sentences)
        errors: FloatArray = self._model.standard_errors(sentences) / by
        return errors

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`."""
        sentence.check_position(position)
        less, by = self._parts([sentence.replace(position, word) for word in words])
        known = self._model.replacements(sentence, position, words)
        return Replacements(
            exact=(known.exact - less) / by,
            estimate=(known.estimate - less) / by,
            upper_bound=(known.upper_bound - less) / by,
        )

    def draft(self, effort: int = 1) -> LanguageModel | None:
        """See `LanguageModel.draft`."""
        plain = self._model.draft(effort)
        if plain is None:
            return None
        draft = copy(self)
        draft._model, draft.name = plain, f"{self.name} (draft)"
        return draft

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`."""
        sentence.check_position(position)
        less, by = self._parts([sentence.replace(position, word) for word in words])
        plain = self._model.replacement_log_probs(sentence, position, words)
        scores: FloatArray = (plain - less) / by
        return scores

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`."""
        return self._model.knows(words)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `LanguageModel.vocabulary`."""
        return self._model.vocabulary(min_count)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """See `LanguageModel.tokens_per_word`."""
        return self._model.tokens_per_word(words, initial=initial)

    def _convention(self, suffix: str, unit: str, *others: str) -> Convention:
        plain = self._model.convention
        digest = hashlib.sha256(" ".join((plain.fingerprint, suffix, *others)).encode()).hexdigest()
        return replace(
            plain, rule=plain.rule + suffix, unit=unit, fingerprint=f"transformed-{digest[:24]}"
        )


class MeanPerToken(Transformed):
    """Log p / number of tokens that the rule scores, the end included where the rule does."""

    @property
    def convention(self) -> Convention:
        """The model's own, per token."""
        return self._convention("+mean", "nats per token")

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `LanguageModel.token_counts`."""
        return self._model.token_counts(sentences)

    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        counts = self._model.token_counts(sentences).astype(np.float64)
        return np.zeros(len(counts)), counts


class Slor(Transformed):
    """Syntactic log-odds ratio: (log p - unigram log p of the words) / number of words.

    The unigram model is an n-gram model of order 1. The end of the sentence is left out of its
    score, and end marks are no words of its.

    Raises:
        ModelError: the unigram model has another order.
    """

    def __init__(self, model: LanguageModel, unigram: KenlmModel, name: str) -> None:
        if unigram.order != 1:
            raise ModelError(
                f"{unigram.name} has order {unigram.order}; +slor needs order 1. Train one with "
                f"'contstim train ngram --order 1'."
            )
        super().__init__(model, name)
        self._unigram = unigram

    @property
    def convention(self) -> Convention:
        """The model's own, less a unigram model's, per word."""
        return self._convention("+slor", "nats per word", self._unigram.convention.fingerprint)

    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        lengths = np.fromiter(map(len, sentences), np.float64, len(sentences))
        unigrams = self._unigram.word_log_probs(sentences)
        if np.isneginf(unigrams).any():
            sentence = sentences[int(np.argmin(unigrams))]
            raise ModelError(
                f"{self._unigram.name} gives a word of {sentence.text!r} probability zero, so its "
                f"SLOR is undefined. Train the unigram model on more text."
            )
        return unigrams, lengths
