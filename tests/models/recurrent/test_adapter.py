"""RNN, LSTM and BiLSTM against enumeration and the networks read word by word."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from contstim.models.costs import Tally, counting
from contstim.models.recurrent.adapter import RecurrentModel
from contstim.models.recurrent.network import Kind
from contstim.models.vocabularies import BOUNDARY
from contstim.testing.contract import SENTENCES, LanguageModelContract
from contstim.words.sentence import Sentence
from tests.models.recurrent.conftest import KINDS, build, word_list

CUTOFFS = (20, 60)

SENTENCE = Sentence.parse("The old teacher reads a book.")


class TestContract(LanguageModelContract):
    @pytest.fixture(
        scope="module",
        params=[*product(KINDS, (1,), ((),)), ("lstm", 1, CUTOFFS), ("bilstm", 2, CUTOFFS)],
        ids=str,
    )
    @classmethod
    def model(cls, request: pytest.FixtureRequest) -> RecurrentModel:
        kind, layers, cutoffs = request.param
        return build(kind, layers=layers, cutoffs=cutoffs)


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
@pytest.mark.parametrize("position", [0, 2, 4])
def test_bilstm_probabilities_of_all_words_at_a_place_sum_to_one(
    cutoffs: tuple[int, ...], position: int
) -> None:
    """Witness: one sentence for each word of the vocabulary and one for all others, enumerated."""
    model = build("bilstm", cutoffs=cutoffs)
    sentence = Sentence.parse("Do you know the answer")
    everything = (*word_list().words, "zyzzyva")
    scored = model.token_log_probs([sentence.replace(position, word) for word in everything])
    assert np.exp([terms[position].log_prob for terms in scored]).sum() == pytest.approx(
        1, abs=1e-5
    )


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
@pytest.mark.parametrize("kind", ["rnn", "lstm"])
def test_probabilities_of_all_continuations_sum_to_one(
    kind: Kind, cutoffs: tuple[int, ...]
) -> None:
    """Witness: after "Do you" comes the end, a word of the vocabulary, or another: enumerated."""
    model = build(kind, cutoffs=cutoffs)
    everything = (*word_list().words, "zyzzyva")
    ended = model.token_log_probs([Sentence(("Do", "you"))])[0][-1].log_prob
    going_on = model.token_log_probs([Sentence(("Do", "you", word)) for word in everything])
    total = np.exp([ended, *(terms[2].log_prob for terms in going_on)]).sum()
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_bilstm_states_never_see_the_word_they_predict(
    layers: int, cutoffs: tuple[int, ...]
) -> None:
    """Changing the word at a place changes every other place's distribution, and not its own."""
    model = build("bilstm", layers=layers, cutoffs=cutoffs)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        changed = sentence.replace(position, "sleeps")
        before, after = (_distributions(model, s) for s in (sentence, changed))
        own = np.arange(len(sentence)) == position
        np.testing.assert_array_equal(before[own], after[own])
        assert (np.abs(before[~own] - after[~own]).max(axis=1) > 1e-3).all()


def _distributions(model: RecurrentModel, sentence: Sentence) -> np.ndarray:
    """(words of the sentence, words of the vocabulary) log p as the network itself gives it."""
    ids = torch.from_numpy(model._words.numbers(sentence.words))[None]
    with torch.inference_mode():
        states = model._network._around(ids, torch.ones_like(ids, dtype=torch.bool))
        found: np.ndarray = model._network.distributions(states[0])[:, 1:].numpy()
    return found


@pytest.mark.parametrize("cutoffs", [(), CUTOFFS])
def test_scores_are_those_of_torchs_cells_stepped_by_hand(
    kind: Kind, cutoffs: tuple[int, ...]
) -> None:
    """Witness: `torch.nn.RNNCell` and `LSTMCell` with the same weights, one word after another."""
    model = build(kind, cutoffs=cutoffs)
    for sentence, score in zip(SENTENCES, model.log_probs(SENTENCES), strict=True):
        assert score == pytest.approx(_by_hand(model, sentence), abs=1e-4)


def _by_hand(model: RecurrentModel, sentence: Sentence) -> float:
    network, kind = model._network, model._network.shape.kind
    ids = model._words.numbers(sentence.words).tolist()
    before = _stepped(network.forwards, network.embedding, [BOUNDARY, *ids])
    if kind == "bilstm":
        after = _stepped(network.backwards, network.embedding, [BOUNDARY, *ids[::-1]])
        states = [torch.cat([before[i], after[len(ids) - 1 - i]]) for i in range(len(ids))]
        targets = ids
    else:
        states, targets = before, [*ids, BOUNDARY]
    with torch.no_grad():
        every = network.distributions(torch.stack(states))
    return float(sum(every[i, target] for i, target in enumerate(targets)))


def _stepped(
    layers: torch.nn.RNNBase, embedding: torch.nn.Embedding, ids: list[int]
) -> list[torch.Tensor]:
    """The state after each number, from torch's single-step cell."""
    is_lstm = isinstance(layers, torch.nn.LSTM)
    cell = (torch.nn.LSTMCell if is_lstm else torch.nn.RNNCell)(8, 16)
    cell.load_state_dict({name[:-3]: weight for name, weight in layers.state_dict().items()})
    state, states = None, []
    with torch.no_grad():
        for number in ids:
            state = cell(embedding.weight[number][None], state)
            states.append((state[0] if is_lstm else state)[0])
    return states


def test_bounds_are_what_the_words_before_and_the_word_cost(kind: Kind) -> None:
    """The bound is the sum of the terms that no later reading of the candidate can change."""
    model = build(kind)
    sentence = SENTENCES[0]
    for position in range(len(sentence)):
        bound = model.replacements(sentence, position, [sentence.words[position]]).upper_bound[0]
        terms = [term.log_prob for term in model.token_log_probs([sentence])[0]]
        known = terms[position] if kind == "bilstm" else sum(terms[: position + 1])
        assert bound == pytest.approx(known, abs=1e-4)


def test_the_fingerprint_follows_weights_and_words(kind: Kind) -> None:
    first, again = build(kind), build(kind)
    assert first.convention == again.convention
    with torch.no_grad():
        again._network.embedding.weight[5, 2] += 1e-3
    changed = type(again)(again._network, again._words, name="changed")
    assert changed.convention.fingerprint != first.convention.fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_every_reading_of_the_layers_counts_as_a_pass(kind: Kind) -> None:
    """Witness: hooks on the recurrent layers; the two stacks read a whole sentence in one pass."""
    model = build(kind)
    passed: list[int] = []

    def note(_module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        passed.append(len(inputs[0]))

    stacks = [layer for layer in model._network.modules() if isinstance(layer, torch.nn.RNNBase)]
    for stack in stacks:
        stack.register_forward_pre_hook(note)

    with counting(Tally()) as tally:
        model.log_probs([SENTENCE])
    assert tally.total.rows * len(stacks) == sum(passed)

    passed.clear()
    for _ in range(2):  # what has been read is remembered, and costs nothing the second time
        with counting(Tally()) as tally:
            model.replacements(SENTENCE, 2, ("dog", "a"))
        assert tally.total.rows == sum(passed)
        passed.clear()
    assert tally.total.rows == 0
