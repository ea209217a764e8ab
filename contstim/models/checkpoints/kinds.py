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
    saved_as = set(_architectures(config))
    if is_classifier(config):
        raise ModelError(
            f"{location} is a classifier of sequences, not a language model. If it judges "
            f"acceptability, name it classifier:{location}."
        )
    is_causal = bool(saved_as & set(causal.values())) or not saved_as & set(masked.values())
    is_masked = bool(saved_as & set(masked.values())) or not saved_as & set(causal.values())
    own = getattr(config, "auto_map", None) or {}  # code of its own, which is allowed by now
    is_causal &= config.model_type in causal or "AutoModelForCausalLM" in own
    is_masked &= config.model_type in masked or "AutoModelForMaskedLM" in own
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
    return any(name.endswith("ForSequenceClassification") for name in _architectures(config))


def _architectures(config: Any) -> list[str]:
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(
            f"config.json says architectures = {str(names)[:60]!r}; it must be a list of names."
        )
    return names


def _reads_left_to_right(config: Any) -> bool:
    return bool(getattr(config, "causal", False) or getattr(config, "is_decoder", False))
