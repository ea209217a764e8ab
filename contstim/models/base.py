"""The contracts of scorers and of language models, however they compute their scores."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from copy import copy
from dataclasses import asdict, dataclass
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
"""The unit of log-probabilities of sentences; scores in any other unit are something else."""

FLOAT32 = "float32"
"""The precision in which scores are comparable to the last digits."""

ROUNDING = 1e-6
"""The share of a score by which it may differ between batches in float32."""


def short_hash(text: str) -> str:
    """The first 24 digits of a text's SHA-256, of which fingerprints consist."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def weights_of(network: Any) -> int:
    """Return the number of weights of a network of PyTorch; tied weights count once."""
    return sum(int(weight.numel()) for weight in network.parameters())


@dataclass(frozen=True)
class Convention:
    """Convention of a score: written beside every score table and part of every cache key.

    Attributes:
        rule: name of the scoring rule, such as `log-likelihood`.
        context: the text or tokens before the first word.
        end_scored: whether the end of the sentence is part of the score.
        fingerprint: changes whenever weights, tokenizer, rule or context change.
        sampling: how the score is estimated where it is not exact; empty for exact rules.
        unit: nats where scores are log-probabilities; transforms and classifiers have others.
        precision: of the network's weights, such as `bfloat16`; log-probabilities are normalised in
            float32 whatever it is.
        tolerance: the share of a score by which it may differ between batches, measured where the
            precision is less than float32; never less than 1e-4 nats.
        context_tokens: the tokens that a causal model reads before the first word; empty for other
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
        """The convention as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @property
    def is_log_probability(self) -> bool:
        """True if scores are log-probabilities of sentences."""
        return self.unit == NATS

    def require_log_probability(self, name: str, purpose: str) -> None:
        """Refuse a model whose scores can be ranked, but are not log-probabilities.

        Args:
            name: of the model.
            purpose: the work that needs log-probabilities, a noun phrase that begins a sentence.

        Raises:
            ModelError: the scores have another unit; names it.
        """
        if not self.is_log_probability:
            raise ModelError(
                f"The scores of {name} (rule {self.rule}) are not log-probabilities of sentences: "
                f"their unit is {self.unit}. {purpose} needs log-probabilities in nats, of a "
                f"language model without a transform."
            )


@dataclass(frozen=True, eq=False)
class Replacements:
    """Cheap knowledge about each candidate word at one position of a sentence.

    All arrays are (n_words,), about the log-probability, in nats, of the whole sentence with each
    word in place.

    Attributes:
        exact: the log-probability; nan if unknown.
        estimate: a number that correlates with it, to be calibrated by regression.
        upper_bound: a number that it never exceeds; +inf if unknown.
        prefix_log_prob: log-probability of the words before the position, of a model that reads
            from left to right. Its upper bounds are this plus the log-probability of the word
            given these words. nan for other models.
    """

    exact: FloatArray
    estimate: FloatArray
    upper_bound: FloatArray
    prefix_log_prob: float = math.nan

    @classmethod
    def all_exact(cls, log_probs: FloatArray) -> Replacements:
        """From the exact log-probabilities, (n_words,), nats."""
        return cls(exact=log_probs, estimate=log_probs, upper_bound=log_probs)

    @classmethod
    def unknown(cls, n_words: int) -> Replacements:
        """From a model that only scores whole sentences: all candidates are alike."""
        # nan: no exact value; 0 for all: an estimate that tells none apart; inf: a bound that
        # bounds nothing
        return cls(np.full(n_words, np.nan), np.zeros(n_words), np.full(n_words, np.inf))

    @property
    def complete(self) -> bool:
        """True if the exact log-probability of every candidate is known."""
        return not np.isnan(self.exact).any()

    @property
    def is_left_to_right(self) -> bool:
        """True if the model reads from left to right, and `prefix_log_prob` is a number."""
        return not math.isnan(self.prefix_log_prob)


class TokenScore(NamedTuple):
    """One term of a sentence's score: a token, or a word of a word-level model.

    Attributes:
        word: 0-based position of its word, -1 for the end of the sentence.
        token: as the model writes it.
        log_prob: nats.
    """

    word: int
    token: str
    log_prob: float


class Continuation(NamedTuple):
    """The words of a sentence from a 0-based position on, given the words before it."""

    sentence: Sentence
    start: int

    @property
    def text(self) -> str:
        """The words before and the words that follow, set apart by a line break."""
        words = self.sentence.words
        # No word holds a line break, so that the text tells where the continuation starts
        return f"{' '.join(words[: self.start])}\n{' '.join(words[self.start :])}"


