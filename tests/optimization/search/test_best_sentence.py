"""The benchmark's exact optimum between n-gram models, which searches are measured by."""

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
def test_it_is_the_best_of_all_sentences(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence], length: int
) -> None:
    """Witness: every sentence of a small vocabulary, scored by the models themselves."""
    words = Vocabulary.from_sentences(english[:4])
    words = Vocabulary(words.initial[:3], words.inner[:7], frozenset({words.inner[0].lower()}))
    every = [
        Sentence((first, *rest))
        for first in words.initial
        for rest in product(words.inner, repeat=length - 1)
        if not repeats((first, *rest), words.repeatable)
    ]
    for accept, reject in ((bigram, trigram), (trigram, bigram)):
        accepted, rejected = accept.log_probs(every), reject.log_probs(every)
        solver = BestSentence(accept, reject, words)
        for quantile in (0.0, 0.3, 0.7, 0.95, 1.0):
            floor = float(np.quantile(accepted, quantile))
            found = solver.find(floor, length)
            assert found.proven
            assert found.loss == pytest.approx(rejected[accepted >= floor - 1e-9].min(), abs=1e-9)
            assert found.sentence in every
            lower, _ = solver.bound(floor, length)
            assert lower <= found.loss + 1e-9
        assert solver.find(float(accepted.max()) + 1, length).sentence is None


def test_no_recipe_is_better_than_the_best(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Property of searches; the optimum is found whether or not their result is told."""
    words = Vocabulary.from_sentences(english[:6])
    naturals = [s for s in english[:6] if len(s) <= 6 and not repeats(s.words, words.repeatable)]
    solver = BestSentence(trigram, bigram, words)
    for natural in naturals[:2]:
        floor = float(trigram.log_probs([natural])[0])
        best = solver.find(floor, len(natural))
        for recipe in RECIPES.values():
            found = synthesize(trigram, bigram, natural, words, recipe=recipe)
            assert found.log_probs[1] >= best.loss - 1e-9
            again = solver.find(floor, len(natural), found.log_probs[1])
            assert again.loss == pytest.approx(best.loss, abs=1e-9)
