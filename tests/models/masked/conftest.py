"""Fixtures: masked models of every tokenizer kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contstim.models.checkpoints import Checkpoint, load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel

KINDS = ("bert", "roberta", "xlm")
"""Tokens that continue a word, begin one, end one."""
OTHERS = ("electra", "albert", "modernbert")


def of_kinds(*values: object) -> list[Any]:
    """Cases of each kind with these values; those of other kinds are slow."""
    slow = [pytest.param(kind, *values, marks=pytest.mark.slow) for kind in OTHERS]
    return [*(pytest.param(kind, *values) for kind in KINDS), *slow]


@pytest.fixture(scope="session")
def masked_checkpoint(tiny_checkpoint: Callable[[str], Path]) -> Callable[[str], Checkpoint]:
    loaded: dict[str, Checkpoint] = {}

    def load(kind: str) -> Checkpoint:
        if kind not in loaded:
            loaded[kind] = load_checkpoint(str(tiny_checkpoint(kind)), Loading(device="cpu"))
        return loaded[kind]

    return load


@pytest.fixture(scope="session")
def masked(masked_checkpoint: Callable[[str], Checkpoint]) -> Callable[..., MaskedModel]:
    def make(kind: str, **settings: Any) -> MaskedModel:
        return MaskedModel(masked_checkpoint(kind), **settings)

    return make
