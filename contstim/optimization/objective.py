"""What a search minimises, and what it must keep: functions of exact log-probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import LanguageModel


class Objective(ABC):
    """A loss over the log-probabilities that several models give a sentence.

    `models` fixes the rows of every array of log-probabilities, (n_models, n_sentences), nats.
    """

    models: tuple[LanguageModel, ...]

    @abstractmethod
    def loss(self, log_probs: FloatArray) -> FloatArray:
        """What to minimise, (n_sentences,)."""

    @abstractmethod
    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Which sentences keep the constraint, (n_sentences,)."""


@dataclass(frozen=True)
class AcceptReject(Objective):
    """A sentence that one model rejects and the other accepts (Golan et al. 2023, Eq. 2).

    The reject model's log-probability as low as it gets, while the accept model finds the sentence
    no less likely than the natural one.

    Attributes:
        models: the accept model, then the reject model.
        floor: log-probability of the natural sentence under the accept model, nats.
    """

    models: tuple[LanguageModel, LanguageModel]
    floor: float

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Log-probability under the reject model, (n_sentences,), nats."""
        rejected: FloatArray = log_probs[1]
        return rejected

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Whether the accept model's log-probability reaches the floor, (n_sentences,)."""
        accepted: BoolArray = log_probs[0] >= self.floor
        return accepted
