"""Calls of a network by several searches, answered in common batches.

On a GPU a small batch takes as long as a larger one. So searches that run beside each other in one
process each wait where they need a network, until what all of them need is computed at once.

    search 0    Python  call .                 Python  call .
    search 1                   Python  call .                 Python  call .
    networks                                 batch                         batch

A call is a `NetworkCall`. Where a network is needed and the code runs under a `runner` and within
`merged`, `answer` leaves one to the runner; elsewhere it is computed at once. Only searches are
within `merged`: what is stored and compared, such as the score of a sentence by itself, is computed
`alone`, so that it does not depend on who runs beside. So is what another search would wait for
while this one waits, such as a property that holds a lock.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.models.costs import waited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import torch
    from torch import Tensor

    from contstim.models.batching import Budget


@dataclass(frozen=True, eq=False)
class NetworkCall:
    """A batch of rows for a network; calls of one network can be merged.

    Attributes:
        network: the network.
        budget: how many tokens pass through it at once, in merged batches too, and where.
        ids: (b, l)
        attention: (b, l), or None where nothing is padded, which the library would else find out by
            a question to the device, for whose answer the host waits.
        compute: computes this call by itself.
        compute_together: computes several calls of the network in one batch; the result of each is
            that of `compute`, up to rounding.
        about: what else this function needs.
        before: tokens that a merged batch reads before each row.
    """

    network: torch.nn.Module
    budget: Budget
    ids: Tensor
    attention: Tensor | None
    compute: Callable[[], Any]
    compute_together: Callable[[Sequence[Any]], list[Any]]
    about: Any = None
    before: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and the most tokens that each of them has in a merged batch."""
        return self.ids.shape[0], len(self.before) + self.ids.shape[1]


Answer: TypeAlias = "tuple[Any, Exception | None, float]"
"""The result of a call, None where it failed; why it failed; its share of the seconds of the batch,
by rows."""


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


def is_merged() -> bool:
    """True if a runner answers calls, in batches with those of others."""
    return _MERGED.get() and _RUNNER.get() is not None


def answer(call: NetworkCall) -> Any:
    """The result of a call in a batch with others; asked only where `is_merged`.

    Raises:
        Exception: whatever the network raises.
    """
    run = _RUNNER.get()
    assert run is not None
    start = perf_counter()
    value, error, seconds = run(call)
    # The clock went on while others ran, whose work is not this one's
    waited(perf_counter() - start - seconds)
    if error is not None:
        raise error
    return value


def stacked(calls: Sequence[NetworkCall], *, fill: int = 0) -> tuple[Tensor, Tensor | None]:
    """Rows of several calls in one batch, each after the tokens before it, padded on the right.

    Returns:
        The rows, and their attention mask, None where nothing is padded.
    """
    import torch
    from torch.nn.functional import pad

    from contstim.models.batching import to_device

    longest = max(call.shape[1] for call in calls)
    rows, masks = [], []
    for call in calls:
        before = to_device(np.array(call.before, np.int64), call.ids.device)
        before = before.expand(len(call.ids), -1)
        own = torch.ones_like(call.ids) if call.attention is None else call.attention
        gap = (0, longest - call.shape[1])
        rows.append(pad(torch.cat([before, call.ids], dim=1), gap, value=fill))
        masks.append(pad(torch.cat([torch.ones_like(before), own], dim=1), gap))
    whole = all(call.attention is None and call.shape[1] == longest for call in calls)
    return torch.cat(rows), None if whole else torch.cat(masks)


def compute_all(calls: Sequence[NetworkCall]) -> list[Answer]:
    """Answer calls of one network, in as few batches as its budget allows.

    A batch that fails is computed again in halves, until each call has its own result or error;
    where memory runs out, the budget is lowered as `forward_in_batches` does.
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
    """Answer calls of one network."""
    from contstim.models.batching import computing, out_of_memory

    first, n_rows = calls[0], sum(len(call.ids) for call in calls)
    start = perf_counter()
    try:
        with computing():
            one = len(calls) == 1
            values = [first.compute()] if one else first.compute_together(calls)
        seconds = (perf_counter() - start) / n_rows
        return [(value, None, seconds * len(c.ids)) for c, value in zip(calls, values, strict=True)]
    except Exception as error:
        if len(calls) == 1:
            return [(None, error, perf_counter() - start)]
        no_memory = out_of_memory(error)
    # Outside the handler: within it the error would still hold the tensors of the failed pass
    if no_memory:
        first.budget.lower(n_rows, max(call.shape[1] for call in calls))
    half = len(calls) // 2
    return [*_compute(calls[:half]), *_compute(calls[half:])]
