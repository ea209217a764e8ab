"""A network and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from contstim.models.fingerprints import fingerprint

Kind: TypeAlias = Literal["causal", "masked", "classifier"]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A network with its head, in evaluation mode, and its tokenizer.

    Attributes:
        model: a `transformers` model for causal or masked language modelling, or a classifier of
            sequences.
        tokenizer: a `transformers` tokenizer.
        location: the folder or hub name that it came from.
        device: where the network is, such as `cpu` or `cuda`.
        kind: whether it predicts the next token, hidden ones, or a sequence's class.
    """

    model: Any
    tokenizer: Any
    location: str
    device: str
    kind: Kind

    def __post_init__(self) -> None:
        self.model.eval()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer; the same wherever they lie."""
        return fingerprint(self.model, self.tokenizer)

    @property
    def window(self) -> int | None:
        """How many tokens the network can read; None where it sets no limit."""
        config = self.model.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None)
        if limit is None or limit <= 0:
            return None
        return int(limit) - _positions_before_the_first(self.model)


def _positions_before_the_first(model: Any) -> int:
    """RoBERTa and its kin count positions from the one after the padding index."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            padding = getattr(module, "padding_idx", None)
            return 0 if padding is None else int(padding) + 1
    return 0
