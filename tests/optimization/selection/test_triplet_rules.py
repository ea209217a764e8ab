"""Rules, ranks, costs and quantile groups of triplets against a second account and pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion, demand
from contstim.optimization.selection.triplets import (
    build_rules,
    by_model_pair,
    quantile_edges,
    quantile_groups,
    quantile_name,
    triplet_costs,
    worst_ranks,
)
from tests.optimization.selection.test_triplets import COUNTED, small_questions
from tests.optimization.selection.triplet_recount import (
    costs,
    counted_rules,
    quantile_places,
    ranks,
)

VALUES = st.one_of(st.floats(-99, 0), st.sampled_from([-9.0, -8.5, -8.0, -7.25]))


@given(small_questions(), st.integers(0, 2**16))
def test_rules_ranks_and_costs_are_those_of_a_second_account(
    asked: tuple[list[Triplet], TripletQuestion], drawn: int
) -> None:
    """Any set, not only an optimal one, keeps the rules of both accounts or breaks both."""
    triplets, question = asked
    some = [place for place in range(len(triplets)) if drawn >> place & 1]
    needs = demand(question, by_model_pair(triplets))
    rules, recounted = (
        build_rules(triplets, question, needs, COUNTED),
        counted_rules(triplets, question, COUNTED),
    )
    kept = all(
        r.lower <= sum(w for m, w in zip(r.members, r.weights, strict=True) if m in some) <= r.upper
        for r in rules
    )
    assert kept == all(
        r.least <= sum(r.weights.get(place, 0) for place in some) <= r.most
        for r in recounted.values()
    )
    assert worst_ranks(triplets).tolist() == ranks(triplets).tolist()
    own_costs, _ = triplet_costs(triplets, question, sum(needs.values()))
    assert own_costs == pytest.approx(costs(triplets, question), abs=1e-9)


@given(st.lists(st.integers(-5, 5), min_size=10, max_size=40), st.sampled_from([2, 4, 5, 10]))
def test_the_oracle_finds_the_quantile_groups_of_pandas(values: list[int], n: int) -> None:
    column = np.array(values) / 8 + np.arange(len(values)) * 0.001
    witness = pd.qcut(column, n, labels=False)
    assert quantile_places(column, n).tolist() == witness.tolist()


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(1, 12))
def test_groups_are_those_of_pandas(values: list[float], n: int) -> None:
    """Where edges coincide, which pandas drops then, each value's group ends at the same edge."""
    edges = quantile_edges(np.array(values), n)
    mine = quantile_groups(np.array(values), edges)
    witness, bins = pd.qcut(values, n, labels=False, retbins=True, duplicates="drop")
    if len(bins) == n + 1:
        assert mine.tolist() == witness.tolist()
    else:
        above = np.array(values) > min(values)  # others are of the first group
        assert edges[mine + 1][above].tolist() == bins[witness[above].astype(int) + 1].tolist()
        assert set(mine[~above]) == {0}


@pytest.mark.parametrize("size", [10, 11, 100, 101, 997])
def test_evenly_spaced_values_on_edges_go_down_as_in_pandas(size: int) -> None:
    values = np.arange(size) / 7
    for n in range(1, 21):
        assert (
            quantile_groups(values, quantile_edges(values, n)).tolist()
            == pd.qcut(values, n, labels=False).tolist()
        )


def test_groups_have_names() -> None:
    assert [quantile_name(n) for n in (4, 7, 10)] == ["quartile", "7-quantile", "decile"]
