"""Ordinal mixed models of experiment 1 of the 2023 study, against R's `ordinal::clmm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.experiments.analysis.mixed import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published.scores import read_stimulus_scores


@pytest.fixture(scope="module")
def ratings(published_data: Path) -> Ratings:
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(folder))


LIKE_CLMM = MixedSettings(thresholds="flexible", people="intercept")


@pytest.mark.published
@pytest.mark.parametrize(
    ("model", "log_likelihood"),
    [("gpt2", -22948.35), ("roberta", -23037.83), ("electra", -23096.15), ("bert", -23242.26)],
)
def test_log_likelihoods_are_those_of_clmm(
    ratings: Ratings, model: str, log_likelihood: float
) -> None:
    """clmm(rating ~ ratio + (1 | participant) + (1 | trial), link = "probit"), no catch trials."""
    fit = fit_mixed(ratings, [model], LIKE_CLMM)
    assert fit.log_likelihood == pytest.approx(log_likelihood, abs=0.01)
    assert (fit.ratings, fit.participants, fit.trials) == (15_300, 100, 1_530)


@pytest.mark.published
def test_gpt2_has_the_estimates_of_clmm(ratings: Ratings) -> None:
    """Witness: clmm's summary, for ratios divided by their root mean square."""
    fit = fit_mixed(ratings, ["gpt2"], LIKE_CLMM)
    scale = 20.217573  # of all ratios but those of catch trials, nats
    assert fit["gpt2"].estimate * scale == pytest.approx(0.80876394, rel=1e-3)
    assert fit["gpt2"].standard_error * scale == pytest.approx(0.02216018, rel=1e-3)
    assert [row.estimate for row in fit.thresholds] == pytest.approx(
        [-1.24747168, -0.40718668, 0.19959688, 0.75456074, 1.44396214], abs=1e-3
    )
    assert [row.standard_error for row in fit.thresholds] == pytest.approx(
        [0.02667614, 0.02564894, 0.02555692, 0.02599498, 0.02757956], rel=1e-3
    )
    variances = {row.factor: row.variance for row in fit.variances}
    assert variances == pytest.approx({"trials": 0.52166054, "participants": 0.01160598}, rel=1e-3)