class Scorer(ABC):
    """A model that gives sentences a score: a language model, a transform of it, a classifier.

    Scores can be ranked and compared. Work that needs log-probabilities in nats or replacements
    takes a `LanguageModel`; see `require_language_model`.

    An implementation guarantees, and `contstim.testing.ScorerContract` proves:

    * Scores are float64 and never nan.
    * Scoring a batch equals scoring one by one, up to rounding: other sentences in a batch may move
      a float32 score by a millionth of it.
    * An empty list, an unknown word, a 200-word sentence and non-ASCII text have a defined answer
      or raise a `ContstimError`, of which `unscorable` warns.
    * Answers depend on nothing but weights, rule, context and seed.
    """

    name: str
    """Names columns, files and trials; stable between runs."""

    specification: str = ""
    """Its specification, see `contstim.models.specifications`; empty for a model made in code."""

    training_text: Path | None = None
    """Hashes of the sentences that it was trained on, which stand beside the files of models that
    contstim trained; None if they are not recorded."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    @abstractmethod
    def convention(self) -> Convention:
        """Convention by which the scores are computed, and their unit."""

    @abstractmethod
    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Scores of sentences, (n_sentences,), in the convention's unit; higher is better.

        Raises:
            ModelError: a sentence cannot be scored, for instance because it is too long.
        """

    def for_another_search(self) -> Self:
        """The same scorer with nothing read, for a search beside others in this process.

        It shares what searches do not change: weights, and what has been found out about words.
        """
        return copy(self)

    def n_parameters(self) -> int | None:
        """Return the number of weights, or of n-grams; None if unknown."""
        return None

    def candidate_contexts(self) -> tuple[str, ...]:
        """Return texts of contexts worth comparing; empty if the model reads no context."""
        return ()

    def with_context(self, text: str | None) -> Self:
        """Return a copy that shares the network and reads another context; None: the default.

        Raises:
            ModelError: if the model reads no context; or see `contstim.models.contexts`.
        """
        raise ModelError(
            f"context must be left out for {self.name}, which reads none, got {text!r}."
        )

    def unscorable(self, sentences: Sequence[Sentence]) -> list[str | None]:
        """Why each sentence cannot be scored, (n_sentences,); None where it can.

        Costs no pass of a network, so that long work can drop such sentences beforehand.
        """
        return [None] * len(sentences)

    def exact(self, sentences: Sequence[Sentence]) -> BoolArray:
        """Mask of the scores that involve no sampling, (n_sentences,)."""
        return np.ones(len(sentences), np.bool_)

    def standard_errors(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Standard errors of sampled scores, (n_sentences,), in their unit; 0 for exact scores.

        Raises:
            ModelError: see `scores`.
        """
        return np.zeros(len(sentences))

    def lower_bounds(self, sentences: Sequence[Sentence]) -> FloatArray | None:
        """Lower bounds of scores that are the log of a mean over orders, (n_sentences,), nats.

        They are the mean of the logs over the same orders, the evidence lower bound of such a
        model. None for all other rules.

        Raises:
            ModelError: see `scores`.
        """
        return None

    def knows(self, words: Sequence[str]) -> BoolArray:
        """Mask of the words that the model tells apart, (n_words,); all unless overridden.

        A word-level model scores all words outside its vocabulary alike, which a search would
        exploit; sub-word models know every word.
        """
        return np.ones(len(words), np.bool_)

    def vocabulary(self, min_count: int) -> Vocabulary | None:
        """The words with at least that count in the training text; None for sub-word models.

        Raises:
            ModelError: the model is word-level, but has no counts.
        """
        return None

    def tokens_per_word(self, words: Sequence[str], *, initial: bool) -> IntArray | None:
        """Number of tokens that each word is read as, (n_words,); None for word-level models.

        Args:
            words: the words.
            initial: whether they start a sentence or stand inside it.
        """
        return None

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """Number of tokens that the rule scores in each sentence, (n_sentences,).

        Raises:
            ModelError: the score is not a sum over tokens.
        """
        raise self._no_token_scores()

    def _no_token_scores(self) -> ModelError:
        return ModelError(
            f"{self.name} with rule {self.convention.rule} has no score for each word. Score it "
            f"without the transform, or under another rule."
        )


class LanguageModel(Scorer):
    """A scorer whose scores are log-probabilities of sentences, in nats.

    A new adapter needs `name`, `convention` and `log_probs`; everything else has a default that is
    true of any model. A search is faster with a model that has cheap `replacements`.

    Beyond a `Scorer`, an implementation guarantees, and `contstim.testing.LanguageModelContract`
    proves:

    * Scores are natural logs, finite or -inf, and not positive.
    * `replacement_log_probs` equals `log_probs` of the rewritten sentences; `exact` and
      `upper_bound` are true; `continuation_log_probs` is the sum of the log-probabilities of words
      given the words before them, or always refused, even for an empty list. In float32 on the
      CPU: within the larger of 1e-4 nats and 1e-6 of the score.
    * After `forget_prefixes`, equal calls cost equally many passes.
    """

    cheap_replacements: bool = False
    """Whether exact scores of all words at a position cost next to nothing, as with n-gram models.

    Between such models, a search scores all words of a position exactly at every visit.
    """

    reports_passes: bool = False
    """Whether `models.costs` is told of all its passes, so that few of them mean little work.

    A model without a network has none. A search does no more than it must under a model that does
    not report.
    """

    is_black_box: bool = False
    """Whether a search is to learn from scores of whole sentences what to expect of others.

    So it does for a model behind a server, which tells nothing else: with the help of
    `tokens_per_word`, and of a draft where there is one. What `replacements` tells is not used.
    """

    @abstractmethod
    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """Log-probabilities of sentences, (n_sentences,), nats.

        Raises:
            ModelError: a sentence cannot be scored, for instance because it is too long.
        """

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        """The log-probabilities; see `log_probs`."""
        return self.log_probs(sentences)

    def float32_log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """The same with all weights as float32 numbers, whatever precision the model scores in.

        Raises:
            ModelError: see `log_probs`; or the memory does not hold them.
        """
        return self.log_probs(sentences)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """Cheap knowledge about the sentence with each word at a 0-based position; by default none.

        Raises:
            SentenceError: the sentence has no such position.
        """
        sentence.check_position(position)
        return Replacements.unknown(len(words))

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """Exact log-probabilities, (n_words,), nats, of the sentence with each word in place.

        Raises:
            SentenceError: the sentence has no such position.
        """
        sentence.check_position(position)
        return self.log_probs([sentence.replace(position, word) for word in words])

    def forget_prefixes(self) -> None:
        """Give up what was read of earlier sentences and remembered to spare passes.

        Scores stay; what later calls cost no longer depends on earlier ones. Nothing to do for a
        model that reads every sentence anew.
        """

    def draft(self, effort: int = 1) -> LanguageModel | None:
        """A model whose scores estimate this one's at a fraction of the cost.

        None if exact scores are cheap.

        Args:
            effort: how much a draft may cost, from 0; higher efforts give better drafts.
        """
        return None

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """The terms whose sum is each sentence's log-probability, in reading order.

        Raises:
            ModelError: the rule's score is not a sum over tokens.
        """
        raise self._no_token_scores()

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """`token_log_probs` in which each word's terms add up to the word's, its end included.

        Where tokens mark the beginning of words, that a word is complete is told by the token after
        it: p(word) is the product of its tokens' probabilities, times the probability that a word
        ends after it, divided by that before it (Pimentel & Meister 2024; Oh & Schuler 2024). The
        first word begins, and the last token ends, for sure, so that a sentence's terms have the
        same sum.

        Raises:
            ModelError: the model does not read from left to right, or knows no words.
        """
        raise ModelError(
            f"{self.name} with rule {self.convention.rule} has no word boundaries to correct; "
            f"causal transformers with the rule log-likelihood have. Score it without."
        )

    def token_counts(self, sentences: Sequence[Sentence]) -> IntArray:
        """See `Scorer.token_counts`: the number of terms of `token_log_probs`."""
        return np.array([len(terms) for terms in self.token_log_probs(sentences)], np.int64)

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """Log p(words | the words before them), (n_continuations,), nats.

        Neither the end mark nor the end of the sentence counts, and word boundaries are not
        enforced, whatever the rule for sentences.

        Raises:
            ModelError: the model does not read from left to right, or cannot read that many tokens.
        """
        raise ModelError(
            f"{self.name} with rule {self.convention.rule} scores whole sentences, not words given "
            f"only the words before them, as causal transformers, RNNs, LSTMs and n-grams do."
        )


def require_language_model(
    model: Scorer, purpose: str = "A function that loads a language model"
) -> LanguageModel:
    """The same model, refused if its scores are not log-probabilities.

    Args:
        model: any scorer.
        purpose: the work that needs log-probabilities, a noun phrase that begins a sentence.

    Raises:
        ModelError: see `Convention.require_log_probability`; or its scores are in nats, but it is
            not a `LanguageModel`.
    """
    model.convention.require_log_probability(model.name, purpose)
    if not isinstance(model, LanguageModel):
        raise ModelError(
            f"{model.name} is a Scorer, not a LanguageModel. {purpose} needs log-probabilities."
        )
    return model


def conventions(models: Iterable[Scorer]) -> dict[str, dict[str, object]]:
    """The entries of models in the record of an output, by their names."""
    return {model.name: record_entry(model.specification, model.convention) for model in models}


def record_entry(specification: str, convention: Convention) -> dict[str, object]:
    """A model's entry in a record: its convention, and its specification if it has one."""
    origin: dict[str, object] = {"specification": specification} if specification else {}
    # Lists for tuples, so that an entry equals that of a record that was read
    return origin | asdict(convention) | {"context_tokens": [*convention.context_tokens]}
