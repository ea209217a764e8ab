from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from best_sentence import BestSentence
from hypothesis import given
from hypothesis import strategies as st

from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.objectives import AcceptReject
from contstim.optimization.search.oscillation import Oscillation, Priced
from contstim.optimization.search.perturbation import SlackPerturbation
from contstim.optimization.search.proposers import ScreeningProposer
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.sentence import Sentence, repeats
from contstim.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel, search_for

SCORES = st.lists(st.floats(-50, 0), min_size=2, max_size=2)


@given(scores=SCORES, price=st.floats(0, 10))
def test_a_price_changes_nothing_at_the_floor_and_above(scores: list[float], price: float) -> None:
    """Property: loss + price * shortfall, and nothing is left to keep."""
    objective = AcceptReject((TableModel(0), TableModel(1)), floor=-20.0)
    log_probs = np.array(scores)[:, None]
    priced = Priced(objective, price)
    expected = scores[1] + price * max(0.0, -20.0 - scores[0])
    assert priced.loss(log_probs)[0] == pytest.approx(expected)
    assert priced.feasible(log_probs)[0]


def test_an_impossible_sentence_is_the_worst_and_an_unknown_score_stays_unknown() -> None:
    priced = Priced(AcceptReject((TableModel(0), TableModel(1)), floor=-20.0), 1.0)
    assert priced.loss(np.array([[-np.inf], [-np.inf]]))[0] == np.inf
    assert not priced.feasible(np.array([[np.nan], [-5.0]]))[0]


def test_new_starts_keep_the_floor_and_the_constraints() -> None:
    """Property on scores computed afresh, whatever the models know."""
    started = 0
    for seed, kind in product(range(3), ("exact", "estimate", "bound")):
        accept, reject = TableModel(seed, kind), TableModel(seed + 100, kind)
        search = search_for(accept, reject)
        best = search.at(0).current
        rng = np.random.default_rng(seed)
        proposer = ScreeningProposer()
        state = proposer.start(search.evaluator, rng.spawn(1)[0])
        start = Oscillation(proposer, SlackPerturbation()).perturb(
            best, search.candidates, search.objective, search.evaluator, state, rng
        )
        if start is not None:
            assert start.sentence != NATURAL
            assert accept.score(start.sentence) >= accept.score(NATURAL)
            assert not repeats(start.sentence.words, WORDS.repeatable)
            assert start.loss == pytest.approx(reject.score(start.sentence), abs=1e-9)
            started += 1
    assert started > 3


def test_between_ngram_models_thorough_comes_nearer_to_the_best_sentence_than_default(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Witness: the best of all sentences by branch and bound, see `test_best_sentence`."""
    words = Vocabulary.from_sentences(english[:8])
    naturals = [s for s in english[:8] if len(s) <= 8 and not repeats(s.words, words.repeatable)]
    solver = BestSentence(trigram, bigram, words)
    gaps = {"default": 0.0, "thorough": 0.0}
    for natural in naturals[:2]:
        best = solver.find(float(trigram.log_probs([natural])[0]), len(natural)).loss
        for name in gaps:
            recipe = RECIPES[name]
            found = synthesize(trigram, bigram, natural, words, recipe=recipe, restarts=SINGLE)
            assert found.log_probs[1] >= best - 1e-9
            gaps[name] += found.log_probs[1] - best
    assert gaps["thorough"] < gaps["default"]
