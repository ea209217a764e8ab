"""Names of models for figures, without the folders that all of them would repeat."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


LONGEST = 28
"""Characters of a short name."""


def short_names(models: Sequence[str]) -> list[str]:
    """The last part of each path, with rule and transform; as much more as tells them apart.

    `hf:runs/a/bert@chain` and `hf:runs/gpt2` become `bert@chain` and `gpt2`. Names that are still
    longer than 28 characters are cut as `shortened` does.
    """
    return shortened(_unrepeated(models))


def shortened(names: Sequence[str]) -> list[str]:
    """The ends of names of more than 28 characters; those that would coincide are numbered.

    Different names stay different; equal ones stay equal.
    """
    found: dict[str, str] = {name: name for name in names if len(name) <= LONGEST}
    taken = set(found.values())
    ends = Counter(name[1 - LONGEST :] for name in set(names) - taken)
    for name in names:
        if name not in found:
            numbered = ends[name[1 - LONGEST :]] > 1
            found[name] = next(cut for cut in _cuts(name, numbered) if cut not in taken)
            taken.add(found[name])
    return [found[name] for name in names]


def _cuts(name: str, numbered: bool) -> Iterator[str]:
    """What can stand for a long name, the best first."""
    if not numbered:
        yield f"…{name[1 - LONGEST :]}"
    for number in count(1):
        front = f"({number}) …"
        yield front + name[len(front) - LONGEST :]


def _unrepeated(models: Sequence[str]) -> list[str]:
    names = [_tail(model, 1) for model in models]
    depth = 1
    while len(set(names)) < len(set(models)) and depth < max(model.count("/") for model in models):
        depth += 1
        often = Counter(names)
        names = [_tail(m, depth) if often[n] > 1 else n for m, n in zip(models, names, strict=True)]
    return names if len(set(names)) == len(set(models)) else list(models)


def _tail(model: str, depth: int) -> str:
    """The last parts of a specification's location, and what follows it."""
    cut = min((place for place in map(model.find, "@+") if place >= 0), default=len(model))
    return "/".join(model[:cut].split("/")[-depth:]) + model[cut:]
