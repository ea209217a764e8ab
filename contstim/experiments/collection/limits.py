"""How often somebody may ask, how much a request may hold, and what connections may take."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from contstim.experiments.collection.messages import Refusal

_MOST_CALLERS = 50_000  # whoever was quiet longest is forgotten


@dataclass(frozen=True)
class Rate:
    """So many requests at once, and so many a second in the long run."""

    burst: float
    per_second: float


@dataclass
class Throttle:
    """A bucket of tokens for each caller: a request takes one, and they come back with time."""

    rate: Rate
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, caller: str, now: float) -> None:
        """Let one request through.

        Raises:
            Refusal: the caller has asked too often.
        """
        left, then = self._buckets.pop(caller, (self.rate.burst, now))
        left = min(self.rate.burst, left + max(0.0, now - then) * self.rate.per_second)
        self._buckets[caller] = (max(0.0, left - 1) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            wait = (1 - left) / self.rate.per_second
            raise Refusal(429, "Too many requests; try again in a moment.", wait=wait)


@dataclass(frozen=True)
class Limits:
    """What one caller may ask for.

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


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take.

    Attributes:
        most: connections at once.
        headers: seconds from opening a connection, or from the first byte of a further request, to
            the end of its headers.
        idle: seconds between an answer and the next request; longer than most people look at a
            pair of sentences.
        request: seconds that a request and its answer may take.
    """

    most: int
    headers: float = 20.0
    idle: float = 75.0
    request: float = 300.0
