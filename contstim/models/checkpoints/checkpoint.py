"""A network and its tokenizer: what kind they are of, and how many tokens they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from contstim.errors import ModelError
from contstim.models.spread import is_spread
from contstim.models.tensors import fingerprint, fingerprint_of_tokenizer

Kind: TypeAlias = Literal["causal", "masked", "classifier"]
"""What a network was trained to do."""

_LIMITS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",  # MPT
    "max_seq_length",
    "max_sequence_length",
    "seq_length",  # ChatGLM
    "n_ctx",
)
"""What configurations call the window, the surest first: old ones keep a stale `n_ctx`."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network with its head, in evaluation mode, and its tokenizer.

    Attributes:
        model: a `transformers` model for causal or masked language modelling, or a classifier of
            sequences.
        tokenizer: a `transformers` tokenizer.
        location: the folder or hub name that it came from.
        device: where the network's inputs go, such as `cpu` or `cuda`; all of it is there unless a
            device map spreads it.
        kind: whether it predicts the next token, hidden ones, or a sequence's class.
    """

    model: Any
    tokenizer: Any
    location: str
    device: str
    kind: Kind

    def __post_init__(self) -> None:
        self.model.eval()

    @property
    def has_weights(self) -> bool:
        """True if the network can score; without weights it has only its shape."""
        return is_spread(self.model) or all(
            weight.device.type != "meta" for weight in self.model.parameters()
        )

    def require_weights(self) -> None:
        """Refuse a network that was loaded for its tokenizer only.

        Raises:
            ModelError: it has no weights.
        """
        if not self.has_weights:
            raise ModelError(
                f"{self.location} was loaded without its weights, to ask how it reads words: it "
                f"cannot score sentences."
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer, wherever the files lie.

        Without weights, the hash of the tokenizer alone.
        """
        if not self.has_weights:
            return fingerprint_of_tokenizer(self.tokenizer)
        return fingerprint(self.model, self.tokenizer)

    @cached_property
    def window(self) -> int | None:
        """Number of tokens that the network can read; None where it sets no limit."""
        return window_of(self.model)


def window_of(model: Any) -> int | None:
    """Number of tokens that a network can read; None where its configuration sets no limit.

    RoBERTa and its kin count positions from the one after the padding index, so that the
    configuration's number is larger than the window.
    """
    config = model.config.get_text_config()
    limits = (getattr(config, name, None) for name in _LIMITS)
    limit = next((n for n in limits if isinstance(n, int) and n > 0), None)
    if limit is None:
        return None
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return limit if padding is None else limit - int(padding) - 1
    return limit


def kind_of(location: str, config: Any) -> Kind:
    """Causal or masked: by the architecture it was saved as, else by what its type can be.

    Raises:
        ModelError: the configuration is that of a classifier, or of another kind of network.
    """
    from transformers.models.auto import modeling_auto as auto

    causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    saved_as = set(_architectures(config))
    if is_classifier(config):
        raise ModelError(
            f"{location} is a classifier of sequences, not a language model. If it judges "
            f"acceptability, name it classifier:{location}."
        )
    # An architecture of one list alone decides; of neither list or of both, the type has to
    is_causal = bool(saved_as & set(causal.values())) or not saved_as & set(masked.values())
    is_masked = bool(saved_as & set(masked.values())) or not saved_as & set(causal.values())
    remote_code = getattr(config, "auto_map", None) or {}  # allowed by now
    is_causal &= config.model_type in causal or "AutoModelForCausalLM" in remote_code
    is_masked &= config.model_type in masked or "AutoModelForMaskedLM" in remote_code
    if getattr(config, "is_encoder_decoder", False) or not (is_causal or is_masked):
        raise ModelError(
            f"{location} ({', '.join(sorted(saved_as)) or config.model_type}) is neither a causal "
            f"nor a masked language model. Give one that predicts the next token or hidden tokens."
        )
    if is_causal and is_masked:  # XLM's one class for both; BERT without its head
        decodes = getattr(config, "causal", False) or getattr(config, "is_decoder", False)
        return "causal" if decodes else "masked"
    return "causal" if is_causal else "masked"


def is_classifier(config: Any) -> bool:
    """True if a checkpoint was saved as a classifier of sequences."""
    return any(name.endswith("ForSequenceClassification") for name in _architectures(config))


def _architectures(config: Any) -> list[str]:
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(
            f"config.json says architectures = {str(names)[:60]!r}; it must be a list of names."
        )
    return names
