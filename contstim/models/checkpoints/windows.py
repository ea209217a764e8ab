"""How many tokens a network can read."""

from __future__ import annotations

from typing import Any

_LIMITS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",  # MPT
    "max_seq_length",
    "max_sequence_length",
    "seq_length",  # ChatGLM
    "n_ctx",
)
"""What configurations call the limit, the surest first: old ones keep a stale `n_ctx`."""


def window_of(model: Any) -> int | None:
    """How many tokens a network can read; None where its configuration sets no limit."""
    config = model.config.get_text_config()
    for name in _LIMITS:
        limit = getattr(config, name, None)
        if isinstance(limit, int) and limit > 0:
            return limit - positions_before_the_first(model)
    return None


def positions_before_the_first(model: Any) -> int:
    """RoBERTa and its kin count positions from the one after the padding index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return 0 if padding is None else int(padding) + 1
    return 0
