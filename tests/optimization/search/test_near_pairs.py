"""Near pairs against every allowed sentence, scored one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, compress
from pathlib import Path

import numpy as np
import pytest

from contstim.models.base import LanguageModel
from contstim.models.catalog import load_models
from contstim.models.scoring import score_sentences
from contstim.optimization.search.constraints import (
    Candidates,
    Constraint,
    capitals,
    max_changes,
    no_repeats,
    only_words,
)
from contstim.optimization.search.near_pairs import near_pairs
from contstim.optimization.search.settings import SearchSettings
from contstim.testing.models import SAYS, TableModel
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.tiny import specification
from tests.optimization.search.toys import NATURAL, WORDS


def problems(
    english: list[Sentence], unseen: list[Sentence], n: int, *limits: Constraint
) -> Iterator[Candidates]:
    """Sentences, and the words by the constraints of studies."""
    words = Vocabulary.from_sentences(english, min_count=5)
    rules = [*filter(None, [no_repeats(words.repeatable), capitals(words)]), *limits]
    for natural in [sentence for sentence in unseen if not words.missing_words(sentence)][:n]:
        constraints = SearchSettings().constraints(natural, every_fix=False)
        yield Candidates(words, natural, (*rules, *constraints))


def check(models: Sequence[LanguageModel], candidates: Candidates) -> int:
    """Compare with all allowed sentences under all models; how many pairs there are."""
    natural = candidates.natural
    every = [
        natural.replace(position, word)
        for position in range(len(natural))
        for word in compress(
            candidates.vocabulary.at(position), candidates.allowed(natural, position)
        )
    ]
    log_probs = score_sentences(models, [natural, *every]).log_probs
    ratios = log_probs[0] - log_probs[1:]
    found = near_pairs(models, candidates)
    for numbers in combinations(range(len(models)), 2):
        pair = (models[numbers[0]].name, models[numbers[1]].name)
        first, second = ratios[:, numbers].T
        differ = first * second < 0
        best = max(np.minimum(abs(first), abs(second))[differ], default=0.0)
        assert (pair in found) == (best > 1e-4)
        if pair in found:
            position, word = found[pair]
            changed = natural.replace(position, word)
            row = every.index(changed)
            assert differ[row]
            assert min(abs(first[row]), abs(second[row])) == pytest.approx(best, abs=1e-4)
            assert word != natural.words[position]
            assert not candidates.broken(changed)
    return len(found)


def test_the_optimum_of_ngram_models_is_that_of_all_sentences(
    bigram: LanguageModel,
    trigram: LanguageModel,
    english: list[Sentence],
    unseen: list[Sentence],
) -> None:
    """Witness: brute force on 20 sentences."""
    found = [check((bigram, trigram), each) for each in problems(english, unseen, 20)]
    assert len(found) == 20
    assert sum(found) > 10


@pytest.mark.parametrize(
    ("names", "n"), [(("gpt2", "llama"), 5), (("bert@pll-original", "spaced"), 2)]
)
def test_the_optimum_of_networks_is_that_of_all_sentences(
    names: tuple[str, ...],
    n: int,
    trigram: LanguageModel,
    english: list[Sentence],
    unseen: list[Sentence],
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    """Witness: brute force; every two of several models at once, masked ones and one of words."""
    models = [trigram, *load_models([specification(tiny_checkpoint, name) for name in names])]
    words = Vocabulary.from_sentences(english).inner
    few = only_words([*map(str.lower, words[:60])])  # which brute force scores in seconds
    found = [check(models, each) for each in problems(english, unseen, n, few)]
    assert len(found) == n
    assert sum(found) > n // 2


def test_the_optimum_is_found_whatever_models_tell_beforehand() -> None:
    """Witness: brute force on tables that tell all scores, bounds of them, and next to nothing."""
    candidates = Candidates(WORDS, NATURAL, (no_repeats(WORDS.repeatable),))
    for seed in range(20):
        check([TableModel(seed + i, says) for i, says in enumerate(SAYS)], candidates)


def test_models_that_agree_have_no_pair() -> None:
    """Witness: a model and itself, and a sentence that nothing may be put into."""
    model = TableModel(0, "bound")
    assert near_pairs((model, model), Candidates(WORDS, NATURAL)) == {}
    stays = Candidates(WORDS, NATURAL, (max_changes(0),))
    assert check((TableModel(0), TableModel(1)), stays) == 0


def test_an_impossible_sentence_has_no_pair_with_that_model() -> None:
    class Forbidding(TableModel):
        def score(self, sentence: Sentence, stop: int | None = None) -> float:
            return -np.inf if "b" in sentence.words else super().score(sentence, stop)

    models = [TableModel(0), TableModel(1), Forbidding(2)]
    found = near_pairs(models, Candidates(WORDS, NATURAL))
    assert [*found] == [(models[0].name, models[1].name)]
    check([models[0], Forbidding(1)], Candidates(WORDS, NATURAL.replace(1, "e")))
