"""A network and its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from contstim.errors import ModelError
from contstim.models.checkpoints.windows import window_of
from contstim.models.fingerprints import fingerprint, fingerprint_of_tokenizer

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

    @property
    def has_weights(self) -> bool:
        """Whether the network can be asked; else it has a shape only, for its tokenizer's sake."""
        return all(weight.device.type != "meta" for weight in self.model.parameters())

    def require_weights(self) -> None:
        """Refuse to ask a network that was loaded for its tokenizer only.

        Raises:
            ModelError: it was.
        """
        if not self.has_weights:
            raise ModelError(
                f"{self.location} was loaded without its weights, to ask how it reads words. Load "
                f"it with weights=True to score sentences."
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of weights, precision, configuration and tokenizer; the same wherever they lie.

        Of the tokenizer alone where there are no weights.
        """
        if not self.has_weights:
            return fingerprint_of_tokenizer(self.tokenizer)
        return fingerprint(self.model, self.tokenizer)

    @property
    def window(self) -> int | None:
        """How many tokens the network can read; None where it sets no limit."""
        return window_of(self.model)
