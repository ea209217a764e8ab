"""Mixed models of ratings and choices: planted effects, statsmodels, comparisons, and errors."""

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
from tests.experiments.analysis.mixed.ratings import build_group, code_choices, draw_ratings


def change_groups(ratings: Ratings, change: Callable[[GroupRatings], GroupRatings]) -> Ratings:
    return Ratings(ratings.models, tuple(change(group) for group in ratings.groups))


def test_planted_effects_are_recovered() -> None:
    ratings = draw_ratings(4, groups=6, people=12, trials=40, slopes=(0.04, 0.0), following=0.3)
    fit = fit_mixed(ratings, ["a", "b"])
    assert abs(fit["a"]["estimate"].value - 0.04) < 3 * fit["a"]["estimate"].standard_error
    assert abs(fit["b"]["estimate"].value) < 3 * fit["b"]["estimate"].standard_error
    assert fit["a"]["estimate"].p_value < 1e-6
    deviations = {
        (variance_row["factor"], variance_row["effect"]): variance_row["standard_deviation"]
        for variance_row in fit.variances
    }
    assert deviations["trials", "intercept"] == pytest.approx(0.8, rel=0.2)
    assert deviations["participants", "intercept"] == pytest.approx(0.3, rel=0.4)
    assert deviations["participants", "a"] / 20 == pytest.approx(0.3 * 0.04, rel=0.5)
    assert deviations["participants", "b"] < 0.1
    assert [row["estimate"] for row in fit.thresholds] == pytest.approx([0.6, 1.4], rel=0.15)
    assert fit.aic == pytest.approx(2 * 8 - 2 * fit.log_likelihood)
    assert (fit.rated.size, len(fit.rated.participants), fit.rated.n_trials) == (2_880, 72, 240)


def remove_sides(share: float) -> Callable[[GroupRatings], GroupRatings]:
    """Return a change that removes the recorded sides from a share of each participant's trials."""
    return lambda g: replace(g, left=np.where(np.linspace(0, 1, len(g.trials)) < share, 0, g.left))


@pytest.mark.parametrize(
    ("share", "people", "ratios"),
    [
        (0.3, "slopes", "nats"),
        (2.0, "slopes", "ranks"),
        (0.3, "intercept", "ranks"),
        (0.0, "none", "nats"),
    ],
)
def test_order_of_sentences_does_not_matter(share: float, people: str, ratios: str) -> None:
    """Property: trials with a negative ratio are swapped. Participants lean strongly."""
    ratings = change_groups(draw_ratings(5, people=6, trials=12, leaning=0.8), remove_sides(share))
    oriented = change_groups(
        ratings,
        lambda g: replace(
            g,
            ratings=np.where(g.ratios[0] < 0, 7 - g.ratings, g.ratings),
            left=np.where((g.ratios[0] < 0) & (g.left > 0), 3 - g.left, g.left),
            log_probs=np.where((g.ratios[0] < 0)[:, None], g.log_probs[..., ::-1], g.log_probs),
        ),
    )
    settings = MixedSettings(people=people, ratios=ratios)  # type: ignore[arg-type]
    expected, tables = (compare_mixed(data, settings).tables() for data in (oriented, ratings))
    for name, table in expected.items():
        for column, cells in table.items():
            assert tables[name][column] == pytest.approx(cells, abs=1e-6), name


def test_units_and_order_do_not_matter() -> None:
    ratings = draw_ratings(6)
    rng = np.random.default_rng(2)

    def shuffle(group: GroupRatings) -> GroupRatings:
        people, trials = (rng.permutation(n) for n in group.ratings.shape)
        return replace(
            group,
            trials=tuple(group.trials[n] for n in trials),
            participants=tuple(group.participants[n] for n in people),
            ratings=group.ratings[np.ix_(people, trials)],
            left=group.left[np.ix_(people, trials)],
            log_probs=1000 * group.log_probs[:, trials],
        )

    before, after = (fit_mixed(data, ["a"]) for data in (ratings, change_groups(ratings, shuffle)))
    assert after.log_likelihood == pytest.approx(before.log_likelihood, rel=1e-9)
    slopes = [fit["a"]["estimate"].value for fit in (before, after)]
    assert 1000 * slopes[1] == pytest.approx(slopes[0], rel=1e-5)
    assert after["a"]["typical_effect"] == pytest.approx(before["a"]["typical_effect"], rel=1e-5)


def keep_participants(keep: int) -> Callable[[Ratings], Ratings]:
    return lambda ratings: change_groups(
        ratings,
        lambda g: replace(
            g, participants=g.participants[:keep], ratings=g.ratings[:keep], left=g.left[:keep]
        ),
    )


def keep_first_group(ratings: Ratings) -> Ratings:
    return Ratings(ratings.models, ratings.groups[:1])


def keep_first_trials(ratings: Ratings) -> Ratings:
    return subset(ratings, [np.arange(len(g.trials)) < 1 for g in ratings.groups])


