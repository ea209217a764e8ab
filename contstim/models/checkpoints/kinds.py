"""Which kind of model a configuration describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contstim.errors import ModelError

if TYPE_CHECKING:
    from contstim.models.checkpoints.checkpoint import Kind


def kind_of(location: str, config: Any) -> Kind:
    """Causal or masked: by the architecture it was saved as, else by what its type can be."""
    from transformers.models.auto import modeling_auto as auto

    causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    saved_as = set(config.architectures or ())
    if is_classifier(config):
        raise ModelError(
            f"{location} is a classifier of sequences, not a language model. If it judges "
            f"acceptability, name it classifier:{location}."
        )
    is_causal = bool(saved_as & set(causal.values())) or not saved_as & set(masked.values())
    is_masked = bool(saved_as & set(masked.values())) or not saved_as & set(causal.values())
    is_causal &= config.model_type in causal
    is_masked &= config.model_type in masked
    if getattr(config, "is_encoder_decoder", False) or not (is_causal or is_masked):
        raise ModelError(
            f"{location} ({', '.join(sorted(saved_as)) or config.model_type}) is neither a causal "
            f"nor a masked language model. Give one that predicts the next token or hidden tokens."
        )
    if is_causal and is_masked:  # XLM's one class for both; BERT without its head
        return "causal" if _reads_left_to_right(config) else "masked"
    return "causal" if is_causal else "masked"


def is_classifier(config: Any) -> bool:
    """Whether a checkpoint was saved as a classifier of sequences."""
    names = config.architectures or ()
    return any(name.endswith("ForSequenceClassification") for name in names)


def _reads_left_to_right(config: Any) -> bool:
    return bool(getattr(config, "causal", False) or getattr(config, "is_decoder", False))
