"""How many sentences a study needs, against the published study and a literal count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.design.summary import sentences_needed


def test_the_study_of_2023_needs_what_it_had() -> None:
    """Nine models: 3,600 triplets, 360 pairs, and 9 random and 12 catch trials in ten groups."""
    needs = sentences_needed(9, random_per_group=9)
    assert [(use, needed) for use, *_, needed in needs.rows] == [
        ("triplets", 3_600),
        ("natural pairs", 720),
        ("random pairs", 180),
        ("catch trials", 120),
        ("in all", 4_620),
    ]
    assert needs.to_frame()["needed"].tolist()[-1] == needs.in_all == 4_620


@given(st.integers(2, 7), st.lists(st.integers(0, 5), min_size=5, max_size=5))
def test_needs_are_those_of_a_literal_count(models: int, numbers: list[int]) -> None:
    triplets, pairs, groups, random, catch = numbers
    groups = max(groups, 3) if triplets else groups
    count = 0
    for one in range(models):
        for _other in range(one + 1, models):
            count += len(range(triplets)) + len([side for _ in range(pairs) for side in "12"])
    for _group in range(groups):
        count += len([side for _ in range(random) for side in "12"]) + catch
    needs = sentences_needed(
        models,
        triplets_per_pair=triplets,
        pairs_per_pair=pairs,
        groups=groups,
        random_per_group=random,
        catch_per_group=catch,
    )
    assert needs.in_all == count == sum(row[3] for row in needs.rows[:-1])


def test_studies_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="models must be at least 2, got 1"):
        sentences_needed(1)
    with pytest.raises(InputError, match="got -1"):
        sentences_needed(3, groups=-1)
