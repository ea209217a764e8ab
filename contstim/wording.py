"""Numbers as messages, pages and tables write them, and names that messages complain of."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_Value = TypeVar("_Value")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and what is counted: `1 group`, `1,200 groups`, `2 matrices`.

    Args:
        number: how many.
        noun: the singular, with whatever stands before it ("natural pair").
        plural: by default the singular and an s.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """A text with its control characters escaped, but for line ends and tabs.

    What a user's file holds must not move the cursor, change colours or turn the direction of a
    terminal.
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def p_text(p_value: float) -> str:
    """A p-value to three decimals, without the zero before the point: `.048`, `< .001`.

    A dash where there is none.
    """
    if not math.isfinite(p_value):
        return "–"
    return "< .001" if p_value < 0.001 else f"{p_value:.3f}".removeprefix("0")


def duration_range(shortest: float, longest: float) -> str:
    """A time between two, such as `8 to 30 min`, or a single one where they are much the same."""
    if longest <= 1.5 * shortest or longest < 10:
        return f"about {duration((shortest * longest) ** 0.5 if shortest else longest)}"
    low, high = duration(shortest), duration(longest)
    unit = high.partition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def duration(seconds: float) -> str:
    """Time as one says it, such as `0.4 s`, `40 s` or `3.5 h`."""
    for least, size, unit in ((172_800, 86_400, "days"), (5_400, 3_600, "h"), (99.5, 60, "min")):
        if seconds >= least:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def repeated(values: Iterable[_Value]) -> list[_Value]:
    """Values that are given more than once, in the order in which they are first given."""
    return [value for value, times in Counter(values).items() if times > 1]
