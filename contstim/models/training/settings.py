"""Settings of networks and of their training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args, get_type_hints

from contstim.errors import InputError
from contstim.options import Help, Seed, check_ranges

if TYPE_CHECKING:
    from pathlib import Path

RecurrentKind: TypeAlias = Literal["rnn", "lstm", "bilstm"]
TransformerKind: TypeAlias = Literal["gpt2", "bert"]
Masking: TypeAlias = Literal["plain", "any-order"]
TrainingPrecision: TypeAlias = Literal["auto", "float32", "bfloat16"]

_VocabularySize = Annotated[
    int | None,
    Help(
        "Size of the vocabulary. By default, this is the size of the text's vocabulary, at most "
        "20,000 words or 8,000 tokens.",
        at_least=1,
    ),
]
_Layers = Annotated[int, Help("Number of layers.", at_least=1, at_most=1_000)]
_Dropout = Annotated[
    float, Help("Dropout: proportion of states that training sets to zero.", at_least=0, below=1)
]


@dataclass(frozen=True)
class _Settings:
    """Settings whose ranges and choices are checked."""

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, hint in get_type_hints(type(self)).items():
            value, kinds = getattr(self, name), get_args(hint)
            if isinstance(value, str) and kinds and value not in kinds:
                raise InputError(f"`{name}` must be one of {', '.join(kinds)}, got {value!r}.")


@dataclass(frozen=True)
class TrainingSettings(_Settings):
    """Settings of the training of any network.

    Raises:
        InputError: if a value is out of range.
    """

    epochs: Annotated[int, Help("Maximum number of passes over the text.", at_least=1)] = 6
    batch_size: Annotated[int, Help("Sentences per step.", at_least=1)] = 32
    learning_rate: Annotated[
        float,
        Help(
            "Peak learning rate, at the end of the warm-up. The learning rate then decreases "
            "linearly to zero.",
            above=0,
            at_most=1e38,
        ),
    ] = 0.002
    warmup: Annotated[
        float,
        Help(
            "Warm-up: proportion of steps in which the learning rate increases.", above=0, below=1
        ),
    ] = 0.02
    weight_decay: Annotated[
        float, Help("Weight decay of AdamW. It applies to weight matrices.", at_least=0)
    ] = 0.01
    clip: Annotated[float, Help("Maximum norm of the gradient.", above=0, at_most=1e38)] = 1.0
    validation: Annotated[
        float, Help("Proportion of sentences held out for validation.", above=0, below=1)
    ] = 0.02
    patience: Annotated[
        int,
        Help(
            "Training stops after this number of epochs without a better validation loss.",
            at_least=1,
        ),
    ] = 2
    seed: Seed = 0


@dataclass(frozen=True)
class RecurrentSettings(_Settings):
    """Settings of a recurrent network over words, by default with the sizes of Golan et al. (2023).

    Raises:
        InputError: if a value is out of range.
    """

    kind: RecurrentKind = "lstm"
    embedding: Annotated[int, Help("Width of word embeddings.", at_least=1)] = 256
    hidden: Annotated[int, Help("Width of the recurrent state.", at_least=1)] = 512
    layers: _Layers = 1
    dropout: _Dropout = 0.3
    vocabulary_size: _VocabularySize = None
    min_count: Annotated[int, Help("Minimum count of a word in the vocabulary.", at_least=1)] = 2


@dataclass(frozen=True)
class TransformerSettings(_Settings):
    """Settings of a small GPT-2 or BERT and its tokenizer.

    Attributes:
        kind: `gpt2` (byte-level BPE) or `bert` (WordPiece).
        window: maximum number of tokens, including special tokens.
        mask_share: for `bert`, proportion of tokens that training masks. By default, a random
            proportion is drawn for each sentence. At least one token is masked, at most all tokens.
        masking: for `bert`, weights of masked tokens in the loss. With `plain`, the weights are
            equal. With `any-order`, the weights and the loss are those of masked diffusion. In
            masked diffusion, a fully masked sentence is unmasked token by token. The loss estimates
            the surprisal per token, averaged over all orders in which the tokens can be unmasked.
            This average is an upper bound of the sentence's surprisal per token.

    Raises:
        InputError: if a value is out of range.
    """

    kind: TransformerKind = "gpt2"
    width: Annotated[int, Help("Width of the hidden states.", at_least=1)] = 256
    layers: _Layers = 4
    heads: Annotated[int, Help("Attention heads per layer, a divisor of `width`.", at_least=1)] = 4
    window: Annotated[int, Help("Maximum number of tokens that the network reads.", at_least=8)] = (
        128
    )
    dropout: _Dropout = 0.1
    vocabulary_size: _VocabularySize = None
    mask_share: Annotated[
        float | None,
        Help(
            "Proportion of tokens that training masks. By default, it is random for each sentence.",
            above=0,
            below=1,
        ),
    ] = None
    masking: Annotated[
        Masking,
        Help(
            "Weight of masked tokens. With plain, all weights are equal. With any-order, each "
            "weight is n/m if m of a sentence's n tokens are masked, as in masked diffusion."
        ),
    ] = "plain"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise InputError(
                f"`width` must be a multiple of `heads`, {self.heads}, got {self.width}."
            )
        if self.mask_share is not None and self.masking == "any-order":
            raise InputError(
                "`mask_share` must not be set if `masking` is any-order, which draws a random "
                "proportion for every sentence. Remove `mask_share`."
            )


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings of an acceptability classifier.

    Attributes:
        kind: `acceptability`.
        base: pretrained checkpoint to fine-tune, a folder or a name on the Hugging Face hub.
    """

    kind: Literal["acceptability"] = "acceptability"
    base: str = "bert-base-cased"


NetworkSettings: TypeAlias = RecurrentSettings | TransformerSettings | ClassifierSettings
TRANSFORMER_TRAINING = TrainingSettings(learning_rate=0.001, warmup=0.05, epochs=10)
NETWORKS: dict[str, tuple[RecurrentSettings | TransformerSettings, TrainingSettings]] = {
    **{kind: (RecurrentSettings(kind), TrainingSettings()) for kind in get_args(RecurrentKind)},
    **{k: (TransformerSettings(k), TRANSFORMER_TRAINING) for k in get_args(TransformerKind)},
}
"""Default settings of the network and of its training, by the kind of network."""

FINE_TUNING = TrainingSettings(epochs=4, learning_rate=2e-5, warmup=0.1, validation=0.1, patience=4)


def trained_specification(kind: str, out: Path | str) -> str:
    """Return the specification of a trained model, given the output of its training.

    Args:
        kind: `ngram`, or a key of `NETWORKS`.
        out: output folder; for an n-gram model, the path of its file without `.arpa`.
    """
    if kind == "ngram":
        return f"kenlm:{out}.arpa"
    return f"{kind if kind in get_args(RecurrentKind) else 'hf'}:{out}"
