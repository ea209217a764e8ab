"""Our way to find a word: right where models are exact, and never wrong where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.models.base import LanguageModel, Replacements
from contstim.optimization.search.proposers import ScreeningProposer
from contstim.optimization.search.recipes import RECIPES, Recipe
from contstim.sentence import Sentence
from tests.optimization.search.toys import NATURAL, ExactRanking, TableModel, search_for

KINDS = ("exact", "estimate", "bound")


def model(seed: int, kind: str) -> TableModel:
    return TableModel(seed, kind, draft_error=2.0 if kind == "estimate" else None)


@settings(max_examples=20)
@given(seeds=st.tuples(st.integers(0, 999), st.integers(1000, 1999)), position=st.integers(0, 3))
def test_on_exact_models_it_finds_what_ranking_finds(seeds: tuple[int, int], position: int) -> None:
    """Witness: the best of the whole vocabulary in a plain loop."""
    pair = TableModel(seeds[0]), TableModel(seeds[1])
    ours = search_for(*pair).propose(ScreeningProposer(), position)
    assert ours == search_for(*pair).propose(ExactRanking(), position)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("accept", KINDS)
@pytest.mark.parametrize("reject", KINDS)
def test_every_step_is_an_improvement_on_exact_scores(
    accept: str, reject: str, recipe: Recipe
) -> None:
    """Property on scores computed afresh, whatever the models know."""
    steps = 0
    for seed in range(3):
        pair = model(seed, accept), model(seed + 100, reject)
        search = search_for(*pair)
        found = search.climb(recipe.proposer, seed, perturbation=recipe.perturbation)
        for step in found.steps:
            assert pair[0].score(step.sentence) >= pair[0].score(NATURAL)
            told = [m.score(step.sentence) for m in pair]
            assert step.log_probs.tolist() == pytest.approx(told, abs=1e-9)
        before = [NATURAL, *(s.sentence for s in found.steps if s.round == 0)]
        losses = [pair[1].score(s) for s in before]
        assert losses == sorted(losses, reverse=True)
        assert pair[1].score(found.sentence) <= losses[-1]
        steps += len(found.steps)
    assert steps > 3


def test_words_whose_upper_bound_is_below_the_floor_are_never_scored() -> None:
    """Property, with bounds computed afresh."""
    scored = 0
    for seed in range(10):
        accept, reject = model(seed, "bound"), model(seed + 100, "estimate")
        search = search_for(accept, reject)
        accept.asked.clear()
        search.propose(ScreeningProposer(), 2)
        for sentence in set(accept.asked) - {NATURAL}:
            assert accept.score(sentence, 3) >= accept.score(NATURAL)
            scored += 1
    assert scored


def test_candidates_that_the_first_model_rules_out_cost_the_second_nothing() -> None:
    """Property of the evaluations: nan only where the accept model had said no."""
    left_out = 0
    for seed in range(20):
        accept, reject = model(seed, "estimate"), model(seed + 100, "estimate")
        search = search_for(accept, reject)
        search.climb(ScreeningProposer(min_expected_improvement=0.0), 0)
        for evaluation in search.evaluator.evaluations:
            said_no = accept.score(evaluation.sentence) < accept.score(NATURAL)
            assert np.isnan(evaluation.log_probs[1]) == said_no
            left_out += said_no
    assert left_out


def test_drafts_that_tell_more_let_fewer_words_be_scored_exactly() -> None:
    """Witness: the counts of exact evaluations under honest and under useless drafts."""

    def evaluations(error: float) -> int:
        total = 0
        for seed in range(10):
            pair = (TableModel(seed, "estimate", error), TableModel(seed + 100, "estimate", error))
            search = search_for(*pair)
            search.climb(ScreeningProposer(min_draft_passes=32), 0)
            total += len(search.evaluator.evaluations)
        return total

    assert evaluations(0.0) < evaluations(20.0)


class Reckless(TableModel):
    """Its estimates promise the opposite of its scores."""

    def replacements(self, sentence: Sentence, position: int, words: list[str]) -> Replacements:  # type: ignore[override]
        known = super().replacements(sentence, position, words)
        return Replacements(known.exact, -known.estimate, known.upper_bound)


def test_misleading_estimates_cost_passes_and_nothing_else() -> None:
    for seed in range(5):
        accept: LanguageModel = Reckless(seed, "estimate")
        search = search_for(accept, Reckless(seed + 100, "estimate"))
        found = search.climb(ScreeningProposer(), 0)
        scores = accept.log_probs([NATURAL, found.sentence])
        assert scores[1] >= scores[0]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_what_a_draft_says_is_an_estimate_even_where_it_says_it_knows(recipe: Recipe) -> None:
    """Property on scores computed afresh, with drafts that pass their own scores off as exact."""
    steps = 0
    for seed in range(5):
        pair = TableModel(seed, "exact", 4.0), TableModel(seed + 100, "exact", 4.0)
        for step in search_for(*pair).climb(recipe.proposer, seed).steps:
            assert step.log_probs.tolist() == [m.score(step.sentence) for m in pair]
            steps += 1
    assert steps
