"""Crossed tests of many experiments at once against the analysis of one."""

from __future__ import annotations

import numpy as np
import pytest

from contstim.experiments.analysis.crossed import GroupMoves, blocks_of, scatter_of
from contstim.experiments.design.crossed_tests import contrast_variances, products


@pytest.mark.parametrize(
    ("sizes", "people"),
    [((9, 9, 9), 4), ((12,), 6), ((5, 8, 2, 9), 1), ((7,), 1), ((1,), 5), ((2, 2, 2, 2), 3)],
)
def test_variances_are_those_of_the_analysis(sizes: tuple[int, ...], people: int) -> None:
    """Witness: `scatter_of` of one experiment, with models that lack trials or groups."""
    rng = np.random.default_rng(7)
    agreements, masks = [], []
    for number, size in enumerate(sizes):
        own = np.ones((3, size), dtype=np.bool_)
        own[1, : size // 2] = False
        if number == 1:
            own[2] = False
        agreements.append((rng.random((5, people, size, 3)) < 0.6).astype(np.float64))
        masks.append(own)
    groups = [products(given, own) for given, own in zip(agreements, masks, strict=True)]
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    found = contrast_variances(groups, first, second)
    for e in range(5):
        moves = [
            _moves(given[e], own, 100 * number)
            for number, (given, own) in enumerate(zip(agreements, masks, strict=True))
        ]
        for c, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            blocks = blocks_of(moves, np.ones(len(moves)), a, b)
            expected = scatter_of(blocks)
            difference = sum(float(block.weights @ block.values) for block in blocks)
            assert found.difference[e, c] == pytest.approx(difference)
            assert found.variance[e, c] == pytest.approx(expected.variance, rel=1e-9, abs=1e-15)
            if expected.variance > 0:
                assert found.freedom[e, c] == pytest.approx(expected.freedom)


def test_contrasts_that_no_group_can_make_are_left_out() -> None:
    own = np.array([[True, True], [False, False]])
    groups = [products(np.ones((2, 3, 2, 2)), own)]
    found = contrast_variances(groups, np.array([0]), np.array([1]))
    assert np.isnan(found.difference).all()
    assert np.isnan(found.variance).all()


def _moves(agreements: np.ndarray, own: np.ndarray, first_item: int) -> GroupMoves:
    """A jackknife by leaving out each trial: (n_people, n_trials, n_models)."""
    people, trials, models = agreements.shape
    values, moves = np.full((people, models), np.nan), np.zeros((people, models, trials))
    for m in range(models):
        k = int(own[m].sum())
        if not k:
            continue
        mine = agreements[:, own[m], m]
        values[:, m] = mine.mean(axis=1)
        if k > 1:
            without = np.stack([np.delete(mine, t, axis=1).mean(axis=1) for t in range(k)], axis=1)
            apart = without.mean(axis=1, keepdims=True) - without
            moves[:, m, own[m]] = np.sqrt((k - 1) / k) * apart
    nothing = np.full(values.shape, np.nan)
    return GroupMoves(
        values, nothing, moves, np.zeros(moves.shape), own, first_item + np.arange(trials)
    )
