"""A search with a mixture over orders, whose replacements, bounds and drafts it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.tiny import TEXTS, build, train_ngrams

if TYPE_CHECKING:
    from pathlib import Path

ENGLISH = [Sentence.parse(text) for text in TEXTS]


@pytest.mark.slow
@pytest.mark.parametrize("pass_budget", [128, 60])
def test_a_search_lowers_the_mixture_as_its_own_scores_say(
    tmp_path: Path, pass_budget: int
) -> None:
    """Witness: the sentences scored afresh, in which all orders are walked, or some of them."""
    checkpoint = load_checkpoint(str(build("bert", tmp_path)), Loading(device="cpu"))
    mixture = MaskedModel(checkpoint, rule="chain-mixture", name="m", pass_budget=pass_budget)
    bigram = NgramModel(train_ngrams(2, tmp_path / "bigram.arpa"))
    words = Vocabulary.from_sentences(ENGLISH[:13], min_count=1)
    natural = Sentence.parse("She sleeps home")
    done = synthesize(bigram, mixture, natural, words, seed=1, restarts=SINGLE)
    sentences = [natural, done.synthetic]
    before, lowered = mixture.log_probs(sentences)
    likely, at_least_as_likely = bigram.log_probs(sentences)
    assert lowered < before - 5
    assert at_least_as_likely >= likely
    assert done.log_probs == pytest.approx((at_least_as_likely, lowered), abs=1e-4)
