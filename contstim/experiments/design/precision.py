"""Precision of a measured difference between two models, by people and by items.

With G groups of n people the variance of the difference of two accuracies is

    (items + (people + answers) / n) / G,

where `items`, `people` and `answers` are what a group's items, a person and a person's single
answers contribute. More people in the same groups divide the last two alone; more groups with items
of their own divide everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from contstim.arrays import FloatArray

_NODES = 400  # values of an estimated standard error
LEVEL = 0.05  # of tests, two-sided; each of the two one-sided tests of equivalence has it as well


@dataclass(frozen=True, eq=False)
class Precision:
    """Contribution of one group to the variance of differences, pair by pair of models.

    Attributes:
        items: (n_pairs,) of its items, with all people's answers.
        people: (n_pairs,) of a person, on these items.
        answers: (n_pairs,) of a person's single answers.
        trials: (n_pairs,) of a group that evaluate either of the two models, less what their means
            use up.
        evenness: (n_pairs,) the share of their degrees of freedom that estimated variances have,
            since some items move a result more than others.
        widest: (n_pairs,) the largest difference that can be: models that prefer the same sentence
            in most trials cannot differ by much.
    """

    items: FloatArray
    people: FloatArray
    answers: FloatArray
    trials: FloatArray
    evenness: FloatArray
    widest: FloatArray

    def standard_errors(self, groups: int, participants: int) -> FloatArray:
        """(n_pairs,) of a difference of accuracies.

        Args:
            groups: each with items of its own.
            participants: in each group.
        """
        people = (self.people + self.answers) / participants
        errors: FloatArray = np.sqrt((self.items + people) / groups)
        return errors

    def standard_error(self, groups: int, participants: int) -> float:
        """The root mean square of those of all pairs."""
        return float(np.sqrt(np.mean(self.standard_errors(groups, participants) ** 2)))

    def freedom(self, groups: int, participants: int) -> FloatArray:
        """(n_pairs,) degrees of freedom of the crossed test; see `analysis.crossed`."""
        between = np.maximum(1.0, groups - 1 if groups > 1 else self.trials)
        if participants == 1:
            # Nobody stands beside: groups are compared, or items where there is one group.
            return np.broadcast_to(between, self.items.shape).astype(np.float64)
        items = self.items + self.answers / participants
        people = (self.people + self.answers) / participants
        answers = self.answers / participants
        trials = np.maximum(1.0, self.trials)
        each = items**2 / trials + people**2 / (participants - 1)
        each = each + answers**2 / ((participants - 1) * trials)
        total = items + people - answers
        with np.errstate(invalid="ignore", divide="ignore"):
            crossed = np.where(each > 0, groups * total**2 / each, 1.0) * self.evenness
        # With one trial a group nothing tells how items scatter: groups are compared.
        freedom: FloatArray = np.maximum(1.0, np.where(self.trials > 0, crossed, between))
        return freedom

    def power(self, effect: float, groups: int, participants: int) -> float:
        """Power of a single crossed test at .05 for models that differ by so much.

        The mean over pairs of models; nan where any answers' scatter is unknown, or where no pair
        can differ by so much.

        Args:
            effect: difference of accuracies.
            groups: each with items of its own.
            participants: in each group.
        """
        limits = self._limits(LEVEL / 2, groups, participants)
        return self._power(effect, groups, participants, limits)

    def _power(self, effect: float, groups: int, participants: int, limits: FloatArray) -> float:
        """`power` at limits that are known already; they take nearly all of its time."""
        from scipy.special import ndtr

        errors = self._usable(effect, groups, participants)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = effect / errors
            rates = (ndtr(shift - limits) + ndtr(-shift - limits)).mean(axis=1)
        return _mean(rates)

    def equivalence(self, margin: float, groups: int, participants: int) -> float:
        """Power to show that two models that do not differ differ by less than a margin.

        Both of two one-sided tests at .05 have to reject (Schuirmann 1987): the 90 % interval lies
        within the margin. The mean over pairs of models.

        Args:
            margin: difference of accuracies.
            groups: each with items of its own.
            participants: in each group.
        """
        from scipy.special import ndtr

        errors = self._usable(0.0, groups, participants)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = margin / errors - self._limits(LEVEL, groups, participants)
            rates = np.maximum(0.0, 2 * ndtr(inside) - 1).mean(axis=1)
        return _mean(rates)

    def detectable(self, groups: int, participants: int, rate: float = 0.8) -> float:
        """The smallest difference of accuracies that a single test at .05 finds at a given rate.

        nan where models cannot differ by so much, or nothing is known of answers' scatter.
        """
        from scipy.optimize import brentq

        most = float(np.nanmax(self.widest, initial=0.0))
        if most == 0:
            return np.nan
        limits = self._limits(LEVEL / 2, groups, participants)

        def excess(effect: float) -> float:
            share = self._power(effect, groups, participants, limits)
            return (share if np.isfinite(share) else 1.0) - rate

        if not np.isfinite(self._power(most, groups, participants, limits)):
            return np.nan
        if excess(most) < 0:
            return np.nan
        return float(brentq(excess, 0.0, most, xtol=1e-6))

    def _usable(self, effect: float, groups: int, participants: int) -> FloatArray:
        """Standard errors of pairs that can differ by so much, nan for others."""
        errors = self.standard_errors(groups, participants)
        usable: FloatArray = np.where((errors > 0) & (self.widest >= effect), errors, np.nan)
        return usable

    def _limits(self, tail: float, groups: int, participants: int) -> FloatArray:
        """(n_pairs, n) how many true standard errors a difference must exceed to be significant.

        It is Student's limit times the estimated standard error, whose square has a chi-squared
        distribution: n equally likely values of it.
        """
        from scipy.stats import chi2
        from scipy.stats import t as student

        freedom = self.freedom(groups, participants)[:, None]
        estimated = np.sqrt(chi2.ppf((np.arange(_NODES) + 0.5) / _NODES, freedom) / freedom)
        limits: FloatArray = student.isf(tail, freedom) * estimated
        return limits


def _mean(rates: FloatArray) -> float:
    rates = rates[np.isfinite(rates)]
    return float(rates.mean()) if len(rates) else np.nan
