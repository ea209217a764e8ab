"""The benchmark's exact optimum for n-gram models, the reference for searches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from best_sentence import BestSentence

from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary


@pytest.mark.parametrize("length", [2, 3, 4])
def test_the_solver_finds_the_best_of_all_sentences(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence], length: int
) -> None:
    """Witness: every sentence of a small vocabulary, scored by the models."""
    words = Vocabulary.from_sentences(english[:4])
    words = Vocabulary(words.initial[:3], words.inner[:7], frozenset({words.inner[0].lower()}))
    sentences = [
        Sentence((first, *inner))
        for first in words.initial
        for inner in product(words.inner, repeat=length - 1)
        if not repeats((first, *inner), words.repeatable)
    ]
    for accept, reject in ((bigram, trigram), (trigram, bigram)):
        accepted, rejected = accept.log_probs(sentences), reject.log_probs(sentences)
        solver = BestSentence(accept, reject, words)
        for quantile in (0.0, 0.3, 0.7, 0.95, 1.0):
            floor = float(np.quantile(accepted, quantile))
            optimum = solver.find(floor, length)
            assert optimum.proven
            assert optimum.loss == pytest.approx(rejected[accepted >= floor - 1e-9].min(), abs=1e-9)
            assert optimum.sentence in sentences
            lower, _ = solver.bound(floor, length)
            assert lower <= optimum.loss + 1e-9
        assert solver.find(float(accepted.max()) + 1, length).sentence is None


def test_no_recipe_is_better_than_the_optimum(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Property: passing the result of a search to the solver does not change the optimum."""
    words = Vocabulary.from_sentences(english[:6])
    naturals = [s for s in english[:6] if len(s) <= 6 and not repeats(s.words, words.repeatable)]
    solver = BestSentence(trigram, bigram, words)
    for natural in naturals[:2]:
        floor = float(trigram.log_probs([natural])[0])
        best = solver.find(floor, len(natural))
        for recipe in RECIPES.values():
            synthesis = synthesize(trigram, bigram, natural, words, recipe=recipe)
            assert synthesis.log_probs[1] >= best.loss - 1e-9
            informed_best = solver.find(floor, len(natural), synthesis.log_probs[1])
            assert informed_best.loss == pytest.approx(best.loss, abs=1e-9)
