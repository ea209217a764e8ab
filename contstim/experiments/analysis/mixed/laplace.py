"""The Laplace approximation to the likelihood of crossed random effects, with its exact gradient.

The latent value of participant p and trial t is

    eta[p, t] = x[t] · slopes + a[p, t] · u[p] + b · r[t],      u, r independent standard normal

where a[p, t], (n_effects,), is the product of a design vector and the standard deviations of
participants' effects. One entry of the design vector is for the side bias, which is a preference
for one side of the screen. This entry is ±1, or 0 if sides are unknown. The other entries are for
slopes. These entries are the models' log-probability ratios. b is the standard deviation of trials'
effects. Given u and r, ratings are independent. The integrand over all u and r is replaced by a
normal density with the same mode and curvature (Tierney & Kadane 1986; as in R's `ordinal::clmm`):

    log-likelihood ≈ log p(ratings, mode) - ½ log det H,       H = minus the second derivatives

All participants of a group saw every trial of the group, and groups share no participants or
trials, so the log-likelihoods of groups add. Within a group, H has a block for each participant, a
block for each trial, and full blocks between the two factors. The larger factor is eliminated block
by block. The remaining matrix, the Schur complement, has only the size of the smaller factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from contstim.errors import InputError

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray, IntArray

Link: TypeAlias = Literal["probit", "logit"]

_MAX_STEPS = 100  # maximum number of Newton steps to a mode; a few are typical
_ZERO = np.zeros(1)
# Twice the expected gain of a Newton step, nats; below this, the mode is exact within rounding
_CONVERGED_GAIN = 1e-6


@dataclass(frozen=True, eq=False)
class RatedBlock:
    """The ratings of one group.

    Attributes:
        levels: (n_participants, n_trials), 0 to n_levels - 1; -1 for a missing rating.
        predictors: (n_trials, n_predictors), predictors with a fixed slope.
        effects: (n_participants, n_trials, n_effects), multipliers of a participant's effects. The
            side bias is multiplied by the code of the left sentence (±1, 0 if unknown), a slope by
            the ratio. The last axis is empty without effects.
    """

    levels: IntArray
    predictors: FloatArray
    effects: FloatArray


@dataclass(frozen=True, eq=False)
class MixedParameters:
    """Estimated parameters.

    Attributes:
        thresholds: (n_levels + 1,) ascending, from -inf to inf.
        slopes: (n_predictors,).
        participants: (n_effects,), standard deviations of participants' effects.
        trials: standard deviation of trials' effects. The signs of standard deviations do not
            matter.
    """

    thresholds: FloatArray
    slopes: FloatArray
    participants: FloatArray
    trials: float


BlockModes: TypeAlias = "tuple[FloatArray, FloatArray]"
"""Modes of the effects of a group: u, (n_participants, n_effects), and r, (n_trials,)."""


@dataclass(frozen=True, eq=False)
class BlockLikelihood:
    """The log-likelihood of a group, its gradient, and contributions of participants and trials.

    Attributes:
        log_likelihood: approximate log-likelihood, nats.
        gradient: derivatives of the log-likelihood by the finite thresholds, the fixed slopes, the
            standard deviations of participants' effects, and the standard deviation of trials'
            effects.
        of_trials: (n_trials,), log-likelihood of each trial's ratings, integrated over the trial's
            effect, with participants' effects at the mode.
        of_participants: (n_participants,), log-likelihood of each participant's ratings, integrated
            over the participant's effects, with trials' effects at the mode.
        of_ratings: (n_participants, n_trials), log-likelihood of each rating, with all effects at
            the mode.
    """

    log_likelihood: float
    modes: BlockModes
    gradient: FloatArray
    of_trials: FloatArray
    of_participants: FloatArray
    of_ratings: FloatArray


def block_likelihood(
    link: Link, block: RatedBlock, parameters: MixedParameters, start: BlockModes | None = None
) -> BlockLikelihood:
    """Approximate the log-likelihood of a group.

    `start` are modes from which the search starts, by default zeros.

    Raises:
        InputError: if no mode is found.
    """
    modes, (log_prob, of_eta, of_ends), curvature = _find_modes(link, block, parameters, start)
    people, trials = modes
    value = log_prob.sum() - 0.5 * (people**2).sum() - 0.5 * trials @ trials - 0.5 * curvature.log
    # z contains the derivatives of a rating's eta by the effects: a[p, t] for the participant's
    # effects, b for the trial's effect, 0 for all others. h is the part of H⁻¹ z for the rating's
    # participant or trial. spread = zᵀ H⁻¹ z is the variance of eta given the ratings.
    h_people, h_trials, spread = curvature.cells()
    # Derivative of -½ log det H by eta. This term also depends on the parameters through the modes.
    # A change of the parameters changes the gradient with respect to the effects. The modes then
    # move by H⁻¹ times the change of this gradient.
    half_change = 0.5 * spread * of_eta[2]
    mode_shift_people, mode_shift_trials = curvature.solve(half_change)
    loadings = block.effects * parameters.participants  # a, (n_participants, n_trials, n_effects)
    mode_shift = _cell_values(loadings, mode_shift_people) + parameters.trials * mode_shift_trials
    weights = -of_eta[1]
    by_eta = of_eta[0] + half_change - weights * mode_shift  # (n_participants, n_trials)
    # Derivatives of missing ratings are 0, so any level is valid for them
    levels, n_levels = np.maximum(block.levels, 0).ravel(), len(parameters.thresholds) - 1
    # The upper threshold of level y is the finite threshold y, the lower one is the finite
    # threshold y - 1. The two outermost thresholds are infinite, and have no derivative.
    upper, lower = (
        np.bincount(levels, (by_end + 0.5 * spread * eta_2 + eta * mode_shift).ravel(), n_levels)
        for by_end, eta, eta_2 in of_ends
    )
    thresholds = upper[:-1] + lower[1:]
    # Standard deviations affect both z and eta
    by_loading = (
        by_eta[..., None] * people[:, None]
        + of_eta[0][..., None] * mode_shift_people[:, None]
        - weights[..., None] * h_people
    )
    by_trials = (by_eta.sum(axis=0) * trials + of_eta[0].sum(axis=0) * mode_shift_trials).sum()
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
        log_prob.sum(axis=0) - 0.5 * trials**2 - 0.5 * curvature.log_trials,
        log_prob.sum(axis=1) - 0.5 * (people**2).sum(axis=1) - 0.5 * curvature.log_people,
        log_prob,
    )


def _find_modes(
    link: Link, block: RatedBlock, parameters: MixedParameters, start: BlockModes | None
) -> tuple[BlockModes, CellDerivatives, _Curvature]:
    """Find the modes by Newton's method; a step that does not increase the density is halved."""
    n_people, n_trials = block.levels.shape
    fixed = block.predictors @ parameters.slopes
    loadings = block.effects * parameters.participants
    people, trials = start or (np.zeros((n_people, loadings.shape[2])), np.zeros(n_trials))

    def at(people: FloatArray, trials: FloatArray) -> tuple[float, CellDerivatives]:
        eta = fixed + _cell_values(loadings, people) + parameters.trials * trials
        cells = cell_derivatives(link, block.levels, eta, parameters.thresholds)
        density = cells[0].sum() - 0.5 * (people**2).sum() - 0.5 * trials @ trials
        return float(density), cells

    density, cells = at(people, trials)
    for _ in range(_MAX_STEPS):
        first_derivative, second_derivative, _third_derivative = cells[1]
        curvature = _Curvature(-second_derivative, loadings, parameters.trials)
        step_people, step_trials = curvature.solve(first_derivative, people, trials)
        # Twice the gain of the quadratic approximation: gradient times step
        eta_step = _cell_values(loadings, step_people) + parameters.trials * step_trials
        gain = (
            (first_derivative * eta_step).sum()
            - (people * step_people).sum()
            - trials @ step_trials
        )
        size, next_values = 1.0, at(people + step_people, trials + step_trials)
        while gain > _CONVERGED_GAIN and next_values[0] <= density and size > 1e-6:
            size /= 2
            next_values = at(people + size * step_people, trials + size * step_trials)
        people, trials = people + size * step_people, trials + size * step_trials
        density, cells = next_values
        if gain < _CONVERGED_GAIN:
            return (people, trials), cells, _Curvature(-cells[1][1], loadings, parameters.trials)
    raise InputError("The effects of participants and trials have no maximum-likelihood values.")


