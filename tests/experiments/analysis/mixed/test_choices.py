"""Mixed models of choices: a binary probit, or logit, without an intercept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.discrete.discrete_model import Logit, Probit

from contstim.errors import InputError
from contstim.experiments.analysis.mixed.comparison import compare_mixed
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings
from contstim.items.scale import Scale
from tests.experiments.analysis.mixed.ratings import answered, draw

DRAWN = draw(21, people=7, trials=12, slopes=(0.06, 0.02), leaning=0.5, following=0.4)


CHOICES = answered(DRAWN, 1, 2, Scale.CHOICE)


@pytest.mark.parametrize(("link", "of_statsmodels"), [("probit", Probit), ("logit", Logit)])
@pytest.mark.parametrize("models", [["a"], ["a", "b"]])
def test_without_random_effects_it_is_that_of_statsmodels(
    link: str, of_statsmodels: type[Probit | Logit], models: list[str]
) -> None:
    settings = MixedSettings(link=link, people="none", items=False)  # type: ignore[arg-type]
    fit = fit_mixed(CHOICES, models, settings)
    rows = [CHOICES.models.index(model) for model in models]
    chosen = np.concatenate([(g.ratings == 2).ravel() for g in CHOICES.groups])
    ratios = np.concatenate(
        [np.tile(g.ratios[rows], len(g.participants)) for g in CHOICES.groups], 1
    )
    expected = of_statsmodels(chosen.astype(float), ratios.T).fit(disp=False)
    assert fit.log_likelihood == pytest.approx(expected.llf, abs=1e-8)
    assert [row["estimate"].value for row in fit.coefficients] == pytest.approx(
        expected.params, rel=1e-6
    )
    assert [row["estimate"].standard_error for row in fit.coefficients] == pytest.approx(
        expected.bse, rel=1e-5
    )
    assert fit.thresholds == []


def test_flexible_thresholds_are_an_intercept() -> None:
    """Witness: statsmodels with a column of ones, whose sign a threshold turns."""
    settings = MixedSettings(thresholds="flexible", people="none", items=False)
    fit = fit_mixed(CHOICES, ["a"], settings)
    chosen = np.concatenate([(g.ratings == 2).ravel() for g in CHOICES.groups])
    ratios = np.concatenate([np.tile(g.ratios[0], len(g.participants)) for g in CHOICES.groups])
    values = np.stack([np.ones(len(ratios)), ratios], axis=1)
    expected = Probit(chosen.astype(float), values).fit(disp=False)
    (threshold,) = fit.thresholds
    assert threshold["threshold"] == "1|2"
    assert threshold["estimate"] == pytest.approx(-expected.params[0], rel=1e-5)
    assert fit.log_likelihood == pytest.approx(expected.llf, abs=1e-8)


@pytest.mark.parametrize("settings", [MixedSettings(), MixedSettings(people="none", items=False)])
def test_choices_coded_one_and_six_are_choices(settings: MixedSettings) -> None:
    """Ratings of one degree of confidence have one threshold, the middle, as choices have."""
    coded = answered(DRAWN, 1, 6, Scale.CONFIDENCE)
    first, second = (compare_mixed(each, settings, together=True) for each in (CHOICES, coded))
    likelihoods = [[fit.log_likelihood for fit in each.fits] for each in (first, second)]
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=1e-8)
    assert first.empty.log_likelihood == pytest.approx(second.empty.log_likelihood, abs=1e-8)
    assert first.tables().keys() == second.tables().keys()
    if settings.people == "none":
        n = sum(group.ratings.size for group in CHOICES.groups)
        assert first.empty.log_likelihood == pytest.approx(n * np.log(0.5))


def test_ratios_that_order_all_choices_are_refused() -> None:
    groups = [
        replace(g, ratings=np.where(g.ratios[:1] > 0, 2.0, 1.0).repeat(len(g.ratings), axis=0))
        for g in CHOICES.groups
    ]
    with pytest.raises(InputError, match="perfect separation"):
        fit_mixed(Ratings(CHOICES.models, tuple(groups)), ["a"], MixedSettings(items=False))
