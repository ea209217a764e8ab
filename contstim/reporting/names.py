"""Short names of models for figures, without common folders."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST = 28
"""Maximum number of characters of a short name."""


def names_for_tables(models: Sequence[str]) -> dict[str, str]:
    """Return the name of each model in tables; all are shortened if any name is long."""
    # All or none are shortened, so that differences remain visible
    is_short = all(len(name) <= LONGEST for name in models)
    return dict(zip(models, models if is_short else short_names(models), strict=True))


def short_names(models: Sequence[str]) -> list[str]:
    """Return the last part of each path with rule and transform, with folders if needed.

    `hf:runs/a/bert@chain` and `hf:runs/gpt2` become `bert@chain` and `gpt2`. Names that are still
    longer than 28 characters are cut by `shortened`.
    """
    names = [_tail(model, 1) for model in models]
    depth, deepest = 1, max((model.count("/") for model in models), default=0)
    # Add one folder in every round to names that several models share
    while len(set(names)) < len(set(models)) and depth < deepest:
        depth += 1
        counts = Counter(names)
        names = [
            _tail(m, depth) if counts[n] > 1 else n for m, n in zip(models, names, strict=True)
        ]
    return shortened(names if len(set(names)) == len(set(models)) else models)


def shortened(names: Sequence[str]) -> list[str]:
    """Cut names of more than 28 characters to their ends, numbered if several are equal.

    Different names stay different; equal names stay equal.
    """
    short = {name: name for name in names if len(name) <= LONGEST}
    used_names = set(short)
    ends = Counter(name[1 - LONGEST :] for name in set(names) - used_names)
    for name in names:
        if name in short:
            continue
        # "…end", or "(1) …end", "(2) …end" if names share that end; another name may already look
        # like one of these.
        for number in count(1 if ends[name[1 - LONGEST :]] > 1 else 0):
            front = f"({number}) …" if number else "…"
            short[name] = front + name[len(front) - LONGEST :]
            if short[name] not in used_names:
                break
        used_names.add(short[name])
    return [short[name] for name in names]


def _tail(model: str, depth: int) -> str:
    """Return the last parts of a specification's location, with its rule and transform."""
    cut = min((position for position in map(model.find, "@+") if position >= 0), default=len(model))
    return "/".join(model[:cut].split("/")[-depth:]) + model[cut:]
