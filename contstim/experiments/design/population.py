"""People and items that an experiment draws from: a mixed model of choices.

In every trial a person prefers sentence_2 if a hidden value is positive,

    hidden value = signal · (1 + following) + item + noise,

where the signal is what models say of the trial, `item` what people agree on beyond that,
`following` how a person differs from others, and the noise of single answers is standard normal
(Thurstone 1927). It is the model that `contstim mixed` fits to ratings, with the link probit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray

AS_MEASURED = "as measured"
"""The name of a population that follows all models, each as far as people of a pilot did."""

DISTANT, CLOSE = "distant", "close"
"""Where rivals of a planted model stand: with people they share only what they share with it, or
they predict people nearly as well, as other models did where it was measured."""

_NODES = 31  # of Gauss-Hermite quadrature over items


@dataclass(frozen=True, eq=False)
class Population:
    """People and items, for the trials of an experiment.

    Attributes:
        name: the planted model, or `AS_MEASURED`.
        signal: (n_trials,) what models say, in standard deviations of single answers; positive for
            sentence_2.
        item_sd: (n_trials,) how much items vary beyond that, in the same unit.
        following: standard deviation of how far people follow models, as a share of the mean.
        rivals: of a planted model, `DISTANT` or `CLOSE`.
    """

    name: str
    signal: FloatArray
    item_sd: FloatArray
    following: float
    rivals: str = ""

    def choice_probabilities(self) -> FloatArray:
        """(n_trials,) how likely a new person prefers sentence_2 of a new item of this kind."""
        from scipy.special import ndtr

        # All random parts are normal and independent: their variances add up.
        total = np.sqrt(1 + self.item_sd**2 + (self.following * self.signal) ** 2)
        probabilities: FloatArray = ndtr(self.signal / total)
        return probabilities

    def lower_ceiling(self, raters: int) -> float:
        """The expected lower noise ceiling of accuracy on these trials; see `votes_agreement`."""
        from scipy.special import ndtr

        # Given its item, people's answers to a trial are independent: (n_trials, nodes) shares of
        # people who prefer sentence_2, averaged over the normal distribution of items.
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        value = self.signal[:, None] + self.item_sd[:, None] * nodes
        shares = ndtr(value / np.sqrt(1 + (self.following * self.signal[:, None]) ** 2))
        return float((votes_agreement(shares, raters) @ weights / weights.sum()).mean())

    def of_trials(self, rows: IntArray) -> Population:
        """The same for some of the trials, in this order; a trial may stand several times."""
        return replace(self, signal=self.signal[rows], item_sd=self.item_sd[rows])

    def answers(self, rows: IntArray, participants: int, rng: np.random.Generator) -> BoolArray:
        """Who prefers sentence_2, (n_experiments, participants, n_rows): new people, new items.

        Args:
            rows: (n_experiments, n_rows), the trials that a group of participants sees.
            participants: in the group.
            rng: decides.
        """
        experiments, n_rows = rows.shape
        signal = self.signal[rows][:, None]
        items = self.item_sd[rows] * rng.standard_normal(rows.shape)
        following = rng.standard_normal((experiments, participants, 1))
        hidden = rng.standard_normal((experiments, participants, n_rows))
        hidden += signal * (1 + self.following * following) + items[:, None]
        prefers: BoolArray = hidden > 0
        return prefers


def votes_agreement(shares: FloatArray, raters: int) -> FloatArray:
    """Rate at which one of `raters` people agrees with the majority of the others, trial by trial.

    The lower noise ceiling of accuracy (Golan et al. 2023, Methods) where a share of all people
    prefers sentence_2; a majority of half against half counts one half.

    Args:
        shares: of any shape.
        raters: people who see each trial.
    """
    from scipy.special import bdtr, bdtrc

    # Votes of the others for sentence_2 are binomial(others, p). bdtrc(k, n, p) is the chance of
    # more than k, bdtr(k, n, p) of k at most; of an even number of others half may stand against
    # half, which counts one half.
    others = raters - 1
    if others % 2:
        majority = bdtrc(others // 2, others, shares)
    else:
        more, fewer = bdtrc(others // 2, others, shares), bdtr(others // 2 - 1, others, shares)
        majority = (more + 1 - fewer) / 2
    agreement: FloatArray = shares * majority + (1 - shares) * (1 - majority)
    return agreement
