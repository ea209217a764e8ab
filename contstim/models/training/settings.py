"""Settings of a training: of the networks, and of how they are trained."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from contstim.errors import InputError
from contstim.machine import total_memory

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTES_A_WEIGHT = 16  # the weight, its gradient, and AdamW's two moments
_MOST, _MOST_LAYERS = 10**9, 1_000
RecurrentKind: TypeAlias = Literal["rnn", "lstm", "bilstm"]
TransformerKind: TypeAlias = Literal["gpt2", "bert"]
Masking: TypeAlias = Literal["plain", "any-order"]
TrainingPrecision: TypeAlias = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of training a network, whatever it is.

    Attributes:
        epochs: passes over the text at most.
        batch_size: sentences a step.
        learning_rate: its peak, reached after the warm-up; from there it falls to zero in a
            straight line over the steps of all epochs.
        warmup: share of the steps in which the learning rate rises.
        weight_decay: AdamW's, for weight matrices.
        clip: the largest norm of a gradient.
        validation: share of the sentences to validate on.
        patience: how many epochs in a row may bring no better validation loss.
        seed: decides the split, the first weights, the order of sentences, dropout and masks.

    Raises:
        InputError: a value is out of range; names it.
    """

    epochs: int = 6
    batch_size: int = 32
    learning_rate: float = 0.002
    warmup: float = 0.02
    weight_decay: float = 0.01
    clip: float = 1.0
    validation: float = 0.02
    patience: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        _at_least(self, 1, "epochs", "batch_size", "patience")
        _at_most(self, _MOST, "epochs", "batch_size", "patience", "weight_decay")
        _at_least(self, 0, "seed", "weight_decay")
        _between(self, "warmup", "validation")
        _positive(self, "learning_rate", "clip")


@dataclass(frozen=True)
class RecurrentSettings:
    """A recurrent network over words, by default with the sizes of the 2023 study.

    Attributes:
        kind: `rnn`, `lstm` or `bilstm`.
        embedding: width of a word's vector.
        hidden: width of a state.
        layers: number of recurrent layers.
        dropout: share of embeddings and states that training hides.
        vocabulary_size: number of words in the vocabulary; None for all that are frequent enough,
            20,000 at most.
        min_count: the lowest count of a word of the vocabulary.

    Raises:
        InputError: a value is out of range; names it.
    """

    kind: RecurrentKind = "lstm"
    embedding: int = 256
    hidden: int = 512
    layers: int = 1
    dropout: float = 0.3
    vocabulary_size: int | None = None
    min_count: int = 2

    def __post_init__(self) -> None:
        _one_of(self, "kind", get_args(RecurrentKind))
        _at_least(self, 1, "embedding", "hidden", "layers", "min_count", "vocabulary_size")
        _from_0_below_1(self, "dropout")
        _at_most(self, _MOST_LAYERS, "layers")
        _at_most(self, _MOST, "embedding", "hidden")
        # at the least: the matrices of an RNN; an LSTM has four times as many
        _check_memory(self.layers * self.hidden * (self.hidden + self.embedding))


@dataclass(frozen=True)
class TransformerSettings:
    """A small GPT-2 or BERT with a tokenizer of its own.

    Attributes:
        kind: `gpt2` (byte-level BPE) or `bert` (WordPiece).
        width: of the hidden states.
        layers: number of layers.
        heads: of attention in each layer.
        window: how many tokens it reads at most, special ones included.
        dropout: share of states that training hides.
        vocabulary_size: number of tokens; None for as many as the text gives, 8,000 at most.
        mask_share: for `bert`, share of the tokens that training hides; None for a share drawn for
            every sentence, from one token to all of them.
        masking: for `bert`, what the hidden tokens count for: `plain`, each the same; `any-order`,
            for a share drawn for every sentence, each the inverse of the share, so that the loss is
            the bound of masked diffusion: the mean over all orders in which tokens can be
            uncovered.

    Raises:
        InputError: a value is out of range; names it.
    """

    kind: TransformerKind = "gpt2"
    width: int = 256
    layers: int = 4
    heads: int = 4
    window: int = 128
    dropout: float = 0.1
    vocabulary_size: int | None = None
    mask_share: float | None = None
    masking: Masking = "plain"

    def __post_init__(self) -> None:
        _one_of(self, "kind", get_args(TransformerKind))
        _at_least(self, 1, "width", "layers", "heads", "vocabulary_size")
        _at_least(self, 8, "window")
        _from_0_below_1(self, "dropout")
        if self.width % self.heads:
            raise InputError(
                f"A width of {self.width} cannot be shared by {self.heads} heads: choose a "
                f"multiple of the heads."
            )
        if self.mask_share is not None:
            _between(self, "mask_share")
            if self.masking == "any-order":
                raise InputError(
                    "--masking any-order draws the share of hidden tokens for every sentence: give "
                    "it without --mask-share."
                )
        _one_of(self, "masking", get_args(Masking))
        _at_most(self, _MOST_LAYERS, "layers")
        _at_most(self, _MOST, "width", "window")
        # at the least: four matrices of attention and two of 4 times the width, and the positions
        _check_memory(12 * self.layers * self.width**2 + self.window * self.width)


