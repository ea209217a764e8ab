"""Tests of many simulated experiments at once, and their precision.

With G groups of n people, the variance of a difference of two accuracies is

    (items + (people + answers) / n) / G,

where `items`, `people` and `answers` are the variances due to a group's items, to a person, and to
a person's single answers. More people in the same groups reduce only the last two contributions.
More groups, each with its own items, reduce all three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.crossed import blocks_of, jackknife_of_means, variance_components
from contstim.experiments.analysis.families import (
    FALSE_DISCOVERY_RATE,
    adjust,
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

_N_EXPERIMENTS = 100  # number of experiments for the variances of items, people and answers
_NODES = 400  # number of quantiles that represent the distribution of a standard error
LEVEL = 0.05  # level of a two-sided test; in tests of equivalence, level of each one-sided test


def significantly_better(
    answers: Sequence[BoolArray],
    sides: Sequence[FloatArray],
    evaluates: Sequence[BoolArray],
    units: Units,
) -> FloatArray:
    """Count the experiments in which model i is significantly better than model j.

    Args:
        answers: for each group, (n_experiments, n_people, n_trials): whether a person prefers
            sentence_2.
        sides: for each group, (n_experiments, n_trials, n_models): 1 if a model prefers sentence_2,
            -1 for sentence_1, 0 for a tie.
        evaluates: for each group, (n_trials, n_models), which trials evaluate which model.
        units: random factors of the tests: `groups`, or `crossed` for people and items.

    Returns:
        Counts, (n_models, n_models), with row i and column j.
    """
    n_models, experiments = evaluates[0].shape[1], len(answers[0])
    # Contrasts in the order of `every_contrast`
    pairs = list(combinations(range(n_models), 2))
    # In arrays of results, all models come before all noise ceilings
    family = [*pairs, *((model, n_models + model) for model in range(n_models))]
    if units == "crossed":
        groups, shares = group_jackknives(answers, sides, evaluates), np.ones(len(evaluates))
        uncertainties = [uncertainty_of(groups, shares, ACCURACY.lowest, *pair) for pair in family]
        tests = [(uncertainty.estimate, uncertainty.p_values()) for uncertainty in uncertainties]
        differences, p_values = (
            np.stack([np.broadcast_to(x, experiments) for x in kind], axis=1)
            for kind in zip(*tests, strict=True)
        )
    else:
        # (n_experiments, n_groups, 2 * n_models): models, then their ceilings
        means = np.stack(list(map(group_means, answers, sides, evaluates)), axis=1)
        first, second = np.array(family).T
        pair_differences = np.moveaxis(means[..., first] - means[..., second], 1, 2)
        differences = np.nansum(pair_differences, axis=2)
        p_values = signed_rank_p_values(pair_differences.reshape(-1, len(evaluates))).reshape(
            differences.shape
        )
    significant = adjust(p_values) < FALSE_DISCOVERY_RATE
    better = np.zeros((n_models, n_models))
    for contrast, (i, j) in enumerate(pairs):
        signs = np.sign(differences[significant[:, contrast], contrast])
        better[i, j], better[j, i] = (signs > 0).sum(), (signs < 0).sum()
    return better


def group_jackknives(
    answers: Sequence[BoolArray], sides: Sequence[FloatArray], evaluates: Sequence[BoolArray]
) -> list[GroupJackknife]:
    """Return a jackknife of accuracies for each group; arguments as in `significantly_better`."""
    groups, items = [], 0
    for group_answers, model_sides, mask in zip(answers, sides, evaluates, strict=True):
        chosen, agreement = _choices_and_agreement(group_answers)
        agreements = (1 + chosen[:, :, None] * model_sides.swapaxes(1, 2)[:, None]) / 2
        numbers = items + np.arange(len(mask))
        groups.append(jackknife_of_means(agreements, agreement[:, :, None], mask.T, numbers))
        items += len(mask)
    return groups


def group_means(answers: BoolArray, sides: FloatArray, evaluates: BoolArray) -> FloatArray:
    """Return a group's accuracies and lower noise ceilings, (n_experiments, 2 * n_models).

    Both are nan if no trial of the group evaluates the model. Ceilings are also nan if the group
    has only one participant. The arguments are those of `significantly_better`, for one group.
    """
    chosen, other_agreement = (x.mean(axis=1)[..., None] for x in _choices_and_agreement(answers))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [
            (agreement * evaluates).sum(axis=1) / evaluates.sum(axis=0)
            for agreement in ((1 + chosen * sides) / 2, other_agreement)
        ]
    return np.concatenate(means, axis=1)


def _choices_and_agreement(answers: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return people's choices, and each person's agreement with the majority of the others.

    Both have the shape (n_experiments, n_people, n_trials). Choices are 1 for sentence_2 and -1 for
    sentence_1. Agreement is nan for people who are alone in their group.
    """
    chosen = np.where(answers, 1.0, -1.0)
    other_votes = chosen.sum(axis=1, keepdims=True) - chosen
    agreement = (1 + np.sign(other_votes) * chosen) / 2
    return chosen, agreement if answers.shape[1] > 1 else np.full_like(agreement, np.nan)


