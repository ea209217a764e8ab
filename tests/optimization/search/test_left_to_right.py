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
from tests.optimization.search.toys import TableModel, search_for

NATURAL = Sentence.parse("They sleeps a house with flowers.")


def vocabulary() -> Vocabulary:
    words = [word for word in word_list().words if word.isalpha()]
    initial = tuple(word for word in words if word[0].isupper())
    return Vocabulary(initial, tuple(word for word in words if word not in initial), frozenset())


def sharpened(kind: Kind) -> RecurrentModel:
    """One that finds most words unlikely."""
    model = build(kind)
    with torch.no_grad():
        for weight in model._network.parameters():
            weight.mul_({"rnn": 2, "lstm": 4}[kind])
    return model


def published_candidates(
    model: RecurrentModel, sentence: Sentence, position: int, words: Sequence[str]
) -> tuple[set[str], float]:
    """Words whose log p given the words before is -10 or more, 5 less while these are under 10."""
    others = {w.lower() for i, w in enumerate(sentence.words) if i != position}
    free = [w for w in words if w != sentence.words[position] and w.lower() not in others]
    prefixes = [Sentence((*sentence.words[:position], word)) for word in free]
    conditional = model.continuation_log_probs([Continuation(p, position) for p in prefixes])
    threshold = -10.0
    while (conditional >= threshold).sum() < 10:
        threshold -= 5
    return {w for w, log_p in zip(free, conditional, strict=True) if log_p >= threshold}, threshold


def best_of(
    some: set[str], models: tuple[LanguageModel, LanguageModel], position: int
) -> Sentence | None:
    """The sentence that is accepted and lowest under the reject model; None if none is lower."""
    changed = [NATURAL, *(NATURAL.replace(position, word) for word in sorted(some))]
    accepted, rejected = (model.log_probs(changed) for model in models)
    rejected = np.where(accepted >= accepted[0] - 1e-6, rejected, np.inf)
    best = int(np.argmin(rejected))
    return changed[best] if rejected[best] < rejected[0] - 1e-6 else None


@pytest.mark.parametrize("kind", ["rnn", "lstm"])
@pytest.mark.parametrize("role", ["accept", "reject"])
def test_recurrent_networks_score_the_published_candidates_and_no_others(
    kind: Kind, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: the rule of the paper, transcribed; the best of these words by brute force."""
    network, table = sharpened(kind), TableModel(1)
    words, asked = vocabulary(), set[str]()
    genuine = network.replacement_log_probs

    def note(sentence: Sentence, position: int, some: Sequence[str]) -> FloatArray:
        asked.update(some)
        return genuine(sentence, position, some)

    monkeypatch.setattr(network, "replacement_log_probs", note)
    both: tuple[LanguageModel, LanguageModel] = (network, table)
    models = both if role == "accept" else both[::-1]
    thresholds, shares = set(), []
    for position in range(len(NATURAL)):
        search = search_for(models[0], models[1], NATURAL, words)
        asked.clear()
        found = search.propose(GOLAN2023.proposer, position)
        expected, threshold = published_candidates(network, NATURAL, position, words.at(position))
        assert asked == expected
        assert found == best_of(expected, models, position)
        thresholds.add(threshold)
        shares.append(len(expected) / len(words.at(position)))
    assert len(thresholds) > 1
    assert min(shares) < 0.5


def test_what_stands_before_is_known_where_a_model_reads_from_left_to_right() -> None:
    """Witness: `continuation_log_probs` of the words before; the BiLSTM does not read so."""
    kinds: tuple[Kind, ...] = ("rnn", "lstm")
    for kind in kinds:
        network = build(kind)
        for position in range(1, len(NATURAL)):
            before = Continuation(Sentence(NATURAL.words[:position]), 0)
            told = network.replacements(NATURAL, position, ["house"]).prefix_log_prob
            assert told == pytest.approx(network.continuation_log_probs([before])[0], abs=1e-4)
        assert network.replacements(NATURAL, 0, ["They"]).prefix_log_prob == 0
    assert np.isnan(build("bilstm").replacements(NATURAL, 2, ["house"]).prefix_log_prob)
