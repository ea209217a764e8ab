"""What the base classes give for nothing, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from contstim.arrays import FloatArray
from contstim.errors import ModelError
from contstim.models.base import Convention, Scorer
from contstim.optimization.search.synthesis import synthesize
from contstim.sentence import Sentence
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


class Lengths(Scorer):
    """Says nats, but knows scores alone."""

    name = "lengths"
    convention = Convention("length", "", False, "lengths")

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        return np.array([-float(len(sentence)) for sentence in sentences])


def test_a_search_refuses_a_scorer_whatever_its_unit() -> None:
    for accept, reject in ((Lengths(), TableModel(1)), (TableModel(1), Lengths())):
        with pytest.raises(ModelError, match=r"is a Scorer, not a LanguageModel\. A search"):
            synthesize(accept, reject, NATURAL, WORDS)  # type: ignore[arg-type]
