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
from tests.optimization.search.toys import search_for

RANKING = RegressionProposer()  # of words whose scores are all told exactly
SMALL = {"suppress_health_check": [HealthCheck.function_scoped_fixture]}


def by_brute_force(
    start: Sentence, accept: NgramModel, reject: NgramModel, vocabulary: Vocabulary, seed: int
) -> tuple[list[Sentence], int]:
    """The published rules written out: every word of the vocabulary, scored one by one."""
    rng = np.random.default_rng(seed)
    floor = accept.log_probs([start])[0]
    sentence, path, failures = start, [], 0
    for cycle in count():
        for visit, position in enumerate(rng.permutation(len(start)), cycle * len(start) + 1):
            best, lowest = None, reject.log_probs([sentence])[0]
            for word in vocabulary.initial if position == 0 else vocabulary.inner:
                others = sentence.words[:position] + sentence.words[position + 1 :]
                lowered = word.lower()
                if lowered in map(str.lower, others) and lowered not in vocabulary.repeatable:
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


def climbed(
    start: Sentence,
    accept: NgramModel,
    reject: NgramModel,
    vocabulary: Vocabulary,
    seed: int,
    proposer: Proposer = RANKING,
    **options: Any,
) -> Climb:
    return search_for(accept, reject, start, vocabulary).climb(proposer, seed, **options)


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
    some = data.draw(st.lists(st.sampled_from(english), min_size=1, max_size=6))
    vocabulary = Vocabulary.from_sentences([start, *some])
    path, visits = by_brute_force(start, trigram, bigram, vocabulary, seed)
    found = climbed(start, trigram, bigram, vocabulary, seed, proposer)
    assert [step.sentence for step in found.steps] == path
    assert found.visits == visits
    assert found.end == (SETTLED if path else UNCHANGED)


def test_rounds_from_perturbed_sentences_only_ever_improve_the_result(
    bigram: NgramModel, trigram: NgramModel, english: list[Sentence]
) -> None:
    """Property on scores computed afresh; a round's steps start below no better sentence."""
    vocabulary = Vocabulary.from_sentences(english, min_count=3)
    naturals = [s for s in english if len(s) == 8 and not vocabulary.missing_words(s)]
    naturals = [s for s in naturals if not repeats(s.words, vocabulary.repeatable)]
    improved = 0
    for seed, start in enumerate(naturals[:8]):
        plain = climbed(start, trigram, bigram, vocabulary, seed)
        found = climbed(
            start,
            trigram,
            bigram,
            vocabulary,
            seed,
            perturbation=Perturbation(),
        )
        first = [step.sentence for step in found.steps if step.round == 0]
        assert first == [step.sentence for step in plain.steps]
        scores = bigram.log_probs([plain.sentence, found.sentence])
        assert scores[1] <= scores[0]
        assert trigram.log_probs([found.sentence])[0] >= trigram.log_probs([start])[0]
        assert all(scores[1] <= step.loss for step in found.steps)
        improved += scores[1] < scores[0]
        assert found.end in {EXHAUSTED, UNCHANGED}
    assert improved
