"""Controls and mixed models of experiment 1 of the 2023 study; witness: R's `ordinal::clmm`."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_rel

from contstim.experiments.analysis.controls import feature_preferences
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings, Scope, gather
from contstim.experiments.analysis.regression import clustered_logit, regress_choices, regressions
from contstim.experiments.reproduce.published import (
    read_experiment,
    read_stimulus_scores,
    read_triplets,
)
from tests.published.readers import (
    read_stimulus_features,
)


@pytest.fixture(scope="module")
def ratings(published_data: Path) -> Ratings:
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(folder))


@pytest.mark.published
@pytest.mark.parametrize("feature", ["log_frequency", "glove_correlation"])
def test_preferences_equal_figure_s7(published_data: Path, ratings: Ratings, feature: str) -> None:
    """The published analysis, pair by pair from the raw file: majorities, then a paired t-test."""
    folder = published_data / "contstimlang"
    votes = defaultdict(list)
    with (published_data / "contstimlang-fork" / "data").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            pair = line["sentence_pair"].split("_")
            votes[frozenset(pair)].append(pair[float(line["rating"]) > 3.5] + ".")
    feature_of = read_stimulus_features(folder)[feature]
    table = read_stimulus_scores(folder)
    p_values, rows = [], feature_preferences(ratings, {feature: feature_of})
    for model, row in zip(table.models, rows, strict=True):
        log_prob = dict(zip(table.sentences or (), table.column(model), strict=True))
        by_model, by_people = [], []
        for triplet in read_triplets(folder, selected=True):
            one, two = triplet.synthetic_1, triplet.synthetic_2
            chosen = votes[frozenset((one.bare, two.bare))]
            if model not in (triplet.model_1, triplet.model_2):
                continue
            if chosen.count(one.text) == chosen.count(two.text) or log_prob[one] == log_prob[two]:
                continue
            gain = feature_of[two.text] - feature_of[one.text]
            by_model.append(gain if log_prob[two] > log_prob[one] else -gain)
            by_people.append(gain if chosen.count(two.text) > chosen.count(one.text) else -gain)
        test = ttest_rel(by_model, by_people)
        assert (row["model"], row["trials"]) == (model, len(by_model))
        assert row["difference"].statistic == pytest.approx(test.statistic)
        assert row["difference"].p_value == pytest.approx(test.pvalue)
        assert row["people_difference"] == pytest.approx(np.mean(by_people))
        p_values.append(test.pvalue)
    adjusted = false_discovery_control(p_values)
    assert [row["adjusted"] for row in rows] == pytest.approx(adjusted)


@pytest.mark.published
def test_coefficients_on_oriented_trials_have_signs_of_gpt_2(ratings: Ratings) -> None:
    """Witness: a regression with intercept once half of the trials are turned at random.

    GPT-2 predicts .27 of the choices where it accepts the synthetic sentence: -.59, p = .02; where
    it rejects it: .087, p = 3e-10 (a crossed mixed model, lme4's glmer: .128).
    """
    found = {one["scope"]: one for one in regressions(ratings, 0.95) if one["model"] == "gpt2"}
    accept, reject = found[Scope.ACCEPT], found[Scope.REJECT]
    assert (accept["estimate"].value, accept["estimate"].p_value) == pytest.approx(
        (-0.599, 0.021), abs=0.002
    )
    assert reject["estimate"].value == pytest.approx(0.0869, abs=0.0002)
    assert reject["estimate"].p_value == pytest.approx(5e-10, rel=0.1)
    assert "per nat cannot be compared" in accept["note"]
    assert not reject["note"]


@pytest.mark.published
def test_items_weigh_more_than_people(ratings: Ratings) -> None:
    """With each choice a cluster of its own in the other way, errors are those of one way alone."""
    people = np.concatenate([np.repeat(g.participants, len(g.trials)) for g in ratings.groups])
    items = np.concatenate(
        [[trial.trial_id for trial in g.trials] * len(g.participants) for g in ratings.groups]
    )
    chosen = np.concatenate([(g.ratings > 3.5).ravel() for g in ratings.groups])
    each = np.arange(len(chosen))
    for number, model in enumerate(ratings.models):
        tiled = [np.tile(g.ratios[number], len(g.participants)) for g in ratings.groups]
        ratios = np.concatenate(tiled)
        finite = np.isfinite(ratios)
        alone = [
            clustered_logit(chosen[finite], {model: ratios[finite]}, *ways)["coefficients"][
                model
            ].standard_error
            for ways in ((people[finite], each[finite]), (each[finite], items[finite]))
        ]
        both = regress_choices(ratings, [model])
        assert (both["participants"], both["items"]) == (100, len(set(items[finite])))
        assert both["choices"] + both["left_out"] == 16_500
        assert alone[0] < alone[1] < 1.1 * both["coefficients"][model].standard_error


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
def test_log_likelihoods(ratings: Ratings, model: str, flexible: float, slopes: float) -> None:
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
