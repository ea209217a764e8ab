"""Climbs from a natural sentence, compared with the published rules in plain loops."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.climb import EXHAUSTED, SETTLED, UNCHANGED, Climb
from contstim.optimization.search.perturbation import Perturbation
from contstim.optimization.search.proposers import Proposer, RegressionProposer, ScreeningProposer
from contstim.words.sentence import Sentence, repeats
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples
from tests.optimization.search.toys import make_search

RANKING = RegressionProposer()  # ranks words by exact scores
SMALL = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}


def climb_by_brute_force(
    start: Sentence, accept: NgramModel, reject: NgramModel, vocabulary: Vocabulary, seed: int
) -> tuple[list[Sentence], int]:
    """Apply the published rules to every word of the vocabulary, scored one at a time."""
    rng = np.random.default_rng(seed)
    floor = accept.log_probs([start])[0]
    sentence, path, failures = start, [], 0
    for cycle in count():
        for visit, position in enumerate(rng.permutation(len(start)), cycle * len(start) + 1):
            best, lowest = None, reject.log_probs([sentence])[0]
            for word in vocabulary.initial if position == 0 else vocabulary.inner:
                other_words = sentence.words[:position] + sentence.words[position + 1 :]
                lowered = word.lower()
                if lowered in map(str.lower, other_words) and lowered not in vocabulary.repeatable:
                    continue
                changed = sentence.replace(int(position), word)
                if accept.log_probs([changed])[0] < floor:
                    continue
                loss = reject.log_probs([changed])[0]
                if loss < lowest:
                    best, lowest = changed, loss
            failures = 0 if best else failures + 1
            if best:
                sentence = best
                path.append(best)
            if failures == len(start):
                return path, visit
    raise AssertionError


def run_climb(
    start: Sentence,
    accept: NgramModel,
    reject: NgramModel,
    vocabulary: Vocabulary,
    seed: int,
    proposer: Proposer = RANKING,
    **options: Any,
) -> Climb:
    return make_search(accept, reject, start, vocabulary).climb(proposer, seed, **options)


@pytest.mark.parametrize("proposer", [RANKING, ScreeningProposer()], ids=type)
@settings(max_examples=examples(12), **SMALL)  # type: ignore[arg-type]
@given(data=st.data(), seed=st.integers(0, 99))
def test_every_step_equals_brute_force(
    bigram: NgramModel,
    trigram: NgramModel,
    english: list[Sentence],
    proposer: Proposer,
    data: st.DataObject,
    seed: int,
) -> None:
    """Witness: the published rules in plain loops, each candidate sentence scored by KenLM."""
    start = data.draw(st.sampled_from(english))
    other_sentences = data.draw(st.lists(st.sampled_from(english), min_size=1, max_size=6))
    vocabulary = Vocabulary.from_sentences([start, *other_sentences])
    path, visits = climb_by_brute_force(start, trigram, bigram, vocabulary, seed)
    result = run_climb(start, trigram, bigram, vocabulary, seed, proposer)
    assert [step.sentence for step in result.steps] == path
    assert result.visits == visits
    assert result.end == (SETTLED if path else UNCHANGED)


def test_perturbed_rounds_never_worsen_the_result(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Property of newly computed scores; no step of a round is better than the result."""
    vocabulary = Vocabulary.from_sentences(english, min_count=3)
    naturals = [s for s in english if len(s) == 8 and not vocabulary.missing_words(s)]
    naturals = [s for s in naturals if not repeats(s.words, vocabulary.repeatable)]
    n_improved = 0
    for seed, start in enumerate(naturals[:8]):
        plain = run_climb(start, trigram, bigram, vocabulary, seed)
        perturbed = run_climb(
            start,
            trigram,
            bigram,
            vocabulary,
            seed,
            perturbation=Perturbation(),
        )
        first_round = [step.sentence for step in perturbed.steps if step.round == 0]
        assert first_round == [step.sentence for step in plain.steps]
        scores = bigram.log_probs([plain.sentence, perturbed.sentence])
        assert scores[1] <= scores[0]
        assert trigram.log_probs([perturbed.sentence])[0] >= trigram.log_probs([start])[0]
        assert all(scores[1] <= step.loss for step in perturbed.steps)
        n_improved += scores[1] < scores[0]
        assert perturbed.end in {EXHAUSTED, UNCHANGED}
    assert n_improved
