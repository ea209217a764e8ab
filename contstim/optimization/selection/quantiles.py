"""Deciles and other quantile groups, by the rule of `pandas.qcut`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import FloatArray, IntArray

_NAMES = {4: "quartile", 5: "quintile", 10: "decile", 100: "percentile"}


def quantile_name(n: int) -> str:
    """Name of one of n quantile groups."""
    return _NAMES.get(n, f"{n}-quantile")


def quantile_edges(values: FloatArray, n: int) -> FloatArray:
    """The n + 1 edges of n quantile groups of finite values, by linear interpolation.

    Shares that have no exact binary form are rounded up, as `pandas.qcut` does, so that a value on
    an edge stays below it.
    """
    shares = np.linspace(0, 1, n + 1)
    inexact = n * shares != np.arange(n + 1)
    shares[inexact] = np.nextafter(shares[inexact], 1)
    edges: FloatArray = np.quantile(values, shares)
    return edges


def quantile_groups(values: FloatArray, edges: FloatArray) -> IntArray:
    """The 0-based quantile group of each value: `pandas.qcut(values, n, labels=False)`.

    A value on an edge belongs to the lower group, one beyond all edges to the outermost. Where so
    many values tie that edges coincide, pandas refuses; here the group between two equal edges is
    left empty.
    """
    # Edge g is the first that is not below the value: group g - 1; the smallest values, at edge 0,
    # are of the first group.
    places = np.searchsorted(edges, values, side="left")
    return np.clip(places, 1, len(edges) - 1).astype(np.int64) - 1
