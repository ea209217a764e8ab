"""A network and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from contstim.models.checkpoints.windows import window_of
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
        return window_of(self.model)
