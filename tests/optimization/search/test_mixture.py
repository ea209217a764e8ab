"""A search with a mixture over orders, which provides replacements, bounds and drafts."""

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
def test_a_search_lowers_the_score_of_the_mixture(tmp_path: Path, pass_budget: int) -> None:
    """Witness: newly scored sentences, over all orders or some of them."""
    checkpoint = load_checkpoint(str(build("bert", tmp_path)), Loading(device="cpu"))
    mixture = MaskedModel(checkpoint, rule="chain-mixture", name="m", pass_budget=pass_budget)
    bigram = NgramModel(train_ngrams(2, tmp_path / "bigram.arpa"))
    words = Vocabulary.from_sentences(ENGLISH[:13], min_count=1)
    natural = Sentence.parse("She sleeps home")
    synthesis = synthesize(bigram, mixture, natural, words, seed=1, restarts=SINGLE)
    sentences = [natural, synthesis.synthetic]
    natural_score, synthetic_score = mixture.log_probs(sentences)
    natural_accept, synthetic_accept = bigram.log_probs(sentences)
    assert synthetic_score < natural_score - 5
    assert synthetic_accept >= natural_accept
    assert synthesis.log_probs == pytest.approx((synthetic_accept, synthetic_score), abs=1e-4)
