"""The Laplace approximation to the likelihood of crossed random effects, with its exact gradient.

The hidden value of participant p and trial t is

    eta[p, t] = x[t] · slopes + a[p, t] · u[p] + b · r[t],      u, r independent standard normal

where a[p, t], (n_effects,), is ±1 for a leaning towards a side, by the side on which the trial's
sentences were shown, and the ratios for slopes, times the participants' standard deviations, and b
is the standard deviation of trials. Given u and r, ratings are
independent. The integral over all u and r is replaced by that of the normal density which fits at
the mode (Tierney & Kadane 1986; as R's `ordinal::clmm` does):

    log-likelihood ≈ log p(ratings, mode) - ½ log det H,       H = minus the second derivatives

Everybody in a group was shown every trial of the group, and nothing is shared between groups, so
that their log-likelihoods add. Within a group H has a block for each participant, a block for each
trial and full blocks between the two: of these two factors the larger is eliminated, block by
block, and a matrix of the size of the smaller one remains (its Schur complement), however many
ratings there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray, IntArray

Link: TypeAlias = Literal["probit", "logit"]

_STEPS = 100  # of Newton's method to a mode, from any start; a handful is usual
_NOTHING = np.zeros(1)
_NEAR = 1e-6  # nats that a step promises: then one more step ends within rounding of the mode


@dataclass(frozen=True, eq=False)
class RatedBlock:
    """The ratings of one group.

    Attributes:
        levels: (n_participants, n_trials), 0 to n_levels - 1; -1 where there is no rating.
        predictors: (n_trials, n_predictors), those with a fixed slope.
        effects: (n_participants, n_trials, n_effects), what a participant's effects are multiplied
            with: sides for a leaning, ratios for slopes; no effect where the last axis is empty.
    """

    levels: IntArray
    predictors: FloatArray
    effects: FloatArray


@dataclass(frozen=True, eq=False)
class MixedParameters:
    """Parameters that are estimated.

    Attributes:
        thresholds: (n_levels + 1,) ascending, from -inf to inf.
        slopes: (n_predictors,).
        participants: (n_effects,), the standard deviations of participants' effects.
        trials: the standard deviation of trials. Signs of these are of no consequence.
    """

    thresholds: FloatArray
    slopes: FloatArray
    participants: FloatArray
    trials: float


BlockModes: TypeAlias = "tuple[FloatArray, FloatArray]"
"""The likeliest effects of a group, in units of their standard deviation (see the module): of
participants, (n_participants, n_effects), and of trials, (n_trials,)."""


@dataclass(frozen=True, eq=False)
class BlockLikelihood:
    """The log-likelihood of a group, its gradient, and what it says of each participant and trial.

    Attributes:
        log_likelihood: nats.
        modes: where it was approximated.
        gradient: derivatives by the finite thresholds, the fixed slopes, the standard deviations of
            participants' effects, and that of trials.
        trial_variances: (n_trials,), variance of r given the ratings.
        of_trials: (n_trials,), the log-likelihood of each trial's ratings, integrated over the
            trial's effect, where participants' effects are at the mode.
        of_participants: (n_participants,), the same with participants and trials exchanged.
        of_ratings: (n_participants, n_trials), each rating's with both at the mode.
    """

    log_likelihood: float
    modes: BlockModes
    gradient: FloatArray
    trial_variances: FloatArray
    of_trials: FloatArray
    of_participants: FloatArray
    of_ratings: FloatArray


def block_likelihood(
    link: Link, block: RatedBlock, parameters: MixedParameters, start: BlockModes | None = None
) -> BlockLikelihood:
    """Approximate the log-likelihood of a group.

    Args:
        link: the distribution of the noise.
        block: who rated what.
        parameters: at which to evaluate.
        start: modes near by, of a former evaluation.

    Raises:
        InputError: no mode was found.
    """
    modes, (log_prob, of_eta, of_ends), curvature = _find_modes(link, block, parameters, start)
    people, trials = modes
    value = log_prob.sum() - 0.5 * (people**2).sum() - 0.5 * trials @ trials - 0.5 * curvature.log
    # z are the design vectors of a cell, (a[p, t], b); h = H⁻¹ z where its participant and its
    # trial stand; spread = zᵀ H⁻¹ z, the variance of eta given the ratings.
    h_people, h_trials, spread = curvature.cells()
    # How the log-determinant changes with eta, and what that does through the modes: a change of a
    # parameter moves the modes by H⁻¹ times what it adds to their gradient.
    towards = 0.5 * spread * of_eta[2]
    moved_people, moved_trials = curvature.solve(towards)
    loadings = block.effects * parameters.participants  # a, (n_participants, n_trials, n_effects)
    moved = _in_cells(loadings, moved_people) + parameters.trials * moved_trials
    weights = -of_eta[1]
    by_eta = of_eta[0] + towards - weights * moved  # (n_participants, n_trials)
    # No rating changes with no threshold, so that it may stand with any level
    levels, n_levels = np.maximum(block.levels, 0).ravel(), len(parameters.thresholds) - 1
    # The upper threshold of level y is the finite threshold y, the lower one y - 1; the outermost
    # are infinite, and nothing depends on them.
    upper, lower = (
        np.bincount(levels, (by_end + 0.5 * spread * eta_2 + eta * moved).ravel(), n_levels)
        for by_end, eta, eta_2 in of_ends
    )
    thresholds = upper[:-1] + lower[1:]
    # Standard deviations stand in z itself: by z, and by what z does to eta, in every cell
    by_loading = (
        by_eta[..., None] * people[:, None]
        + of_eta[0][..., None] * moved_people[:, None]
        - weights[..., None] * h_people
    )
    by_trials = (by_eta.sum(axis=0) * trials + of_eta[0].sum(axis=0) * moved_trials).sum()
    gradient = (
        thresholds,
        block.predictors.T @ by_eta.sum(axis=0),
        (block.effects * by_loading).sum(axis=(0, 1)),
        [by_trials - (weights * h_trials).sum()],
    )
    return BlockLikelihood(
        float(value),
        modes,
        np.concatenate(gradient),
        curvature.trial_variances,
        log_prob.sum(axis=0) - 0.5 * trials**2 - 0.5 * curvature.log_trials,
        log_prob.sum(axis=1) - 0.5 * (people**2).sum(axis=1) - 0.5 * curvature.log_people,
        log_prob,
    )


def _find_modes(
    link: Link, block: RatedBlock, parameters: MixedParameters, start: BlockModes | None
) -> tuple[BlockModes, CellDerivatives, _Curvature]:
    """Newton's method: the density is log-concave, so that each step, shortened, climbs."""
    n_people, n_trials = block.levels.shape
    fixed = block.predictors @ parameters.slopes
    loadings = block.effects * parameters.participants
    people, trials = start or (np.zeros((n_people, loadings.shape[2])), np.zeros(n_trials))

    def at(people: FloatArray, trials: FloatArray) -> tuple[float, CellDerivatives]:
        eta = fixed + _in_cells(loadings, people) + parameters.trials * trials
        cells = cell_derivatives(link, block.levels, eta, parameters.thresholds)
        density = cells[0].sum() - 0.5 * (people**2).sum() - 0.5 * trials @ trials
        return float(density), cells

    density, cells = at(people, trials)
    for _ in range(_STEPS):
        slope, curving, _third = cells[1]
        curvature = _Curvature(-curving, loadings, parameters.trials)
        step_people, step_trials = curvature.solve(slope, people, trials)
        # Twice what the quadratic that fits here promises: the gradient times the step
        eta_step = _in_cells(loadings, step_people) + parameters.trials * step_trials
        gain = (slope * eta_step).sum() - (people * step_people).sum() - trials @ step_trials
        size, ahead = 1.0, at(people + step_people, trials + step_trials)
        while gain > _NEAR and ahead[0] <= density and size > 1e-6:
            size /= 2
            ahead = at(people + size * step_people, trials + size * step_trials)
        people, trials = people + size * step_people, trials + size * step_trials
        density, cells = ahead
        if gain < _NEAR:
            return (people, trials), cells, _Curvature(-cells[1][1], loadings, parameters.trials)
    raise InputError("The effects of participants and trials have no likeliest values.")


