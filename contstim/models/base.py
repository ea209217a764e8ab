"""Interfaces of scorers and language models."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary


NATS = "nats"
"""Unit of log-probabilities; scores in any other unit are not log-probabilities."""

FLOAT32 = "float32"
"""Default precision; lower precisions have a larger `Convention.tolerance`."""

ROUNDING = 1e-6
"""Maximum relative difference between float32 scores of one sentence in two batches."""


def short_hash(text: str) -> str:
    """Return the first 24 hexadecimal digits of a text's SHA-256, for fingerprints."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def weights_of(network: Any) -> int:
    """Return the number of weights of a PyTorch network; tied weights count once."""
    return sum(int(weight.numel()) for weight in network.parameters())


@dataclass(frozen=True)
class Convention:
    """Definition of a model's scores, stored with cached scores and in records.

    A record is a file that describes how another file, such as a table of scores, was computed.

    Attributes:
        rule: name of the scoring rule, such as `log-likelihood`.
        context: text or tokens before the first word.
        end_scored: whether the end of the sentence is part of the score.
        fingerprint: hash that changes with weights, tokenizer, rule or context; key of cached
            scores.
        sampling: sampling method of an estimated score; empty for exact rules.
        unit: unit of the scores; nats if they are log-probabilities.
        precision: precision of the network's weights, such as `bfloat16`; `unknown` for a model on
            a server. Networks on this machine always normalise log-probabilities in float32.
        tolerance: maximum relative difference between scores of one sentence in two batches; a
            difference of 1e-4 nats is always allowed. For a precision below float32, the tolerance
            is measured. For a model on a server, it is the option `tolerance` of the
            server's address.
        context_tokens: tokens that a causal model reads before the first word; empty for other
            models.
    """

    rule: str
    context: str
    end_scored: bool
    fingerprint: str
    unit: str = NATS
    sampling: str = ""
    precision: str = FLOAT32
    tolerance: float = ROUNDING
    context_tokens: tuple[str, ...] = ()

    @property
    def json(self) -> str:
        """Convention as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def is_log_probability(self) -> bool:
        """True if scores are log-probabilities of sentences."""
        return self.unit == NATS

    def with_suffix(self, suffix: str) -> Convention:
        """Return the convention of a variant of the model.

        The rule and the fingerprint of the variant are those of the model, followed by the suffix.
        """
        rule, fingerprint = f"{self.rule}@{suffix}", f"{self.fingerprint}-{suffix}"
        return replace(self, rule=rule, fingerprint=fingerprint)

    def require_log_probability(self, name: str, purpose: str) -> None:
        """Check that scores are log-probabilities.

        `purpose` is a noun phrase for the message: the task that needs log-probabilities.

        Raises:
            ModelError: if the scores have another unit.
        """
        if not self.is_log_probability:
            raise ModelError(
                f"The scores of {name} (rule {self.rule}) are not log-probabilities of sentences: "
                f"their unit is {self.unit}. {purpose} needs log-probabilities in nats. Use a "
                f"language model without a transform."
            )


@dataclass(frozen=True, eq=False)
class Replacements:
    """Exact scores, estimates and bounds for candidate words at one position of a sentence.

    All arrays have shape (n_words,). Each value concerns the score of the whole sentence with one
    candidate word at the position. Scores of a language model are in nats.

    Attributes:
        exact: score; nan if unknown.
        estimate: value that correlates with the score; searches calibrate it by regression.
        upper_bound: upper bound of the score; +inf if unknown.
        prefix_log_prob: log p(words before the position) of a left-to-right network on this
            machine; nan for all other models. For a left-to-right network, `upper_bound` is
            `prefix_log_prob` plus an upper bound of log p(word | words before).
    """

    exact: FloatArray
    estimate: FloatArray
    upper_bound: FloatArray
    prefix_log_prob: float = math.nan

    @classmethod
    def all_exact(cls, log_probs: FloatArray) -> Replacements:
        """Create replacements from exact log-probabilities, (n_words,), nats."""
        return cls(exact=log_probs, estimate=log_probs, upper_bound=log_probs)

    @classmethod
    def unknown(cls, n_words: int) -> Replacements:
        """Create replacements for a model that only scores whole sentences."""
        return cls(np.full(n_words, np.nan), np.zeros(n_words), np.full(n_words, np.inf))

    @property
    def complete(self) -> bool:
        """True if the exact score of every candidate is known."""
        return not np.isnan(self.exact).any()

    @property
    def is_left_to_right(self) -> bool:
        """True if the model reads from left to right, so that `prefix_log_prob` is not nan."""
        return not math.isnan(self.prefix_log_prob)


class TokenScore(NamedTuple):
    """One term of a sentence's score: a token, or a word of a word-level model.

    Attributes:
        word: 0-based position of the token's word. It is -1 for an end mark, such as the full stop,
            and for a special token for the end of the sentence, such as `</s>`.
        token: text of the token in the model's vocabulary.
        log_prob: log-probability of the token, nats.
        entropy: entropy of the distribution that predicts the token, nats; nan if unknown.
    """

    word: int
    token: str
    log_prob: float
    entropy: float = math.nan


class Continuation(NamedTuple):
    """Words of a sentence from index `start` on, scored given the words before `start`."""

    sentence: Sentence
    start: int

    @property
    def text(self) -> str:
        """Words before `start` and words from `start` on, separated by a line break."""
        words = self.sentence.words
        return f"{' '.join(words[: self.start])}\n{' '.join(words[self.start :])}"


class Scorer(ABC):
    """Model that scores sentences: a language model or a classifier.

    A transform changes the scores of a language model, for example to scores per word. The result
    is also a scorer. A search can compare any two scorers: it finds sentences on which they
    disagree. A function that needs log-probabilities in nats requires a `LanguageModel`; see
    `require_language_model`.

    An implementation guarantees, and `contstim.testing.ScorerContract` tests:

    * Scores are float64 and never nan.
    * The score of a sentence does not depend on the other sentences of its batch, except for
      rounding: float32 scores may differ by a millionth.
    * For an empty list, an unknown word, a 200-word sentence and non-ASCII text, the result is
      defined, or a `ContstimError` is raised. `unscorable` predicts this error.
    * Results depend only on weights, tokenizer, rule, context and seed.
    * `replacement_scores` equals `scores` of the rewritten sentences.
    * Known values of `Replacements.exact` equal `replacement_scores`, and
      `Replacements.upper_bound` is not below `replacement_scores`.
    * After `forget_prefixes`, a repeated call takes as many passes (runs of the network) as the
      first call.
    """

    name: str
    """Name in columns, files and trials; it does not change between runs."""

    specification: str = ""
    """Specification, see `contstim.models.specifications`; empty if the model has none."""

    training_text: Path | None = None
    """File with hashes of the training sentences, written when contstim trains a model."""

    cheap_replacements: bool = False
    """Whether exact scores of all words at a position are cheap, as with n-gram models.

    If this is true of all models, a search scores all words whenever it visits a position.
    """

    reports_passes: bool = False
    """Whether `models.costs` counts all passes of the model; True for models without a network.

    If it is False and the budget of a search limits passes, only one search starts from each
    natural sentence.
    """

    is_black_box: bool = False
    """Whether the model, for example a model on a server, scores only whole sentences.

    In this case, a search uses `tokens_per_word` and `draft`, but not `replacements`.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    @abstractmethod
    def convention(self) -> Convention:
        """Convention and unit of the scores."""

    @property
    def order_fingerprint(self) -> str:
        """Fingerprint of the order in which the model ranks sentences by score.

        Models with equal fingerprints rank sentences of equal length in the same order.
        """
        return self.convention.fingerprint

    @abstractmethod
    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return scores of sentences, (n_sentences,), in the convention's unit; higher is better.

        Raises:
            ModelError: if a sentence cannot be scored, for instance because it is too long.
        """

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """Return estimates and bounds for words at a 0-based position, and exact scores if cheap.

        Raises:
            SentenceError: if the sentence has no such position.
        """
        sentence.check_position(position)
        return Replacements.unknown(len(words))

    def replacement_scores(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """Return exact scores of the sentence with each word at a position, (n_words,).

        Raises:
            SentenceError: if the sentence has no such position.
        """
        sentence.check_position(position)
        return self.scores([sentence.replace(position, word) for word in words])

    def float32_scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return scores with all weights converted to float32; see `scores`."""
        return self.scores(sentences)

    def forget_prefixes(self) -> None:  # noqa: B027 - by default there is nothing to do
        """Replace the cache of processed prefixes, if any, by an empty cache.

        Scores do not change, but the cost of later calls no longer depends on earlier calls. The
        cache of a model from which this model was copied does not change.
        """

    def draft(self, effort: int = 1) -> Scorer | None:
        """Return a draft: a cheaper scorer that estimates the scores of this model.

        Return None if there is no draft. `effort` is at least 0. Higher levels give better
        estimates and cost more.
        """
        return None

    def for_another_search(self) -> Self:
        """Return a copy with an empty cache of prefixes; use a copy per concurrent search."""
        model = copy(self)
        model.forget_prefixes()
        return model

    def n_parameters(self) -> int | None:
        """Return the number of weights, or of n-grams; None if unknown."""
        return None

    def candidate_contexts(self) -> tuple[str, ...]:
        """Return contexts for a test of how the context affects scores.

        A context is a text that the model reads before the first word. The result is empty if the
        model reads no context.
        """
        return ()

    def with_context(self, text: str | None) -> Self:
        """Return a copy that shares the network and reads another context; None for the default.

        Raises:
            ModelError: if the model reads no context, or if the context is unusable (see
                `contstim.models.contexts`).
        """
        raise ModelError(f"context must be left out: {self.name} reads no context, got {text!r}.")

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """Return the reason why each sentence cannot be scored, (n_sentences,).

        The reason is None if the sentence can be scored.
        """
        return [None] * len(sentences)

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """Return a mask of the sentences with exact scores, not estimates, (n_sentences,)."""
        return np.ones(len(sentences), np.bool_)

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return standard errors of scores, (n_sentences,), in the unit of the scores.

        The standard error of an exact score is 0.

        Raises:
            ModelError: see `scores`.
        """
        return np.zeros(len(sentences))

    def lower_bounds(self, sentences: Sequence[Sentence]) -> FloatArray | None:
        """Return lower bounds of scores, (n_sentences,), nats; None if the rule has no bound.

        Only one kind of score has a bound: the log of a mean probability. The mean is over the
        orders in which the words of a sentence can be predicted. The bound is the mean
        log-probability over the same orders (evidence lower bound).

        Raises:
            ModelError: see `scores`.
        """
        return None

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Return a mask of the words that the model knows, (n_words,); by default, all words.

        A word-level model gives all words outside its vocabulary the same score, and a search would
        choose such words. Sub-word models know nearly every word.
        """
        return np.ones(len(words), np.bool_)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """Return words that occur at least `min_count` times in the training text.

        Return None for sub-word models.

        Raises:
            ModelError: if a word-level model has no word counts.
            VocabularyError: if no word occurs so often.
        """
        return None

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """Return the number of tokens of each word, (n_words,); None for word-level models.

        If `initial`, each word is tokenized as the first word of a sentence.
        """
        return None

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """Return the number of tokens that the rule scores in each sentence, (n_sentences,).

        Raises:
            ModelError: if the score is not a sum over tokens.
        """
        raise self._no_token_scores()

    def _no_token_scores(self) -> ModelError:
        return ModelError(
            f"{self.name} with rule {self.convention.rule} has no scores of single words. "
            "Remove the transform, or use another rule."
        )


