"""Cost of computation: number of sequences that passed through networks, and computing time.

A `Cost` contains no time, so that repeated runs have equal costs.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Cost:
    """Work of a network; models without a network, such as n-gram models, have no cost.

    Attributes:
        rows: number of sequences passed through the network.
        tokens: number of tokens of these sequences, not counting padding and cached prefixes.
        calls: number of batches.
    """

    rows: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, addend: Cost) -> Cost:
        return Cost(self.rows + addend.rows, self.tokens + addend.tokens, self.calls + addend.calls)


@dataclass(eq=False)
class Tally:
    """Running total of costs.

    Attributes:
        report: function that is called after each batch.
        total: total cost of networks.
        seconds: computing time of networks; for a server, the time until the server has answered.
            If several searches share a batch, the time of the batch is divided among the searches.
        others_seconds: seconds for which the search of this tally waited for other searches; see
            `merging`.
    """

    report: Callable[[], object] = lambda: None
    total: Cost = Cost()
    seconds: float = 0.0
    others_seconds: float = 0.0


# Active tallies: the tallies of all `counting` statements around the current code. Each thread has
# separate tallies, because this is a context variable
_ACTIVE: ContextVar[tuple[Tally, ...]] = ContextVar("tallies", default=())


@contextmanager
def within(variable: ContextVar[Any], value: object) -> Iterator[None]:
    """Set a context variable within a `with` statement, and restore its value afterwards."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def counting(tally: Tally) -> Iterator[Tally]:
    """Within a `with` statement, add the costs of networks to a tally.

    If nested `with` statements use the same tally, the tally counts each cost once.
    """
    active = _ACTIVE.get()
    with within(_ACTIVE, active if tally in active else (*active, tally)):
        yield tally


def count(rows: int, tokens: int, calls: int = 1) -> None:
    """Add the cost of one or more batches to the active tallies, and call `Tally.report`."""
    for tally in _ACTIVE.get():
        tally.total += Cost(rows, tokens, calls)
        tally.report()


@contextmanager
def timed() -> Iterator[None]:
    """Add the time that a `with` statement takes to `Tally.seconds` of the active tallies."""
    start = perf_counter()
    try:
        yield
    finally:
        seconds = perf_counter() - start
        for tally in _ACTIVE.get():
            tally.seconds += seconds


def report_waiting(seconds: float) -> None:
    """Count seconds of waiting as `Tally.others_seconds`, and subtract them from `Tally.seconds`.

    `timed` adds the whole duration of a call to `Tally.seconds`, including the time of waiting.
    """
    for tally in _ACTIVE.get():
        tally.seconds -= seconds
        tally.others_seconds += seconds