def _cell_values(loadings: FloatArray, people: FloatArray) -> FloatArray:
    """Return a[p, t] · u[p], (n_participants, n_trials)."""
    return (loadings @ people[:, :, None])[..., 0]


class _Curvature:
    """The matrix H of a group, inverted by eliminating the larger of the two random factors.

    With K for the retained and E for the eliminated factor, H = [K C; Cᵀ E], where K and E are
    block diagonal, and

        S = K - C E⁻¹ Cᵀ,    H⁻¹ = [S⁻¹, -S⁻¹ M; -Mᵀ S⁻¹, E⁻¹ + Mᵀ S⁻¹ M],    M = C E⁻¹

    Arrays over ratings have the axes (n_k, n_e, …), the numbers of units of both factors.

    Args:
        weights: (n_participants, n_trials), minus the second derivatives by eta.
        loadings: (n_participants, n_trials, n_effects), a.
        scale: standard deviation of trials, b.

    Attributes:
        log: log-determinant of H.
        log_people: (n_participants,), log-determinants of the participants' diagonal blocks of H.
        log_trials: (n_trials,), log-determinants of the trials' diagonal blocks of H.
    """

    def __init__(self, weights: FloatArray, loadings: FloatArray, scale: float) -> None:
        n_people, n_trials = weights.shape
        people, trials = loadings, np.full((n_people, n_trials, 1), scale)
        self._trials_retained = n_trials < n_people * loadings.shape[2]
        if self._trials_retained:
            weights, people, trials = weights.T, trials.swapaxes(0, 1), people.swapaxes(0, 1)
        # Derivatives of eta by the effects of the retained factor (z_k) and the eliminated (z_e)
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
        self, by_eta: FloatArray, people: FloatArray = _ZERO, trials: FloatArray = _ZERO
    ) -> tuple[FloatArray, FloatArray]:
        """Return H⁻¹ times a gradient with respect to the effects.

        Args:
            by_eta: (n_participants, n_trials), derivative by eta, from which the gradient follows.
            people: (n_participants, n_effects), subtracted from the gradient.
            trials: (n_trials,), subtracted from the gradient.

        Returns:
            Solutions for participants, (n_participants, n_effects), and trials, (n_trials,).
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
        """Return H⁻¹ z and zᵀ H⁻¹ z, where z are the derivatives of a rating's eta by the effects.

        Returns:
            The part of H⁻¹ z for the rating's participant, (n_participants, n_trials, n_effects);
            the part for its trial, and zᵀ H⁻¹ z, both (n_participants, n_trials).
        """
        n_k, n_e, q_k = self._z_k.shape
        q_e = self._z_e.shape[2]
        corner = self._inverse.reshape(n_k, q_k, n_k, q_k)
        corner = corner[np.arange(n_k), :, np.arange(n_k), :]  # (n_k, q_k, q_k)
        product = self._inverse @ self._times
        cross = -product.reshape(n_k, q_k, n_e, q_e).swapaxes(1, 2)
        h_k = self._z_k @ corner + (cross @ self._z_e[..., None])[..., 0]
        h_e = (cross.swapaxes(2, 3) @ self._z_k[..., None])[..., 0]
        # Diagonal blocks of H⁻¹ for the eliminated factor, (n_e, q_e, q_e)
        times = self._times.reshape(-1, n_e, q_e)
        blocks = self._corner + np.einsum("kgq,kgr->gqr", times, product.reshape(-1, n_e, q_e))
        h_e = h_e + np.einsum("kgq,gqr->kgr", self._z_e, blocks)
        spread = (self._z_k * h_k).sum(axis=2) + (self._z_e * h_e).sum(axis=2)
        if self._trials_retained:
            h_k, h_e, spread = h_e.swapaxes(0, 1), h_k.swapaxes(0, 1), spread.T
        return h_k, h_e[..., 0], spread


CellDerivatives: TypeAlias = "tuple[FloatArray, list[FloatArray], list[list[FloatArray]]]"
"""Log P of each rating and its derivatives, all with the shape of the ratings.

