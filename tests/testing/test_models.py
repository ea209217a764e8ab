"""The models that ship for tests, under the contract that they ship with."""

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
        """Letters it does not have are read as one and the same."""
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
        return True  # every string is a word with a number of its own


@pytest.mark.parametrize("seed", range(3))
def test_the_toys_sentences_have_probabilities_that_add_up_to_one(seed: int) -> None:
    """Witness: what may follow, letter by letter, and sums over all short sentences."""
    model = ToyModel(seed)
    letters = [*LETTERS, "~"]
    ones = np.exp(model.log_probs([Sentence((a,)) for a in letters])).sum()
    words = [Sentence(("".join(pair),)) for pair in product(letters, repeat=2)]
    pairs = [Sentence(pair) for pair in product(letters, repeat=2)]
    more = np.exp(model.log_probs([*words, *pairs])).sum()
    assert 0 < ones < ones + more < 1
    begun = [Continuation(Sentence((a, "x")), 0) for a in letters]
    first = [term for c in begun for term in model.token_log_probs([c.sentence])[0][:1]]
    assert np.exp([term.log_prob for term in first]).sum() == pytest.approx(1)
    table = np.exp(model._log_probs)
    np.testing.assert_allclose(table.sum(axis=1), 1)


def test_toys_of_two_seeds_disagree_and_a_search_finds_where() -> None:
    vocabulary = Vocabulary(("We", "They"), tuple("sleep read never always books now".split()))
    natural = Sentence(("We", "always", "read", "books"))
    accept, reject = ToyModel(1), ToyModel(2)
    result = synthesize(accept, reject, natural, vocabulary)
    accepted, rejected = (m.log_probs([natural, result.synthetic]) for m in (accept, reject))
    assert accepted[1] >= accepted[0]
    assert rejected[1] < rejected[0]


def test_mocks_and_tables_give_what_they_have() -> None:
    model = MockModel({A: -3.0}, name="given")
    assert model.log_probs([A, A]).tolist() == [-3.0, -3.0]
    assert model.scored_sentences == [A, A]
    assert model.unscorable([A, B])[0] is None
    with pytest.raises(ModelError, match=r"given was given no score for 'We read\.'"):
        model.log_probs([B])
    with pytest.raises(ModelError, match="exact, estimate, bound, got 'nothing'"):
        TableModel(1, "nothing")
