"""Searches equal their records, which protects refactorings.

`golden_searches.json` contains the steps of each search: the words taken, the number of scored
candidates, the sequences and tokens passed through each network, and the final scores. Only changes
that are meant to change searches may update it; `golden.py` says how.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.optimization.search.golden import (
    RECORD,
    build_models,
    network_searches,
    summarize,
    toy_searches,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contstim.optimization.search.synthesize import Synthesis

SearchRecords = dict[str, dict[str, Any]]

QUICK = {
    "trigram/bigram/default",
    "bigram/llama/golan2023",
    "trigram/gpt2/golan2023",
    "roberta/trigram/default",
    "bigram/modernbert/default",
}


@pytest.fixture(scope="module")
def records() -> SearchRecords:
    loaded: SearchRecords = json.loads(RECORD.read_text(encoding="utf-8"))
    return loaded


def list_differences(
    runs: Iterable[tuple[str, Callable[[], Synthesis]]], records: SearchRecords, rounding: float
) -> list[str]:
    """Describe all differences between searches and their records."""
    messages = []
    for name, run in runs:
        current, expected = summarize(run()), records[name].copy()
        if np.allclose(current["log_probs"], expected["log_probs"], rtol=0, atol=rounding):
            current["log_probs"] = expected["log_probs"]
        messages += [
            f"{name}: {k} {current[k]} != {expected[k]}"
            for k in expected
            if current[k] != expected[k]
        ]
    return messages


def test_toy_searches_with_one_seed_equal_their_records(records: SearchRecords) -> None:
    assert list_differences(islice(toy_searches(), 0, None, 4), records, 1e-9) == []


def test_fast_network_searches_equal_their_records(
    records: SearchRecords, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One network of each family and an n-gram model; each search takes less than a second."""
    models_by_name = build_models(tmp_path_factory.mktemp("golden"))
    quick = [(name, run) for name, run in network_searches(models_by_name) if name in QUICK]
    assert len(quick) == len(QUICK)
    assert list_differences(quick, records, 1e-3) == []


@pytest.mark.slow
def test_all_searches_equal_their_records(
    records: SearchRecords, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models_by_name = build_models(tmp_path_factory.mktemp("golden"))
    assert list_differences(toy_searches(), records, 1e-9) == []
    assert list_differences(network_searches(models_by_name), records, 1e-3) == []