def family_limits(trials: TrialPreferences, groups: int, participants: int) -> Detectability:
    """Compute from the design alone which effects signed-rank tests over groups can detect.

    If `groups` is larger than the number of groups of the design, the design's groups are repeated.
    With one participant in each group, there is no noise ceiling.
    """
    has = np.zeros((trials.n_groups, len(trials.models)), dtype=np.bool_)
    np.logical_or.at(has, trials.groups, trials.evaluates)
    has, several = has[np.arange(groups) % trials.n_groups], np.full(groups, participants > 1)
    contrasts = every_contrast(trials.models)
    return limits_over_groups(has, several, trials.models, contrasts, FALSE_DISCOVERY_RATE)


def units_for(families: Iterable[Detectability]) -> Units:
    """Return `groups` if tests over groups can detect effects in every scope, else `crossed`."""
    return "crossed" if any(family.hopeless for family in families) else "groups"


@dataclass(frozen=True, eq=False)
class Precision:
    """Variances of the difference of two accuracies in one group, for each pair of models.

    Attributes:
        items: (n_pairs,), variance due to the group's items.
        people: (n_pairs,), variance due to a person.
        answers: (n_pairs,), variance due to a person's single answers.
        trials: (n_pairs,), degrees of freedom of items. This is the number of a group's trials that
            evaluate one model or both, minus the number of means computed from these trials.
        evenness: (n_pairs,), ratio of actual to nominal degrees of freedom of estimated variances;
            below 1 if some items influence a result more than others.
        widest: (n_pairs,), largest possible difference of accuracies; it is small for models that
            prefer the same sentence in most trials.
    """

    items: FloatArray
    people: FloatArray
    answers: FloatArray
    trials: FloatArray
    evenness: FloatArray
    widest: FloatArray

    def standard_errors(self, groups: int, participants: int) -> FloatArray:
        """Return the standard error of a difference of accuracies, (n_pairs,).

        Each group has its own items.
        """
        people = (self.people + self.answers) / participants
        return np.sqrt((self.items + people) / groups)

    def standard_error(self, groups: int, participants: int) -> float:
        """Return the root mean square, over pairs, of `standard_errors`."""
        return float(np.sqrt(np.mean(self.standard_errors(groups, participants) ** 2)))

    def freedom(self, groups: int, participants: int) -> FloatArray:
        """Return degrees of freedom of the crossed test, (n_pairs,); see `analysis.crossed`."""
        between = np.maximum(1.0, groups - 1 if groups > 1 else self.trials)
        if participants == 1:
            # With one participant per group, the test compares groups, or items if there is only
            # one group
            return np.broadcast_to(between, self.items.shape).astype(np.float64)
        items = self.items + self.answers / participants
        people = (self.people + self.answers) / participants
        answers = self.answers / participants
        trials = np.maximum(1.0, self.trials)
        denominator = items**2 / trials + people**2 / (participants - 1)
        denominator = denominator + answers**2 / ((participants - 1) * trials)
        total = items + people - answers
        with np.errstate(invalid="ignore", divide="ignore"):
            crossed = (
                np.where(denominator > 0, groups * total**2 / denominator, 1.0) * self.evenness
            )
        # With one trial per group, the variance of items is unknown, so the test compares groups
        return np.maximum(1.0, np.where(self.trials > 0, crossed, between))

    def power(self, effect: float, groups: int, participants: int) -> float:
        """Return the power of a single crossed test at .05 if accuracies differ by `effect`.

        The power is averaged over pairs of models. The result is nan if a variance is unknown, or
        if no pair of models can differ this much.
        """
        limits = self._limits(LEVEL / 2, groups, participants)
        return self._power(effect, groups, participants, limits)

    def _power(self, effect: float, groups: int, participants: int, limits: FloatArray) -> float:
        """Return `power` for given `limits` (see `_limits`), which take most time to compute."""
        from scipy.special import ndtr

        errors = self._usable_errors(effect, groups, participants)
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = effect / errors
            return known_mean((ndtr(shift - limits) + ndtr(-shift - limits)).mean(axis=1))

    def equivalence(self, margin: float, groups: int, participants: int) -> float:
        """Return the power to show that two equal models differ by less than a margin.

        Two one-sided tests at .05 must both be significant (Schuirmann 1987). They are significant
        if the 90 % interval of the difference is within the margin. The power is averaged over
        pairs of models.
        """
        from scipy.special import ndtr

        limits = self._limits(LEVEL, groups, participants)
        errors = self._usable_errors(0.0, groups, participants)
        with np.errstate(invalid="ignore", divide="ignore"):
            return known_mean(np.maximum(0.0, 2 * ndtr(margin / errors - limits) - 1).mean(axis=1))

    def detectable(self, groups: int, participants: int, rate: float = 0.8) -> float:
        """Return the smallest difference of accuracies that a test at .05 detects at a given rate.

        The result is nan if no possible difference is detected at this rate, or if a variance is
        unknown.
        """
        from scipy.optimize import brentq

        max_difference = float(np.nanmax(self.widest, initial=0.0))
        limits = self._limits(LEVEL / 2, groups, participants)

        def excess(effect: float) -> float:
            share = self._power(effect, groups, participants, limits)
            return (share if np.isfinite(share) else 1.0) - rate

        if max_difference and self._power(max_difference, groups, participants, limits) >= rate:
            return float(brentq(excess, 0.0, max_difference, xtol=1e-6))
        return np.nan  # the largest power is below the rate, or unknown

    def _usable_errors(self, effect: float, groups: int, participants: int) -> FloatArray:
        """Return standard errors, (n_pairs, 1); nan for pairs that cannot differ by `effect`."""
        errors = self.standard_errors(groups, participants)
        return np.where((errors > 0) & (self.widest >= effect), errors, np.nan)[:, None]

    def _limits(self, tail: float, groups: int, participants: int) -> FloatArray:
        """Return limits of significance, in units of the true standard error, (n_pairs, n).

        A limit is Student's quantile times the estimated standard error. The square of the estimate
        follows a chi-squared distribution, which n equally likely quantiles represent.
        """
        from scipy.stats import chi2
        from scipy.stats import t as student

        freedom = self.freedom(groups, participants)[:, None]
        estimated = np.sqrt(chi2.ppf((np.arange(_NODES) + 0.5) / _NODES, freedom) / freedom)
        return np.asarray(student.isf(tail, freedom) * estimated)


