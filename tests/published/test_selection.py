"""Selections from the published scores of the 2023 study: its natural pairs and its triplets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from contstim.experiments.reproduce.published import read_triplets
from contstim.files.tables import read_table
from contstim.items.reviews import Decision, Review, undecided_items
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Triplet
from contstim.optimization.selection.natural import select_natural
from contstim.optimization.selection.question import NaturalSelection, TripletQuestion
from contstim.optimization.selection.triplets import (
    by_model_pair,
    quantile_edges,
    quantile_groups,
    select_triplets,
    worst_ranks,
)
from contstim.words.sentence import Sentence

pytestmark = pytest.mark.published

MODELS = "bigram trigram rnn lstm bert roberta xlm electra gpt2".split()
SCORES = "contstimlang/resources/precomputed_sentence_probabilities"
PREFIX = "natural_sentences_for_natural_controversial_sentence_pair_selection_probs_"
CHOSEN = "contstimlang/natural_controversial_sentences/sents_reddit_natural_June2021_selected.csv"


@pytest.fixture(scope="module")
def table(published_data: Path) -> ScoreTable:
    files = [published_data / SCORES / f"{PREFIX}{model}.npy" for model in MODELS]
    return ScoreTable(
        None, tuple(MODELS), np.stack([np.load(file).ravel() for file in files], axis=1)
    )


@pytest.fixture(scope="module")
def selection(table: ScoreTable) -> NaturalSelection:
    return select_natural(table)


def test_optimum_is_the_one_of_sparse_matching_and_highs(selection: NaturalSelection) -> None:
    """SciPy's sparse matching and its HiGHS LP gave this number on the same scores."""
    certificate = selection.certificate
    assert certificate.objective == pytest.approx(25.9580127306, abs=1e-9)
    assert certificate.objective == certificate.bound == 12_030_241 / (2 * 231_725)
    assert certificate.status == "optimal"


def test_candidates_are_those_of_the_published_prefilter(selection: NaturalSelection) -> None:
    assert selection.certificate.candidates == 93_809


def test_360_pairs_use_720_sentences(selection: NaturalSelection) -> None:
    assert len(selection.pairs) == 360
    assert len({row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}) == 720


def test_twenty_rejections_leave_all_else_and_meet_the_bound(table: ScoreTable) -> None:
    """The scores have no texts, so that rows are named by texts of their own."""
    texts = tuple(Sentence((f"row{row}", "is", "here")) for row in range(len(table.log_probs)))
    named = replace(table, sentences=texts)
    before = select_natural(named)
    assert before.certificate.objective == 12_030_241 / (2 * 231_725)
    items = undecided_items(before.pairs, "Ann")
    rejected = {items[place].item_id for place in np.random.default_rng(0).permutation(360)[:20]}
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in items
        )
    )
    after = select_natural(named, review=review)
    certificate = after.certificate
    assert certificate.objective == certificate.bound >= before.certificate.objective
    assert not after.changed
    stay = {pair for pair in before.pairs if pair.trial_id not in rejected}
    assert stay <= set(after.pairs)
    gone = {s for p in set(before.pairs) - stay for s in (p.sentence_1, p.sentence_2)}
    assert not gone & {s for p in after.pairs for s in (p.sentence_1, p.sentence_2)}


def test_published_selection_has_our_ranks_and_a_higher_sum(
    published_data: Path, table: ScoreTable, selection: NaturalSelection
) -> None:
    """The published csv stores sentences and ranks; which row a sentence is, is not known."""
    columns = read_table(published_data / CHOSEN)
    ranks = table.ranks()
    total = 0.0
    for place in (1, 2):
        for model in (1, 2):
            names = columns[f"model_{model}"]
            stored = np.array(columns[f"s{place}_ranked_log_prob_model_{model}"], dtype=float)
            for name in set(names):
                mine = stored[np.array(names) == name]
                assert np.isin(mine, ranks[:, table.models.index(name)]).all()
            if place == model:
                total += stored.sum()
            else:
                assert (stored >= 0.5).all()
    assert total == pytest.approx(28.6791174884, abs=1e-9)
    assert selection.certificate.objective < total


@pytest.fixture(scope="module")
def triplets(published_data: Path) -> tuple[Triplet, ...]:
    return read_triplets(published_data / "contstimlang")


def sets_of(chosen: tuple[Triplet, ...]) -> dict[tuple[str, str], set[str]]:
    return {
        pair: {chosen[place].triplet_id for place in places}
        for pair, places in by_model_pair(chosen).items()
    }


def test_worst_ranks_equal_published(published_data: Path, triplets: tuple[Triplet, ...]) -> None:
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
def test_rejections_keep_the_most(triplets: tuple[Triplet, ...], rules: dict[str, Any]) -> None:
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
