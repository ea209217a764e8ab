"""Analysis of many simulated experiments at once: what tests find, and how precisely.

With G groups of n people the variance of the difference of two accuracies is

    (items + (people + answers) / n) / G,

where `items`, `people` and `answers` are what a group's items, a person and a person's single
answers contribute. More people in the same groups divide the last two alone; more groups with items
of their own divide everything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.crossed import (
    Side,
    blocks_of,
    jackknife_of_means,
    variance_components,
)
from contstim.experiments.analysis.families import (
    FALSE_DISCOVERY_RATE,
    adjusted,
    every_contrast,
    limits_over_groups,
)
from contstim.experiments.analysis.intervals import uncertainty_of
from contstim.experiments.analysis.measures import ACCURACY, known_mean
from contstim.experiments.analysis.signed_ranks import signed_rank_p_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.experiments.analysis.crossed import GroupJackknife
    from contstim.experiments.analysis.effects import Units
    from contstim.experiments.analysis.families import Detectability
    from contstim.experiments.design.population import Population, TrialPreferences
    from contstim.files.arrays import BoolArray, FloatArray, IntArray

_FOR_PRECISION = 100  # experiments that tell how much items, people and answers vary
_NODES = 400  # values of an estimated standard error
LEVEL = 0.05  # of tests, two-sided; each of the two one-sided tests of equivalence has it as well


def significantly_better(
    answers: Sequence[BoolArray],
    sides: Sequence[FloatArray],
    own: Sequence[BoolArray],
    units: Units,
) -> FloatArray:
    """(n_models, n_models): in how many experiments the first model is better than the second.

    Args:
        answers: of each group, (n_experiments, n_people, n_trials): whether each prefers
            sentence_2.
        sides: of each group, (n_experiments, n_trials, n_models): 1 where a model prefers
            sentence_2, -1 where sentence_1, 0 for a tie.
        own: of each group, (n_trials, n_models), which trials evaluate which model.
        units: groups, or people and items crossed.
    """
    n_models, experiments = own[0].shape[1], len(answers[0])
    # The family of `every_contrast`: all pairs of models, then each model against its ceiling
    pairs = list(combinations(range(n_models), 2))
    if units == "crossed":
        groups, shares = group_jackknives(answers, sides, own), np.ones(len(own))
        family = [Side(*pair) for pair in pairs] + [Side(m, ceiling=True) for m in range(n_models)]
        found = [uncertainty_of(groups, shares, ACCURACY.lowest, side) for side in family]
        tests = [(one.estimate, one.p_values()) for one in found]
        differences, p_values = (
            np.stack([np.broadcast_to(x, experiments) for x in kind], axis=1)
            for kind in zip(*tests, strict=True)
        )
    else:
        # (n_experiments, n_groups, 2 * n_models): of models, then of their ceilings
        means = np.stack(list(map(group_means, answers, sides, own)), axis=1)
        first, second = np.array([*pairs, *((m, n_models + m) for m in range(n_models))]).T
        apart = np.moveaxis(means[..., first] - means[..., second], 1, 2)
        differences = np.nansum(apart, axis=2)
        p_values = signed_rank_p_values(apart.reshape(-1, len(own))).reshape(differences.shape)
    significant = adjusted(p_values) < FALSE_DISCOVERY_RATE
    better = np.zeros((n_models, n_models))
    for contrast, (i, j) in enumerate(pairs):
        ahead = np.sign(differences[significant[:, contrast], contrast])
        better[i, j], better[j, i] = (ahead > 0).sum(), (ahead < 0).sum()
    return better


def group_jackknives(
    answers: Sequence[BoolArray], sides: Sequence[FloatArray], own: Sequence[BoolArray]
) -> list[GroupJackknife]:
    """Accuracies of many experiments with each trial left out; see `significantly_better`."""
    groups, items = [], 0
    for given, of_models, mask in zip(answers, sides, own, strict=True):
        chosen, with_others = _with_others(given)
        agreements = (1 + chosen[:, :, None] * of_models.swapaxes(1, 2)[:, None]) / 2
        numbers = items + np.arange(len(mask))
        groups.append(jackknife_of_means(agreements, with_others[:, :, None], mask.T, numbers))
        items += len(mask)
    return groups


def group_means(answers: BoolArray, sides: FloatArray, own: BoolArray) -> FloatArray:
    """Accuracies of a group and its lower noise ceilings, (n_experiments, 2 * n_models).

    nan where the group has no trial of a model, and for the ceilings of groups of one. Args are
    those of `significantly_better`, of one group.
    """
    chosen, with_others = (x.mean(axis=1)[..., None] for x in _with_others(answers))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            (agreement * own).sum(axis=1) / own.sum(axis=0)
            for agreement in ((1 + chosen * sides) / 2, with_others)
        ]
    return np.concatenate(means, axis=1)


def _with_others(answers: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Choices, 1 for sentence_2, -1 for sentence_1, and their agreement with the others' majority.

    (n_experiments, n_people, n_trials) each; nan for people who are alone.
    """
    chosen = np.where(answers, 1.0, -1.0)
    # Each against the sum of the others' sides, as in `accuracy_lower`.
    others = chosen.sum(axis=1, keepdims=True) - chosen
    agreement = (1 + np.sign(others) * chosen) / 2
    return chosen, agreement if answers.shape[1] > 1 else np.full_like(agreement, np.nan)


