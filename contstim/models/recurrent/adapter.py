"""RNN and LSTM as language models, and the part that they have in common with BiLSTM."""

from __future__ import annotations

import math
from abc import abstractmethod
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch

from contstim.models.base import Convention, LanguageModel, Replacements, TokenScore
from contstim.models.batching import Budget, computing, forward_in_batches, unique_rows
from contstim.models.costs import count
from contstim.models.tensors import fingerprint_of_network
from contstim.models.word_list import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.models.base import Continuation
    from contstim.models.recurrent.network import RecurrentNetwork, State
    from contstim.models.training_text import TrainingText
    from contstim.models.word_list import WordList
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


class Parts(NamedTuple):
    """The words of a sentence before and after one position, as numbers."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class RecurrentModel(LanguageModel):
    """A recurrent network over words, under the contract of every language model.

    It reads the words of the sentence, case kept, without the end mark. All words outside the
    vocabulary are read and predicted as one unknown word. Log-probabilities are float32 numbers,
    normalised over the whole vocabulary and summed in float64.

    Args:
        network: of the kind that the subclass scores with.
        words: the words that the network's numbers stand for.
        name: names columns and files.
        device: where the network runs.
        training_text: the sentences that it was trained on, if they are recorded.
    """

    rule: ClassVar[str]
    end_scored: ClassVar[bool]

    reports_passes = True

    def __init__(
        self,
        network: RecurrentNetwork,
        words: WordList,
        *,
        name: str,
        device: str = "cpu",
        training_text: TrainingText | None = None,
    ) -> None:
        self.name = name
        self._training_text = training_text
        self._network = network.to(device).eval()
        self._words = words
        self._device = device
        self._budget = Budget.for_device(device)

    @property
    def training_text(self) -> TrainingText | None:
        """See `LanguageModel.training_text`."""
        return self._training_text

    @cached_property
    def convention(self) -> Convention:
        """See `LanguageModel.convention`; the context is the boundary before the first word."""
        digest = fingerprint_of_network(
            self._network, str(self._network.shape), "\n".join(self._words.words)
        )
        return Convention(
            rule=self.rule,
            context="<s>",
            end_scored=self.end_scored,
            fingerprint=f"{self._network.shape.kind}-{digest}",
        )

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        """See `LanguageModel.log_probs`."""
        totals = [terms.sum() for terms in self._terms(sentences)]
        return np.array(totals, np.float64)

    def token_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.token_log_probs`: one term a word, and `</s>` where it is scored."""
        ends = ((-1, "</s>"),) if self.end_scored else ()
        return [
            [
                TokenScore(position, word, float(term))
                for (position, word), term in zip(
                    (*enumerate(sentence.words), *ends), terms, strict=True
                )
            ]
            for sentence, terms in zip(sentences, self._terms(sentences), strict=True)
        ]

    def completed_word_log_probs(self, sentences: Sequence[Sentence]) -> list[list[TokenScore]]:
        """See `LanguageModel.completed_word_log_probs`: a term is a word already."""
        return self.token_log_probs(sentences)

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
        parts = self._parts(sentence, position)
        bounds = self._bounds(parts)[self._words.numbers(words)]
        return Replacements(
            np.full(len(words), np.nan), bounds, bounds, self._prefix_log_prob(parts)
        )

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        """See `LanguageModel.replacement_log_probs`; states before the word are computed once."""
        parts = self._parts(sentence, position)
        # all unknown words have one number, and one score
        numbers, twin = np.unique(self._words.numbers(words), return_inverse=True)
        scores = self._bounds(parts)[numbers]
        rest = np.zeros(len(numbers))
        run = self._rest(parts, rest)
        rows = list(numbers[:, None])
        forward_in_batches(
            rows, run, pad=0, budget=self._budget, width=len(sentence), device=self._device
        )
        log_probs: FloatArray = (scores + rest)[twin]
        return log_probs

    @abstractmethod
    def _bounds(self, parts: Parts) -> FloatArray:
        """Sum of the terms from states without the candidate, for each number there, (words,)."""

    def _prefix_log_prob(self, parts: Parts) -> float:
        """Log p of the words before, nats; nan for models that read both sides."""
        del parts
        return math.nan

    @abstractmethod
    def _rest(
        self, parts: Parts, out: FloatArray
    ) -> Callable[[torch.Tensor, torch.Tensor, IntArray], None]:
        """A function for `forward_in_batches` that writes the sums of the other terms into `out`.

        Its rows are the candidates' numbers, (b, 1); `out` is (n_candidates,), nats.
        """

    def _parts(self, sentence: Sentence, position: int) -> Parts:
        sentence.check_position(position)
        ids = tuple(self._words.numbers(sentence.words).tolist())
        return Parts(ids[:position], ids[position + 1 :])

    def _terms(self, sentences: Sequence[Sentence]) -> list[FloatArray]:
        """Log p of each word of each sentence, and of its end where that is scored, nats."""
        rows, twin = unique_rows(self._words.numbers(sentence.words) for sentence in sentences)
        terms: list[Any] = [None] * len(rows)

        def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> None:
            flat = self._network(ids, attention.bool()).double().cpu().numpy()  # row after row
            counts = attention.sum(1).cpu().numpy() + self.end_scored
            for row, part in zip(batch, np.split(flat, np.cumsum(counts)[:-1]), strict=True):
                terms[row] = part

        forward_in_batches(rows, run, pad=0, budget=self._budget, device=self._device)
        return [terms[row] for row in twin]


