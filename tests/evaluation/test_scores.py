"""Scores of a benchmark's sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.evaluation.scores import score_readable
from contstim.models.catalog import load_model
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contstim.models.ngram.adapter import NgramModel

SHORT = [Sentence.parse(text) for text in ("the dog sleeps", "a cat sees the dog")]
LONG = Sentence.parse("the dog " * 300)


def test_a_sentence_that_exceeds_a_window_is_left_out_for_all(
    trigram: NgramModel, tiny_checkpoint: Callable[[str], Path]
) -> None:
    models = [trigram, load_model(f"hf:{tiny_checkpoint('gpt2')}", device="cpu")]
    table, left_out = score_readable(models, [SHORT[0], LONG, SHORT[1], SHORT[0]])
    assert table.sentences == tuple(SHORT)
    for column, model in enumerate(models):
        assert np.allclose(table.log_probs[:, column], model.log_probs(SHORT), atol=1e-4)
    assert [(one.sentence, one.model) for one in left_out] == [(LONG.text, models[1].name)]
    assert "reads at most" in left_out[0].reason
