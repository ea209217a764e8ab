"""Quantile groups against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.optimization.selection.quantiles import quantile_edges, quantile_groups, quantile_name

VALUES = st.one_of(st.floats(-99, 0), st.sampled_from([-9.0, -8.5, -8.0, -7.25]))


@given(st.lists(VALUES, min_size=1, max_size=60), st.integers(1, 12))
def test_groups_are_those_of_pandas(values: list[float], n: int) -> None:
    """Where pandas refuses because edges coincide, it is the first group that reaches up."""
    mine = quantile_groups(np.array(values), quantile_edges(np.array(values), n))
    try:
        witness = pd.qcut(values, n, labels=False)
    except ValueError:
        ends = np.quantile(values, np.arange(1, n + 1) / n)
        assert mine.tolist() == [int(np.argmax(ends >= value)) for value in values]
    else:
        assert mine.tolist() == witness.tolist()


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
