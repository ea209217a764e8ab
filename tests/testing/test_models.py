"""The models that ship for tests fulfil the contract test."""

from itertools import product

import numpy as np
import pytest

from contstim.errors import ModelError
from contstim.models.base import Continuation, LanguageModel, Scorer
from contstim.optimization.search.synthesize import synthesize
from contstim.testing import MockModel, TableModel, ToyModel
from contstim.testing.contract import LanguageModelContract
from contstim.testing.models import LETTERS, SAYS
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

A = Sentence(("We", "sleep"))
B = Sentence(("We", "read"))


class TestToyModel(LanguageModelContract):
    @pytest.fixture(params=[0, 1])
    def model(self, request: pytest.FixtureRequest) -> LanguageModel:
        return ToyModel(request.param)

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        """Unknown letters are read as the same letter."""
        word = sentence.words[position]
        spelled = "".join(sign if sign in LETTERS else "~" for sign in word)
        scores = model.scores([sentence, sentence.replace(position, spelled)])
        return bool(scores[0] == scores[1])


class TestMockModel(LanguageModelContract):
    @pytest.fixture
    def model(self) -> LanguageModel:
        return MockModel(lambda sentence: -float(sum(map(ord, sentence.bare))))

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        del model, sentence, position
        return True  # every character counts


@pytest.mark.parametrize("says", SAYS)
class TestTableModel(LanguageModelContract):
    @pytest.fixture
    def model(self, says: str) -> LanguageModel:
        return TableModel(3, says)

    def reads_as_text(self, model: Scorer, sentence: Sentence, position: int) -> bool:
        del model, sentence, position
        return True  # each string is a separate word


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_the_toy_model_sum_to_one(seed: int) -> None:
    """Witness: probabilities of the first letter, and sums over all short sentences."""
    model = ToyModel(seed)
    letters = [*LETTERS, "~"]
    p_one_letter = np.exp(model.log_probs([Sentence((a,)) for a in letters])).sum()
    words = [Sentence(("".join(pair),)) for pair in product(letters, repeat=2)]
    pairs = [Sentence(pair) for pair in product(letters, repeat=2)]
    p_two_letters = np.exp(model.log_probs([*words, *pairs])).sum()
    assert 0 < p_one_letter < p_one_letter + p_two_letters < 1
    continuations = [Continuation(Sentence((a, "x")), 0) for a in letters]
    terms = [term for c in continuations for term in model.token_log_probs([c.sentence])[0][:1]]
    assert np.exp([term.log_prob for term in terms]).sum() == pytest.approx(1)
    transitions = np.exp(model._log_probs)
    np.testing.assert_allclose(transitions.sum(axis=1), 1)


def test_search_finds_disagreement_of_two_toy_models() -> None:
    vocabulary = Vocabulary(("We", "They"), tuple("sleep read never always books now".split()))
    natural = Sentence(("We", "always", "read", "books"))
    accept, reject = ToyModel(1), ToyModel(2)
    result = synthesize(accept, reject, natural, vocabulary)
    accepted, rejected = (m.log_probs([natural, result.synthetic]) for m in (accept, reject))
    assert accepted[1] >= accepted[0]
    assert rejected[1] < rejected[0]


def test_mock_and_table_models_report_missing_scores() -> None:
    model = MockModel({A: -3.0}, name="given")
    assert model.log_probs([A, A]).tolist() == [-3.0, -3.0]
    assert model.scored_sentences == [A, A]
    assert model.unscorable([A, B])[0] is None
    with pytest.raises(ModelError, match=r"given was given no score for 'We read\.'"):
        model.log_probs([B])
    with pytest.raises(ModelError, match="exact, estimate, bound, got 'nothing'"):
        TableModel(1, "nothing")
