"""Recurrent networks over words: what they read, and what they predict from which states.

Words are numbers. Number 0 is the boundary: it is read before a sentence, and a left-to-right
network predicts it after the last word. Number 1 stands for every word outside the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from contstim.models.recurrent.output import output_layer

Kind: TypeAlias = Literal["rnn", "lstm", "bilstm"]
State: TypeAlias = Any  # of an LSTM two tensors, of an RNN one, each (layers, b, hidden)

BOUNDARY, UNKNOWN = 0, 1

_WEIGHT_RANGE = 0.1


@dataclass(frozen=True)
class Shape:
    """The sizes of a network.

    Attributes:
        kind: `rnn` (Elman's, with tanh), `lstm`, or `bilstm`.
        words: how many numbers it reads, boundary and unknown words included.
        embedding: width of a word's vector.
        hidden: width of a state.
        layers: how many recurrent layers stand on each other.
        dropout: share of embeddings and states that training hides.
        cutoffs: where the output layer's clusters end; none: a plain softmax.
    """

    kind: Kind
    words: int
    embedding: int
    hidden: int
    layers: int
    dropout: float
    cutoffs: tuple[int, ...] = ()

    @property
    def reads_both_sides(self) -> bool:
        """Whether a word is predicted from the words on both sides of it."""
        return self.kind == "bilstm"


class RecurrentNetwork(nn.Module):
    """Embedding, recurrent layers, and a normalised output layer.

    A left-to-right network predicts each word, and then the boundary, from the state after the
    words before it.

    A bidirectional one has two stacks of layers that share the embedding and nothing else. One has
    read the boundary and the words up to i-1, the other the boundary and the words from the last
    down to i+1, when the two states side by side predict word i. Neither stack has read word i by
    then, and no layer of one sees a state of the other: so no state can leak the word that it
    predicts. The boundary is not predicted.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.words, shape.embedding)
        self.dropout = nn.Dropout(shape.dropout)
        self.forwards = _layers(shape)
        if shape.reads_both_sides:
            self.backwards = _layers(shape)
        width = shape.hidden * (1 + shape.reads_both_sides)
        self.output = output_layer(width, shape.words - shape.reads_both_sides, shape.cutoffs)
        nn.init.uniform_(self.embedding.weight, -_WEIGHT_RANGE, _WEIGHT_RANGE)

    def forward(self, ids: Tensor, present: Tensor) -> Tensor:
        """Log p (n,), nats, of each word of some sentences (and of each end), sentence by sentence.

        Args:
            ids: (b, l) the words of each sentence, padded on the right.
            present: (b, l) bool, which of them are words.
        """
        if self.shape.reads_both_sides:
            return self.log_probs(self._around(ids, present)[present], ids[present])
        states, _ = self.read(_shifted(ids, extend=True))
        followed = nn.functional.pad(ids.masked_fill(~present, BOUNDARY), (0, 1), value=BOUNDARY)
        scored = nn.functional.pad(present, (1, 0), value=True)
        return self.log_probs(states[scored], followed[scored])

    def read(
        self, ids: Tensor, state: State = None, *, backwards: bool = False
    ) -> tuple[Tensor, State]:
        """States (b, l, hidden) after each of the numbers (b, l), and the last to read on from."""
        layers = self.backwards if backwards else self.forwards
        states, last = layers(self.dropout(self.embedding(ids)), state)
        return states, last

    def log_probs(self, states: Tensor, numbers: Tensor) -> Tensor:
        """Log p (n,) of one number after each state (n, width), nats, in float32."""
        with torch.autocast(states.device.type, enabled=False):
            hidden = self.dropout(states.float())
            result: Tensor = self.output.of(hidden, numbers - int(self.shape.reads_both_sides))
        return result

    def distributions(self, states: Tensor) -> Tensor:
        """Log p (n, words) of every number after each state (n, width), nats, in float32."""
        result: Tensor = self.output.all(states.float())
        if self.shape.reads_both_sides:
            return nn.functional.pad(result, (1, 0), value=-torch.inf)
        return result

    def _around(self, ids: Tensor, present: Tensor) -> Tensor:
        """States (b, l, 2 * hidden) from the words before and the words after each word."""
        before, _ = self.read(_shifted(ids))
        places = torch.arange(ids.shape[1], device=ids.device)
        mirrored = (present.sum(1, keepdim=True) - 1 - places).clamp(min=0)  # (b, l)
        after, _ = self.read(_shifted(ids.gather(1, mirrored)), backwards=True)
        after = after.gather(1, mirrored[:, :, None].expand(-1, -1, after.shape[2]))
        return torch.cat([before, after], dim=2)


def _layers(shape: Shape) -> nn.RNNBase:
    cell = nn.RNN if shape.kind == "rnn" else nn.LSTM
    between = shape.dropout if shape.layers > 1 else 0.0
    return cell(shape.embedding, shape.hidden, shape.layers, dropout=between, batch_first=True)


def _shifted(ids: Tensor, *, extend: bool = False) -> Tensor:
    """The boundary and all numbers (b, l + 1), or all but the last (b, l)."""
    return nn.functional.pad(ids, (1, 0 if extend else -1), value=BOUNDARY)
