"""Cost of computing: every sequence that passed through a network, counted where it happens.

So are the seconds that networks took. They are no part of a `Cost`, which is the same in every run.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Cost:
    """Work done by a network; models without one, such as n-gram models, cost nothing.

    Attributes:
        rows: sequences passed through the network.
        tokens: tokens in them, without padding and without what was read before and remembered.
        calls: batches.
    """

    rows: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rows + other.rows, self.tokens + other.tokens, self.calls + other.calls)


class Tally:
    """A running total of costs.

    Attributes:
        total: what networks computed.
        seconds: how long they took, from their inputs to log-probabilities, or a server from the
            first request to the last answer; of a batch that several searches share, each one's
            share.
        others_seconds: how long other searches of this process ran meanwhile; see `merging`.
    """

    def __init__(self) -> None:
        self.total = Cost()
        self.seconds = 0.0
        self.others_seconds = 0.0

    def add(self, cost: Cost) -> None:
        """Count what networks compute."""
        self.total += cost


class ReportingTally(Tally):
    """A tally that reports every batch, such as to a progress bar.

    Args:
        report: called after each batch.
    """

    def __init__(self, report: Callable[[], None]) -> None:
        super().__init__()
        self._report = report

    def add(self, cost: Cost) -> None:
        """See `Tally.add`."""
        super().add(cost)
        self._report()


# A context variable, so that jobs in several threads do not count into each other's tallies
_ACTIVE: ContextVar[tuple[Tally, ...]] = ContextVar("tallies", default=())


@contextmanager
def counting(tally: Tally) -> Iterator[Tally]:
    """Add to a tally what networks compute within a `with` statement.

    Such statements nest; a tally that is already counting counts once all the same.
    """
    active = _ACTIVE.get()
    # Once each: a part of a search may count into the tally of the whole, which is active already
    token = _ACTIVE.set(active if tally in active else (*active, tally))
    try:
        yield tally
    finally:
        _ACTIVE.reset(token)


def count(rows: int, tokens: int, calls: int = 1) -> None:
    """Report what passes through a network."""
    for tally in _ACTIVE.get():
        tally.add(Cost(rows, tokens, calls))


@contextmanager
def timed() -> Iterator[None]:
    """Report how long a network computes within a `with` statement."""
    start = perf_counter()
    try:
        yield
    finally:
        seconds = perf_counter() - start
        for tally in _ACTIVE.get():
            tally.seconds += seconds


def waited(others: float) -> None:
    """Report seconds, within a `timed` statement, in which other searches ran instead."""
    for tally in _ACTIVE.get():
        tally.seconds -= others
        tally.others_seconds += others