@dataclass(frozen=True)
class ClassifierSettings:
    """A classifier of acceptability on a pretrained network.

    Attributes:
        kind: `acceptability`.
        base: the checkpoint whose network is fine-tuned: a folder, or a name on the hub.
    """

    kind: Literal["acceptability"] = "acceptability"
    base: str = "bert-base-cased"


_EARLIER_MASKING = "masking", "plain"  # the only one there was
NetworkSettings: TypeAlias = RecurrentSettings | TransformerSettings | ClassifierSettings
Settings: TypeAlias = TrainingSettings | NetworkSettings


def option(name: str) -> str:
    """The name of a setting on the command line."""
    return "--" + name.replace("_", "-")


def _refuse(settings: Settings, name: str, allowed: str) -> None:
    raise InputError(f"{option(name)} must be {allowed}, not {getattr(settings, name)!r}.")


def _at_least(settings: Settings, least: int, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        # not `value < least`, which would let nan pass; so in all of these checks
        if value is not None and not value >= least:
            _refuse(settings, name, f"{least} or more")


def _between(settings: Settings, *names: str) -> None:
    for name in names:
        if not 0 < getattr(settings, name) < 1:
            _refuse(settings, name, "between 0 and 1")


def _from_0_below_1(settings: Settings, name: str) -> None:
    if not 0 <= getattr(settings, name) < 1:
        _refuse(settings, name, "from 0 to below 1")


def _positive(settings: Settings, *names: str) -> None:
    for name in names:
        if not 0 < getattr(settings, name) < float("inf"):
            _refuse(settings, name, "above 0")


def _at_most(settings: Settings, most: int, *names: str) -> None:
    for name in names:
        if not getattr(settings, name) <= most:
            _refuse(settings, name, f"at most {most:,}")


def _check_memory(weights: int) -> None:
    """Refuse a network whose weights, gradients and moments this machine's memory cannot hold."""
    memory = total_memory()
    if memory is not None and weights * _BYTES_A_WEIGHT > memory:
        raise InputError(
            f"A network of these sizes has {weights:,} weights or more, which take "
            f"{weights * _BYTES_A_WEIGHT / 2**30:,.0f} GiB to train; this machine has "
            f"{memory / 2**30:,.0f}. Choose smaller sizes or fewer layers."
        )


def _one_of(settings: Settings, name: str, allowed: Iterable[str]) -> None:
    if getattr(settings, name) not in allowed:
        _refuse(settings, name, f"one of {', '.join(allowed)}")


def flattened(*parts: Settings) -> dict[str, object]:
    """All settings by name; without plain masking, which records of earlier versions lack."""
    settings = {f.name: getattr(part, f.name) for part in parts for f in fields(part)}
    return {name: value for name, value in settings.items() if (name, value) != _EARLIER_MASKING}


RECURRENT_TRAINING = TrainingSettings()
TRANSFORMER_TRAINING = TrainingSettings(learning_rate=0.001, warmup=0.05, epochs=10)
FINE_TUNING = TrainingSettings(epochs=4, learning_rate=2e-5, warmup=0.1, validation=0.1, patience=4)