def _in_cells(loadings: FloatArray, people: FloatArray) -> FloatArray:
    """a[p, t] · u[p], (n_participants, n_trials)."""
    return (loadings @ people[:, :, None])[..., 0]


class _Curvature:
    """H of a group, factorised: the smaller factor is retained, the larger eliminated.

    With K for the retained and E for the eliminated factor, H = [K C; Cᵀ E], where K
    and E are diagonal in blocks, and

        S = K - C E⁻¹ Cᵀ,    H⁻¹ = [S⁻¹, -S⁻¹ M; -Mᵀ S⁻¹, E⁻¹ + Mᵀ S⁻¹ M],    M = C E⁻¹

    Arrays over cells have the axes (n_k, n_e, …).

    Args:
        weights: (n_participants, n_trials), minus the second derivatives by eta.
        loadings: (n_participants, n_trials, n_effects), a.
        scale: the trials' standard deviation, b.

    Attributes:
        log: the log-determinant of H.
        log_people: (n_participants,), those of the blocks of H on its diagonal.
        log_trials: (n_trials,), likewise.
        trial_variances: (n_trials,), the diagonal of H⁻¹ for trials.
    """

    def __init__(self, weights: FloatArray, loadings: FloatArray, scale: float) -> None:
        n_people, n_trials = weights.shape
        people, trials = loadings, np.full((n_people, n_trials, 1), scale)
        self._trials_retained = n_trials < n_people * loadings.shape[2]
        if self._trials_retained:
            weights, people, trials = weights.T, trials.swapaxes(0, 1), people.swapaxes(0, 1)
        # From here on z_k and z_e are the design vectors of the two factors.
        self._z_k, self._z_e = z_k, z_e = people, trials
        (n_k, n_e, q_k), q_e = z_k.shape, z_e.shape[2]
        weighted = weights[..., None] * z_k  # (n_k, n_e, q_k)
        blocks = np.eye(q_k) + weighted.swapaxes(1, 2) @ z_k  # K, (n_k, q_k, q_k)
        by_e = (weights[..., None] * z_e).swapaxes(0, 1)  # (n_e, n_k, q_e)
        corner = np.eye(q_e) + by_e.swapaxes(1, 2) @ z_e.swapaxes(0, 1)  # E, (n_e, q_e, q_e)
        self._corner = np.linalg.inv(corner)
        between = weighted[..., :, None] * z_e[..., None, :]  # C, (n_k, n_e, q_k, q_e)
        times = between @ self._corner  # M
        flat = (n_k * q_k, n_e * q_e)
        self._times = times.swapaxes(1, 2).reshape(flat)
        schur = -self._times @ between.swapaxes(1, 2).reshape(flat).T
        diagonal = schur.reshape(n_k, q_k, n_k, q_k)
        diagonal[np.arange(n_k), :, np.arange(n_k), :] += blocks
        self._inverse = np.linalg.inv(schur)
        logs = np.linalg.slogdet(blocks)[1], np.linalg.slogdet(corner)[1]
        self.log_people, self.log_trials = logs[::-1] if self._trials_retained else logs
        self.log = float(logs[1].sum() + np.linalg.slogdet(schur)[1])

    def solve(
        self, by_eta: FloatArray, people: FloatArray = _NOTHING, trials: FloatArray = _NOTHING
    ) -> tuple[FloatArray, FloatArray]:
        """H⁻¹ times the gradient that a change by eta makes, less the effects where given.

        Args:
            by_eta: (n_participants, n_trials), a derivative by eta.
            people: (n_participants, n_effects) to subtract.
            trials: (n_trials,) to subtract.

        Returns:
            For participants, (n_participants, n_effects), and trials, (n_trials,).
        """
        first, second = people, trials[:, None]
        if self._trials_retained:
            by_eta, first, second = by_eta.T, second, first
        in_k = np.einsum("kg,kgq->kq", by_eta, self._z_k) - first
        in_e = np.einsum("kg,kgq->gq", by_eta, self._z_e) - second
        on_k = self._inverse @ (in_k.ravel() - self._times @ in_e.ravel())
        on_e = (self._corner @ in_e[..., None]).ravel() - self._times.T @ on_k
        both = on_k.reshape(in_k.shape), on_e.reshape(in_e.shape)
        of_people, of_trials = both[::-1] if self._trials_retained else both
        return of_people, of_trials[:, 0]

    def cells(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """H⁻¹ z of each cell for its participant and its trial, and zᵀ H⁻¹ z.

        Returns:
            (n_participants, n_trials, n_effects), and twice (n_participants, n_trials).
        """
        n_k, n_e, q_k = self._z_k.shape
        q_e = self._z_e.shape[2]
        corner = self._inverse.reshape(n_k, q_k, n_k, q_k)
        corner = corner[np.arange(n_k), :, np.arange(n_k), :]  # (n_k, q_k, q_k)
        product = self._inverse @ self._times
        cross = -product.reshape(n_k, q_k, n_e, q_e).swapaxes(1, 2)
        h_k = self._z_k @ corner + (cross @ self._z_e[..., None])[..., 0]
        h_e = (cross.swapaxes(2, 3) @ self._z_k[..., None])[..., 0]
        h_e = h_e + np.einsum("kgq,gqr->kgr", self._z_e, self._inverse_of_e(product))
        spread = (self._z_k * h_k).sum(axis=2) + (self._z_e * h_e).sum(axis=2)
        if self._trials_retained:
            h_k, h_e, spread = h_e.swapaxes(0, 1), h_k.swapaxes(0, 1), spread.T
        return h_k, h_e[..., 0], spread

    @property
    def trial_variances(self) -> FloatArray:
        if self._trials_retained:
            return np.diag(self._inverse)
        return self._inverse_of_e(self._inverse @ self._times)[:, 0, 0]

    def _inverse_of_e(self, product: FloatArray) -> FloatArray:
        """The blocks of H⁻¹ on the diagonal of the eliminated factor, (n_e, q_e, q_e)."""
        n_e, q_e, _ = self._corner.shape
        times = self._times.reshape(-1, n_e, q_e)
        added = np.einsum("kgq,kgr->gqr", times, product.reshape(-1, n_e, q_e))
        inverse: FloatArray = self._corner + added
        return inverse


CellDerivatives: TypeAlias = "tuple[FloatArray, list[FloatArray], list[list[FloatArray]]]"
"""log P of each rating, with the shape of the ratings; its first, second and third derivative by
eta; and its derivatives by the upper and by the lower threshold, each alone, and once and twice by
eta."""


def cell_derivatives(
    link: Link, levels: IntArray, eta: FloatArray, thresholds: FloatArray
) -> CellDerivatives:
    """All that the Laplace approximation needs to know of every rating.

    Args:
        link: the distribution of the noise.
        levels: of the ratings, 0 to n_levels - 1; -1 for none, of which log P is 0 throughout.
        eta: where the hidden values are centred, of the same shape.
        thresholds: (n_levels + 1,) ascending, from -inf to inf.
    """
    upper = np.where(levels < 0, np.inf, thresholds[levels + 1] - eta)
    lower = np.where(levels < 0, -np.inf, thresholds[levels] - eta)
    log_prob = _log_difference(link, upper, lower)
    # Each a ratio of a derivative of F to P: a, a1, a2 = F', F'', F''' at the upper end, b, … at
    # the lower. The density is divided in logs, since both may be too small for a number.
    a, a1, a2 = _ratios(link, upper, log_prob)
    b, b1, b2 = _ratios(link, lower, log_prob)
    # Derivatives of log P by its ends: h by the upper, l by the lower.
    hh, ll, hl = a1 - a * a, -b1 - b * b, a * b
    hhh = a2 - 3 * a * a1 + 2 * a**3
    hhl = b * (a1 - 2 * a * a)
    hll = a * (b1 + 2 * b * b)
    lll = -b2 - 3 * b * b1 - 2 * b**3
    # eta stands in both ends with a minus
    of_eta = [b - a, hh + 2 * hl + ll, -(hhh + 3 * hhl + 3 * hll + lll)]
    upper_end = [a, -(hh + hl), hhh + 2 * hhl + hll]
    return log_prob, of_eta, [upper_end, [-b, -(ll + hl), lll + 2 * hll + hhl]]


def _log_difference(link: Link, upper: FloatArray, lower: FloatArray) -> FloatArray:
    """log(F(upper) - F(lower)) without cancellation."""
    # In the upper tail both are nearly 1. The mirror image, F(-lower) - F(-upper), is the same.
    mirrored = lower > 0
    low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    log_low, log_high = _log_cdf(link, low), _log_cdf(link, high)
    return log_high + np.log1p(-np.exp(log_low - log_high))


def _log_cdf(link: Link, values: FloatArray) -> FloatArray:
    from scipy.special import log_expit, log_ndtr

    logs: FloatArray = log_ndtr(values) if link == "probit" else log_expit(values)
    return logs


def _ratios(
    link: Link, ends: FloatArray, log_prob: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F', F'' and F''' over P; all 0 at an infinite end."""
    finite = np.where(np.isfinite(ends), ends, 0.0)
    if link == "probit":
        density = -0.5 * finite**2 - 0.5 * np.log(2 * np.pi)
        first, second = -finite, finite**2 - 1
    else:
        from scipy.special import expit, log_expit

        density, share = log_expit(finite) + log_expit(-finite), expit(finite)
        first, second = 1 - 2 * share, 1 - 6 * share * (1 - share)
    ratio = np.exp(np.where(np.isfinite(ends), density - log_prob, -np.inf))
    return ratio, ratio * first, ratio * second
