"""The rule for order and sides in Python, written from its description."""

from collections.abc import Callable
from typing import Any

_MASK = 0xFFFFFFFF


def mulberry32(seed: int) -> Callable[[], int]:
    """Numbers of 32 bits, after Tommy Ettinger's generator."""
    state = seed & _MASK

    def draw() -> int:
        nonlocal state
        state = (state + 0x6D2B79F5) & _MASK
        z = ((state ^ (state >> 15)) * (state | 1)) & _MASK
        z ^= (z + ((z ^ (z >> 7)) * (z | 61))) & _MASK
        return z ^ (z >> 14)

    return draw


def presentation(trials: list[dict[str, Any]], seed: int) -> list[tuple[str, int]]:
    """Identifiers in order of presentation, each with the sentence that stands left."""
    draw = mulberry32(seed)

    def below(n: int) -> int:
        return draw() * n >> 32

    def shuffled(items: list[Any]) -> list[Any]:
        for last in range(len(items) - 1, 0, -1):
            other = below(last + 1)
            items[last], items[other] = items[other], items[last]
        return items

    by_name = sorted(trials, key=lambda trial: trial["trial_id"])
    left: dict[str, int] = {}
    for stratum in sorted({trial["stratum"] for trial in trials}):
        members = [t["trial_id"] for t in by_name if t["stratum"] == stratum]
        start = below(2)
        sides = shuffled([(place + start) % 2 + 1 for place in range(len(members))])
        left.update(zip(members, sides, strict=True))
    return [(trial["trial_id"], left[trial["trial_id"]]) for trial in shuffled(by_name)]
