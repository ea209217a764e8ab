"""Agreement with the minicons package, where it is installed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from contstim.models.checkpoints import Checkpoint
from contstim.models.masked.adapter import MaskedModel
from contstim.testing.contract import SENTENCES

METRICS = {"pll-original": "original", "pll-word-l2r": "within_word_l2r"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["bert", "electra"])
@pytest.mark.parametrize("rule", METRICS)
def test_pseudo_log_likelihoods_agree(
    masked_checkpoint: Callable[[str], Checkpoint],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    rule: str,
) -> None:
    scorer = pytest.importorskip("minicons.scorer")
    checkpoint = masked_checkpoint(kind)
    # transformers 5 took this method away, which minicons 0.3.39 still calls
    monkeypatch.setattr(
        checkpoint.tokenizer, "batch_encode_plus", checkpoint.tokenizer.__call__, raising=False
    )
    theirs = scorer.MaskedLMScorer(checkpoint.model, "cpu", tokenizer=checkpoint.tokenizer)
    expected = theirs.sequence_score(
        [sentence.text for sentence in SENTENCES],
        reduction=lambda x: x.sum(0).item(),
        PLL_metric=METRICS[rule],
    )
    ours = MaskedModel(checkpoint, rule=rule).log_probs(SENTENCES)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-3)
