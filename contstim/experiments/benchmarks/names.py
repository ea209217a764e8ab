"""Names of models for figures, without the folders that all of them would repeat."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def short_names(models: Sequence[str]) -> list[str]:
    """The last part of each path, with rule and transform; as much more as tells them apart.

    `hf:runs/a/bert@chain` and `hf:runs/gpt2` become `bert@chain` and `gpt2`.
    """
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
