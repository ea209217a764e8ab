"""Fixtures: masked models of every tokenizer kind."""

from collections.abc import Callable
from typing import Any

import pytest

from contstim.models.masked.adapter import MaskedModel
from tests.models.tiny import Load

KINDS = ("bert", "roberta", "xlm")
"""Tokens that continue a word, begin one, end one."""
OTHERS = ("electra", "albert", "modernbert")
Masked = Callable[..., MaskedModel]


def of_kinds(*values: object) -> list[Any]:
    """Cases of each kind with these values; those of other kinds are slow."""
    slow = [pytest.param(kind, *values, marks=pytest.mark.slow) for kind in OTHERS]
    return [*(pytest.param(kind, *values) for kind in KINDS), *slow]


@pytest.fixture(scope="session")
def masked(load: Load) -> Masked:
    def make(kind: str, **settings: Any) -> MaskedModel:
        return MaskedModel(load(kind), **settings)

    return make
