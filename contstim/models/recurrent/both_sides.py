"""BiLSTM: each word given the words before and the words after it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from contstim.models.batching import computing
from contstim.models.recurrent.adapter import Parts, RecurrentModel
from contstim.models.recurrent.left_to_right import for_rows
from contstim.models.recurrent.network import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.recurrent.network import State


class _Side(NamedTuple):
    """The words on one side of a position, read towards it."""

    states: torch.Tensor  # (m + 1, hidden) before the first of m words, and after each of them
    last: State  # to read on from


class BothSidesModel(RecurrentModel):
    """Sum over the words of log p(word | left state, right state), without the end.

    This is a pseudo-log-likelihood, not the log-probability of a distribution over sentences. No
    word is masked. The left state at a position comes from a network that has read the boundary and
    the words before it, the right state from another one that has read the boundary and the words
    after it, the last one first. The two stacks of layers share no state, so that neither state has
    seen the word at the position, nor a state that has.
    """

    rule = "pseudo-log-likelihood"
    end_scored = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._side = lru_cache(maxsize=16)(self._read)

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
            after = self._beyond(candidates, left, parts.after, right, backwards=False)
            before = self._beyond(candidates, right, parts.before[::-1], left, backwards=True)
            out[batch] = (after + before).cpu().numpy()

        return run

    def _beyond(
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
            candidates: what stands at the position.
            near: the side that the reading comes from.
            words: those beyond the position, the nearest first.
            far: the side that holds them.
            backwards: whether the reading goes from right to left.
        """
        if not words:
            return torch.zeros(len(candidates), dtype=torch.float64, device=candidates.device)
        beyond = torch.tensor([words], device=self._device).expand(len(candidates), -1)  # (b, m)
        ids = torch.cat([candidates, beyond[:, :-1]], dim=1)
        state = for_rows(near.last, len(candidates))
        coming, _ = self._network.read(ids, state, backwards=backwards)  # (b, m, hidden)
        # The far side reads the farthest word first: before the nearest it has read all but one
        facing = far.states[:-1].flip(0).expand(len(candidates), -1, -1)
        sides = (facing, coming) if backwards else (coming, facing)
        around = torch.cat(sides, dim=2).flatten(0, 1)
        terms = self._network.log_probs(around, beyond.flatten())
        return terms.view(beyond.shape).double().sum(1)

    def _read(self, words: tuple[int, ...], *, backwards: bool) -> _Side:
        with computing():
            ids = torch.tensor([[BOUNDARY, *words]], device=self._device)
            states, last = self._network.read(ids, backwards=backwards)
        return _Side(states[0], last)
