"""Code of its own that a checkpoint wants to run: only with the user's word."""

from __future__ import annotations

import json
from typing import Any

from contstim.errors import ModelError


def refuse_code(location: str, config: Any, tokenizer_config: Any) -> None:
    """Refuse a checkpoint whose network is not the library's, but Python code beside the weights.

    Checkpoints that bring code for a network that the library has by now load with the library's.

    Args:
        location: where the checkpoint lies.
        config: the content of `config.json`.
        tokenizer_config: the content of `tokenizer_config.json`.

    Raises:
        ModelError: names the code and the option that allows it.
    """
    if _files(config) and not _has_network(config):
        raise code_error(location, config, tokenizer_config)
    if _files(tokenizer_config) and not _has_tokenizer(tokenizer_config):
        raise code_error(location, tokenizer_config)


def code_error(location: str, *configurations: Any) -> ModelError:
    """The refusal of a checkpoint that wants to run code of its own."""
    code = sorted({name for part in configurations for name in _files(part)})
    what = ", ".join(code) or "Python files"
    return ModelError(
        f"{location} wants to run code of its own on this machine ({what}), which nobody here has "
        f"checked. Read it; if you trust it, allow it with --trust-remote-code "
        f"(trust_remote_code=True), or use a checkpoint that needs none."
    )


def _files(configuration: Any) -> list[str]:
    """The classes that an `auto_map` names."""
    names = configuration.get("auto_map") if isinstance(configuration, dict) else None
    if not names:
        return []
    values = names.values() if isinstance(names, dict) else [names]
    return [_text(part) for value in values for part in _parts(value)]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [part for part in value if part is not None]
    return [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _has_network(config: dict[str, Any]) -> bool:
    """Whether the library has the type and the architecture, upper and lower case aside."""
    from transformers.models.auto import modeling_auto as auto

    kind = config.get("model_type")
    names = {
        str(name).lower()
        for mapping in (
            auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
            auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
            auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
            auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES,
            auto.MODEL_MAPPING_NAMES,
        )
        for name in _parts(mapping.get(kind) if isinstance(kind, str) else None)
    }
    saved_as = config.get("architectures") or []
    return bool(names) and all(str(name).lower() in names for name in saved_as)


def _has_tokenizer(tokenizer_config: dict[str, Any]) -> bool:
    """Whether the library has the class; where none is named, it chooses by the network."""
    from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

    name = tokenizer_config.get("tokenizer_class")
    return name is None or tokenizer_class_from_name(str(name)) is not None
