"""Recurrent networks over words: network modules, and their files.

Each word has a number. Number 0 is the boundary of a sentence. Every network reads the boundary
before the first word, and a left-to-right network predicts it after the last word. All words
outside the vocabulary have number 1. Suppose that the words of `The dog sleeps` have the numbers 7,
4 and 9. Then a left-to-right network

    reads     0  7  4  9      state i has read the first i + 1 numbers
    predicts  7  4  9  0      one number from each of the states 0, 1, 2, 3

A bidirectional network has two stacks of layers. It predicts word i from one state of each stack:

    forwards   0  7  4        last number read by the forward state of words 0, 1, 2
    backwards  4  9  0        last number read by the backward state; reading begins on the right
    predicts   7  4  9

With many words, a softmax takes more time than the rest of the network. In the adaptive softmax
(Grave et al. 2017, *Efficient softmax approximation for GPUs*), the first softmax distributes the
probability over the frequent words and a few clusters of rarer words. A smaller softmax distributes
the probability of a cluster over its words. Training and scoring use the same softmax.

A model on disk is a folder of three files, none of which can execute code:

    recurrent.json     kind and sizes
    model.safetensors  weights
    vocabulary.csv     words in the order of their numbers, with their counts
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import safetensors.torch
import torch
from annotated_types import Ge, Le, Lt
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn

from contstim.errors import ModelError
from contstim.files.documents import read_json_object, shortened, write_json
from contstim.models.batching import entropy
from contstim.models.specifications import RECURRENT_CONFIGURATION as CONFIGURATION
from contstim.models.tensors import write_tensors
from contstim.models.vocabularies import BOUNDARY, WordList

Kind: TypeAlias = Literal["rnn", "lstm", "bilstm"]
State: TypeAlias = Any  # LSTM: two tensors, RNN: one tensor, each (layers, b, hidden)

_Size: TypeAlias = Annotated[int, Ge(1), Le(10**6)]
_WEIGHTS, _WORDS = "model.safetensors", "vocabulary.csv"
_FORMAT = 1
_MAX_ENDS = 100  # maximum number of borders of clusters, including 0 and the number of outputs


class _PlainLinear(nn.Linear):
    """Linear layer that `use_onednn` does not change.

    oneDNN and PyTorch's default library round sums differently. So with the same seed, training
    with oneDNN would give other weights than training without it.
    """


@dataclass(frozen=True)
class Shape:
    """Kind and sizes of a network.

    Attributes:
        kind: `rnn` (Elman's, with tanh), `lstm`, or `bilstm`.
        words: size of the vocabulary, including the boundary and the unknown word.
        embedding: width of a word's vector.
        hidden: width of a state.
        layers: number of recurrent layers.
        dropout: fraction of the values of embeddings and states that training sets to 0.
        cutoffs: ends of the clusters of an adaptive softmax; empty for a plain softmax.
    """

    kind: Kind
    words: Annotated[int, Ge(1), Le(10**8)]
    embedding: _Size
    hidden: _Size
    layers: Annotated[int, Ge(1), Le(1_000)]
    dropout: Annotated[float, Ge(0), Lt(1)]
    cutoffs: tuple[int, ...] = ()

    @property
    def reads_both_sides(self) -> bool:
        """True if a word is predicted from the words on both sides."""
        return self.kind == "bilstm"


class RecurrentNetwork(nn.Module):
    """Embedding, recurrent layers, and a normalised output layer; see the top of this file.

    The two stacks of a bidirectional network share only the embedding. Word i is predicted from two
    concatenated states. One has read the boundary and the words before word i, the other has read
    the boundary and the words after word i.
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
        n_outputs = shape.words - shape.reads_both_sides  # bidirectional: no output for `BOUNDARY`
        self.output: nn.Linear | nn.AdaptiveLogSoftmaxWithLoss = (
            nn.AdaptiveLogSoftmaxWithLoss(width, n_outputs, shape.cutoffs, head_bias=True)
            if shape.cutoffs
            else _PlainLinear(width, n_outputs)
        )
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, ids: Tensor, present: Tensor, *, entropies: bool = False) -> Tensor:
        """Compute log p of all predicted numbers of a batch, (n,), nats, sentence by sentence.

        A left-to-right network also predicts the boundary after the words of each sentence.

        Args:
            ids: (b, l) numbers of the words of each sentence, padded on the right.
            present: (b, l) bool, False for padding.
            entropies: whether to return (2, n), with entropies as row 1; ignored by a bidirectional
                network.
        """
        if self.shape.reads_both_sides:
            return self.log_probs(self._around(ids, present)[present], ids[present])
        states, _ = self.run(_shifted(ids, extend=True))
        # After the last word, the network predicts the boundary
        targets = nn.functional.pad(ids.masked_fill(~present, BOUNDARY), (0, 1), value=BOUNDARY)
        scored = nn.functional.pad(present, (1, 0), value=True)
        log_probs = self.log_probs(states[scored], targets[scored])
        if not entropies:
            return log_probs
        # Process a few states at a time: their distributions then fit into the cache of a CPU
        parts = [entropy(self.distributions(part)) for part in torch.split(states[scored], 32)]
        return torch.stack([log_probs.double(), torch.cat(parts)])

    def run(
        self, ids: Tensor, state: State = None, *, backwards: bool = False
    ) -> tuple[Tensor, State]:
        """Read numbers; return the state after each number, (b, l, hidden), and the last state.

        Args:
            ids: numbers to read, (b, l), in reading order.
            state: state from which to continue; None for the start.
            backwards: whether to use the stack that reads from right to left.
        """
        layers = self.backwards if backwards else self.forwards
        states, last = layers(self.dropout(self.embedding(ids)), state)
        return states, last

    def log_probs(self, states: Tensor, numbers: Tensor) -> Tensor:
        """Compute log p (n,) of one number after each state (n, width), nats, in float32."""
        with torch.autocast(states.device.type, enabled=False):
            hidden = self.dropout(states.float())
            # A bidirectional network has no output for the boundary: class i is number i + 1
            classes = numbers - int(self.shape.reads_both_sides)
            if isinstance(self.output, nn.Linear):
                return -nn.functional.cross_entropy(self.output(hidden), classes, reduction="none")
            return torch.as_tensor(self.output(hidden, classes).output)

    def distributions(self, states: Tensor) -> Tensor:
        """Compute log p (n, words) of every number after each state (n, width), nats, float32."""
        states = states.float()
        if isinstance(self.output, nn.Linear):
            result: Tensor = self.output(states).log_softmax(dim=1)
        else:
            result = self.output.log_prob(states)
        if self.shape.reads_both_sides:
            return nn.functional.pad(result, (1, 0), value=-torch.inf)
        return result

    def _around(self, ids: Tensor, present: Tensor) -> Tensor:
        """Return the two states that predict each word, concatenated, (b, l, 2 * hidden)."""
        states_before, _ = self.run(_shifted(ids))
        # The indices n-1-i reverse the n words before reading. After reading, the same indices
        # restore the order of the words' states. Padding gets index 0 and is never scored
        positions = torch.arange(ids.shape[1], device=ids.device)
        mirrored = (present.sum(1, keepdim=True) - 1 - positions).clamp(min=0)  # (b, l)
        states_after, _ = self.run(_shifted(ids.gather(1, mirrored)), backwards=True)
        states_after = states_after.gather(1, mirrored[:, :, None].expand_as(states_after))
        return torch.cat([states_before, states_after], dim=2)


