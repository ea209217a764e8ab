"""Near pairs, compared with every allowed sentence scored one at a time."""

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


def make_problems(
    english: list[Sentence], unseen: list[Sentence], n: int, *limits: Constraint
) -> Iterator[Candidates]:
    """Yield sentences with the candidate words under the constraints of studies."""
    words = Vocabulary.from_sentences(english, min_count=5)
    rules = [*filter(None, [no_repeats(words.repeatable), capitals(words)]), *limits]
    for natural in [sentence for sentence in unseen if not words.missing_words(sentence)][:n]:
        constraints = SearchSettings().constraints(natural, every_fix=False)
        yield Candidates(words, natural, (*rules, *constraints))


def check(models: Sequence[LanguageModel], candidates: Candidates) -> int:
    """Compare with all allowed sentences under all models; return the number of pairs."""
    natural = candidates.natural
    sentences = [
        natural.replace(position, word)
        for position in range(len(natural))
        for word in compress(
            candidates.vocabulary.at(position), candidates.allowed(natural, position)
        )
    ]
    log_probs = score_sentences(models, [natural, *sentences]).log_probs
    ratios = log_probs[0] - log_probs[1:]
    pairs = near_pairs(models, candidates)
    for indices in combinations(range(len(models)), 2):
        pair = (models[indices[0]].name, models[indices[1]].name)
        first, second = ratios[:, indices].T
        differ = first * second < 0
        best = max(np.minimum(abs(first), abs(second))[differ], default=0.0)
        assert (pair in pairs) == (best > 1e-4)
        if pair in pairs:
            position, word = pairs[pair]
            changed = natural.replace(position, word)
            row = sentences.index(changed)
            assert differ[row]
            assert min(abs(first[row]), abs(second[row])) == pytest.approx(best, abs=1e-4)
            assert word != natural.words[position]
            assert not candidates.broken(changed)
    return len(pairs)


def test_ngram_near_pairs_are_optimal(
    bigram: LanguageModel,
    trigram: LanguageModel,
    english: list[Sentence],
    unseen: list[Sentence],
) -> None:
    """Witness: brute force on 20 sentences."""
    n_pairs = [check((bigram, trigram), problem) for problem in make_problems(english, unseen, 20)]
    assert len(n_pairs) == 20
    assert sum(n_pairs) > 10


@pytest.mark.parametrize(
    ("names", "n"), [(("gpt2", "llama"), 5), (("bert@pll-original", "spaced"), 2)]
)
def test_network_near_pairs_are_optimal(
    names: tuple[str, ...],
    n: int,
    trigram: LanguageModel,
    english: list[Sentence],
    unseen: list[Sentence],
    tiny_checkpoint: Callable[[str], Path],
) -> None:
    """Witness: brute force for all pairs of several models, including masked models."""
    models = [trigram, *load_models([specification(tiny_checkpoint, name) for name in names])]
    words = Vocabulary.from_sentences(english).inner
    limit = only_words([*map(str.lower, words[:60])])  # so that brute force takes seconds
    n_pairs = [check(models, problem) for problem in make_problems(english, unseen, n, limit)]
    assert len(n_pairs) == n
    assert sum(n_pairs) > n // 2


def test_near_pairs_are_optimal_for_models_of_every_kind() -> None:
    """Witness: brute force on tables that return all scores, bounds or estimates."""
    candidates = Candidates(WORDS, NATURAL, (no_repeats(WORDS.repeatable),))
    for seed in range(20):
        check([TableModel(seed + i, says) for i, says in enumerate(SAYS)], candidates)


def test_models_that_agree_have_no_pair() -> None:
    """A model and itself, and a sentence in which no word may change."""
    model = TableModel(0, "bound")
    assert near_pairs((model, model), Candidates(WORDS, NATURAL)) == {}
    unchangeable = Candidates(WORDS, NATURAL, (max_changes(0),))
    assert check((TableModel(0), TableModel(1)), unchangeable) == 0


def test_impossible_sentences_form_no_pair() -> None:
    class RejectsB(TableModel):
        def score(self, sentence: Sentence, stop: int | None = None) -> float:
            return -np.inf if "b" in sentence.words else super().score(sentence, stop)

    models = [TableModel(0), TableModel(1), RejectsB(2)]
    pairs = near_pairs(models, Candidates(WORDS, NATURAL))
    assert [*pairs] == [(models[0].name, models[1].name)]
    check([models[0], RejectsB(1)], Candidates(WORDS, NATURAL.replace(1, "e")))
