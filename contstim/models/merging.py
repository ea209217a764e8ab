"""Calls of a network by several searches, answered in common batches.

On a GPU a small batch takes as long as a larger one. So searches that run beside each other in one
process each wait where they need a network, until what all of them need is computed at once.

    search 0    Python  call .                 Python  call .
    search 1                   Python  call .                 Python  call .
    networks                                 batch                         batch

A call is a `NetworkCall`. `answer` is given one where a network is needed: it computes the call at
once, unless the code runs under a `runner` and within `merged`, which leave it to the runner. Only
searches are within `merged`: what is stored and compared, such as the score of a sentence by
itself, is computed `alone`, so that it does not depend on who runs beside. So is what another
search would wait for while this one waits, such as a property that holds a lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.models.costs import waited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import torch
    from torch import Tensor

    from contstim.models.batching import Budget


@dataclass(frozen=True, eq=False)
class NetworkCall(ABC):
    """A batch of rows for a network; calls of one kind and one network can be merged.

    Attributes:
        network: the network.
        budget: how many tokens pass through it at once, in merged batches too, and where.
        ids: (b, l)
        attention: (b, l), or None where nothing is padded, which the library would else find out by
            a question to the device, for whose answer the host waits.
    """

    network: torch.nn.Module
    budget: Budget
    ids: Tensor
    attention: Tensor | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and the most tokens that each of them has in a merged batch."""
        return self.ids.shape[0], self.ids.shape[1]

    @property
    def mask(self) -> Tensor:
        """The attention mask, (b, l), also where nothing is padded."""
        if self.attention is None:
            import torch

            return torch.ones_like(self.ids)
        return self.attention

    @property
    def merges(self) -> bool:
        """True if the call may be merged with others."""
        return True

    @abstractmethod
    def compute(self) -> Any:
        """Compute this call by itself."""

    @classmethod
    @abstractmethod
    def compute_together(cls, calls: Sequence[Any]) -> list[Any]:
        """Compute several calls of this kind and one network in one batch.

        The result of each is that of `compute`, up to rounding.
        """


@dataclass(frozen=True)
class Answer:
    """Outcome of a call.

    Attributes:
        value: its result; None where it failed.
        error: why it failed.
        seconds: its share of the time of the batch, by rows.
    """

    value: Any
    error: Exception | None
    seconds: float


_RUNNER: ContextVar[Callable[[NetworkCall], Answer] | None] = ContextVar("runner", default=None)
_MERGED: ContextVar[bool] = ContextVar("merged", default=False)


def runner(run: Callable[[NetworkCall], Answer]) -> AbstractContextManager[None]:
    """Within a `with` statement, this function answers the calls that are made within `merged`."""
    return _within(_RUNNER, run)


def merged() -> AbstractContextManager[None]:
    """Within a `with` statement, network calls may be answered in batches with those of others."""
    return _within(_MERGED, True)


def alone() -> AbstractContextManager[None]:
    """Within a `with` statement, network calls are computed at once and by themselves."""
    return _within(_MERGED, False)


@contextmanager
def _within(variable: ContextVar[Any], value: object) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def answer(call: NetworkCall) -> Any:
    """The result of a call, computed at once or in a batch with others.

    Raises:
        Exception: whatever the network raises.
    """
    run = _RUNNER.get() if _MERGED.get() else None
    if run is None or not call.merges:
        return call.compute()
    start = perf_counter()
    answered = run(call)
    # The clock went on while others ran, whose work is not this one's
    waited(perf_counter() - start - answered.seconds)
    if answered.error is not None:
        raise answered.error
    return answered.value


def stacked(
    calls: Sequence[NetworkCall], ids: Sequence[Tensor], masks: Sequence[Tensor], *, fill: int = 0
) -> tuple[Tensor, Tensor | None]:
    """Rows of several calls in one batch, padded on the right; no mask where nothing is padded.

    Args:
        calls: the calls.
        ids: the rows of each, as long as its shape says.
        masks: their attention masks.
        fill: token id to pad with.
    """
    import torch
    from torch.nn.functional import pad

    longest = max(call.shape[1] for call in calls)
    missing = [(0, longest - call.shape[1]) for call in calls]
    rows = torch.cat([pad(each, gap, value=fill) for each, gap in zip(ids, missing, strict=True)])
    if not any(gap for _, gap in missing) and all(call.attention is None for call in calls):
        return rows, None
    return rows, torch.cat([pad(each, gap) for each, gap in zip(masks, missing, strict=True)])


def compute_all(calls: Sequence[NetworkCall]) -> list[Answer]:
    """Answer calls of one kind and network, in as few batches as its budget allows.

    A batch that fails is computed again, call by call, so that each has its own result or error;
    where memory runs out, in halves, and the budget is lowered as `forward_in_batches` does.
    """
    answers: dict[int, Answer] = {}
    # Rows of a batch are padded to the longest, so that calls of like lengths go together
    waiting = sorted(range(len(calls)), key=lambda number: -calls[number].shape[1])
    while waiting:
        length, most = calls[waiting[0]].shape[1], calls[waiting[0]].budget.tokens
        sizes = np.cumsum([calls[number].shape[0] for number in waiting]) * length
        size = max(1, int((sizes <= most).sum()))
        batch, waiting = waiting[:size], waiting[size:]
        results = _compute([calls[number] for number in batch])
        answers.update(zip(batch, results, strict=True))
    return [answers[number] for number in range(len(calls))]


def _compute(calls: Sequence[NetworkCall]) -> list[Answer]:
    """Answer calls of one kind and network."""
    import torch

    from contstim.models.batching import computing, out_of_memory

    failure: Exception | None = None
    start = perf_counter()
    try:
        with computing():
            one = len(calls) == 1
            values = [calls[0].compute()] if one else calls[0].compute_together(calls)
    except Exception as error:
        failure = error
    seconds = perf_counter() - start
    n_rows = sum(call.shape[0] for call in calls)
    shares = [seconds * call.shape[0] / n_rows for call in calls]
    if failure is None:
        return [Answer(value, None, share) for value, share in zip(values, shares, strict=True)]
    if len(calls) == 1:
        return [Answer(None, failure, seconds)]
    if not out_of_memory(failure):
        return [answered for call in calls for answered in _compute([call])]
    del failure  # whose trace holds the tensors of the failed pass
    if torch.device(calls[0].budget.device).type == "cuda":
        torch.cuda.empty_cache()
    calls[0].budget.lower(n_rows, max(call.shape[1] for call in calls))
    half = len(calls) // 2
    return [*_compute(calls[:half]), *_compute(calls[half:])]
