"""Ordinal mixed models of experiment 1 of the 2023 study, against R's `ordinal::clmm`."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings, gather
from contstim.experiments.reproduce.published import read_experiment, read_stimulus_scores


@pytest.fixture(scope="module")
def ratings(published_data: Path) -> Ratings:
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(folder))


# On which side sentences were shown was not published, so that nobody leans towards a side
FLEXIBLE = MixedSettings(thresholds="flexible", people="intercept")
SLOPES = MixedSettings()


@pytest.mark.published
@pytest.mark.parametrize(
    ("model", "flexible", "slopes"),
    [
        ("gpt2", -22973.9256, -22776.1134),
        ("roberta", -23063.5860, -22968.8916),
        ("electra", -23121.7510, -23058.4423),
        ("bert", -23267.9576, -23307.5268),
    ],
)
def test_log_likelihoods_are_those_of_clmm(
    ratings: Ratings, model: str, flexible: float, slopes: float
) -> None:
    """clmm(rating ~ ratio + (1 | trial), link = "probit"), no catch trials.

    With slopes: ... + (0 + ratio | participant), threshold = "symmetric2".
    """
    for settings, log_likelihood in ((FLEXIBLE, flexible), (SLOPES, slopes)):
        fit = fit_mixed(ratings, [model], settings)
        assert fit.log_likelihood == pytest.approx(log_likelihood, abs=0.01)
        rated = fit.rated
        assert (rated.size, rated.sided, rated.n_trials) == (15_300, 0, 1_530)
        assert len(rated.participants) == 100


@pytest.mark.published
def test_gpt2_has_the_estimates_of_clmm(ratings: Ratings) -> None:
    """Witness: clmm's summary, for ratios divided by their root mean square."""
    fit = fit_mixed(ratings, ["gpt2"], FLEXIBLE)
    scale = 20.217573  # of all ratios but those of catch trials, nats
    assert fit["gpt2"]["estimate"].value * scale == pytest.approx(0.804313232, rel=1e-3)
    assert fit["gpt2"]["estimate"].standard_error * scale == pytest.approx(0.0220414121, rel=1e-3)
    assert [row["estimate"] for row in fit.thresholds] == pytest.approx(
        [-1.241276844, -0.411594169, 0.191699119, 0.746238170, 1.438968837], abs=1e-3
    )
    assert [row["standard_error"] for row in fit.thresholds] == pytest.approx(
        [0.0242527927, 0.0231363099, 0.0230202786, 0.0235234810, 0.0253006007], rel=1e-3
    )
    variances = {row["factor"]: row["variance"] for row in fit.variances}
    assert variances == pytest.approx({"trials": 0.51556303}, rel=1e-3)
    slopes = fit_mixed(ratings, ["gpt2"], SLOPES)
    assert slopes["gpt2"]["estimate"].value * scale == pytest.approx(0.887791485, rel=1e-3)
    assert slopes["gpt2"]["estimate"].standard_error * scale == pytest.approx(
        0.0346831254, rel=1e-3
    )
    assert {row["factor"]: row["variance"] for row in slopes.variances} == pytest.approx(
        {"trials": 0.55017038, "participants": 0.072318592}, rel=1e-3
    )