def _layers(shape: Shape) -> nn.RNNBase:
    cell = nn.RNN if shape.kind == "rnn" else nn.LSTM
    between = shape.dropout if shape.layers > 1 else 0.0
    return cell(shape.embedding, shape.hidden, shape.layers, dropout=between, batch_first=True)


def _shifted(ids: Tensor, *, extend: bool = False) -> Tensor:
    """Put the boundary before numbers (b, l); drop the last number unless `extend` is True."""
    return nn.functional.pad(ids, (1, 0 if extend else -1), value=BOUNDARY)


def write_folder(folder: Path, network: RecurrentNetwork, words: WordList) -> None:
    """Write a model. The configuration is written last, so that an incomplete folder has none.

    Raises:
        InputError: if a file cannot be written.
    """
    words.write(folder / _WORDS)
    write_tensors(folder / _WEIGHTS, dict(network.state_dict()))
    write_json(folder / CONFIGURATION, {"format": _FORMAT, **asdict(network.shape)})


def read_folder(folder: Path | str) -> tuple[RecurrentNetwork, WordList]:
    """Read a model, in evaluation mode, on the CPU.

    Raises:
        ModelError: if a file is missing or damaged, or does not fit the other files.
    """
    folder = Path(folder)
    shape = _read_shape(folder)
    words = WordList.from_file(folder / _WORDS)
    if len(words) != shape.words:
        raise ModelError(
            f"{folder} is damaged: its network has {shape.words:,} words, but {_WORDS} has "
            f"{len(words):,} words. Both numbers include the boundary and the unknown word. Train "
            "the model again."
        )
    return _read_network(folder / _WEIGHTS, shape), words


