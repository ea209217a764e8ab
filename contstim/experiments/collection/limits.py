"""Request rate limits, and a log that nobody can fill because the same limits hold for it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from contstim.experiments.collection.requests import RequestRefusal

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_CALLERS = 50_000  # whoever was quiet longest is forgotten
_LOGGERS = ("uvicorn", "asyncio", "contstim")
_LONGEST_MESSAGE = 2_000  # characters, with what led to it


@dataclass(frozen=True)
class Rate:
    """So many requests at once, and so many a second in the long run."""

    burst: float
    per_second: float


@dataclass(frozen=True)
class RequestLimits:
    """Limits on how large and how frequent requests may be.

    Attributes:
        body: bytes of a request.
        body_seconds: how long a request's body may take to arrive.
        joining: new participants from one address; a lab may share one.
        asking: requests of one participant.
        failing: requests of one address with a wrong secret or token.
    """

    body: int = 256 * 1024
    body_seconds: float = 30.0
    joining: Rate = Rate(300, 10)
    asking: Rate = Rate(60, 10)
    failing: Rate = Rate(30, 0.5)


@dataclass
class Throttle:
    """A bucket of tokens for each caller: a request takes one, and they come back with time."""

    rate: Rate
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, caller: str, now: float) -> None:
        """Let one request through.

        Raises:
            RequestRefusal: the caller has asked too often.
        """
        left, then = self._buckets.pop(caller, (self.rate.burst, now))
        # what came back meanwhile, up to a full bucket; clocks may be set back
        left = min(self.rate.burst, left + max(0.0, now - then) * self.rate.per_second)
        self._buckets[caller] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / self.rate.per_second
            raise RequestRefusal(429, "Too many requests; try again in a moment.", wait=wait)


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes messages, each source's (logger's) at a limited rate, and counts those left out."""

    def __init__(self, rate: Rate = Rate(burst=20, per_second=0.1)) -> None:
        super().__init__()
        self._throttle = Throttle(rate)
        self._left_out: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or count it."""
        try:
            self._throttle.take(record.name, record.created)
        except RequestRefusal:
            self._left_out[record.name] = self._left_out.get(record.name, 0) + 1
            return
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The message, cut to a length, and how many before it were left out."""
        text = super().format(record)[:_LONGEST_MESSAGE]
        more = self._left_out.pop(record.name, 0)
        return f"{text} ({more:,} messages before this one were left out)" if more else text


@contextmanager
def sparing_log() -> Iterator[None]:
    """Let a server's messages go to standard error at a limited rate, and nowhere else."""
    handler = SparingHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
