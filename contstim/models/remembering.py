"""Results that are kept for later calls, by how much they hold and not by how many they are.

A cache of so many results gives up a vocabulary's tokens, which take seconds, for a few calls about
three words each.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

P = ParamSpec("P")
Result = TypeVar("Result")

WORDS = 500_000
"""How many words' results are kept of each kind: every place of two large vocabularies."""

_LEAST = 16  # what even an empty result counts for: its key takes room as well


class Remembered(Generic[P, Result]):
    """A function whose results are kept, those asked for least recently given up first.

    The result of the last call is kept whatever it weighs.

    Args:
        function: what to call, with hashable arguments; equal ones must have equal results.
        weigh: how much a result holds.
        most: how much all results that are kept may hold together.
    """

    def __init__(
        self, function: Callable[P, Result], weigh: Callable[[Result], int], most: int
    ) -> None:
        self._function, self._weigh, self._most = function, weigh, most
        self._kept: OrderedDict[Hashable, Result] = OrderedDict()
        self._weight = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """What the function returns, or has returned for equal arguments."""
        key = (args, tuple(kwargs.items()))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        result = self._kept[key] = self._function(*args, **kwargs)
        self._weight += self._weight_of(result)
        while self._weight > self._most and len(self._kept) > 1:
            _, given_up = self._kept.popitem(last=False)
            self._weight -= self._weight_of(given_up)
        return result

    def _weight_of(self, result: Result) -> int:
        return max(_LEAST, self._weigh(result))