def replace_ratings(values: Callable[[GroupRatings], FloatArray]) -> Callable[[Ratings], Ratings]:
    return lambda ratings: change_groups(ratings, lambda g: replace(g, ratings=values(g)))


def replace_ratios(values: Callable[[GroupRatings], FloatArray]) -> Callable[[Ratings], Ratings]:
    def change(g: GroupRatings) -> GroupRatings:
        ratios = np.broadcast_to(values(g), g.ratios.shape)
        return build_group(g.number, g.ratings, ratios, g.left)

    return lambda ratings: change_groups(ratings, change)


def rate_by_ratio(group: GroupRatings) -> FloatArray:
    """All ratings follow from model a's ratio."""
    steps = np.digitize(group.ratios[0], [-15, -5, 0, 5, 15]) + 1.0
    return np.tile(steps, (len(group.participants), 1))


def rate_by_ratio_except_first(group: GroupRatings) -> FloatArray:
    """The first participant of a group rates more confidently than the others."""
    steps = rate_by_ratio(group)
    steps[0] += np.where(steps[0] > 3.5, 1, -1)
    clipped: FloatArray = np.clip(steps, 1, 6)
    return clipped


BAD: dict[str, tuple[Callable[[Ratings], Ratings], MixedSettings, str]] = {
    "one person": (
        lambda r: keep_participants(1)(keep_first_group(r)),
        MixedSettings(),
        "estimate their variance: 1 participant",
    ),
    "one person a group": (keep_participants(1), MixedSettings(), "No trial was rated by two"),
    "one trial": (
        lambda r: keep_first_trials(keep_first_group(r)),
        MixedSettings(people="none"),
        "trials cannot be estimated from 1 trial",
    ),
    "one trial a group": (keep_first_trials, MixedSettings(), "Each participant rated one trial"),
    "equal ratings": (
        replace_ratings(lambda g: np.full(g.ratings.shape, 4.0)),
        MixedSettings(),
        "All 240 ratings are 4",
    ),
    "everybody alike": (
        replace_ratings(lambda g: np.tile(g.ratings[:1], (8, 1))),
        MixedSettings(),
        "the same rating in each trial",
    ),
    "separated": (
        replace_ratings(rate_by_ratio),
        MixedSettings(people="none", items=False),
        "without exception",
    ),
    "nearly separated": (
        replace_ratings(rate_by_ratio_except_first),
        MixedSettings(),
        "no finite estimates",
    ),
    "ties": (
        replace_ratios(lambda _: np.zeros(1)),
        MixedSettings(),
        "a prefers neither sentence on any",
    ),
    "infinite": (
        replace_ratios(lambda g: np.where(g.ratios > 0, np.inf, 0.0)),
        MixedSettings(),
        "infinite or zero",
    ),
    "constant": (
        replace_ratios(lambda _: np.full(1, 7.0)),
        MixedSettings(thresholds="flexible"),
        "are collinear",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_name_why_a_fit_is_impossible(case: str) -> None:
    spoil, settings, message = BAD[case]
    with pytest.raises(InputError, match=message):
        fit_mixed(spoil(draw_ratings(3)), ["a"], settings)


def test_errors_name_collinear_and_unknown_models() -> None:
    ratings = replace_ratios(lambda g: g.ratios[:1])(draw_ratings(3))
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


DRAWN = draw_ratings(21, people=7, trials=12, slopes=(0.06, 0.02), leaning=0.5, following=0.4)
CHOICES = code_choices(DRAWN, 1, 2, Scale.CHOICE)


SENTENCE_2_CHOSEN = np.concatenate([(g.ratings == 2).ravel() for g in CHOICES.groups]).astype(float)


def build_ratios(models: list[str]) -> FloatArray:
    """Return the ratios of each choice, (n_choices, n_models)."""
    rows = [CHOICES.models.index(model) for model in models]
    groups = [np.tile(g.ratios[rows], len(g.participants)) for g in CHOICES.groups]
    ratios: FloatArray = np.concatenate(groups, axis=1).T
    return ratios


@pytest.mark.parametrize(("link", "statsmodels_class"), [("probit", Probit), ("logit", Logit)])
@pytest.mark.parametrize("models", [["a"], ["a", "b"]])
def test_fit_without_random_effects_matches_statsmodels(
    link: str, statsmodels_class: type[Probit | Logit], models: list[str]
) -> None:
    settings = MixedSettings(link=link, people="none", items=False)  # type: ignore[arg-type]
    fit = fit_mixed(CHOICES, models, settings)
    expected = statsmodels_class(SENTENCE_2_CHOSEN, build_ratios(models)).fit(disp=False)
    assert fit.log_likelihood == pytest.approx(expected.llf, abs=1e-8)
    rows = [row["estimate"] for row in fit.coefficients]
    assert [estimate.value for estimate in rows] == pytest.approx(expected.params, rel=1e-6)
    assert [estimate.standard_error for estimate in rows] == pytest.approx(expected.bse, rel=1e-5)
    assert fit.thresholds == []


def test_flexible_thresholds_are_an_intercept() -> None:
    """Witness: statsmodels with a column of ones; the threshold has the opposite sign."""
    settings = MixedSettings(thresholds="flexible", people="none", items=False)
    fit = fit_mixed(CHOICES, ["a"], settings)
    values = np.insert(build_ratios(["a"]), 0, 1.0, axis=1)
    expected = Probit(SENTENCE_2_CHOSEN, values).fit(disp=False)
    (threshold,) = fit.thresholds
    assert threshold["threshold"] == "1|2"
    assert threshold["estimate"] == pytest.approx(-expected.params[0], rel=1e-5)
    assert fit.log_likelihood == pytest.approx(expected.llf, abs=1e-8)


@pytest.mark.parametrize("settings", [MixedSettings(), MixedSettings(people="none", items=False)])
def test_choices_coded_one_and_six_fit_the_same(settings: MixedSettings) -> None:
    """Ratings with one degree of confidence have one threshold, the middle, as choices have."""
    coded = code_choices(DRAWN, 1, 6, Scale.CONFIDENCE)
    choices, coded_fits = (compare_mixed(d, settings, together=True) for d in (CHOICES, coded))
    likelihoods = [[fit.log_likelihood for fit in data.fits] for data in (choices, coded_fits)]
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=1e-8)
    assert choices.empty.log_likelihood == pytest.approx(coded_fits.empty.log_likelihood, abs=1e-8)
    assert choices.tables().keys() == coded_fits.tables().keys()
    if settings.people == "none":
        n = sum(group.ratings.size for group in CHOICES.groups)
        assert choices.empty.log_likelihood == pytest.approx(n * np.log(0.5))


INTERCEPTS = MixedSettings(people="intercept")


def test_planted_model_fits_better_and_adds_to_the_other() -> None:
    ratings = draw_ratings(11, groups=2, people=10, trials=30, slopes=(0.05, 0.0, 0.0))
    analysis = compare_mixed(ratings, together=True)
    rows = {(row["first"], row["second"]): row for row in analysis.comparisons}
    assert rows["a", "b"]["difference"].low > 0
    assert rows["a", "b"]["adjusted"] < 0.01
    assert rows["b", "c"]["difference"].low < 0 < rows["b", "c"]["difference"].high
    additions = {(row["model"], row["beyond"]): row for row in analysis.additions}
    assert len(additions) == 6
    assert additions["a", "b"]["estimate"].p_value < 1e-4
    assert additions["a", "b"]["aic_gain"] > 10 > additions["b", "a"]["aic_gain"]
    assert [fit.name for fit in analysis.joint] == ["a + b", "a + c", "b + c", "a + b + c"]
    gains = {row["models"]: row["gain"] for row in analysis.summaries}
    assert gains["(no model)"] == 0
    # A larger model fits no worse
    assert -1e-6 < gains["a"] - gains["b"] < gains["a + b"] + 1e-6
    assert gains["a + b + c"] > gains["a + b"] - 1e-6
    assert analysis.to_frame("fits")["trials_explained"].iloc[1] > 0.3
    with pytest.raises(InputError, match=r"'models' .* fits, coefficients"):
        analysis.to_frame("models")


def test_standard_error_matches_the_spread_of_differences() -> None:
    """Participants follow both models equally, so differences vary around zero."""
    estimates: list[Row] = []
    for seed in range(12):
        ratings = draw_ratings(seed, groups=1, people=8, trials=15, slopes=(0.04, 0.04))
        fits = [fit_mixed(ratings, [model], INTERCEPTS) for model in ratings.models]
        estimates += compare_fits(fits)
    spread = np.sqrt(np.mean([row["difference"].value ** 2 for row in estimates]))
    errors = [row["difference"].standard_error for row in estimates]
    assert np.median(errors) == pytest.approx(spread, rel=0.4)
    assert sum(row["difference"].p_value < 0.05 for row in estimates) <= 4


def test_model_that_always_ties_is_left_out() -> None:
    ratings = draw_ratings(14)
    tied = change_groups(ratings, lambda g: replace(g, log_probs=g.log_probs * [[[1]], [[0]]]))
    analysis = compare_mixed(tied)
    assert [fit.name for fit in analysis.fits] == ["a"]
    assert "b prefers neither" in analysis.left_out["b"]
    with pytest.raises(InputError, match="b prefers neither"):
        compare_mixed(tied, models=["b"])


def test_fits_of_different_ratings_are_not_compared() -> None:
    data = (("a", draw_ratings(15)), ("b", draw_ratings(15, trials=14)))
    with pytest.raises(InputError, match="same ratings"):
        compare_fits([fit_mixed(ratings, [model], INTERCEPTS) for model, ratings in data])
