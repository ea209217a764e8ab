"""A cache with a limit on the total size of its results, not on their number.

With a limit on the number of results, a few small results, for three words each, could displace the
large result for a whole vocabulary. The large result takes seconds to compute.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

P = ParamSpec("P")
Result = TypeVar("Result")

WORDS = 500_000
"""Maximum number of cached words.

The tokens of a word depend on the kind of its position, such as the beginning of a sentence. A word
that is cached for k kinds of positions counts k times.
"""

_MIN_SIZE = 16  # smaller results count as this size, because their keys also take memory


class SizedCache(Generic[P, Result]):
    """Function with a cache that drops the least recently used results.

    `function` must have hashable arguments, and give equal results for equal arguments. The result
    of the last call is always cached, even if it exceeds the limit.
    """

    def __init__(
        self, function: Callable[P, Result], size_of: Callable[[Result], int], max_size: int
    ) -> None:
        self._function, self._size_of, self._max_size = function, size_of, max_size
        self._results: OrderedDict[Hashable, Result] = OrderedDict()
        self._size = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Return the result for these arguments, from the cache if possible."""
        key = args, tuple(kwargs.items())
        if key in self._results:
            self._results.move_to_end(key)
            return self._results[key]
        result = self._results[key] = self._function(*args, **kwargs)
        self._size += max(_MIN_SIZE, self._size_of(result))
        while self._size > self._max_size and len(self._results) > 1:
            _, dropped = self._results.popitem(last=False)
            self._size -= max(_MIN_SIZE, self._size_of(dropped))
        return result


def as_tuple(words: Sequence[str]) -> tuple[str, ...]:
    """Return words as a tuple; a tuple, such as `WordTuple`, is returned unchanged."""
    return words if isinstance(words, tuple) else tuple(words)