def family_limits(trials: TrialPreferences, groups: int, participants: int) -> Detectability:
    """Limits of what signed-rank tests over groups can find, whatever people answer.

    Args:
        trials: of one scope.
        groups: how many groups there are; those beyond the design's have trials like its own.
        participants: in each group; those who are alone have no noise ceiling.
    """
    has = np.zeros((trials.designed, len(trials.models)), dtype=np.bool_)
    np.logical_or.at(has, trials.groups, trials.evaluates)
    has, several = has[np.arange(groups) % trials.designed], np.full(groups, participants > 1)
    contrasts = every_contrast(trials.models)
    return limits_over_groups(has, several, trials.models, contrasts, FALSE_DISCOVERY_RATE)


def units_for(families: Iterable[Detectability]) -> Units:
    """Groups, where tests of groups can find something in every scope; else people and items."""
    return "crossed" if any(family.hopeless for family in families) else "groups"


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
        return np.sqrt((self.items + people) / groups)

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
        return np.maximum(1.0, np.where(self.trials > 0, crossed, between))

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

        errors = self._usable(effect, groups, participants)
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = effect / errors
            return known_mean((ndtr(shift - limits) + ndtr(-shift - limits)).mean(axis=1))

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

        limits, errors = (
            self._limits(LEVEL, groups, participants),
            self._usable(0.0, groups, participants),
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            return known_mean(np.maximum(0.0, 2 * ndtr(margin / errors - limits) - 1).mean(axis=1))

    def detectable(self, groups: int, participants: int, rate: float = 0.8) -> float:
        """The smallest difference of accuracies that a single test at .05 finds at a given rate.

        nan where models cannot differ by so much, or nothing is known of answers' scatter.
        """
        from scipy.optimize import brentq

        most = float(np.nanmax(self.widest, initial=0.0))
        limits = self._limits(LEVEL / 2, groups, participants)

        def excess(effect: float) -> float:
            share = self._power(effect, groups, participants, limits)
            return (share if np.isfinite(share) else 1.0) - rate

        reached = self._power(most, groups, participants, limits) if most else np.nan
        # Below the rate, or nan
        return float(brentq(excess, 0.0, most, xtol=1e-6)) if reached >= rate else np.nan

    def _usable(self, effect: float, groups: int, participants: int) -> FloatArray:
        """(n_pairs, 1) standard errors of pairs that can differ by so much, nan for others."""
        errors = self.standard_errors(groups, participants)
        return np.where((errors > 0) & (self.widest >= effect), errors, np.nan)[:, None]

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


def measure_precision(
    trials: TrialPreferences,
    populations: Sequence[Population],
    *,
    participants: int = 10,
    pair: tuple[int, int] | None = None,
    seed: int = 0,
) -> Precision:
    """Variation of items, people and single answers, by what crossed tests say of experiments.

    Args:
        trials: of one scope.
        populations: of the same trials.
        participants: in each group.
        pair: indices of two models; by default the mean over all pairs.
        seed: of the simulation.
    """
    rng, people, places = np.random.default_rng(seed), max(2, participants), trials.places()
    own = [trials.evaluates[of_group] for of_group in places]
    has = np.array([mask.any(axis=0) for mask in own])  # (n_groups, n_models)
    pairs = [pair] if pair else list(combinations(range(len(trials.models)), 2))
    pairs = [(i, j) for i, j in pairs if (has[:, i] & has[:, j]).any()]
    if not pairs:
        return Precision(*np.full((6, 1), np.nan))
    parts, freedoms = [], []
    for population in populations:
        rows = trials.draw(places, -(-_FOR_PRECISION // len(populations)), rng)
        answers = [population.answers(of_group, people, rng) for of_group in rows]
        groups = group_jackknives(answers, [trials.sides[of_group] for of_group in rows], own)
        blocks = [blocks_of(groups, np.ones(len(groups)), Side(*pair)) for pair in pairs]
        known = [variance_components(of_pair) for of_pair in blocks]
        parts.append([[np.mean(x) for x in (c.variance, c.person, c.answers)] for c in known])
        freedoms.append([np.broadcast_to(c.freedom, len(rows[0])) for c in known])
    # Of a group's mean; people and their answers are seen in it too: what they add is taken away.
    groups_of = np.array([len(of_pair) for of_pair in blocks])
    of_means, of_people, answers = np.mean(parts, axis=0).T
    items = of_means * groups_of - of_people / people
    used = np.array([np.mean([len(b.items) - b.means for b in of_pair]) for of_pair in blocks])
    items[(groups_of == 1) & (used < 1)] = np.nan  # one trial: nothing tells how items scatter
    even = Precision(
        np.maximum(0.0, items),
        np.maximum(0.0, of_people - answers),
        answers,
        used,
        np.ones(len(pairs)),
        np.array([_widest(trials, places, *pair) for pair in pairs]),
    )
    median = np.median(np.concatenate(freedoms, axis=1), axis=1)
    normal = [even.freedom(int(n), people)[k] for k, n in enumerate(groups_of)]
    share = np.nan_to_num(median / np.array(normal), nan=1.0)
    return replace(even, evenness=np.clip(share, 0.0, 1.0))


def _widest(trials: TrialPreferences, places: Sequence[IntArray], i: int, j: int) -> float:
    """The largest difference that two models' accuracies can have, whatever people choose."""
    widest = []
    for of_group in places:
        own = trials.evaluates[of_group][:, [i, j]]
        if own.any(axis=0).all():
            shares = trials.sides[of_group][:, [i, j]] * own / own.sum(axis=0)
            # A choice moves the difference by half its shares' difference, to either side.
            widest.append(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
    return float(np.mean(widest))