The second entry has the first, second and third derivative by eta. The third entry has three arrays
for the upper threshold, and three for the lower one: the derivative d by this threshold, and the
first and second derivative of d by eta."""


def cell_derivatives(
    link: Link, levels: IntArray, eta: FloatArray, thresholds: FloatArray
) -> CellDerivatives:
    """Return the derivatives of every rating's log P for the Laplace approximation.

    Args:
        link: distribution of the noise.
        levels: levels of the ratings, 0 to n_levels - 1; a missing rating has the level -1 and a
            log P of 0.
        eta: centres of the latent values, same shape.
        thresholds: (n_levels + 1,) ascending, from -inf to inf.
    """
    upper = np.where(levels < 0, np.inf, thresholds[levels + 1] - eta)
    lower = np.where(levels < 0, -np.inf, thresholds[levels] - eta)
    log_prob = _log_difference(link, upper, lower)
    # F is the distribution function of the noise, and P the probability of the rating. a, a1, a2
    # are F', F'', F''' at the upper end, divided by P; b, b1, b2 are the same at the lower end. The
    # division is in logs, because both density and P may underflow.
    a, a1, a2 = _ratios(link, upper, log_prob)
    b, b1, b2 = _ratios(link, lower, log_prob)
    # Derivatives of log P by the upper end (h) and the lower end (l); hl is by one of each
    hh, ll, hl = a1 - a * a, -b1 - b * b, a * b
    hhh = a2 - 3 * a * a1 + 2 * a**3
    hhl = b * (a1 - 2 * a * a)
    hll = a * (b1 + 2 * b * b)
    lll = -b2 - 3 * b * b1 - 2 * b**3
    # eta is in both ends with a minus sign
    of_eta = [b - a, hh + 2 * hl + ll, -(hhh + 3 * hhl + 3 * hll + lll)]
    upper_end = [a, -(hh + hl), hhh + 2 * hhl + hll]
    return log_prob, of_eta, [upper_end, [-b, -(ll + hl), lll + 2 * hll + hhl]]


def _log_difference(link: Link, upper: FloatArray, lower: FloatArray) -> FloatArray:
    """Return log(F(upper) - F(lower)) without cancellation."""
    # In the upper tail, both F are nearly 1, so the equal difference F(-lower) - F(-upper) is used
    mirrored = lower > 0
    low, high = np.where(mirrored, -upper, lower), np.where(mirrored, -lower, upper)
    log_low, log_high = _log_cdf(link, low), _log_cdf(link, high)
    return log_high + np.log1p(-np.exp(log_low - log_high))


def _log_cdf(link: Link, values: FloatArray) -> FloatArray:
    from scipy.special import log_expit, log_ndtr

    return np.asarray(log_ndtr(values) if link == "probit" else log_expit(values))


def _ratios(
    link: Link, ends: FloatArray, log_prob: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return F', F'' and F''' divided by P; all 0 at an infinite end."""
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
