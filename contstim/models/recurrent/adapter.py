"""RNN and LSTM as language models, and the part that they have in common with BiLSTM."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from contstim.models.base import Convention, LanguageModel, Replacements, weights_of
from contstim.models.batching import Budget, computing, forward_in_batches, unique_rows
from contstim.models.costs import count
from contstim.models.end_marks import EndMarks
from contstim.models.tensors import fingerprint_of_network
from contstim.models.vocabularies import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation, TokenScore
    from contstim.models.recurrent.network import RecurrentNetwork, State
    from contstim.models.vocabularies import WordList
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary


Words: TypeAlias = tuple[int, ...]
"""Numbers of words in reading order."""


class RecurrentModel(LanguageModel):
    """A recurrent network over words, under the contract of every language model.

    It reads the words of the sentence, case kept, and the end mark if that is a word of its
    vocabulary (see `EndMarks`). All words outside the vocabulary are read and predicted as one
    unknown word. Log-probabilities are float32 numbers, normalised over the whole vocabulary and
    summed in float64.

    Args:
        network: of the kind that the subclass scores with.
        words: the words that the network's numbers stand for.
        name: names columns and files.
        device: where the network runs.
        training_text: hashes of the sentences that it was trained on, if they are recorded.
        end_mark: whether an end mark is read that is a word of the vocabulary.
    """

    rule: ClassVar[str]
    end_scored: ClassVar[bool]
    _remembered: ClassVar[int]  # results of `_read` that are kept

    reports_passes = True

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
        self._end_marks = EndMarks()
        if end_mark:
            self._end_marks = EndMarks.known_to(lambda mark: bool(words.knows((mark,))[0]))
        self._device = device
        self._budget = Budget.for_device(device)
        self._after = lru_cache(self._remembered)(self._read)

    @cached_property
    def convention(self) -> Convention:
        """See `LanguageModel.convention`; the context is the boundary before the first word."""
        digest = fingerprint_of_network(
            self._network, str(self._network.shape), "\n".join(self._words.words)
        )
        plain = Convention(
            rule=self.rule,
            context="<s>",
            end_scored=self.end_scored,
            fingerprint=f"{self._network.shape.kind}-{digest}",
        )
        return self._end_marks.convention(plain)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        totals = [terms.sum() for terms in self._terms(self._end_marks.read_all(sentences))]
        return np.array(totals, np.float64)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`: one term a word, and `</s>` where it is scored."""
        terms = self._terms(self._end_marks.read_all(sentences))
        return [*map(self._end_marks.terms, sentences, terms)]

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`: a term is a word already."""
        return self.token_log_probs(sentences)

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
        """See `LanguageModel.replacements`; upper bounds for all words from one reading.

        The log-probability of a sentence is a sum of terms that are never positive. Terms from
        states that have not read the candidate need no reading per candidate: those of other words
        are the same for all candidates, and one output layer gives the candidate's own term for
        the whole vocabulary. Their sum is the bound, and the estimate.
        """
        before, after = self._around(sentence, position)
        bounds = self._bounds(before, after)[self._words.numbers(words)]
        unknown = np.full(len(words), np.nan)
        return Replacements(unknown, bounds, bounds, self._prefix_log_prob(before))

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`; states before the word are computed once."""
        before, after = self._around(sentence, position)
        # all unknown words have one number, and one score
        numbers, twin = np.unique(self._words.numbers(words), return_inverse=True)
        scores, rest = self._bounds(before, after)[numbers], np.zeros(len(numbers))
        run, rows = self._rest(before, after, rest), list(numbers[:, None])
        forward_in_batches(rows, run, pad=0, budget=self._budget, width=len(sentence))
        return (scores + rest)[twin]

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        twin = copy(self)
        twin._after = lru_cache(twin._remembered)(twin._read)
        return twin

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`; what follows a position is forgotten as well."""
        self._after.cache_clear()

    @abstractmethod
    def _read(self, words: Words, *, backwards: bool = False) -> Any:
        """What is known after the boundary and words."""

    @abstractmethod
    def _bounds(self, before: Words, after: Words) -> FloatArray:
        """Sum of the terms from states without the candidate, for each number there, (words,)."""

    def _prefix_log_prob(self, before: Words) -> float:  # noqa: ARG002
        """Log p of the words before, nats; nan for models that read both sides."""
        return math.nan

    @abstractmethod
    def _rest(
        self, before: Words, after: Words, out: FloatArray
    ) -> Callable[[Tensor, Tensor, IntArray], None]:
        """A function for `forward_in_batches` that writes the sums of the other terms into `out`.

        Its rows are the candidates' numbers, (b, 1); `out` is (n_candidates,), nats.
        """

    def _around(self, sentence: Sentence, position: int) -> tuple[Words, Words]:
        """The words before a position and those after it, with the end mark if it is a word."""
        sentence.check_position(position)
        ids = tuple(self._words.numbers(self._end_marks.read(sentence).words).tolist())
        return ids[:position], ids[position + 1 :]

    def _terms(self, sentences: Sequence[Sentence]) -> list[FloatArray]:
        """Log p of each word of each sentence, and of its end where that is scored, nats."""
        rows, twin = unique_rows(self._words.numbers(sentence.words) for sentence in sentences)
        terms: list[Any] = [None] * len(rows)

        def run(ids: Tensor, attention: Tensor, batch: IntArray) -> None:
            flat = self._network(ids, attention.bool()).double().cpu().numpy()  # row after row
            counts = attention.sum(1).cpu().numpy() + self.end_scored
            for row, part in zip(batch, np.split(flat, np.cumsum(counts)[:-1]), strict=True):
                terms[row] = part

        forward_in_batches(rows, run, pad=0, budget=self._budget)
        return [terms[row] for row in twin]


