"""Which model fits better, and how sure that is: the scatter over experiments is the witness."""

from dataclasses import replace

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis.mixed.comparison import compare_fits, compare_mixed
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings
from contstim.experiments.analysis.tables import Row
from tests.experiments.analysis.mixed.ratings import draw

INTERCEPTS = MixedSettings(people="intercept")


def test_the_model_that_people_follow_fits_better_and_adds_to_the_other() -> None:
    ratings = draw(11, groups=2, people=10, trials=30, slopes=(0.05, 0.0, 0.0))
    analysis = compare_mixed(ratings, together=True)
    rows = {(row["first"], row["second"]): row for row in analysis.comparisons}
    assert rows["a", "b"]["difference"].low > 0
    assert rows["a", "b"]["adjusted"] < 0.01
    assert rows["b", "c"]["difference"].low < 0 < rows["b", "c"]["difference"].high
    added = {(row["model"], row["beyond"]): row for row in analysis.additions}
    assert len(added) == 6
    assert added["a", "b"]["estimate"].p_value < 1e-4
    assert added["a", "b"]["aic_gain"] > 10 > added["b", "a"]["aic_gain"]
    assert [fit.name for fit in analysis.joint] == ["a + b", "a + c", "b + c", "a + b + c"]
    gains = {row["models"]: row["gain"] for row in analysis.summaries}
    assert gains["(no model)"] == 0
    # A larger model fits no worse
    assert -1e-6 < gains["a"] - gains["b"] < gains["a + b"] + 1e-6
    assert gains["a + b + c"] > gains["a + b"] - 1e-6
    assert analysis.to_frame("fits")["trials_explained"].iloc[1] > 0.3
    with pytest.raises(InputError, match=r"'models' .* fits, coefficients"):
        analysis.to_frame("models")


def test_the_standard_error_is_the_scatter_over_experiments() -> None:
    """Two models that people follow alike: differences scatter around zero by as much."""
    rows: list[Row] = []
    for seed in range(12):
        ratings = draw(seed, groups=1, people=8, trials=15, slopes=(0.04, 0.04))
        fits = [fit_mixed(ratings, [model], INTERCEPTS) for model in ratings.models]
        rows += compare_fits(fits)
    scatter = np.sqrt(np.mean([row["difference"].value ** 2 for row in rows]))
    assert np.median([row["difference"].standard_error for row in rows]) == pytest.approx(
        scatter, rel=0.4
    )
    assert sum(row["difference"].p_value < 0.05 for row in rows) <= 4


def test_a_model_that_ties_everywhere_is_left_out_by_name() -> None:
    ratings = draw(14)
    tied = Ratings(
        ratings.models,
        tuple(replace(g, log_probs=g.log_probs * [[[1]], [[0]]]) for g in ratings.groups),
    )
    analysis = compare_mixed(tied)
    assert [fit.name for fit in analysis.fits] == ["a"]
    assert "b prefers neither" in analysis.left_out["b"]
    with pytest.raises(InputError, match="b prefers neither"):
        compare_mixed(tied, models=["b"])


def test_fits_of_different_ratings_are_not_compared() -> None:
    many, few = draw(15), draw(15, trials=14)
    with pytest.raises(InputError, match="same ratings"):
        compare_fits([fit_mixed(many, ["a"], INTERCEPTS), fit_mixed(few, ["b"], INTERCEPTS)])
