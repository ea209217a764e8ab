"""Loss that a search minimises, and constraint that it keeps, from exact log-probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import LanguageModel
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its log-probabilities, (n_models,), nats, and the loss they make.

    They are exact, except where a perturbation replaces a further word: there they are expected.
    """

    sentence: Sentence
    log_probs: FloatArray
    loss: float


class Objective(ABC):
    """A loss over the log-probabilities that several models give a sentence.

    `models` fixes the rows of every array of log-probabilities, (n_models, n_sentences), nats.
    `accepting` says of each model whether a higher log-probability can only help: it never raises
    the loss and never breaks the constraint. Of the others a lower one can only help.
    """

    models: tuple[LanguageModel, ...]
    accepting: tuple[bool, ...]

    @abstractmethod
    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Loss to minimise, (n_sentences,)."""

    @abstractmethod
    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """By how much sentences miss the constraint, (n_sentences,), nats; 0 where they keep it."""

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Mask of sentences that keep the constraint, (n_sentences,); False if a score is nan."""
        feasible: BoolArray = self.shortfall(log_probs) == 0
        return feasible

    def slack(self, log_probs: FloatArray) -> FloatArray:
        """Sum of the accepting models' log-probabilities less the loss, (n_sentences,), nats.

        High where the constraint leaves room.
        """
        accepted = log_probs[np.array(self.accepting)].sum(axis=0)  # over the accept models' rows
        with np.errstate(invalid="ignore"):  # -inf - -inf
            slack = accepted - self.loss(log_probs)
        return np.where(np.isnan(slack), -np.inf, slack)

    def assess(self, sentence: Sentence, log_probs: FloatArray) -> ScoredSentence:
        """A sentence with its exact log-probabilities, (n_models,), nats, and their loss."""
        return ScoredSentence(sentence, log_probs, float(self.loss(log_probs[:, None])[0]))

    def promising(
        self, log_probs: FloatArray, upper_bounds: FloatArray | float, loss: float
    ) -> BoolArray:
        """Mask of sentences that may still keep the constraint with a loss below the given one.

        Args:
            log_probs: (n_models, n_sentences), nats; nan where not known.
            upper_bounds: which these cannot exceed, (n_models, n_sentences); inf where unknown.
            loss: to fall below.
        """
        # The best that scores not known can be: their bound if accepting, nothing if rejecting.
        best = log_probs.copy()
        bounds = np.broadcast_to(upper_bounds, best.shape)
        for row, (accepting, bound) in enumerate(zip(self.accepting, bounds, strict=True)):
            np.copyto(best[row], bound if accepting else -np.inf, where=np.isnan(best[row]))
        promising: BoolArray = np.logical_and(self.feasible(best), self.loss(best) < loss)
        return promising


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
    accepting = (True, False)

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Log-probability under the reject model, (n_sentences,), nats."""
        rejected: FloatArray = log_probs[1]
        return rejected

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """Distance of the accept model's log-probability below the floor, (n_sentences,), nats."""
        return _below(self.floor, log_probs[0])

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """See `Objective.feasible`; asked of every word at every visit, without the shortfall."""
        feasible: BoolArray = log_probs[0] >= self.floor
        return feasible


@dataclass(frozen=True)
class AllAgree(Objective):
    """A sentence that all of some models accept and all of some others reject.

    Log-probabilities are seen relative to the natural sentence's. The loss is that of the model
    that rejects least; every accept model finds the sentence no less likely than the natural one.

    Attributes:
        models: the accept models, then the reject models.
        n_accept: how many of them accept.
        natural: log-probabilities of the natural sentence, one for each model, nats.
    """

    models: tuple[LanguageModel, ...]
    n_accept: int
    natural: tuple[float, ...]

    @property
    def accepting(self) -> tuple[bool, ...]:  # type: ignore[override]
        """See `Objective`."""
        return tuple(number < self.n_accept for number in range(len(self.models)))

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Distance of the model that rejects least above the natural sentence, nats."""
        natural = np.array(self.natural[self.n_accept :])[:, None]
        highest: FloatArray = (log_probs[self.n_accept :] - natural).max(axis=0)
        return highest

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """Distance of accept models below the natural sentence, summed over them, nats."""
        floors = np.array(self.natural[: self.n_accept])[:, None]
        total: FloatArray = _below(floors, log_probs[: self.n_accept]).sum(axis=0)
        return total


@dataclass(frozen=True)
class AgainstOther(Objective):
    """One sentence of a pair on which two models disagree, the other one given.

    Each model is to find its own sentence of the pair likelier. With the other sentence fixed, the
    difference of the two models' log-ratios, which the pair maximises, grows by what this loss
    falls.

    Attributes:
        models: the model that is to prefer this sentence, then the one that is to prefer the other.
        other: the other sentence's log-probabilities under them, nats.
    """

    models: tuple[LanguageModel, LanguageModel]
    other: tuple[float, float]
    accepting = (True, False)

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Log-probability under the second model less that under the first, nats."""
        accepted, rejected = log_probs
        with np.errstate(invalid="ignore"):  # -inf - -inf
            difference = rejected - accepted
        return np.where(np.isnan(difference), np.inf, difference)

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """By how much the models prefer the wrong sentence, summed over both, nats."""
        accepted, rejected = log_probs
        total: FloatArray = _below(self.other[0], accepted) + _below(rejected, self.other[1])
        return total


@dataclass(frozen=True)
class WithFloor(Objective):
    """Another objective, and a further model whose log-probability must reach a floor.

    Attributes:
        objective: what to minimise and to keep otherwise.
        model: the further model; it comes last among `models`.
        floor: the least log-probability it may give, nats.
    """

    objective: Objective
    model: LanguageModel
    floor: float

    @property
    def models(self) -> tuple[LanguageModel, ...]:  # type: ignore[override]
        """See `Objective`."""
        return (*self.objective.models, self.model)

    @property
    def accepting(self) -> tuple[bool, ...]:  # type: ignore[override]
        """See `Objective`."""
        return (*self.objective.accepting, True)

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """The other objective's."""
        return self.objective.loss(log_probs[:-1])

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """The other objective's, and how far the further model is below its floor, nats."""
        return self.objective.shortfall(log_probs[:-1]) + _below(self.floor, log_probs[-1])


def _below(floor: FloatArray | float, values: FloatArray | float) -> FloatArray:
    """Distance of values below a floor, nats; 0 where they reach it, exactly; nan for nan."""
    misses = ~np.asarray(values >= floor)  # not -inf - -inf, but nan
    below: FloatArray = np.zeros(misses.shape)
    np.subtract(floor, values, out=below, where=misses)
    return below
