"""The approximate likelihood, against a general optimiser, differences and an integral."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import logistic, norm

from contstim.experiments.analysis.mixed import laplace
from contstim.files.arrays import FloatArray

FINITE = np.array([-1.0, 0.2, 1.1])
SHAPES = [(4, 7, 2), (7, 3, 2), (3, 5, 1), (5, 3, 0), (3, 3, 3)]


def build_block(
    seed: int, people: int, trials: int, effects: int, *, unrated: bool = False
) -> laplace.RatedBlock:
    rng = np.random.default_rng(seed)
    predictors = rng.normal(size=(trials, 2))
    levels = rng.integers(0, 4, (people, trials))
    sides = rng.choice([-1.0, 0.0, 1.0], (people, trials, 1))
    slopes = np.broadcast_to(predictors, (people, trials, 2))
    effects_of_cells = np.concatenate([sides, slopes], axis=-1)[..., :effects]
    if unrated:  # all trials of the first participant but one, and one trial of the last
        levels[0, 1:] = levels[-1, 0] = -1
    return laplace.RatedBlock(levels, predictors, effects_of_cells)


def unpack_parameters(vector: FloatArray) -> laplace.MixedParameters:
    thresholds = np.concatenate([[-np.inf], vector[:3], [np.inf]])
    return laplace.MixedParameters(thresholds, vector[3:5], vector[6:], float(vector[5]))


def start_vector(effects: int) -> FloatArray:
    return np.concatenate([FINITE, [0.7, -0.4, 0.8], np.linspace(0.3, 0.6, effects)])


@pytest.mark.parametrize("unrated", [False, True])
@pytest.mark.parametrize(("people", "trials", "effects"), SHAPES)
def test_normal_density_at_the_mode(people: int, trials: int, effects: int, unrated: bool) -> None:
    """Witness: scipy's optimiser on the joint density, and second differences."""
    parameters = unpack_parameters(start_vector(effects))
    rated = build_block(1, people, trials, effects, unrated=unrated)
    loadings = rated.effects * parameters.participants

    def joint(effects_and_trials: FloatArray) -> float:
        participant_effects = effects_and_trials[: people * effects].reshape(people, effects)
        trial_effects = effects_and_trials[people * effects :]
        eta = rated.predictors @ parameters.slopes + parameters.trials * trial_effects
        eta = eta + np.einsum("pe,pte->pt", participant_effects, loadings)
        upper = parameters.thresholds[rated.levels + 1] - eta
        lower = parameters.thresholds[rated.levels] - eta
        prior = 0.5 * (effects_and_trials**2).sum()
        rating_probs = (norm.cdf(upper) - norm.cdf(lower))[rated.levels >= 0]
        return float(prior - np.log(rating_probs).sum())

    n = people * effects + trials
    mode = minimize(joint, np.zeros(n), method="BFGS", options={"gtol": 1e-8}).x
    hessian = approx_fprime(mode, lambda x: approx_fprime(x, joint, 1e-5), 1e-4)
    expected = -joint(mode) - 0.5 * np.linalg.slogdet((hessian + hessian.T) / 2)[1]
    result = laplace.block_likelihood("probit", rated, parameters)
    assert result.log_likelihood == pytest.approx(expected, abs=2e-3)
    modes = np.concatenate([effects.ravel() for effects in result.modes])
    assert modes == pytest.approx(mode, abs=1e-3)


@pytest.mark.parametrize("unrated", [False, True])
@pytest.mark.parametrize("link", ["probit", "logit"])
@pytest.mark.parametrize(("people", "trials", "effects"), SHAPES)
def test_gradient(link: str, people: int, trials: int, effects: int, unrated: bool) -> None:
    rated, point = build_block(2, people, trials, effects, unrated=unrated), start_vector(effects)
    result = laplace.block_likelihood(link, rated, unpack_parameters(point))  # type: ignore[arg-type]
    fixed, participant_gradient, trial_gradient = np.split(result.gradient, [5, -1])
    gradient = np.concatenate([fixed, trial_gradient, participant_gradient])
    differences = [
        (
            laplace.block_likelihood(link, rated, unpack_parameters(point + step)).log_likelihood  # type: ignore[arg-type]
            - laplace.block_likelihood(link, rated, unpack_parameters(point - step)).log_likelihood  # type: ignore[arg-type]
        )
        / 2e-5
        for step in 1e-5 * np.eye(len(point))
    ]
    assert gradient == pytest.approx(differences, rel=1e-5, abs=1e-6)


def test_likelihood_is_close_to_the_integral() -> None:
    """Witness: the integral on a fine grid; with many ratings it is nearly normal."""
    rated = build_block(3, 40, 1, 0)
    parameters = unpack_parameters(start_vector(0))
    grid = np.linspace(-8, 8, 4001)
    eta = rated.predictors[0] @ parameters.slopes + parameters.trials * grid
    upper, lower = (parameters.thresholds[rated.levels + n] - eta for n in (1, 0))
    density = np.prod(norm.cdf(upper) - norm.cdf(lower), axis=0) * norm.pdf(grid)
    expected = np.log(np.trapezoid(density, grid))
    result = laplace.block_likelihood("probit", rated, parameters)
    assert result.log_likelihood == pytest.approx(expected, abs=0.01)
    assert result.of_trials == pytest.approx(np.array([result.log_likelihood]))


THRESHOLDS = np.array([-np.inf, -1.2, -0.5, 0.1, 0.8, 1.9, np.inf])
LEVELS = np.arange(6)
LINKS: tuple[laplace.Link, ...] = ("probit", "logit")


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("eta", [-3.0, 0.2, 2.5])
def test_probabilities_match_the_distribution(link: laplace.Link, eta: float) -> None:
    noise = norm if link == "probit" else logistic
    log_prob, *_ = laplace.cell_derivatives(link, LEVELS, np.full(6, eta), THRESHOLDS)
    expected = np.diff(noise.cdf(THRESHOLDS - eta))
    assert np.exp(log_prob) == pytest.approx(expected, rel=1e-10)
    assert np.exp(log_prob).sum() == pytest.approx(1)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("eta", [-60.0, -30.0, 30.0, 60.0])
def test_unlikely_ratings_have_finite_log_probabilities(link: laplace.Link, eta: float) -> None:
    """Witness: scipy's log of the tail; the other end is at most exp(-20) of it."""
    noise = norm if link == "probit" else logistic
    log_prob, eta_derivatives, threshold_derivatives = laplace.cell_derivatives(
        link, LEVELS, np.full(6, eta), THRESHOLDS
    )
    for field in (log_prob, *eta_derivatives, *threshold_derivatives[0], *threshold_derivatives[1]):
        assert np.isfinite(field).all()
    expected = noise.logcdf(THRESHOLDS[1] - eta) if eta > 0 else noise.logsf(THRESHOLDS[-2] - eta)
    assert log_prob[0 if eta > 0 else 5] == pytest.approx(expected, rel=1e-10)
    assert (eta_derivatives[1] < 1e-12).all()  # log-concave
