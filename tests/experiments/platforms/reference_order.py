"""The rule for order and sides of trials in Python, written from its description."""

from collections.abc import Callable
from typing import Any

_MASK = 0xFFFFFFFF


def mulberry32(seed: int) -> Callable[[], int]:
    """Return a generator of 32-bit numbers, after Tommy Ettinger."""
    state = seed & _MASK

    def draw() -> int:
        nonlocal state
        state = (state + 0x6D2B79F5) & _MASK
        z = ((state ^ (state >> 15)) * (state | 1)) & _MASK
        z ^= (z + ((z ^ (z >> 7)) * (z | 61))) & _MASK
        return z ^ (z >> 14)

    return draw


def presentation(trials: list[dict[str, Any]], seed: int) -> list[tuple[str, int]]:
    """Return each trial_id in order of presentation, with the sentence on the left (1 or 2)."""
    draw = mulberry32(seed)

    def draw_below(n: int) -> int:
        return draw() * n >> 32

    def shuffle(items: list[Any]) -> list[Any]:
        for last in range(len(items) - 1, 0, -1):
            i = draw_below(last + 1)
            items[last], items[i] = items[i], items[last]
        return items

    by_name = sorted(trials, key=lambda trial: trial["trial_id"])
    left: dict[str, int] = {}
    for stratum in sorted({trial["stratum"] for trial in trials}):
        members = [t["trial_id"] for t in by_name if t["stratum"] == stratum]
        start = draw_below(2)
        sides = shuffle([(i + start) % 2 + 1 for i in range(len(members))])
        left.update(zip(members, sides, strict=True))
    return [(trial["trial_id"], left[trial["trial_id"]]) for trial in shuffle(by_name)]
