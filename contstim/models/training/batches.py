"""Sentences as rows of numbers, in batches of similar length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, IntArray

_POOL = 64  # batches that are sorted by length together


def shuffled_batches(lengths: IntArray, size: int, rng: np.random.Generator) -> list[IntArray]:
    """Every row once, in batches of `size` rows of similar length (one batch may be smaller).

    The rows are shuffled, sorted by length within pools of 64 batches, and the batches are shuffled
    again: little padding, and another order in every epoch.
    """
    order = rng.permutation(len(lengths))
    pools = np.split(order, range(_POOL * size, len(order), _POOL * size))
    batches = [batch for pool in pools for batch in sorted_batches(lengths, size, pool)]
    return [batches[number] for number in rng.permutation(len(batches))]


def sorted_batches(lengths: IntArray, size: int, rows: IntArray | None = None) -> list[IntArray]:
    """Rows in batches, the shortest first."""
    rows = np.arange(len(lengths)) if rows is None else rows
    by_length = rows[np.argsort(lengths[rows], kind="stable")]
    return np.split(by_length, range(size, len(by_length), size))


def padded(rows: Sequence[IntArray]) -> tuple[IntArray, BoolArray]:
    """Rows as one array (b, l), padded with zeros on the right, and a mask (b, l) of the rows."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))  # (b,)
    # (l,) < (b, 1): true in the first `length` places of each row, in which the rows then stand
    present = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(present.shape, np.int64)
    ids[present] = np.concatenate(rows)
    return ids, present


def split(n: int, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Indices of the sentences to train on, and of at least one to validate on."""
    order = rng.permutation(n)
    n_validation = max(1, round(share * n))
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])
