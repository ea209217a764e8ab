"""Mixed models of ratings and choices: planted effects, statsmodels, comparisons, and bad input."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.discrete.discrete_model import Logit, Probit

from contstim.errors import InputError
from contstim.experiments.analysis.mixed.comparison import compare_fits, compare_mixed
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import GroupRatings, Ratings, subset
from contstim.experiments.analysis.tables import Row
from contstim.files.arrays import FloatArray
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition
from tests.experiments.analysis.mixed.ratings import answered, draw, group


def changed(ratings: Ratings, change: Callable[[GroupRatings], GroupRatings]) -> Ratings:
    return Ratings(ratings.models, tuple(change(each) for each in ratings.groups))


def test_planted_effects_are_recovered() -> None:
    ratings = draw(4, groups=6, people=12, trials=40, slopes=(0.04, 0.0), following=0.3)
    fit = fit_mixed(ratings, ["a", "b"])
    assert abs(fit["a"]["estimate"].value - 0.04) < 3 * fit["a"]["estimate"].standard_error
    assert abs(fit["b"]["estimate"].value) < 3 * fit["b"]["estimate"].standard_error
    assert fit["a"]["estimate"].p_value < 1e-6
    deviations = {(r["factor"], r["effect"]): r["standard_deviation"] for r in fit.variances}
    assert deviations["trials", "intercept"] == pytest.approx(0.8, rel=0.2)
    assert deviations["participants", "intercept"] == pytest.approx(0.3, rel=0.4)
    assert deviations["participants", "a"] / 20 == pytest.approx(0.3 * 0.04, rel=0.5)
    assert deviations["participants", "b"] < 0.1
    assert [row["estimate"] for row in fit.thresholds] == pytest.approx([0.6, 1.4], rel=0.15)
    assert fit.aic == pytest.approx(2 * 8 - 2 * fit.log_likelihood)
    assert (fit.rated.size, len(fit.rated.participants), fit.rated.n_trials) == (2_880, 72, 240)


def unsided(share: float) -> Callable[[GroupRatings], GroupRatings]:
    """Sides that were not recorded, in a share of each person's trials."""
    return lambda each: replace(
        each, left=np.where(np.linspace(0, 1, len(each.trials)) < share, 0, each.left)
    )


@pytest.mark.parametrize(
    ("without", "people", "ratios"),
    [
        (0.3, "slopes", "nats"),
        (2.0, "slopes", "ranks"),
        (0.3, "intercept", "ranks"),
        (0.0, "none", "nats"),
    ],
)
def test_order_of_sentences_does_not_matter(without: float, people: str, ratios: str) -> None:
    """Property: any trials may be turned, as those whose ratio is below zero. People lean much."""
    ratings = changed(draw(5, people=6, trials=12, leaning=0.8), unsided(without))
    oriented = changed(
        ratings,
        lambda each: replace(
            each,
            ratings=np.where(each.ratios[0] < 0, 7 - each.ratings, each.ratings),
            left=np.where((each.ratios[0] < 0) & (each.left > 0), 3 - each.left, each.left),
            log_probs=np.where(
                (each.ratios[0] < 0)[:, None], each.log_probs[..., ::-1], each.log_probs
            ),
        ),
    )
    settings = MixedSettings(people=people, ratios=ratios)  # type: ignore[arg-type]
    before, after = (compare_mixed(each, settings).tables() for each in (oriented, ratings))
    for name, table in before.items():
        for column, cells in table.items():
            assert after[name][column] == pytest.approx(cells, abs=1e-6), name


def test_units_of_ratios_and_the_order_of_people_and_trials_do_not_matter() -> None:
    ratings = draw(6)
    rng = np.random.default_rng(2)

    def shuffle(each: GroupRatings) -> GroupRatings:
        people, trials = (rng.permutation(n) for n in each.ratings.shape)
        return replace(
            each,
            trials=tuple(each.trials[n] for n in trials),
            participants=tuple(each.participants[n] for n in people),
            ratings=each.ratings[np.ix_(people, trials)],
            left=each.left[np.ix_(people, trials)],
            log_probs=1000 * each.log_probs[:, trials],
        )

    before, after = (fit_mixed(each, ["a"]) for each in (ratings, changed(ratings, shuffle)))
    assert after.log_likelihood == pytest.approx(before.log_likelihood, rel=1e-9)
    slopes = [fit["a"]["estimate"].value for fit in (before, after)]
    assert 1000 * slopes[1] == pytest.approx(slopes[0], rel=1e-5)
    assert after["a"]["typical_effect"] == pytest.approx(before["a"]["typical_effect"], rel=1e-5)


def without_people(keep: int) -> Callable[[Ratings], Ratings]:
    return lambda ratings: changed(
        ratings,
        lambda g: replace(
            g, participants=g.participants[:keep], ratings=g.ratings[:keep], left=g.left[:keep]
        ),
    )


def first_group(ratings: Ratings) -> Ratings:
    return Ratings(ratings.models, ratings.groups[:1])


def first_trials(ratings: Ratings) -> Ratings:
    return subset(ratings, [np.arange(len(g.trials)) < 1 for g in ratings.groups])


def rated(values: Callable[[GroupRatings], FloatArray]) -> Callable[[Ratings], Ratings]:
    return lambda ratings: changed(ratings, lambda g: replace(g, ratings=values(g)))


