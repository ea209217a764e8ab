"""Masked models of every kind of tokenizer."""

from collections.abc import Callable
from typing import Any

import pytest

from contstim.models.masked.adapter import MaskedModel
from tests.models.tiny import Load

KINDS = ("bert", "roberta", "xlm")
"""Kinds whose tokens mark that they continue, begin or end a word."""
OTHER_KINDS = ("electra", "albert", "modernbert")
Masked = Callable[..., MaskedModel]


def cases_by_kind(*values: object) -> list[Any]:
    """Return cases of each kind with these values; cases of `OTHER_KINDS` are slow."""
    slow = [pytest.param(kind, *values, marks=pytest.mark.slow) for kind in OTHER_KINDS]
    return [*(pytest.param(kind, *values) for kind in KINDS), *slow]


@pytest.fixture(scope="session")
def make_masked(load: Load) -> Masked:
    def make(kind: str, **settings: Any) -> MaskedModel:
        return MaskedModel(load(kind), **settings)

    return make
