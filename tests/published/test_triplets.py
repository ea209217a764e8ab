"""The 3,600 published triplets: the study's own choice, and the optimum of its own formula."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contstim.experiments.reproduce.published import read_triplets
from contstim.items.reviews import Decision, Review, undecided_items
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.question import TripletQuestion
from contstim.optimization.selection.triplets import (
    by_model_pair,
    quantile_edges,
    quantile_groups,
    select_triplets,
    worst_ranks,
)

pytestmark = pytest.mark.published


@pytest.fixture(scope="module")
def triplets(published_data: Path) -> tuple[Triplet, ...]:
    return read_triplets(published_data / "contstimlang")


def sets_of(chosen: tuple[Triplet, ...]) -> dict[tuple[str, str], set[str]]:
    return {
        pair: {chosen[place].triplet_id for place in places}
        for pair, places in by_model_pair(chosen).items()
    }


def test_worst_ranks_choose_the_sets_that_people_saw(
    published_data: Path, triplets: tuple[Triplet, ...]
) -> None:
    """The published sets have the same rank sum; the one that differs is a tie."""
    found = select_triplets(triplets, TripletQuestion(objective="worst-rank"))
    assert found.certificate.objective == found.certificate.bound == 9_978
    seen = read_triplets(published_data / "contstimlang", selected=True)
    names = {triplet.triplet_id for triplet in seen}
    ranks = zip(triplets, worst_ranks(triplets), strict=True)
    assert sum(rank for t, rank in ranks if t.triplet_id in names) == 9_978
    mine, published = sets_of(found.triplets), sets_of(seen)
    assert sum(mine[pair] == published[pair] for pair in published) == 35


def test_controversiality_exceeds_the_published_choice(triplets: tuple[Triplet, ...]) -> None:
    """Two other solvers gave this total under the same deciles."""
    certificate = select_triplets(
        triplets, TripletQuestion(objective="controversiality")
    ).certificate
    assert certificate.objective == pytest.approx(34_820.687801, abs=1e-6)
    assert certificate.bound == pytest.approx(certificate.objective, abs=1e-6)


def test_deciles_are_those_of_pandas(triplets: tuple[Triplet, ...]) -> None:
    for places in by_model_pair(triplets).values():
        values = np.array([triplets[place].log_prob_natural_model_1 for place in places])
        mine = quantile_groups(values, quantile_edges(values, 10))
        assert mine.tolist() == pd.qcut(values, 10, labels=False).tolist()


def test_a_cap_on_words_costs_little_and_is_proved(triplets: tuple[Triplet, ...]) -> None:
    question = TripletQuestion(objective="controversiality", word_cap=120, natural_once=True)
    certificate = select_triplets(triplets, question).certificate
    assert certificate.status == "optimal"
    assert 34_000 < certificate.objective <= certificate.bound < 34_820.7


@pytest.mark.parametrize(
    "rules",
    [
        {"objective": "controversiality"},
        {"objective": "worst-rank"},
        {"objective": "controversiality", "word_cap": 120},
        {"enough": 5.0},
    ],
)
def test_twenty_rejections_keep_as_many_as_can_stay(
    triplets: tuple[Triplet, ...], rules: dict[str, Any]
) -> None:
    question = TripletQuestion(**rules)
    before = select_triplets(triplets, question)
    items = undecided_items(before.triplets, "Ann")
    rejected = {items[place].item_id for place in np.random.default_rng(0).permutation(360)[:20]}
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in items
        )
    )
    after = select_triplets(triplets, question, review=review)
    assert after.certificate.status == "optimal"
    names = {triplet.triplet_id for triplet in after.triplets}
    assert not names & rejected
    stay = {triplet.triplet_id for triplet in before.triplets} - rejected
    assert 330 < len(names & stay) <= 340
    assert {item.item_id for item in after.changed} == stay - names