def _read_network(path: Path, shape: Shape) -> RecurrentNetwork:
    try:
        weights = safetensors.torch.load_file(path)
        # A network on the device `meta` allocates no memory. `load_state_dict` checks the shapes
        # of the loaded weights and then assigns them to the network
        with torch.device("meta"):
            network = RecurrentNetwork(shape)
        network.load_state_dict(weights, assign=True)
    except (OSError, RuntimeError, ValueError, TypeError, SafetensorError) as error:
        problem = " ".join(str(error).split())[:200].rstrip(".:") or type(error).__name__
        raise ModelError(
            f"Cannot read the weights in {path}: {problem}. Train the model again."
        ) from error
    for name, weight in network.named_parameters():
        if weight.dtype != torch.float32:
            raise ModelError(
                f"{path} is damaged: {name} is {weight.dtype}, not torch.float32. Train the model "
                "again."
            )
        if not bool(weight.isfinite().all()):
            raise ModelError(
                f"{path} is damaged: {name} has values that are not finite. Train the model again."
            )
    return network.eval()


def _read_shape(folder: Path) -> Shape:
    path = folder / CONFIGURATION
    if not path.is_file():
        kinds = "|".join(get_args(Kind))
        raise ModelError(
            f"{folder} contains no recurrent model ({CONFIGURATION} is missing). Train one "
            f"with 'contstim train {kinds}'."
        )
    try:
        facts = read_json_object(path)
        if repr(facts.pop("format", None)) != str(_FORMAT):
            raise ValueError("written by another version of contstim")
        shape = TypeAdapter(Shape).validate_json(json.dumps(facts), strict=True, extra="forbid")
        # Ends of clusters must increase and be below the number of outputs, see `RecurrentNetwork`
        ends = (0, *shape.cutoffs, shape.words - shape.reads_both_sides)
        if len(ends) > _MAX_ENDS or any(b <= a for a, b in pairwise(ends)):
            raise ValueError(
                f"cutoffs must be at most {_MAX_ENDS - 2} rising numbers from 1 to {ends[-1] - 1}, "
                f"got {shortened(shape.cutoffs)}"
            )
    except ValidationError as error:
        first = error.errors()[0]
        raise ModelError(
            f"{path} does not describe a recurrent model: {first['loc'][0]}: {first['msg']}, got "
            f"{shortened(first['input'])}."
        ) from error
    except ValueError as error:  # also invalid JSON
        raise ModelError(f"{path} does not describe a recurrent model ({error}).") from error
    return shape
