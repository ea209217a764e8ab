"""Defaults of the base classes, and uses that they refuse."""

from collections.abc import Sequence

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.files.arrays import FloatArray
from contstim.models.base import Convention, LanguageModel, Scorer
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.synthesize import synthesize
from contstim.testing import TableModel
from contstim.testing.contract import LanguageModelContract
from contstim.words.sentence import Sentence
from tests.optimization.search.toys import NATURAL, WORDS


class Lengths(Scorer):
    """A scorer that uses nats, but has no log-probabilities."""

    name = "lengths"
    convention = Convention("length", "", False, "lengths")

    def scores(self, sentences: Sequence[Sentence]) -> FloatArray:
        return np.array([-float(len(sentence)) for sentence in sentences])


def test_search_refuses_scorers_of_any_unit() -> None:
    for accept, reject in ((Lengths(), TableModel(1)), (TableModel(1), Lengths())):
        with pytest.raises(ModelError, match=r"is a Scorer, not a LanguageModel\. A search"):
            synthesize(accept, reject, NATURAL, WORDS)


class MinimalModel(LanguageModel):
    """A model with only the two members that it must define; it has the scores of another model."""

    def __init__(self, seed: int) -> None:
        self.name = f"bare {seed}"
        self._table = TableModel(seed)

    @property
    def convention(self) -> Convention:
        return Convention("table", "", False, f"table of {self.name}")

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        return self._table.log_probs(sentences)


class TestAdapterWithTwoMembers(LanguageModelContract):
    @pytest.fixture
    def model(self) -> LanguageModel:
        return MinimalModel(1)

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        del model, sentence, position
        return True  # every string is a separate word


@pytest.mark.parametrize("recipe", RECIPES)
def test_search_works_with_scores_only(recipe: str) -> None:
    """Witness: the scores themselves; without hints, some starts find no better sentence."""
    gains = []
    for seed in range(5):
        accept, reject = MinimalModel(seed), MinimalModel(seed + 50)
        result = synthesize(accept, reject, NATURAL, WORDS, recipe=RECIPES[recipe], seed=3)
        accepted, rejected = (m.log_probs([NATURAL, result.synthetic]) for m in (accept, reject))
        assert accepted[1] >= accepted[0]
        gains.append(rejected[0] - rejected[1])
    assert min(gains) >= 0
    assert sum(gain > 1 for gain in gains) >= 4
