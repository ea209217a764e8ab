"""The published recipe with recurrent networks, which read from left to right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from contstim.files.arrays import FloatArray
from contstim.models.base import Continuation, LanguageModel
from contstim.models.recurrent.adapter import RecurrentModel
from contstim.models.recurrent.network import Kind
from contstim.optimization.search.recipes import GOLAN2023
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.models.recurrent.conftest import build, word_list
from tests.optimization.search.toys import TableModel, make_search

NATURAL = Sentence.parse("They sleeps a house with flowers.")


def build_vocabulary() -> Vocabulary:
    words = [word for word in word_list().words if word.isalpha()]
    initial = tuple(word for word in words if word[0].isupper())
    return Vocabulary(initial, tuple(word for word in words if word not in initial), frozenset())


def build_sharpened_model(kind: Kind) -> RecurrentModel:
    """Return a network for which most words are unlikely."""
    model = build(kind)
    with torch.no_grad():
        for weight in model._network.parameters():
            weight.mul_({"rnn": 2, "lstm": 4}[kind])
    return model


def published_candidates(
    model: RecurrentModel, sentence: Sentence, position: int, words: Sequence[str]
) -> tuple[set[str], float]:
    """Return the words with log p of at least -10, or less in steps of 5 if under 10 words."""
    other_words = {w.lower() for i, w in enumerate(sentence.words) if i != position}
    free = [w for w in words if w != sentence.words[position] and w.lower() not in other_words]
    prefixes = [Sentence((*sentence.words[:position], word)) for word in free]
    conditional = model.continuation_log_probs([Continuation(p, position) for p in prefixes])
    threshold = -10.0
    while (conditional >= threshold).sum() < 10:
        threshold -= 5
    return {w for w, log_p in zip(free, conditional, strict=True) if log_p >= threshold}, threshold


def find_best(
    words: set[str], models: tuple[LanguageModel, LanguageModel], position: int
) -> Sentence | None:
    """Return the accepted sentence with the lowest reject score; None if none is lower than now."""
    changed = [NATURAL, *(NATURAL.replace(position, word) for word in sorted(words))]
    accepted, rejected = (model.log_probs(changed) for model in models)
    rejected = np.where(accepted >= accepted[0] - 1e-6, rejected, np.inf)
    best = int(np.argmin(rejected))
    return changed[best] if rejected[best] < rejected[0] - 1e-6 else None


@pytest.mark.parametrize("kind", ["rnn", "lstm"])
@pytest.mark.parametrize("role", ["accept", "reject"])
def test_recurrent_networks_score_only_the_published_candidates(
    kind: Kind, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the paper's rule, transcribed; the best of these words by brute force."""
    network, table = build_sharpened_model(kind), TableModel(1)
    words, scored_words = build_vocabulary(), set[str]()
    original = network.replacement_log_probs

    def record_words(sentence: Sentence, position: int, replacements: Sequence[str]) -> FloatArray:
        scored_words.update(replacements)
        return original(sentence, position, replacements)

    monkeypatch.setattr(network, "replacement_log_probs", record_words)
    ordered: tuple[LanguageModel, LanguageModel] = (network, table)
    models = ordered if role == "accept" else ordered[::-1]
    thresholds, shares = set(), []
    for position in range(len(NATURAL)):
        search = make_search(models[0], models[1], NATURAL, words)
        scored_words.clear()
        proposed = search.propose(GOLAN2023.proposer, position)
        expected, threshold = published_candidates(network, NATURAL, position, words.at(position))
        assert scored_words == expected
        assert proposed == find_best(expected, models, position)
        thresholds.add(threshold)
        shares.append(len(expected) / len(words.at(position)))
    assert len(thresholds) > 1
    assert min(shares) < 0.5


def test_left_to_right_models_return_the_prefix_log_prob() -> None:
    """Witness: `continuation_log_probs` of the preceding words; the BiLSTM returns nan."""
    kinds: tuple[Kind, ...] = ("rnn", "lstm")
    for kind in kinds:
        network = build(kind)
        for position in range(1, len(NATURAL)):
            prefix = Continuation(Sentence(NATURAL.words[:position]), 0)
            log_prob = network.replacements(NATURAL, position, ["house"]).prefix_log_prob
            assert log_prob == pytest.approx(network.continuation_log_probs([prefix])[0], abs=1e-4)
        assert network.replacements(NATURAL, 0, ["They"]).prefix_log_prob == 0
    assert np.isnan(build("bilstm").replacements(NATURAL, 2, ["house"]).prefix_log_prob)
