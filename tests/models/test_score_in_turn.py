"""Scores of models loaded one after the other, against models that are loaded together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contstim.models.ngram.adapter import NgramModel
from contstim.models.score_in_turn import (
    score_in_turn,
    score_table,
    standard_error_table,
    term_table,
)
from contstim.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from contstim.sentence import Sentence


def test_sums_terms_and_errors_are_those_of_the_models(
    trained: Path, english: list[Sentence], unseen: list[Sentence], tmp_path: Path
) -> None:
    """Witness: KenLM asked directly, in this process."""
    names = [f"two=kenlm:{trained / '2gram.arpa'}", f"three=kenlm:{trained / '3gram.arpa'}"]
    sentences = [*unseen[:5], english[0]]
    expected = [NgramModel(trained / f"{n}gram.arpa").log_probs(sentences).tolist() for n in (2, 3)]
    with Store(tmp_path / "scores.sqlite") as store:
        sums = score_in_turn(names, sentences, store=store, standard_errors=True)
    table = score_table(sums, sentences)
    assert table.models == ("two", "three")
    np.testing.assert_array_equal(table.log_probs.T, expected)
    assert standard_error_table(sums, sentences)["three"] == [0.0] * 6
    assert [model.n_sampled for model in sums] == [0, 0]
    seen = sums[0].contamination
    assert seen is not None
    assert len(seen.hashes) == 1  # the last sentence is of the training text
    terms = term_table(score_in_turn(names, sentences, by_token=True), sentences)
    for name, scores in zip(("two", "three"), expected, strict=True):
        rows = [i for i, model in enumerate(terms["model"]) if model == name]
        by_sentence: dict[str, float] = {}
        for i in rows:
            text = terms["sentence"][i]
            by_sentence[text] = by_sentence.get(text, 0.0) + terms["log_prob"][i]
        assert list(by_sentence.values()) == pytest.approx(scores)
