"""How exactly an experiment measures a difference between two models, by people and by items.

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


@dataclass(frozen=True)
class Precision:
    """What one group contributes to the variance of a difference, averaged over pairs of models.

    Attributes:
        items: of its items, with all people's answers.
        people: of a person, on these items.
        answers: of a person's single answers.
        trials: of a group that evaluate either of the two models, less what their means use up.
    """

    items: float
    people: float
    answers: float
    trials: float

    def standard_error(self, groups: int, participants: int) -> float:
        """Of a difference of accuracies.

        Args:
            groups: each with items of its own.
            participants: in each group.
        """
        people = (self.people + self.answers) / participants
        return float(np.sqrt((self.items + people) / groups))

    def freedom(self, groups: int, participants: int) -> float:
        """Degrees of freedom of the crossed test, by Satterthwaite; see `analysis.crossed`."""
        if participants == 1:
            # Nobody stands beside: groups are compared, or items where there is one group.
            return max(1.0, groups - 1 if groups > 1 else self.trials)
        items = self.items + self.answers / participants
        people = (self.people + self.answers) / participants
        answers = self.answers / participants
        each = (
            items**2 / max(1.0, self.trials)
            + people**2 / (participants - 1)
            + answers**2 / ((participants - 1) * max(1.0, self.trials))
        )
        total = items + people - answers
        return groups * total**2 / each if each > 0 else 1.0

    def power(self, effect: float, groups: int, participants: int) -> float:
        """How often a single crossed test at .05 calls models that differ by so much different.

        Args:
            effect: difference of accuracies.
            groups: each with items of its own.
            participants: in each group.
        """
        from scipy.special import ndtr

        error = self.standard_error(groups, participants)
        if error == 0:
            return float(effect != 0)
        limits, shift = self._limits(LEVEL / 2, groups, participants), effect / error
        return float((ndtr(shift - limits) + ndtr(-shift - limits)).mean())

    def equivalence(self, margin: float, groups: int, participants: int) -> float:
        """How often two models that do not differ are shown to differ by less than a margin.

        Both of two one-sided tests at .05 have to reject (Schuirmann 1987): the 90 % interval lies
        within the margin.

        Args:
            margin: difference of accuracies.
            groups: each with items of its own.
            participants: in each group.
        """
        from scipy.special import ndtr

        error = self.standard_error(groups, participants)
        if error == 0:
            return float(margin > 0)
        inside = margin / error - self._limits(LEVEL, groups, participants)
        return float(np.maximum(0.0, 2 * ndtr(inside) - 1).mean())

    def detectable(self, groups: int, participants: int, rate: float = 0.8) -> float:
        """The smallest difference of accuracies that a single test at .05 finds at a given rate."""
        from scipy.optimize import brentq

        error = self.standard_error(groups, participants)
        if not error > 0:
            return error
        most = error * (10 + self._limits(LEVEL / 2, groups, participants).max())
        return float(
            brentq(lambda d: self.power(d, groups, participants) - rate, 0.0, most, xtol=1e-6)
        )

    def _limits(self, tail: float, groups: int, participants: int) -> FloatArray:
        """(n,) how many true standard errors a difference must exceed to be significant.

        It is Student's limit times the estimated standard error, whose square has a chi-squared
        distribution: n equally likely values of it.
        """
        from scipy.stats import chi2
        from scipy.stats import t as student

        freedom = self.freedom(groups, participants)
        estimated = np.sqrt(chi2.ppf((np.arange(_NODES) + 0.5) / _NODES, freedom) / freedom)
        limits: FloatArray = student.isf(tail, freedom) * estimated
        return limits