def ratios(values: Callable[[GroupRatings], FloatArray]) -> Callable[[Ratings], Ratings]:
    return lambda ratings: changed(
        ratings,
        lambda g: group(g.number, g.ratings, np.broadcast_to(values(g), g.ratios.shape), g.left),
    )


def by_ratio(each: GroupRatings) -> FloatArray:
    """Everybody's rating follows from model a's ratio."""
    steps = np.digitize(each.ratios[0], [-15, -5, 0, 5, 15]) + 1.0
    return np.tile(steps, (len(each.participants), 1))


def surer(each: GroupRatings) -> FloatArray:
    """The same, but the first person of a group is surer."""
    steps = by_ratio(each)
    steps[0] += np.where(steps[0] > 3.5, 1, -1)
    clipped: FloatArray = np.clip(steps, 1, 6)
    return clipped


BAD: dict[str, tuple[Callable[[Ratings], Ratings], MixedSettings, str]] = {
    "one person": (
        lambda r: without_people(1)(first_group(r)),
        MixedSettings(),
        "estimate their variance: 1 participant",
    ),
    "one person a group": (without_people(1), MixedSettings(), "No trial was rated by two"),
    "one trial": (
        lambda r: first_trials(first_group(r)),
        MixedSettings(people="none"),
        "trials cannot be estimated from 1 trial",
    ),
    "one trial a group": (first_trials, MixedSettings(), "Each participant rated one trial"),
    "equal ratings": (
        rated(lambda g: np.full(g.ratings.shape, 4.0)),
        MixedSettings(),
        "All 240 ratings are 4",
    ),
    "everybody alike": (
        rated(lambda g: np.tile(g.ratings[:1], (8, 1))),
        MixedSettings(),
        "the same rating in each trial",
    ),
    "separated": (rated(by_ratio), MixedSettings(people="none", items=False), "without exception"),
    "nearly separated": (rated(surer), MixedSettings(), "no finite estimates"),
    "ties": (ratios(lambda _: np.zeros(1)), MixedSettings(), "a prefers neither sentence on any"),
    "infinite": (
        ratios(lambda g: np.where(g.ratios > 0, np.inf, 0.0)),
        MixedSettings(),
        "infinite or zero",
    ),
    "constant": (
        ratios(lambda _: np.full(1, 7.0)),
        MixedSettings(thresholds="flexible"),
        "are collinear",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_fitted_is_named(what: str) -> None:
    spoil, settings, message = BAD[what]
    with pytest.raises(InputError, match=message):
        fit_mixed(spoil(draw(3)), ["a"], settings)


def test_models_that_cannot_be_told_apart_and_unknown_ones_are_named() -> None:
    ratings = ratios(lambda g: g.ratios[:1])(draw(3))
    with pytest.raises(InputError, match=r"a \+ b are collinear"):
        fit_mixed(ratings, ["a", "b"])
    with pytest.raises(InputError, match="each must be one of a, b"):
        fit_mixed(ratings, ["c"])
    with pytest.raises(InputError, match="named once"):
        fit_mixed(ratings, ["a", "a"])
    with pytest.raises(InputError, match="`link` must be one of probit, logit"):
        MixedSettings(link="cauchit")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no trials of these conditions"):
        fit_mixed(ratings, ["a"], conditions=[Condition.CATCH])


DRAWN = draw(21, people=7, trials=12, slopes=(0.06, 0.02), leaning=0.5, following=0.4)
CHOICES = answered(DRAWN, 1, 2, Scale.CHOICE)


CHOSEN = np.concatenate([(g.ratings == 2).ravel() for g in CHOICES.groups]).astype(float)


def ratios_of(models: list[str]) -> FloatArray:
    """Those of each choice, (n_choices, n_models)."""
    rows = [CHOICES.models.index(model) for model in models]
    groups = [np.tile(g.ratios[rows], len(g.participants)) for g in CHOICES.groups]
    of_choices: FloatArray = np.concatenate(groups, axis=1).T
    return of_choices


@pytest.mark.parametrize(("link", "of_statsmodels"), [("probit", Probit), ("logit", Logit)])
@pytest.mark.parametrize("models", [["a"], ["a", "b"]])
def test_without_random_effects_it_is_that_of_statsmodels(
    link: str, of_statsmodels: type[Probit | Logit], models: list[str]
) -> None:
    settings = MixedSettings(link=link, people="none", items=False)  # type: ignore[arg-type]
    fit = fit_mixed(CHOICES, models, settings)
    expected = of_statsmodels(CHOSEN, ratios_of(models)).fit(disp=False)
    assert fit.log_likelihood == pytest.approx(expected.llf, abs=1e-8)
    found = [row["estimate"] for row in fit.coefficients]
    assert [each.value for each in found] == pytest.approx(expected.params, rel=1e-6)
    assert [each.standard_error for each in found] == pytest.approx(expected.bse, rel=1e-5)
    assert fit.thresholds == []


def test_flexible_thresholds_are_an_intercept() -> None:
    """Witness: statsmodels with a column of ones, whose sign a threshold turns."""
    settings = MixedSettings(thresholds="flexible", people="none", items=False)
    fit = fit_mixed(CHOICES, ["a"], settings)
    values = np.insert(ratios_of(["a"]), 0, 1.0, axis=1)
    expected = Probit(CHOSEN, values).fit(disp=False)
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