def measure_precision(
    trials: TrialPreferences,
    populations: Sequence[Population],
    *,
    participants: int = 10,
    seed: int = 0,
) -> Precision:
    """Estimate variances of items, people and single answers from simulated experiments."""
    rng = np.random.default_rng(seed)
    people = max(2, participants)
    rows_by_group = trials.rows_by_group()
    masks = [trials.evaluates[group_rows] for group_rows in rows_by_group]
    has = np.array([mask.any(axis=0) for mask in masks])  # (n_groups, n_models)
    numbers = combinations(range(len(trials.models)), 2)
    pairs = [(i, j) for i, j in numbers if (has[:, i] & has[:, j]).any()]
    if not pairs:
        return Precision(*np.full((6, 1), np.nan))
    parts, freedoms = [], []
    for population in populations:
        rows = trials.draw(rows_by_group, -(-_N_EXPERIMENTS // len(populations)), rng)
        answers = [population.answers(group_rows, people, rng) for group_rows in rows]
        groups = group_jackknives(answers, [trials.sides[group_rows] for group_rows in rows], masks)
        blocks = [blocks_of(groups, np.ones(len(groups)), *pair) for pair in pairs]
        components = [variance_components(of_pair) for of_pair in blocks]
        parts.append([[np.mean(x) for x in (c.variance, c.person, c.answers)] for c in components])
        freedoms.append([np.broadcast_to(c.freedom, len(rows[0])) for c in components])
    # The variance of group means includes the variances of people and of their answers. These are
    # subtracted, so that the variance of items remains.
    groups_of = np.array([len(of_pair) for of_pair in blocks])
    of_means, of_people, answers = np.mean(parts, axis=0).T
    items = of_means * groups_of - of_people / people
    spare_trials = np.array(
        [np.mean([len(b.items) - b.means for b in of_pair]) for of_pair in blocks]
    )
    # With one trial the variance of items is unknown
    items[(groups_of == 1) & (spare_trials < 1)] = np.nan
    nominal = Precision(
        np.maximum(0.0, items),
        np.maximum(0.0, of_people - answers),
        answers,
        spare_trials,
        np.ones(len(pairs)),
        np.array([_widest_difference(trials, rows_by_group, *pair) for pair in pairs]),
    )
    median = np.median(np.concatenate(freedoms, axis=1), axis=1)
    normal = [nominal.freedom(int(n), people)[k] for k, n in enumerate(groups_of)]
    share = np.nan_to_num(median / np.array(normal), nan=1.0)
    return replace(nominal, evenness=np.clip(share, 0.0, 1.0))


def _widest_difference(
    trials: TrialPreferences, rows_by_group: Sequence[IntArray], i: int, j: int
) -> float:
    differences = []
    for group_rows in rows_by_group:
        mask = trials.evaluates[group_rows][:, [i, j]]
        if mask.any(axis=0).all():
            shares = trials.sides[group_rows][:, [i, j]] * mask / mask.sum(axis=0)
            # The difference of accuracies is the sum over trials of choice · (share of model i -
            # share of model j) / 2, where choice is 1 or -1. In the largest possible difference, no
            # term is negative.
            differences.append(np.abs(shares[:, 0] - shares[:, 1]).sum() / 2)
    return float(np.mean(differences))
