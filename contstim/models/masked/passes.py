"""Many questions about places of many rows, answered by few passes through the network.

Questions about three rows, of which the first two are equal:

    question       0  1  2  3        asks row `row` at place `place`
    row            0  0  1  2
    place          2  3  2  1

Distinct rows: A = rows 0 and 1, B = row 2. The spots are the distinct pairs of row and place, for
which the head is computed: (A, 2), (A, 3), (B, 1). Spot 0 answers questions 0 and 2, spot 1 answers
question 1, spot 2 question 3. In the notation of `_Spots`:

    place = 2 3 1    start = 0 2 3    question = 0 2 1 3    first = 0 2 3 4
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from contstim.models.batching import forward_in_batches, to_device, unique_rows
from contstim.models.masked.network import MaskedCall
from contstim.models.merging import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from contstim.arrays import FloatArray, IntArray
    from contstim.models.batching import Budget, Row, Write
    from contstim.models.boundaries import Normaliser
    from contstim.models.masked.network import MaskedNetwork

    UseLogits: TypeAlias = Callable[[torch.Tensor, IntArray, IntArray], Write | None]


@dataclass(frozen=True)
class Passes:
    """A network, the normaliser of its outputs, and the budget of tokens in a batch."""

    network: MaskedNetwork
    normaliser: Normaliser
    budget: Budget

    def answer(
        self, rows: Sequence[Row], row: IntArray, place: IntArray, token: IntArray
    ) -> FloatArray:
        """Log p of tokens at places of rows, (n_questions,), nats.

        Equal rows pass through the network once, and the head computes each place once, whatever
        the number of questions about it.

        Args:
            rows: token ids, some of them masks.
            row: the row of each question, (n_questions,).
            place: the place in its row, (n_questions,).
            token: the token id in question, (n_questions,).
        """
        answers = np.empty(len(row))

        def use(logits: torch.Tensor, questions: IntArray, spots: IntArray) -> Write:
            log_probs = self.normaliser.log_probs(logits, spots, token[questions])
            return partial(write, questions, log_probs.double())

        def write(questions: IntArray, log_probs: torch.Tensor) -> None:
            answers[questions] = log_probs.cpu().numpy()

        self._forward(rows, row, place, use)
        return answers

    def distributions(
        self, rows: Sequence[Row], row: IntArray, place: IntArray, use: UseLogits
    ) -> None:
        """Log p of every token of the vocabulary at places of rows, batch by batch.

        Args:
            rows: see `answer`.
            row: see `answer`.
            place: see `answer`.
            use: called for each batch with log p at its spots, (n_spots, n_outputs), nats, the
                questions that they answer, (q,), and the spot of each of these questions, (q,);
                what it adds to earlier results it must add in the function that it returns, see
                `forward_in_batches`.
        """

        def normalise(logits: torch.Tensor, questions: IntArray, spots: IntArray) -> Write | None:
            return use(self.normaliser.log_softmax(logits), questions, spots)

        self._forward(rows, row, place, normalise)

    def _forward(self, rows: Sequence[Row], row: IntArray, place: IntArray, use: UseLogits) -> None:
        """Run the distinct rows in batches.

        For each batch `use` is called with the logits of its spots, (n_spots, n_outputs), the
        questions that they answer, (q,), and the spot of each of these questions, (q,).
        """
        distinct, twin = unique_rows(rows)
        spots = _Spots.of(twin[row], place, len(distinct))

        def run(ids: torch.Tensor, attention: torch.Tensor, batch: IntArray) -> Write | None:
            of_batch, places = spots.within(batch, ids.shape[1])
            questions, local_spots = spots.questions(of_batch)
            whole = all(len(distinct[row]) == ids.shape[1] for row in batch)  # nothing is padded
            call = MaskedCall(
                self.network,
                ids,
                None if whole else attention,
                to_device(places, ids.device),
                self.budget,
            )
            logits: torch.Tensor = answer(call)
            return use(logits, questions, local_spots)

        forward_in_batches(
            distinct,
            run,
            pad=self.network.pad,
            budget=self.budget,
            device=self.network.device,
        )


@dataclass(frozen=True, eq=False)
class _Spots:
    """The distinct pairs of row and place in question, and the questions that each answers.

    Spots are sorted by row: those of row r are numbered from `start[r]` to below `start[r + 1]`.
    Questions are sorted by spot: those of spot s are `question[first[s] : first[s + 1]]`.
    """

    place: IntArray
    start: IntArray
    question: IntArray
    first: IntArray

    @classmethod
    def of(cls, row: IntArray, place: IntArray, n_rows: int) -> _Spots:
        # one number for each pair of row and place, so that sorted numbers are sorted by row
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
        """The spots of a batch of rows, (k,), and their indices in the flattened batch, (k,)."""
        spots, row_of_batch = _ranges(self.start[rows], self.start[rows + 1])
        return spots, row_of_batch * length + self.place[spots]

    def questions(self, spots: IntArray) -> tuple[IntArray, IntArray]:
        """The questions about some spots, (q,), and the index in `spots` for each, (q,)."""
        sorted_questions, index = _ranges(self.first[spots], self.first[spots + 1])
        return self.question[sorted_questions], index


def _ranges(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of several ranges one after the other, and the index of each number's range.

    Ranges 5 to 6 and 2 to 4 give 5, 2, 3 and 0, 1, 1.
    """
    lengths = stops - starts
    which = np.repeat(np.arange(len(starts)), lengths)
    before = np.cumsum(lengths) - lengths  # how many numbers stand before each range
    return np.arange(len(which)) - before[which] + starts[which], which
