"""RNN and LSTM: each word given the words before it, and the end given all."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch

from contstim.models.batching import computing
from contstim.models.costs import count
from contstim.models.recurrent.adapter import Parts, RecurrentModel
from contstim.models.word_list import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.base import Continuation
    from contstim.models.recurrent.network import State


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