class LanguageModel(Scorer):
    """Scorer whose scores are log-probabilities of sentences, in nats.

    A new subclass needs `name`, `convention` and `log_probs`. All other members have defaults that
    are valid for any model. Searches are faster with cheap `replacements`.

    In addition to the guarantees of `Scorer`, an implementation guarantees, and
    `contstim.testing.LanguageModelContract` tests:

    * Scores are natural logarithms. They are finite or -inf, and not positive.
    * `continuation_log_probs` is the sum of log p(word | words before) over the words of the
      continuation. A model without these probabilities raises an error even for an empty list.
    * In float32 on the CPU, the error of `log_probs` and of `continuation_log_probs` is at most
      1e-4 nats or 1e-6 of the score, whichever is larger.
    """

    @abstractmethod
    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return log-probabilities of sentences, (n_sentences,), nats.

        Raises:
            ModelError: if a sentence cannot be scored, for instance because it is too long.
        """

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return the log-probabilities; see `log_probs`."""
        return self.log_probs(sentences)

    def float32_scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return the log-probabilities; see `float32_log_probs`."""
        return self.float32_log_probs(sentences)

    def replacement_scores(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """Return the log-probabilities; see `replacement_log_probs`."""
        return self.replacement_log_probs(sentence, position, words)

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Return log-probabilities with all weights converted to float32.

        Raises:
            ModelError: see `log_probs`; or if there is not enough memory.
        """
        return self.log_probs(sentences)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """Return exact log-probabilities of the sentence with each word at the position.

        The shape is (n_words,), and the unit is nats.

        Raises:
            SentenceError: if the sentence has no such position.
        """
        return super().replacement_scores(sentence, position, words)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """Return the terms that sum to each sentence's log-probability, in reading order.

        Raises:
            ModelError: if the rule's score is not a sum over tokens.
        """
        raise self._no_token_scores()

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """Return `token_log_probs`, corrected so that the score of each word includes its end.

        If tokens mark the beginning of words, only the next token shows that a word is complete. So

            p(word) = product of p(token) · p(a word ends after the tokens)
                      / p(a word ends before the tokens)

        (Pimentel & Meister 2024; Oh & Schuler 2024). The correction does not change the sum of a
        sentence's terms. For this purpose, two events get the probability 1: a word begins at the
        start of the sentence, and the last token of the sentence ends a word.

        Raises:
            ModelError: if the model does not read from left to right, or has no word boundaries.
        """
        raise ModelError(
            f"{self.name} with rule {self.convention.rule} has no boundary correction; only causal "
            "transformers with the rule log-likelihood have one. Remove `boundary_correction`."
        )

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`."""
        return np.array([len(terms) for terms in self.token_log_probs(sentences)], np.int64)

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """Return log p(words | the words before them), (n_continuations,), nats.

        The end mark and the end of the sentence are not scored. Probabilities are normalised over
        the whole vocabulary, even if the model's rule normalises them within classes of tokens (see
        `boundaries`).

        Raises:
            ModelError: if the model does not read from left to right, or a sentence is too long.
        """
        raise ModelError(
            f"{self.name} with rule {self.convention.rule} scores whole sentences, not words given "
            f"only the words before them. Use a causal transformer, RNN, LSTM or n-gram model."
        )


def computes_coarsely(models: Sequence[Scorer]) -> bool:
    """Return True if a model computes in another precision than float32, or if this is unknown."""
    return any(model.convention.precision != FLOAT32 for model in models)


def require_language_model(
    model: Scorer, purpose: str = "A function that loads a language model"
) -> LanguageModel:
    """Return the model if its scores are log-probabilities.

    Raises:
        ModelError: see `Convention.require_log_probability`; or if the model is not a
            `LanguageModel`.
    """
    model.convention.require_log_probability(model.name, purpose)
    if not isinstance(model, LanguageModel):
        raise ModelError(
            f"{model.name} is a Scorer, not a LanguageModel. {purpose} needs log-probabilities."
        )
    return model


def conventions(models: Iterable[Scorer]) -> dict[str, dict[str, object]]:
    """Return the record entries of models, by name."""
    return {model.name: record_entry(model.specification, model.convention) for model in models}


def record_entry(specification: str, convention: Convention) -> dict[str, object]:
    """Return a model's entry in a record: its specification, if any, and its convention."""
    origin: dict[str, object] = {"specification": specification} if specification else {}
    # JSON has no tuples. With a list, the entry equals an entry that was read from JSON
    return origin | asdict(convention) | {"context_tokens": [*convention.context_tokens]}
