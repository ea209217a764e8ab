"""Batches of network calls from several searches.

On a GPU, a small batch takes as long as a larger one. So when several searches run in one process,
each search waits at its next network call. One batch then computes the calls of all searches. In
this diagram, time runs from left to right, and a search waits from `.` until the end of the batch:

    search 0    Python  call .                 Python  call .
    search 1                   Python  call .                 Python  call .
    networks                                 batch                         batch

A `NetworkCall` is merged with other calls only inside two `with` statements, `runner` and `merged`.
Otherwise it is computed immediately. Only searches use `merged`.

A third `with` statement, `alone`, prevents merging. Stored scores are computed within `alone`,
because these scores must not depend on other searches. Code that holds a lock needs `alone` as
well. Other searches may wait for this lock and then never reach their next network call. A merged
batch, which waits for these calls, would never start.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.models.costs import report_waiting, within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    import torch
    from torch import Tensor

    from contstim.models.batching import Budget


@dataclass(frozen=True, eq=False)
class NetworkCall:
    """Batch of rows for a network; calls of one network can be merged.

    Attributes:
        budget: device, and maximum number of tokens of a batch, merged or not.
        ids: token ids, (b, l).
        attention: attention mask, (b, l); None if there is no padding. A mask would cost time:
            `transformers` checks the mask on the device, and the processor has to wait.
        compute: function that computes this call alone.
        compute_together: function that computes several calls of the network in one batch; each
            result equals that of `compute`, up to rounding.
        about: any other data of the call, for `compute_together`.
        prefix_ids: ids of the tokens that precede each row and are not in `ids`. `compute` can
            take them from a cache; a merged batch reads them.
    """

    network: torch.nn.Module
    budget: Budget
    ids: Tensor
    attention: Tensor | None
    compute: Callable[[], Any]
    compute_together: Callable[[Sequence[Any]], list[Any]]
    about: Any = None
    prefix_ids: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and maximum length of a row with its prefix, in tokens."""
        return self.ids.shape[0], len(self.prefix_ids) + self.ids.shape[1]


Answer: TypeAlias = "tuple[Any, Exception | None, float]"
"""Result of a call (None if it failed), its error (or None), and its part of the batch's seconds.
This part is proportional to the call's number of rows."""


_RUNNER: ContextVar[Callable[[NetworkCall], Answer] | None] = ContextVar("runner", default=None)
_MERGED: ContextVar[bool] = ContextVar("merged", default=False)


def runner(run: Callable[[NetworkCall], Answer]) -> AbstractContextManager[None]:
    """Within a `with` statement, run merged calls with the function `run`."""
    return within(_RUNNER, run)


def merged() -> AbstractContextManager[None]:
    """Within a `with` statement, merge network calls with the calls of other searches."""
    return within(_MERGED, True)


def alone() -> AbstractContextManager[None]:
    """Within a `with` statement, compute each network call immediately and by itself."""
    return within(_MERGED, False)


def is_merged() -> bool:
    """Return True if calls are passed to a runner, which merges them."""
    return _MERGED.get() and _RUNNER.get() is not None


def answer(call: NetworkCall) -> Any:
    """Return the result of a call from a merged batch; `is_merged` must be true.

    Raises:
        Exception: the network's error, unchanged.
    """
    run = _RUNNER.get()
    assert run is not None
    start = perf_counter()
    value, error, seconds = run(call)
    report_waiting(perf_counter() - start - seconds)
    if error is not None:
        raise error
    return value


def stack_calls(calls: Sequence[NetworkCall], *, fill: int = 0) -> tuple[Tensor, Tensor | None]:
    """Combine the rows of several calls.

    Each row begins with the prefix of its call, and is padded on the right.

    Returns:
        Token ids and attention mask, (b, l) each; the mask is None if there is no padding.
    """
    import torch
    from torch.nn.functional import pad

    from contstim.models.batching import to_device

    longest = max(call.shape[1] for call in calls)
    rows, masks = [], []
    for call in calls:
        prefix = to_device(np.array(call.prefix_ids, np.int64), call.ids.device)
        prefix = prefix.expand(len(call.ids), -1)
        attention = torch.ones_like(call.ids) if call.attention is None else call.attention
        gap = (0, longest - call.shape[1])
        rows.append(pad(torch.cat([prefix, call.ids], dim=1), gap, value=fill))
        masks.append(pad(torch.cat([torch.ones_like(prefix), attention], dim=1), gap))
    is_unpadded = all(call.attention is None and call.shape[1] == longest for call in calls)
    return torch.cat(rows), None if is_unpadded else torch.cat(masks)


def compute_all(calls: Sequence[NetworkCall]) -> list[Answer]:
    """Compute calls of one network in as few batches as the budget allows.

    A failed batch is retried in halves until each call has a result or an error. When memory runs
    out, the budget is lowered as in `forward_in_batches`.
    """
    answers: dict[int, Answer] = {}
    # Sort by length, since all rows of a batch are padded to the longest one
    waiting = sorted(range(len(calls)), key=lambda index: -calls[index].shape[1])
    while waiting:
        length, budget = calls[waiting[0]].shape[1], calls[waiting[0]].budget.tokens
        sizes = np.cumsum([calls[index].shape[0] for index in waiting]) * length
        size = max(1, int((sizes <= budget).sum()))
        batch, waiting = waiting[:size], waiting[size:]
        answers.update(zip(batch, _compute([calls[index] for index in batch]), strict=True))
    return [answers[index] for index in range(len(calls))]


def _compute(calls: Sequence[NetworkCall]) -> list[Answer]:
    """Compute calls of one network in one batch, or in halves if this batch fails."""
    from contstim.models.batching import computing, out_of_memory

    first, n_rows = calls[0], sum(len(call.ids) for call in calls)
    start = perf_counter()
    try:
        with computing():
            values = [first.compute()] if len(calls) == 1 else first.compute_together(calls)
        seconds = (perf_counter() - start) / n_rows
        return [(value, None, seconds * len(c.ids)) for c, value in zip(calls, values, strict=True)]
    except Exception as error:
        if len(calls) == 1:
            return [(None, error, perf_counter() - start)]
        no_memory = out_of_memory(error)
    # Retry outside the handler. Inside, the error keeps the failed pass's tensors in memory
    if no_memory:
        first.budget.lower(n_rows, max(call.shape[1] for call in calls))
    half = len(calls) // 2
    return [*_compute(calls[:half]), *_compute(calls[half:])]
