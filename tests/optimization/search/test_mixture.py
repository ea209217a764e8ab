"""A search with a mixture over orders, whose replacements, bounds and drafts it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contstim.models.checkpoints import load_checkpoint
from contstim.models.masked.adapter import MaskedModel
from contstim.models.ngram.adapter import KenlmModel
from contstim.optimization.search.synthesize import synthesize
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary
from tests.models.tiny import TEXTS, build, train_ngrams

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("pass_budget", [2048, 40])
def test_a_search_lowers_the_mixture_and_ends_where_no_word_lowers_it_further(
    tmp_path: Path, pass_budget: int
) -> None:
    """Witness: every single replacement, scored afresh; exact, and sampled beyond the budget."""
    checkpoint = load_checkpoint(str(build("bert", tmp_path)), device="cpu")
    mixture = MaskedModel(checkpoint, rule="chain-mixture", name="m", pass_budget=pass_budget)
    bigram = KenlmModel(train_ngrams(2, tmp_path / "bigram.arpa"))
    words = Vocabulary.from_sentences([Sentence.parse(text) for text in TEXTS], min_count=2)
    natural = Sentence.parse("She sleeps in the house")
    done = synthesize(mixture, bigram, natural, words, seed=1)
    found = [done.sentence, natural]
    lowered, before = mixture.log_probs(found)
    kept, at_least = bigram.log_probs(found)
    assert lowered < before
    assert kept >= at_least
    for position in range(len(natural)):
        neighbours = [
            done.sentence.replace(position, word)
            for word in words.at(position)
            if word.lower() not in done.sentence.bare.lower().split()
        ]
        likely = bigram.log_probs(neighbours) >= at_least
        allowed = [s for s, ok in zip(neighbours, likely.tolist(), strict=True) if ok]
        if allowed:
            assert mixture.log_probs(allowed).min() >= lowered - 1e-4
