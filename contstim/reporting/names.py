"""Names of models for figures, without the folders that all of them would repeat."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST = 28
"""Characters of a short name."""


def names_for_tables(models: Sequence[str]) -> dict[str, str]:
    """Name of each model in a table: its own, or a shorter one where any name is long."""
    # Shortened all together or not at all, so that what tells models apart stays visible.
    is_short = all(len(name) <= LONGEST for name in models)
    return dict(zip(models, models if is_short else short_names(models), strict=True))


def short_names(models: Sequence[str]) -> list[str]:
    """The last part of each path, with rule and transform; as much more as tells them apart.

    `hf:runs/a/bert@chain` and `hf:runs/gpt2` become `bert@chain` and `gpt2`. Names that are still
    longer than 28 characters are cut as `shortened` does.
    """
    names = [_tail(model, 1) for model in models]
    depth, deepest = 1, max((model.count("/") for model in models), default=0)
    # One folder more in every round, for the names that several models still share.
    while len(set(names)) < len(set(models)) and depth < deepest:
        depth += 1
        often = Counter(names)
        names = [_tail(m, depth) if often[n] > 1 else n for m, n in zip(models, names, strict=True)]
    return shortened(names if len(set(names)) == len(set(models)) else models)


def shortened(names: Sequence[str]) -> list[str]:
    """The ends of names of more than 28 characters; those that would coincide are numbered.

    Different names stay different; equal ones stay equal.
    """
    short = {name: name for name in names if len(name) <= LONGEST}
    taken = set(short)
    ends = Counter(name[1 - LONGEST :] for name in set(names) - taken)
    for name in names:
        if name in short:
            continue
        # "…end", or where several names share that end "(1) …end", "(2) …end"; some name that is
        # short enough may look like one of these already.
        for number in count(1 if ends[name[1 - LONGEST :]] > 1 else 0):
            front = f"({number}) …" if number else "…"
            short[name] = front + name[len(front) - LONGEST :]
            if short[name] not in taken:
                break
        taken.add(short[name])
    return [short[name] for name in names]


def _tail(model: str, depth: int) -> str:
    """The last parts of a specification's location, and what follows it."""
    cut = min((place for place in map(model.find, "@+") if place >= 0), default=len(model))
    return "/".join(model[:cut].split("/")[-depth:]) + model[cut:]
