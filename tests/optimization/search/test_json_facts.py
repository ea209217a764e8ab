"""What a search found as JSON, read back."""

from __future__ import annotations

import json

from contstim.optimization.search.json_facts import json_facts
from contstim.optimization.search.symmetric import synthesize_pair
from contstim.optimization.search.synthesize import synthesize
from contstim.sentence import Sentence
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


def test_sentences_and_scores_of_one_direction_are_read_back() -> None:
    """Witness: the models asked for the scores of the sentences that the JSON holds."""
    accept, reject = TableModel(1), TableModel(51)
    facts = json.loads(json.dumps(json_facts(synthesize(accept, reject, NATURAL, WORDS))))
    synthetic = Sentence.parse(facts["synthetic"])
    assert facts["changed"]
    assert facts["log_probs_natural"]["accept"] == accept.score(NATURAL)
    assert facts["log_probs_synthetic"] == {
        "accept": accept.score(synthetic),
        "reject": reject.score(synthetic),
    }
    assert facts["steps"][-1]["sentence"] == facts["synthetic"]
    assert set(facts["costs"]) == {accept.name, reject.name}


def test_sentences_and_scores_of_a_pair_are_read_back() -> None:
    """Witness: the models asked for the scores of the sentences that the JSON holds."""
    models = TableModel(1), TableModel(51)
    facts = json.loads(json.dumps(json_facts(synthesize_pair(*models, NATURAL, WORDS))))
    for number in (1, 2):
        sentence = Sentence.parse(facts[f"sentence_{number}"])
        expected = {model.name: model.score(sentence) for model in models}
        assert facts[f"log_probs_sentence_{number}"] == expected
    assert (facts["model_1"], facts["model_2"]) == tuple(model.name for model in models)
