"""A cache of results that is bounded by their sizes, not by their number.

A cache of a fixed number of results would drop a vocabulary's tokens, which take seconds, after a
few calls about three words each.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

P = ParamSpec("P")
Result = TypeVar("Result")

WORDS = 500_000
"""Words whose results a cache holds: those of every place of two large vocabularies."""

_MIN_SIZE = 16  # of a result: the key of an empty one takes room as well


class SizedCache(Generic[P, Result]):
    """A function with a cache that drops the results used least recently.

    The result of the last call stays, whatever its size.

    Args:
        function: a function of hashable arguments; equal ones must have equal results.
        size_of: the size of a result.
        most: the size of all results together.
    """

    def __init__(
        self, function: Callable[P, Result], size_of: Callable[[Result], int], most: int
    ) -> None:
        self._function, self._size_of, self._most = function, size_of, most
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        self._size = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Result of the function, computed anew or kept from a call with equal arguments."""
        # Keywords in another order are another key: a result computed twice, never a wrong one
        key = args, tuple(kwargs.items())
        if key in self._results:
            self._results.move_to_end(key)
            return self._results[key]
        result = self._results[key] = self._function(*args, **kwargs)
        self._size += max(_MIN_SIZE, self._size_of(result))
        # From the front, where the results used least recently are
        while self._size > self._most and len(self._results) > 1:
            _, dropped = self._results.popitem(last=False)
            self._size -= max(_MIN_SIZE, self._size_of(dropped))
        return result


def as_tuple(words: Sequence[str]) -> tuple[str, ...]:
    """Words as a key of a cache; a tuple stays itself: a vocabulary's computes its hash once."""
    return words if isinstance(words, tuple) else tuple(words)
