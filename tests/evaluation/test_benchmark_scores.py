"""Scores of a benchmark's sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.errors import ScoreError
from contstim.evaluation.benchmark_scores import score_readable, scores_from_table
from contstim.models.catalog import load_model
from contstim.scores import ScoreTable
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


def test_a_table_gives_the_rows_that_are_asked_for() -> None:
    table = ScoreTable(
        tuple(map(Sentence.parse, ("B b.", "A a.", "C c."))),
        ("m",),
        np.array([[2.0], [1.0], [3.0]]),
    )
    asked = [Sentence.parse(text) for text in ("A a", "C c", "A a")]
    found = scores_from_table(table, asked)
    assert found.sentences == tuple(asked[:2])
    assert found.log_probs[:, 0].tolist() == [1.0, 3.0]


def test_what_a_table_lacks_is_listed() -> None:
    table = ScoreTable((Sentence.parse("B b."),), ("m",), np.zeros((1, 1)))
    with pytest.raises(ScoreError, match=r"lack 1 of 2 sentences: 'A a\.'"):
        scores_from_table(table, [Sentence.parse("A a"), Sentence.parse("B b")])
    with pytest.raises(ScoreError, match="without sentences"):
        scores_from_table(ScoreTable(None, ("m",), np.zeros((1, 1))), [Sentence.parse("A a")])
