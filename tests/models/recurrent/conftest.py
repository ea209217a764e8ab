"""Recurrent models of every kind with random sharpened weights, and a few hundred words."""

from collections.abc import Callable

import pytest
import torch

from contstim.models.recurrent.adapter import BothSidesModel, LeftToRightModel, RecurrentModel
from contstim.models.recurrent.network import Kind, RecurrentNetwork, Shape
from contstim.models.vocabularies import WordList
from contstim.words.sentence import Sentence
from tests.models.tiny import TEXTS

Build = Callable[..., RecurrentModel]

KINDS: tuple[Kind, ...] = ("rnn", "lstm", "bilstm")


def word_list() -> WordList:
    return WordList.from_sentences([Sentence.parse(text) for text in TEXTS])


def build(
    kind: Kind,
    *,
    layers: int = 1,
    cutoffs: tuple[int, ...] = (),
    words: WordList | None = None,
    end_mark: bool = True,
) -> RecurrentModel:
    """Return a model whose scores differ by nats with every word, position and context."""
    words = words or word_list()
    torch.manual_seed(3)
    network = RecurrentNetwork(Shape(kind, len(words), 8, 16, layers, 0.3, cutoffs))
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(4)
    adapter = BothSidesModel if kind == "bilstm" else LeftToRightModel
    return adapter(network, words, name=kind, end_mark=end_mark)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    parameter: Kind = request.param
    return parameter
