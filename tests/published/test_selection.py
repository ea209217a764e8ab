"""Selections of natural pairs and triplets from the published scores of the 2023 study."""

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
PUBLISHED_PAIRS = (
    "contstimlang/natural_controversial_sentences/sents_reddit_natural_June2021_selected.csv"
)


@pytest.fixture(scope="module")
def table(published_data: Path) -> ScoreTable:
    files = [published_data / SCORES / f"{PREFIX}{model}.npy" for model in MODELS]
    columns = [np.load(file).ravel() for file in files]
    return ScoreTable(None, tuple(MODELS), np.stack(columns, axis=1))


@pytest.fixture(scope="module")
def selection(table: ScoreTable) -> NaturalSelection:
    return select_natural(table)


def test_natural_optimum_equals_that_of_other_solvers(selection: NaturalSelection) -> None:
    """Witness: SciPy's sparse matching and its HiGHS LP on the same scores."""
    certificate = selection.certificate
    assert certificate.objective == pytest.approx(25.9580127306, abs=1e-9)
    assert certificate.objective == certificate.bound == 12_030_241 / (2 * 231_725)
    assert certificate.status == "optimal"


def test_number_of_candidates_equals_the_published_one(selection: NaturalSelection) -> None:
    assert selection.certificate.candidates == 93_809


def test_every_selected_sentence_is_used_once(selection: NaturalSelection) -> None:
    assert len(selection.pairs) == 360
    assert len({row for pair in selection.pairs for row in (pair.row_1, pair.row_2)}) == 720


def test_pairs_that_are_not_rejected_are_kept(table: ScoreTable) -> None:
    """The scores have no texts, so every row gets an artificial sentence."""
    sentences = tuple(Sentence((f"row{row}", "is", "here")) for row in range(len(table.log_probs)))
    table_with_texts = replace(table, sentences=sentences)
    old_selection = select_natural(table_with_texts)
    assert old_selection.certificate.objective == 12_030_241 / (2 * 231_725)
    items = undecided_items(old_selection.pairs, "Ann")
    rejected = {items[index].item_id for index in np.random.default_rng(0).permutation(360)[:20]}
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in items
        )
    )
    new_selection = select_natural(table_with_texts, review=review)
    certificate = new_selection.certificate
    assert certificate.objective == certificate.bound >= old_selection.certificate.objective
    assert not new_selection.changed
    kept_pairs = {pair for pair in old_selection.pairs if pair.trial_id not in rejected}
    assert kept_pairs <= set(new_selection.pairs)
    rejected_pairs = set(old_selection.pairs) - kept_pairs
    rejects = {s for p in rejected_pairs for s in (p.sentence_1, p.sentence_2)}
    assert not rejects & {s for p in new_selection.pairs for s in (p.sentence_1, p.sentence_2)}


def test_published_pairs_have_the_same_ranks_and_a_higher_sum(
    published_data: Path, table: ScoreTable, selection: NaturalSelection
) -> None:
    """The published csv contains sentences and ranks, but no row numbers."""
    columns = read_table(published_data / PUBLISHED_PAIRS)
    ranks = table.ranks()
    total = 0.0
    for side in (1, 2):
        for model in (1, 2):
            model_names = columns[f"model_{model}"]
            expected = np.array(columns[f"s{side}_ranked_log_prob_model_{model}"], dtype=float)
            for name in set(model_names):
                ranks_of_model = expected[np.array(model_names) == name]
                assert np.isin(ranks_of_model, ranks[:, table.models.index(name)]).all()
            if side == model:
                total += expected.sum()
            else:
                assert (expected >= 0.5).all()
    assert total == pytest.approx(28.6791174884, abs=1e-9)
    assert selection.certificate.objective < total


@pytest.fixture(scope="module")
def triplets(published_data: Path) -> tuple[Triplet, ...]:
    return read_triplets(published_data / "contstimlang")


def ids_by_model_pair(selected: tuple[Triplet, ...]) -> dict[tuple[str, str], set[str]]:
    return {
        pair: {selected[index].triplet_id for index in indices}
        for pair, indices in by_model_pair(selected).items()
    }


def test_published_sum_of_worst_ranks(published_data: Path, triplets: tuple[Triplet, ...]) -> None:
    """The published sets have the same sum of ranks; the one that differs is a tie."""
    new_selection = select_triplets(triplets, TripletQuestion(objective="worst-rank"))
    assert new_selection.certificate.objective == new_selection.certificate.bound == 9_978
    published_triplets = read_triplets(published_data / "contstimlang", selected=True)
    published_ids = {triplet.triplet_id for triplet in published_triplets}
    ranks = zip(triplets, worst_ranks(triplets), strict=True)
    assert sum(rank for t, rank in ranks if t.triplet_id in published_ids) == 9_978
    selected_ids = ids_by_model_pair(new_selection.triplets)
    published = ids_by_model_pair(published_triplets)
    assert sum(selected_ids[pair] == published[pair] for pair in published) == 35


def test_controversiality_equals_that_of_other_solvers(triplets: tuple[Triplet, ...]) -> None:
    """Witness: two other solvers with the same deciles."""
    proof = select_triplets(triplets, TripletQuestion(objective="controversiality")).certificate
    assert proof.objective == pytest.approx(34_820.687801, abs=1e-6)
    assert proof.bound == pytest.approx(proof.objective, abs=1e-6)


def test_deciles_equal_those_of_pandas(triplets: tuple[Triplet, ...]) -> None:
    for indices in by_model_pair(triplets).values():
        values = np.array([triplets[index].log_prob_natural_model_1 for index in indices])
        deciles = quantile_groups(values, quantile_edges(values, 10))
        assert deciles.tolist() == pd.qcut(values, 10, labels=False).tolist()


def test_selection_with_a_word_cap_is_optimal(triplets: tuple[Triplet, ...]) -> None:
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
def test_most_triplets_are_kept(triplets: tuple[Triplet, ...], rules: dict[str, Any]) -> None:
    question = TripletQuestion(**rules)
    old_selection = select_triplets(triplets, question)
    items = undecided_items(old_selection.triplets, "Ann")
    rejected = {items[index].item_id for index in np.random.default_rng(0).permutation(360)[:20]}
    review = Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in items
        )
    )
    new_selection = select_triplets(triplets, question, review=review)
    assert new_selection.certificate.status == "optimal"
    selected_ids = {triplet.triplet_id for triplet in new_selection.triplets}
    assert not selected_ids & rejected
    kept_ids = {triplet.triplet_id for triplet in old_selection.triplets} - rejected
    assert 330 < len(selected_ids & kept_ids) <= 340
    assert {item.item_id for item in new_selection.changed} == kept_ids - selected_ids