class LeftToRightModel(RecurrentModel):
    """Sum over the words and the end of the sentence of log p(word | words before)."""

    rule = "log-likelihood"
    end_scored = True
    _remembered = 8

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        terms = self._terms([continuation.sentence for continuation in continuations])
        # the last term is that of the end
        totals = [t[c.start : -1].sum() for t, c in zip(terms, continuations, strict=True)]
        return np.array(totals, np.float64)

    def _bounds(self, before: Words, after: Words) -> FloatArray:  # noqa: ARG002
        log_prob, next_log_probs, _ = self._after(before)
        bounds: FloatArray = log_prob + next_log_probs
        return bounds

    def _prefix_log_prob(self, before: Words) -> float:
        return float(self._after(before)[0])

    def _rest(
        self, before: Words, after: Words, out: FloatArray
    ) -> Callable[[Tensor, Tensor, IntArray], None]:
        network, (_, _, state) = self._network, self._after(before)
        # the words after the candidate, and the end
        suffix = torch.tensor([(*after, BOUNDARY)], device=self._device)  # (1, m)

        def run(candidates: Tensor, _: Tensor, batch: IntArray) -> None:
            targets = suffix.expand(len(batch), -1)
            # state j has read the candidate and j words after it, and predicts target j
            ids = torch.cat([candidates, targets[:, :-1]], dim=1)
            states, _last = network.read(ids, for_rows(state, len(batch)))
            terms = network.log_probs(states.flatten(0, 1), targets.flatten())
            out[batch] = terms.view(targets.shape).double().sum(1).cpu().numpy()

        return run

    def _read(self, words: Words, *, backwards: bool = False) -> tuple[float, FloatArray, State]:
        """Log p of words, nats; of each word of the vocabulary as the next one; and the state."""
        with computing():
            ids = torch.tensor([[BOUNDARY, *words]], device=self._device)
            count(1, len(words))
            states, last = self._network.read(ids, backwards=backwards)
            terms = self._network.log_probs(states[0, :-1], ids[0, 1:])
            next_log_probs = self._network.distributions(states[0, -1:])[0].double().cpu().numpy()
        return float(terms.double().sum()), next_log_probs, last


def for_rows(state: State, n_rows: int) -> State:
    """The state of one row, repeated for a batch of rows."""
    if isinstance(state, tuple):
        return tuple(for_rows(part, n_rows) for part in state)
    return state.expand(-1, n_rows, -1).contiguous()


