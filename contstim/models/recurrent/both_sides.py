"""BiLSTM: each word given the words before and the words after it.

Candidates at one position of a sentence, here `x` in `a b x d`, share all states that have not read
them. With L and R for the states of the stack that reads from the left and from the right, and `|`
for the boundary, the four terms of the score are

    term            from the left    from the right    computed
    log p(a | …)    L(|)             R(| d x b)        right stack for each candidate: `before`
    log p(b | …)    L(| a)           R(| d x)          right stack for each candidate: `before`
    log p(x | …)    L(| a b)         R(| d)            once, for all candidates: `_bounds`
    log p(d | …)    L(| a b x)       R(|)              left stack for each candidate: `after`

No term is positive, so the third one, which needs no reading per candidate, is an upper bound of
the score.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from contstim.models.batching import computing
from contstim.models.costs import count
from contstim.models.recurrent.adapter import Parts, RecurrentModel, for_rows
from contstim.models.word_list import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.recurrent.network import State


class _Side(NamedTuple):
    """The m words on one side of a position, read from the sentence's edge towards it."""

    states: torch.Tensor  # (m + 1, hidden) after the boundary, and after each of the words
    last: State  # of all layers, to read on from


class BothSidesModel(RecurrentModel):
    """Sum over the words of log p(word | left state, right state), without the end.

    This is a pseudo-log-likelihood, not the log-probability of a distribution over sentences. No
    word is masked. The left state of a position has read the boundary and the words before it; the
    right state, of another stack of layers, the boundary and the words after it, the last word
    first. The stacks share no state, so neither state of a position depends on the word there.
    """

    rule = "pseudo-log-likelihood"
    end_scored = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._side = lru_cache(maxsize=16)(self._read)

    def for_another_search(self) -> Self:
        """See `Scorer.for_another_search`."""
        twin = copy(self)
        twin._side = lru_cache(maxsize=16)(twin._read)
        return twin

    def forget_prefixes(self) -> None:
        """See `LanguageModel.forget_prefixes`; what follows a position is forgotten as well."""
        self._side.cache_clear()

    def _bounds(self, parts: Parts) -> FloatArray:
        left = self._side(parts.before, backwards=False)
        right = self._side(parts.after[::-1], backwards=True)
        with computing():
            around = torch.cat([left.states[-1:], right.states[-1:]], dim=1)
            bounds: FloatArray = self._network.distributions(around)[0].double().cpu().numpy()
        return bounds

    def _rest(
        self, parts: Parts, out: FloatArray
    ) -> Callable[[torch.Tensor, torch.Tensor, IntArray], None]:
        left = self._side(parts.before, backwards=False)
        right = self._side(parts.after[::-1], backwards=True)

        def run(candidates: torch.Tensor, _: torch.Tensor, batch: IntArray) -> None:
            after = self._terms_beyond(candidates, left, parts.after, right, backwards=False)
            before = self._terms_beyond(candidates, right, parts.before[::-1], left, backwards=True)
            out[batch] = (after + before).cpu().numpy()

        return run

    def _terms_beyond(
        self,
        candidates: torch.Tensor,
        near: _Side,
        words: tuple[int, ...],
        far: _Side,
        *,
        backwards: bool,
    ) -> torch.Tensor:
        """Sums (b,) of the terms of the words beyond candidates (b, 1), nats.

        Args:
            candidates: the numbers of the candidate words.
            near: the side that is read before the candidate.
            words: the m words beyond the candidate, the nearest first.
            far: the same words, read towards the candidate.
            backwards: whether `near`, the candidate and `words` are read from right to left.
        """
        if not words:
            return torch.zeros(len(candidates), dtype=torch.float64, device=candidates.device)
        # Read on from the near side: the candidate and all words but the farthest. State j has then
        # read everything up to word j of `words`, without it
        beyond = torch.tensor([words], device=self._device).expand(len(candidates), -1)  # (b, m)
        ids = torch.cat([candidates, beyond[:, :-1]], dim=1)
        state = for_rows(near.last, len(candidates))
        near_states, _ = self._network.read(ids, state, backwards=backwards)  # (b, m, hidden)
        # On the far side, the last of the m + 1 states has read all m words and predicts the
        # candidate. Before word 0, the nearest, come m - 1 words; before word m - 1 none: turned
        # round, state j has read the words beyond word j
        far_states = far.states[:-1].flip(0).expand(len(candidates), -1, -1)  # (b, m, hidden)
        sides = (far_states, near_states) if backwards else (near_states, far_states)
        around = torch.cat(sides, dim=2).flatten(0, 1)  # (b * m, 2 * hidden), left half first
        terms = self._network.log_probs(around, beyond.flatten())
        return terms.view(beyond.shape).double().sum(1)

    def _read(self, words: tuple[int, ...], *, backwards: bool) -> _Side:
        with computing():
            ids = torch.tensor([[BOUNDARY, *words]], device=self._device)
            count(1, len(words))
            states, last = self._network.read(ids, backwards=backwards)
        return _Side(states[0], last)
