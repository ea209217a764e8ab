"""On a masked model trained on real text, estimates rank candidate words nearly as scores do."""

from pathlib import Path

import pytest
from scipy.stats import spearmanr

from contstim.models.checkpoints import load_checkpoint
from contstim.models.loading import Loading
from contstim.models.masked.adapter import MaskedModel
from contstim.words.sentence import Sentence

pytestmark = pytest.mark.published


def test_estimates_rank_words_as_exact_scores_do(small_models: Path) -> None:
    """Witness: exact scores of the rewritten sentences."""
    model = MaskedModel(load_checkpoint(str(small_models / "bert-mini"), Loading(device="cpu")))
    sentence = Sentence.parse("The old man saw the house in winter")
    words = tuple("city river king war book child law church cell energy idea road".split())
    known = model.replacements(sentence, 5, words)
    exact = model.replacement_log_probs(sentence, 5, words)
    assert spearmanr(known.estimate, exact).statistic > 0.8
    assert (known.upper_bound >= exact - 1e-4).all()