class BothSidesModel(RecurrentModel):
    """Sum over the words of log p(word | left state, right state), without the end.

    This is a pseudo-log-likelihood, not the log-probability of a distribution over sentences. No
    word is masked. The left state of a position has read the boundary and the words before it; the
    right state, of another stack of layers, the boundary and the words after it, the last word
    first. The stacks share no state, so neither state of a position depends on the word there.

    Candidates at one position of a sentence, here `x` in `a b x d`, share all states that have not
    read them. With L and R for the states of the stack that reads from the left and from the right,
    and `|` for the boundary, the four terms of the score are

        term            from the left    from the right    computed
        log p(a | …)    L(|)             R(| d x b)        right stack for each candidate: `before`
        log p(b | …)    L(| a)           R(| d x)          right stack for each candidate: `before`
        log p(x | …)    L(| a b)         R(| d)            once, for all candidates: `_bounds`
        log p(d | …)    L(| a b x)       R(|)              left stack for each candidate: `after`

    No term is positive, so the third one, which needs no reading per candidate, is an upper bound
    of the score.
    """

    rule = "pseudo-log-likelihood"
    end_scored = False
    _remembered = 16

    def _bounds(self, before: Words, after: Words) -> FloatArray:
        left, _ = self._after(before)
        right, _ = self._after(after[::-1], backwards=True)
        with computing():
            around = torch.cat([left[-1:], right[-1:]], dim=1)
            bounds: FloatArray = self._network.distributions(around)[0].double().cpu().numpy()
        return bounds

    def _rest(
        self, before: Words, after: Words, out: FloatArray
    ) -> Callable[[Tensor, Tensor, IntArray], None]:
        left, left_last = self._after(before)
        right, right_last = self._after(after[::-1], backwards=True)

        def run(candidates: Tensor, _: Tensor, batch: IntArray) -> None:
            later = self._terms_beyond(candidates, left_last, after, right)
            earlier = self._terms_beyond(candidates, right_last, before[::-1], left, backwards=True)
            out[batch] = (later + earlier).cpu().numpy()

        return run

    def _terms_beyond(
        self, candidates: Tensor, near: State, words: Words, far: Tensor, *, backwards: bool = False
    ) -> Tensor:
        """Sums (b,) of the terms of the words beyond candidates (b, 1), nats.

        Args:
            candidates: the numbers of the candidate words.
            near: the state of the side that is read before the candidate.
            words: the m words beyond the candidate, the nearest first.
            far: states after the boundary and the same words, read towards the candidate.
            backwards: whether `near`, the candidate and `words` are read from right to left.
        """
        if not words:
            return torch.zeros(len(candidates), dtype=torch.float64, device=candidates.device)
        # Read on from the near side: the candidate and all words but the farthest. State j has then
        # read everything up to word j of `words`, without it
        beyond = torch.tensor([words], device=self._device).expand(len(candidates), -1)  # (b, m)
        ids = torch.cat([candidates, beyond[:, :-1]], dim=1)
        state = for_rows(near, len(candidates))
        near_states, _ = self._network.read(ids, state, backwards=backwards)  # (b, m, hidden)
        # On the far side, the last of the m + 1 states has read all m words and predicts the
        # candidate. Before word 0, the nearest, come m - 1 words; before word m - 1 none: turned
        # round, state j has read the words beyond word j
        far_states = far[:-1].flip(0).expand(len(candidates), -1, -1)  # (b, m, hidden)
        sides = (far_states, near_states) if backwards else (near_states, far_states)
        around = torch.cat(sides, dim=2).flatten(0, 1)  # (b * m, 2 * hidden), left half first
        terms = self._network.log_probs(around, beyond.flatten())
        return terms.view(beyond.shape).double().sum(1)

    def _read(self, words: Words, *, backwards: bool = False) -> tuple[Tensor, State]:
        """States (m + 1, hidden) after the boundary and each of m words; and the last."""
        with computing():
            ids = torch.tensor([[BOUNDARY, *words]], device=self._device)
            count(1, len(words))
            states, last = self._network.read(ids, backwards=backwards)
        return states[0], last
