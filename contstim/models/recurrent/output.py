"""Output layers: exact, normalised log-probabilities of words after a state.

Over many words a softmax costs more than all the rest of the network. The adaptive softmax (Grave
et al. 2017, *Efficient softmax approximation for GPUs*) is a softmax over the frequent words and a
few clusters of rarer ones, times a softmax of smaller width within the cluster. It is no
approximation of another model but one of its own: exact in training and in scoring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Sequence


class FullSoftmax(nn.Linear):
    """One softmax over all classes."""

    def of(self, states: Tensor, classes: Tensor) -> Tensor:
        """Log p (n,) of one class after each state (n, width), nats."""
        return -nn.functional.cross_entropy(self(states), classes, reduction="none")

    def all(self, states: Tensor) -> Tensor:
        """Log p (n, classes) of every class after each state (n, width), nats."""
        result: Tensor = self(states).log_softmax(dim=1)
        return result


class AdaptiveSoftmax(nn.AdaptiveLogSoftmaxWithLoss):
    """A softmax over frequent classes and clusters of rarer ones; classes come by frequency."""

    def of(self, states: Tensor, classes: Tensor) -> Tensor:
        """Log p (n,) of one class after each state (n, width), nats."""
        result: Tensor = self(states, classes).output
        return result

    def all(self, states: Tensor) -> Tensor:
        """Log p (n, classes) of every class after each state (n, width), nats."""
        return self.log_prob(states)


Output: TypeAlias = FullSoftmax | AdaptiveSoftmax


def output_layer(width: int, classes: int, cutoffs: Sequence[int]) -> Output:
    """Adaptive where there are cut-offs, else one softmax."""
    if not cutoffs:
        return FullSoftmax(width, classes)
    return AdaptiveSoftmax(width, classes, cutoffs, head_bias=True)