class _Prefix(NamedTuple):
    """The words before a position, as read by the network."""

    log_prob: float  # of all words of the prefix, nats
    next_log_probs: FloatArray  # (words,) of each word of the vocabulary as the next one, nats
    state: State  # to read on from


class LeftToRightModel(RecurrentModel):
    """Sum over the words and the end of the sentence of log p(word | words before)."""

    rule = "log-likelihood"
    end_scored = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._after = lru_cache(maxsize=8)(self._read)

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        twin = copy(self)
        twin._after = lru_cache(maxsize=8)(twin._read)
        return twin

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`."""
        self._after.cache_clear()

    def continuation_log_probs(self, continuations: Sequence[Continuation]) -> FloatArray:
        """See `LanguageModel.continuation_log_probs`."""
        terms = self._terms([continuation.sentence for continuation in continuations])
        # the last term is that of the end
        totals = [t[c.start : -1].sum() for t, c in zip(terms, continuations, strict=True)]
        return np.array(totals, np.float64)

    def _bounds(self, parts: Parts) -> FloatArray:
        prefix = self._after(parts.before)
        return prefix.log_prob + prefix.next_log_probs

    def _prefix_log_prob(self, parts: Parts) -> float:
        return self._after(parts.before).log_prob

    def _rest(
        self, parts: Parts, out: FloatArray
    ) -> Callable[[torch.Tensor, torch.Tensor, IntArray], None]:
        network, prefix = self._network, self._after(parts.before)
        # the words after the candidate, and the end
        suffix = torch.tensor([(*parts.after, BOUNDARY)], device=self._device)  # (1, m)

        def run(candidates: torch.Tensor, _: torch.Tensor, batch: IntArray) -> None:
            targets = suffix.expand(len(batch), -1)
            # state j has read the candidate and j words after it, and predicts target j
            ids = torch.cat([candidates, targets[:, :-1]], dim=1)
            states, _last = network.read(ids, for_rows(prefix.state, len(batch)))
            terms = network.log_probs(states.flatten(0, 1), targets.flatten())
            out[batch] = terms.view(targets.shape).double().sum(1).cpu().numpy()

        return run

    def _read(self, before: tuple[int, ...]) -> _Prefix:
        with computing():
            ids = torch.tensor([[BOUNDARY, *before]], device=self._device)
            count(1, len(before))
            states, last = self._network.read(ids)
            terms = self._network.log_probs(states[0, :-1], ids[0, 1:])
            next_log_probs = self._network.distributions(states[0, -1:])[0].double().cpu().numpy()
        return _Prefix(float(terms.double().sum()), next_log_probs, last)


def for_rows(state: State, n_rows: int) -> State:
    """The state of one row, repeated for a batch of rows."""
    if isinstance(state, tuple):
        return tuple(for_rows(part, n_rows) for part in state)
    return state.expand(-1, n_rows, -1).contiguous()
