"""Scores of a language model, transformed to be comparable between sentences.

    +mean   log p / number of tokens that the rule scores
    +slor   (log p - unigram log p of the words) / number of words (Pauls & Klein 2012; Lau et al.
            2017); the unigram model reads words in the letter case of the model, or in its own:
            +slor:FILE@lower

Neither score is a log-probability: they rank sentences, and no search takes them.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.models.base import (
    Continuation,
    Convention,
    LanguageModel,
    Scorer,
    require_language_model,
)
from contstim.models.letter_case import LETTER_CASES, InLetterCase
from contstim.models.ngram.adapter import NgramModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.specifications import Specification
    from contstim.models.training_text import TrainingText
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


def transformed(scorer: Scorer, specification: Specification) -> Transformed:
    """The model with the transform that its specification names.

    Raises:
        ModelError: its unigram model is missing or of another order, or the scores to be
            transformed are not log-probabilities.
    """
    model = require_language_model(scorer, f"The transform +{specification.transform}")
    if specification.transform == "mean":
        return MeanPerToken(model, specification.name)
    file, _, case = specification.argument.rpartition("@")
    if case not in LETTER_CASES:
        file = specification.argument
        case = model.case if isinstance(model, InLetterCase) else ""
    return Slor(model, NgramModel(file), specification.name, case)


class Transformed(Scorer):
    """Scores that are increasing functions of a language model's, one function a sentence."""

    def __init__(self, model: LanguageModel, name: str) -> None:
        self.name = name
        self._model = model

    @property
    def training_text(self) -> TrainingText | None:
        """See `Scorer.training_text`."""
        return self._model.training_text

    @abstractmethod
    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        """The numbers to subtract, nats, and then to divide by, positive: (n_sentences,) each."""

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.scores`; they may be positive."""
        baseline, divisor = self._parts(sentences)
        scores: FloatArray = (self._model.log_probs(sentences) - baseline) / divisor
        return scores

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """See `Scorer.unscorable`."""
        return self._model.unscorable(sentences)

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """See `Scorer.exact`."""
        return self._model.exact(sentences)

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `Scorer.standard_errors`."""
        _, divisor = self._parts(sentences)
        # The baseline is exact, so that errors are scaled and nothing is added to them
        errors: FloatArray = self._model.standard_errors(sentences) / divisor
        return errors

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `Scorer.knows`."""
        return self._model.knows(words)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """See `Scorer.vocabulary`."""
        return self._model.vocabulary(min_count)

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """See `Scorer.tokens_per_word`."""
        return self._model.tokens_per_word(words, initial=initial)

    def _convention(self, suffix: str, unit: str, *others: str) -> Convention:
        plain = self._model.convention  # whose fingerprint is that of the weights and the rule
        digest = hashlib.sha256(" ".join((plain.fingerprint, suffix, *others)).encode()).hexdigest()
        return replace(
            plain, rule=plain.rule + suffix, unit=unit, fingerprint=f"transformed-{digest[:24]}"
        )


class MeanPerToken(Transformed):
    """Log p / number of tokens that the rule scores, the end included where the rule does."""

    @property
    def convention(self) -> Convention:
        """The convention of the model, per token."""
        return self._convention("+mean", "nats per token")

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`."""
        return self._model.token_counts(sentences)

    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        # nothing is subtracted
        counts = self._model.token_counts(sentences).astype(np.float64)
        return np.zeros(len(counts)), counts


class Slor(Transformed):
    """Syntactic log-odds ratio: (log p - unigram log p of the words) / number of words.

    The unigram model is an n-gram model of order 1. It scores the words alone, without end mark and
    end of sentence.

    Args:
        model: the language model.
        unigram: the n-gram model of order 1.
        name: names columns and files.
        case: a key of `LETTER_CASES` in which the unigram model reads words; empty for as given.

    Raises:
        ModelError: the unigram model has another order.
    """

    def __init__(
        self, model: LanguageModel, unigram: NgramModel, name: str, case: str = ""
    ) -> None:
        if unigram.order != 1:
            raise ModelError(
                f"{unigram.name} has order {unigram.order}; +slor needs order 1. Train one with "
                f"'contstim train ngram --order 1'."
            )
        super().__init__(model, name)
        self._unigram = InLetterCase(unigram, case) if case else unigram

    @property
    def convention(self) -> Convention:
        """The convention of the model, less that of the unigram model, per word."""
        return self._convention("+slor", "nats per word", self._unigram.convention.fingerprint)

    def _parts(self, sentences: Sequence[Sentence]) -> tuple[FloatArray, FloatArray]:
        # words, not tokens: the same divisor for all models
        lengths = np.fromiter(map(len, sentences), np.float64, len(sentences))
        # Without the end of the sentence
        unigrams = self._unigram.continuation_log_probs([Continuation(s, 0) for s in sentences])
        if np.isneginf(unigrams).any():
            sentence = sentences[int(np.argmin(unigrams))]
            raise ModelError(
                f"{self._unigram.name} gives a word of {sentence.text!r} probability zero, so its "
                f"SLOR is undefined. Train the unigram model on more text."
            )
        return unigrams, lengths
