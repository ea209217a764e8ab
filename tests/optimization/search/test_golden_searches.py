"""Guards the moves of searches: recorded, never to change unless a change is meant to move them.

`golden_searches.json` holds what searches did, step by step, when a change was last meant to move
them: the words taken, how many candidates were scored, the sequences and tokens that passed through
each network, and the scores in the end. `golden.py` says how to record anew.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.optimization.search.golden import RECORD, facts, models, searches, toy_searches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contstim.optimization.search.synthesize import Synthesis

Recorded = dict[str, dict[str, Any]]

QUICK = {
    "trigram/bigram/default",
    "bigram/llama/golan2023",
    "trigram/gpt2/golan2023",
    "roberta/trigram/default",
    "bigram/modernbert/default",
}


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    read: Recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    return read


def differences(
    runs: Iterable[tuple[str, Callable[[], Synthesis]]], recorded: Recorded, rounding: float
) -> list[str]:
    """The searches that did something else than was recorded, and what."""
    found = []
    for name, run in runs:
        now, then = facts(run()), recorded[name].copy()
        if np.allclose(now["log_probs"], then["log_probs"], rtol=0, atol=rounding):
            now["log_probs"] = then["log_probs"]
        found += [f"{name}: {k} {now[k]} != {then[k]}" for k in then if now[k] != then[k]]
    return found


def test_searches_over_made_up_models_with_one_seed_are_as_recorded(recorded: Recorded) -> None:
    assert differences(islice(toy_searches(), 0, None, 4), recorded, 1e-9) == []


def test_quick_searches_over_small_networks_are_as_recorded(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A network of each family against an n-gram model, where a search takes part of a second."""
    loaded = models(tmp_path_factory.mktemp("golden"))
    quick = [(name, run) for name, run in searches(loaded) if name in QUICK]
    assert len(quick) == len(QUICK)
    assert differences(quick, recorded, 1e-3) == []


@pytest.mark.slow
def test_all_searches_are_as_recorded(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory
) -> None:
    loaded = models(tmp_path_factory.mktemp("golden"))
    assert differences(toy_searches(), recorded, 1e-9) == []
    assert differences(searches(loaded), recorded, 1e-3) == []
