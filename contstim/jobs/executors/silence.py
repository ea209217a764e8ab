"""Workers that have given no sign of life for too long."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PULSE = 1.0
"""Seconds between two beats of a worker, and between two looks at them."""


class SilenceWatch:
    """Counts the seconds for which each worker's sign of life has stayed the same.

    Only time in which the driver looks counts: where it is stopped with Ctrl-Z, sleeps with its
    machine, or has other work, two looks are far apart, and no worker is to blame.

    Args:
        limit: seconds of silence after which a worker is taken to hang.
        clock: tells the time in seconds.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._looked = clock()
        self._signs: dict[int, object] = {}
        self._quiet: dict[int, float] = {}

    @property
    def due(self) -> bool:
        """True if the last look is long enough ago for another."""
        return self._clock() - self._looked >= PULSE

    def look(self, signs: Mapping[int, object]) -> list[int]:
        """The workers that have been silent for too long.

        Args:
            signs: what changes while a worker lives, by its number; workers that are not there have
                not begun to be watched, or are gone.
        """
        now = self._clock()
        elapsed, self._looked = min(now - self._looked, 2 * PULSE), now
        self._quiet = {
            worker: self._quiet.get(worker, 0.0) + elapsed if self._signs.get(worker) == sign else 0
            for worker, sign in signs.items()
        }
        self._signs = dict(signs)
        return [worker for worker, seconds in self._quiet.items() if seconds > self.limit]
