"""Restarts from perturbed sentences."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from best_sentence import BestSentence

from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.constraints import Candidates, no_repeats
from contstim.optimization.search.perturbation import Oscillation, PricedLosses
from contstim.optimization.search.recipes import DEFAULT, GOLAN2023
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.screening import SearchState
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import (
    NATURAL,
    WORDS,
    TableModel,
    make_search,
    published_objective,
)


@pytest.mark.parametrize("price", [0.0, 0.5, 3.0])
def test_priced_losses_add_the_price_of_a_missed_floor(price: float) -> None:
    """Witness: every sentence scored as a whole, and the written formula."""
    accept, reject = TableModel(0, "exact"), TableModel(1, "exact")
    search = make_search(accept, reject)
    objective = published_objective(accept, reject, accept.score(NATURAL))
    losses = PricedLosses(search.candidates, objective, price)
    for index in losses.positions:
        allowed = search.candidates.allowed(NATURAL, index)
        for column, loss in enumerate(losses.of_words(NATURAL, index).tolist()):
            sentence = losses.replace(NATURAL, index, column)
            shortfall = max(0.0, objective.limits[0] - accept.score(sentence))
            expected = reject.score(sentence) + price * shortfall if allowed[column] else np.inf
            assert loss == pytest.approx(expected, abs=1e-9)


class ImpossibleModel(TableModel):
    """Finds every sentence except the natural one impossible."""

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        return super().score(sentence, stop) if sentence == NATURAL else -np.inf


def test_impossible_sentences_have_infinite_priced_losses(recwarn: pytest.WarningsRecorder) -> None:
    """By hand: losses are infinite, without nan or warnings."""
    accept, reject = ImpossibleModel(0, "exact"), ImpossibleModel(1, "exact")
    candidates = Candidates(WORDS, NATURAL, (no_repeats(WORDS.repeatable),))
    objective = published_objective(accept, reject, accept.score(NATURAL))
    losses = PricedLosses(candidates, objective, 1.0)
    assert all((losses.of_words(NATURAL, i) == np.inf).all() for i in range(3))
    assert losses.of_sentence(NATURAL.replace(1, WORDS.inner[0])) == np.inf
    assert losses.of_sentence(NATURAL) == reject.score(NATURAL)
    assert not recwarn.list


def test_new_starts_satisfy_the_floor_and_the_constraints() -> None:
    """Property of newly computed scores, for models of every kind."""
    n_starts = 0
    for seed, kind in product(range(3), ("exact", "estimate", "bound")):
        accept, reject = TableModel(seed, kind), TableModel(seed + 100, kind)
        search = make_search(accept, reject)
        best = search.at(0).current
        state = SearchState(len(search.evaluator.models), np.random.default_rng(seed))
        start = Oscillation().perturb(best, search.candidates, search.objective, state)
        if start is not None:
            assert start.sentence != NATURAL
            assert accept.score(start.sentence) >= accept.score(NATURAL)
            assert not repeats(start.sentence.words, WORDS.repeatable)
            assert start.loss == pytest.approx(reject.score(start.sentence), abs=1e-9)
            n_starts += 1
    assert n_starts > 3


def test_prices_improve_searches_between_ngram_models(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Witness: the best of all sentences by branch and bound, see `test_best_sentence`."""
    words = Vocabulary.from_sentences(english[:8])
    naturals = [s for s in english[:8] if len(s) <= 8 and not repeats(s.words, words.repeatable)]
    solver = BestSentence(trigram, bigram, words)
    recipes = {"default": DEFAULT, "without prices": replace(DEFAULT, with_cheap_words=None)}
    gaps = dict.fromkeys(recipes, 0.0)
    for natural in naturals[:2]:
        best = solver.find(float(trigram.log_probs([natural])[0]), len(natural)).loss
        for name, recipe in recipes.items():
            synthesis = synthesize(trigram, bigram, natural, words, recipe=recipe, restarts=SINGLE)
            assert synthesis.log_probs[1] >= best - 1e-9
            gaps[name] += synthesis.log_probs[1] - best
    assert gaps["default"] < gaps["without prices"]


def test_prices_apply_to_models_that_score_all_words_at_once(bigram: NgramModel) -> None:
    network = TableModel(0)
    assert DEFAULT.between([bigram, network]) is DEFAULT
    assert isinstance(DEFAULT.between([bigram, bigram]).perturbation, Oscillation)
    assert DEFAULT.between([bigram, bigram]).restarts == SINGLE
    assert GOLAN2023.between([bigram, bigram]) is GOLAN2023
