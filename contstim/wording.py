"""Format numbers and texts for messages, pages and tables; find duplicates; group values."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def quantity(number: int, noun: str, plural: str = "") -> str:
    """Format a number with a noun: `1 group`, `1,200 groups`, `2 matrices`.

    By default, the plural is the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """Escape the control characters of a text, except line ends and tabs.

    Unescaped characters could move the cursor of a terminal, or change its colours or the direction
    of text.
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def p_text(p_value: float) -> str:
    """Format a p-value with three decimals and no zero before the point: `.048`, `< .001`.

    A value that is not finite becomes a dash.
    """
    if not math.isfinite(p_value):
        return "–"
    return "< .001" if p_value < 0.001 else f"{p_value:.3f}".removeprefix("0")


def duration_range(shortest: float, longest: float) -> str:
    """Format two durations (seconds) as `8 to 30 min`, or as `about 15 min`.

    The second form is for similar durations, and for durations below 10 seconds.
    """
    if longest <= 1.5 * shortest or longest < 10:
        return f"about {duration((shortest * longest) ** 0.5 if shortest else longest)}"
    low, high = duration(shortest), duration(longest)
    unit = high.partition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def duration(seconds: float) -> str:
    """Format a duration, such as `0.4 s`, `40 s` or `3.5 h`."""
    for least, size, unit in ((172_800, 86_400, "days"), (5_400, 3_600, "h"), (99.5, 60, "min")):
        if seconds >= least:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def find_duplicates(values: Iterable[_Value]) -> list[_Value]:
    """Return values that occur more than once, in order of their first occurrence."""
    return [value for value, times in Counter(values).items() if times > 1]


def grouped(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Group the second values of pairs by their first values, in order of first occurrence."""
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
