"""RNN, LSTM and BiLSTM with the interface of every language model."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import torch
from torch import Tensor

from contstim.errors import ModelError
from contstim.models.base import Continuation, Convention, Replacements, TokenScore, weights_of
from contstim.models.batching import Budget, computing, forward_in_batches, unique_rows
from contstim.models.costs import count
from contstim.models.loading import Device, resolve_device
from contstim.models.recurrent.network import RecurrentNetwork, State, read_folder
from contstim.models.tensors import fingerprint_of_network
from contstim.models.training_text import training_text_beside
from contstim.models.vocabularies import BOUNDARY, WordList, WordModel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.batching import Run
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary


Words: TypeAlias = tuple[int, ...]
"""Numbers of words, in the order in which the network reads the words."""


class RecurrentModel(WordModel):
    """A recurrent network over words, with the interface of every language model.

    The network reads the words of the sentence, case-sensitively. The network also reads the end
    mark, such as a full stop, if the vocabulary contains the end mark. If `end_mark` is False, the
    network does not read end marks. All words outside the vocabulary count as the same unknown
    word. Log-probabilities are float32 numbers, normalised over the whole vocabulary. They are
    summed in float64.
    """

    _cache_size: ClassVar[int]  # number of cached results of `_read_words`

    def __init__(
        self,
        network: RecurrentNetwork,
        words: WordList,
        *,
        name: str,
        device: str = "cpu",
        training_text: Path | None = None,
        end_mark: bool = True,
    ) -> None:
        self.name = name
        self.training_text = training_text
        self._network = network.to(device).eval()
        self._words = words
        self._read_end_marks(lambda mark: bool(words.knows((mark,))[0]), end_mark=end_mark)
        self._device = device
        self._budget = Budget.for_device(device)
        self.forget_prefixes()

    @cached_property
    def convention(self) -> Convention:
        """See `LanguageModel.convention`. The context is the boundary `<s>` before the sentence."""
        digest = fingerprint_of_network(
            self._network, str(self._network.shape), "\n".join(self._words.words)
        )
        return self._convention(f"{self._network.shape.kind}-{digest}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        totals = [terms.sum() for terms in self._terms([*map(self._with_mark, sentences)])]
        return np.array(totals, np.float64)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`. Tokens are the words, and `</s>` if it is scored."""
        rows = self._terms([*map(self._with_mark, sentences)], entropies=True)
        pairs = zip(sentences, map(np.atleast_2d, rows), strict=True)
        return [self._token_scores(sentence, *row) for sentence, row in pairs]

    def n_parameters(self) -> int:
        """See `Scorer.n_parameters`."""
        return weights_of(self._network)

    def knows(self, words: Sequence[str]) -> BoolArray:
        """See `LanguageModel.knows`."""
        return self._words.knows(words)

    def vocabulary(self, min_count: int) -> Vocabulary:
        """See `LanguageModel.vocabulary`."""
        return self._words.vocabulary(min_count)

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        """See `LanguageModel.replacements`; one pass yields upper bounds for all words.

        A candidate is one of `words`. Each term of the score, log p of a word or of the end, is
        computed from states of the network. The sum of the terms whose states have not read the
        candidate is an upper bound of the score, because the omitted terms are never positive. The
        bound is also used as the estimate of the score.
        """
        all_bounds, prefix_log_prob = self._bounds(*self._around(sentence, position))
        bounds = all_bounds[self._words.numbers(words)]
        return Replacements(np.full(len(words), np.nan), bounds, bounds, prefix_log_prob)

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`.

        States that have not read the candidate are computed once, for all candidates.
        """
        words_before, words_after = self._around(sentence, position)
        # All unknown words have the same number
        numbers, inverse = np.unique(self._words.numbers(words), return_inverse=True)
        scores = self._bounds(words_before, words_after)[0][numbers]
        later_terms = np.zeros(len(numbers))
        run = self._term_writer(words_before, words_after, later_terms)
        rows = list(numbers[:, None])
        forward_in_batches(rows, run, pad=0, budget=self._budget, width=len(sentence))
        return (scores + later_terms)[inverse]

    def forget_prefixes(self) -> None:
        """See `Scorer.forget_prefixes`."""
        self._read_cached = lru_cache(self._cache_size)(self._read_words)

    def _read_words(self, words: Words, *, backwards: bool = False) -> tuple[Any, ...]:
        """Return the states after the boundary and after each of m words, (m + 1, hidden).

        Also return the state of all layers after the last word. From this state, the network can
        continue to read.
        """
        with computing():
            ids = torch.tensor([[BOUNDARY, *words]], device=self._device)
            count(1, len(words))
            states, last = self._network.run(ids, backwards=backwards)
        return states[0], last

    @abstractmethod
    def _bounds(self, words_before: Words, words_after: Words) -> tuple[FloatArray, float]:
        """Return upper bounds for all words, (vocabulary,), and log p of `words_before`, nats.

        A bound is the sum of the terms whose states have not read the word. Log p of `words_before`
        is nan for models that read both sides.
        """

    @abstractmethod
    def _term_writer(self, words_before: Words, words_after: Words, out: FloatArray) -> Run:
        """Return a function for `forward_in_batches` that writes sums of terms into `out`, nats.

        The function sums the terms that `_bounds` omits, because their states have read the
        candidate. Each row contains one candidate, as its number in the vocabulary, (b, 1). `out`
        is (n_candidates,).
        """

    def _around(self, sentence: Sentence, position: int) -> tuple[Words, Words]:
        """Return the words before and after a position.

        If the network reads the sentence's end mark, the end mark is the last word.
        """
        sentence.check_position(position)
        ids = tuple(self._words.numbers(self._with_mark(sentence).words).tolist())
        return ids[:position], ids[position + 1 :]

    def _terms(self, sentences: Sequence[Sentence], *, entropies: bool = False) -> list[FloatArray]:
        """Return log p of each sentence's words and, if scored, of its end, (n_terms,), nats.

        With `entropies`, a left-to-right model returns (2, n_terms), with the entropies in row 1.
        """
        rows, inverse = unique_rows(self._words.numbers(sentence.words) for sentence in sentences)
        terms: list[Any] = [None] * len(rows)

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> None:
            values = self._network(ids, attention.bool(), entropies=entropies)  # row after row
            ends = np.cumsum(attention.sum(1).cpu().numpy() + self.end_scored)
            parts = np.split(values.double().cpu().numpy(), ends[:-1], axis=-1)
            for row, part in zip(batch, parts, strict=True):
                terms[row] = part

        forward_in_batches(rows, run, pad=0, budget=self._budget)
        return [terms[row] for row in inverse]


class LeftToRightModel(RecurrentModel):
    """Model whose score is the sum of log p(word | words before), including the sentence end."""

    _cache_size = 8

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        terms = self._terms([continuation.sentence for continuation in continuations])
        # The last term is the end of the sentence, which is not part of a continuation
        totals = [t[c.start : -1].sum() for t, c in zip(terms, continuations, strict=True)]
        return np.array(totals, np.float64)

    def _bounds(self, words_before: Words, words_after: Words) -> tuple[FloatArray, float]:  # noqa: ARG002
        log_prob, next_log_probs, _ = self._read_cached(words_before)
        return log_prob + next_log_probs, log_prob

    def _term_writer(self, words_before: Words, words_after: Words, out: FloatArray) -> Run:
        network, (_, _, state) = self._network, self._read_cached(words_before)
        suffix = torch.tensor([(*words_after, BOUNDARY)], device=self._device)  # (1, m)

        def run(candidates: Tensor, _: Tensor, batch: IntArray) -> None:
            targets = suffix.expand(len(batch), -1)
            # State j has read the candidate and j words after it, and predicts target j
            ids = torch.cat([candidates, targets[:, :-1]], dim=1)
            states, _last = network.run(ids, for_rows(state, len(batch)))
            terms = network.log_probs(states.flatten(0, 1), targets.flatten())
            out[batch] = terms.view(targets.shape).double().sum(1).cpu().numpy()

        return run

    def _read_words(
        self, words: Words, *, backwards: bool = False
    ) -> tuple[float, FloatArray, State]:
        """Read words from left to right.

        Returns:
            Log p of the words; log p of each word of the vocabulary as the next word,
            (vocabulary,), nats; and the last state.
        """
        states, last = super()._read_words(words, backwards=backwards)
        with computing():
            ids = torch.tensor(words, dtype=torch.int64, device=self._device)
            terms = self._network.log_probs(states[:-1], ids)
            next_log_probs = self._network.distributions(states[-1:])[0].double().cpu().numpy()
        return float(terms.double().sum()), next_log_probs, last


def for_rows(state: State, n_rows: int) -> State:
    """Repeat the state of one row for a batch of rows."""
    if isinstance(state, tuple):
        return tuple(for_rows(part, n_rows) for part in state)
    return state.expand(-1, n_rows, -1).contiguous()


class BothSidesModel(RecurrentModel):
    """Model whose score is the sum of log p(word | left state, right state), without the end.

    This is a pseudo-log-likelihood, not the log-probability of a distribution over sentences. No
    word is masked. The left state of a position has read the boundary and the words before the
    position. The right state comes from a separate stack of layers. This stack has read the
    boundary and the words after the position, the last word first. Neither state depends on the
    word at the position.

    All candidates `x` in `a b x d` share the states that have not read the candidate. L and R are
    left and right states, and `|` is the boundary. `earlier` and `later` are variables in
    `_term_writer`. The four terms of the score are

        term            left state       right state       computed
        log p(a | …)    L(|)             R(| d x b)        right stack for each candidate: `earlier`
        log p(b | …)    L(| a)           R(| d x)          right stack for each candidate: `earlier`
        log p(x | …)    L(| a b)         R(| d)            once, for all candidates: `_bounds`
        log p(d | …)    L(| a b x)       R(|)              left stack for each candidate: `later`

    No term is positive, so log p(x | …) alone is an upper bound.
    """

    rule = "pseudo-log-likelihood"
    end_scored = False
    _cache_size = 16

    def _bounds(self, words_before: Words, words_after: Words) -> tuple[FloatArray, float]:
        left_states, _ = self._read_cached(words_before)
        right_states, _ = self._read_cached(words_after[::-1], backwards=True)
        with computing():
            both_sides = torch.cat([left_states[-1:], right_states[-1:]], dim=1)
            return self._network.distributions(both_sides)[0].double().cpu().numpy(), math.nan

    def _term_writer(self, words_before: Words, words_after: Words, out: FloatArray) -> Run:
        left_states, left_last = self._read_cached(words_before)
        right_states, right_last = self._read_cached(words_after[::-1], backwards=True)

        def run(candidates: Tensor, _: Tensor, batch: IntArray) -> None:
            later = self._terms_beyond(candidates, left_last, words_after, right_states)
            earlier = self._terms_beyond(
                candidates, right_last, words_before[::-1], left_states, backwards=True
            )
            out[batch] = (later + earlier).cpu().numpy()

        return run

    def _terms_beyond(
        self, candidates: Tensor, near: State, words: Words, far: Tensor, *, backwards: bool = False
    ) -> Tensor:
        """Sum the terms of all words on one side of each candidate, (b,), nats.

        From the state `near`, the network reads a candidate and then `words`.

        Args:
            candidates: numbers of the candidate words, (b, 1).
            near: state after all words that are read before the candidate.
            words: the m words that are read after the candidate, the nearest first.
            far: states of the stack that reads in the other direction, (m + 1, hidden). State i
                has read the boundary and the i farthest words.
            backwards: whether to read from right to left.
        """
        if not words:
            return torch.zeros(len(candidates), dtype=torch.float64, device=candidates.device)
        # State j has read the candidate and words 0 to j-1
        beyond = torch.tensor([words], device=self._device).expand(len(candidates), -1)  # (b, m)
        ids = torch.cat([candidates, beyond[:, :-1]], dim=1)
        state = for_rows(near, len(candidates))
        near_states, _ = self._network.run(ids, state, backwards=backwards)  # (b, m, hidden)
        # State i of `far` has read the i farthest words. The last state is dropped and the order is
        # reversed. Then state j has read the words farther from the candidate than word j
        far_states = far[:-1].flip(0).expand(len(candidates), -1, -1)  # (b, m, hidden)
        sides = (far_states, near_states) if backwards else (near_states, far_states)
        both_sides = torch.cat(sides, dim=2).flatten(0, 1)  # (b * m, 2 * hidden), left half first
        terms = self._network.log_probs(both_sides, beyond.flatten())
        return terms.view(beyond.shape).double().sum(1)


def load_recurrent(
    location: str | Path,
    *,
    name: str | None = None,
    family: str = "",
    device: Device = "auto",
    end_mark: bool = True,
) -> RecurrentModel:
    """Load a model from a folder that `contstim train` wrote.

    Args:
        location: path of the folder.
        name: name of the model; by default the path of the folder.
        family: required kind, `rnn`, `lstm` or `bilstm`; empty for any.
        device: see `resolve_device`.
        end_mark: whether the network reads those end marks that are in its vocabulary.

    Raises:
        ModelError: if the folder has no complete model, if the model is not of the kind `family`,
            or if the device does not exist.
    """
    network, words = read_folder(location)
    kind = network.shape.kind
    if family and family != kind:
        raise ModelError(f"{location} contains a model of kind {kind}: write {kind}:{location}.")
    adapter = BothSidesModel if network.shape.reads_both_sides else LeftToRightModel
    return adapter(
        network,
        words,
        name=name or str(location),
        device=resolve_device(device),
        training_text=training_text_beside(location),
        end_mark=end_mark,
    )
