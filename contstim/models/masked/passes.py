"""The distinct inputs of many questions, through the network once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from contstim.models.batching import forward_in_batches, unique_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.batching import Budget, Row
    from contstim.models.boundaries import Normaliser
    from contstim.models.masked.network import MaskedNetwork

    _Use: TypeAlias = Callable[[torch.Tensor, IntArray, IntArray], None]


@dataclass(frozen=True)
class Passes:
    """A network, how its outputs become log-probabilities, and how many tokens fit a batch."""

    network: MaskedNetwork
    normaliser: Normaliser
    budget: Budget

    def answer(
        self, rows: Sequence[Row], row: IntArray, place: IntArray, token: IntArray
    ) -> FloatArray:
        """Log p of tokens at places of rows, (n_questions,), nats.

        Equal rows pass through the network once, and the head computes each place once, however
        many tokens are asked about there.

        Args:
            rows: token ids, some of them masks.
            row: the row of each question, (n_questions,).
            place: the place in its row, (n_questions,).
            token: the token id in question, (n_questions,).
        """
        answers = np.empty(len(row))

        def use(logits: torch.Tensor, asked: IntArray, local: IntArray) -> None:
            log_probs = self.normaliser.log_probs(logits, local, token[asked])
            answers[asked] = log_probs.double().cpu().numpy()

        self._forward(rows, row, place, use)
        return answers

    def weighted_sums(
        self,
        rows: Sequence[Row],
        row: IntArray,
        place: IntArray,
        group: IntArray,
        weight: FloatArray,
    ) -> FloatArray:
        """For each group the weighted sum of log p over its (row, place)s, for every token.

        Returns:
            (n_groups, n_outputs), nats
        """
        n_groups = int(group.max(initial=-1)) + 1
        sums = np.zeros((n_groups, self.network.n_outputs))

        def use(logits: torch.Tensor, asked: IntArray, local: IntArray) -> None:
            mixing = np.zeros((n_groups, len(logits)), np.float32)
            np.add.at(mixing, (group[asked], local), weight[asked])
            log_probs = self.normaliser.log_softmax(logits)
            mixed = torch.from_numpy(mixing).to(log_probs) @ log_probs
            np.add(sums, mixed.cpu().numpy(), out=sums)

        self._forward(rows, row, place, use)
        return sums

    def _forward(self, rows: Sequence[Row], row: IntArray, place: IntArray, use: _Use) -> None:
        """Run the distinct rows; `use` gets logits, the questions answered, and whose logits."""
        distinct, twin = unique_rows(rows)
        spots = _Spots.of(twin[row], place, len(distinct))

        def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> None:
            chosen, places = spots.within(batch, ids.shape[1])
            asked, local = spots.questions(chosen)
            logits = self.network.logits(ids, attention, torch.from_numpy(places).to(ids.device))
            use(logits, asked, local)

        forward_in_batches(
            distinct,
            run,
            pad=self.network.pad,
            budget=self.budget,
            device=self.network.device,
        )


@dataclass(frozen=True, eq=False)
class _Spots:
    """The distinct (row, place)s that questions are about, and which questions each answers.

    Spots are sorted by row: those of row r are numbered from `start[r]` to below `start[r + 1]`.
    Questions are sorted by spot: those of spot s are `question[first[s] : first[s + 1]]`.
    """

    place: IntArray
    start: IntArray
    question: IntArray
    first: IntArray

    @classmethod
    def of(cls, row: IntArray, place: IntArray, n_rows: int) -> _Spots:
        width = int(place.max(initial=0)) + 1
        keys, spot = np.unique(row * width + place, return_inverse=True)
        spot = spot.reshape(-1)
        rows, places = np.divmod(keys, width)
        return cls(
            place=places,
            start=np.searchsorted(rows, np.arange(n_rows + 1)),
            question=np.argsort(spot, kind="stable"),
            first=np.searchsorted(np.sort(spot), np.arange(len(keys) + 1)),
        )

    def within(self, rows: IntArray, length: int) -> tuple[IntArray, IntArray]:
        """The spots of a batch of rows, (k,), and where they lie in the flattened batch, (k,)."""
        chosen, local = _ranges(self.start[rows], self.start[rows + 1])
        return chosen, local * length + self.place[chosen]

    def questions(self, spots: IntArray) -> tuple[IntArray, IntArray]:
        """The questions about some spots, (q,), and which of these spots each is about, (q,)."""
        sorted_questions, local = _ranges(self.first[spots], self.first[spots + 1])
        return self.question[sorted_questions], local


def _ranges(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of several ranges one after the other, and the range that each is from."""
    lengths = stops - starts
    which = np.repeat(np.arange(len(starts)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(which)) - before[which] + starts[which], which
