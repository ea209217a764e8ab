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
from tests.published.readers import read_stimulus_features


@pytest.fixture(scope="module")
def ratings(published_data: Path) -> Ratings:
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    return gather(trials, responses, read_stimulus_scores(folder))


@pytest.mark.published
@pytest.mark.parametrize("feature", ["log_frequency", "glove_correlation"])
def test_preferences_equal_figure_s7(published_data: Path, ratings: Ratings, feature: str) -> None:
    """Witness: the published analysis of the raw file, with majorities and a paired t-test."""
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
        by_model, by_participants = [], []
        for triplet in read_triplets(folder, selected=True):
            first, second = triplet.synthetic_1, triplet.synthetic_2
            choices = votes[frozenset((first.bare, second.bare))]
            if model not in (triplet.model_1, triplet.model_2):
                continue
            majority = choices.count(second.text) - choices.count(first.text)
            if majority == 0 or log_prob[first] == log_prob[second]:
                continue
            gain = feature_of[second.text] - feature_of[first.text]
            by_model.append(gain if log_prob[second] > log_prob[first] else -gain)
            by_participants.append(gain if majority > 0 else -gain)
        test = ttest_rel(by_model, by_participants)
        assert (row["model"], row["trials"]) == (model, len(by_model))
        assert row["difference"].statistic == pytest.approx(test.statistic)
        assert row["difference"].p_value == pytest.approx(test.pvalue)
        assert row["people_difference"] == pytest.approx(np.mean(by_participants))
        p_values.append(test.pvalue)
    adjusted = false_discovery_control(p_values)
    assert [row["adjusted"] for row in rows] == pytest.approx(adjusted)


@pytest.mark.published
def test_coefficients_of_gpt2_have_the_expected_signs(ratings: Ratings) -> None:
    """Witness: a regression with intercept after a random half of the trials is reversed.

    If GPT-2 accepts the synthetic sentence, it predicts .27 of the choices: -.59, p = .02.
    If GPT-2 rejects it: .087, p = 3e-10 (a crossed mixed model, lme4's glmer: .128).
    """
    rows = {row["scope"]: row for row in regressions(ratings, 0.95) if row["model"] == "gpt2"}
    accept, reject = rows[Scope.ACCEPT], rows[Scope.REJECT]
    estimate = accept["estimate"]
    assert (estimate.value, estimate.p_value) == pytest.approx((-0.599, 0.021), abs=0.002)
    assert reject["estimate"].value == pytest.approx(0.0869, abs=0.0002)
    assert reject["estimate"].p_value == pytest.approx(5e-10, rel=0.1)
    assert "per nat cannot be compared" in accept["note"]
    assert not reject["note"]


@pytest.mark.published
def test_items_add_more_error_than_participants(ratings: Ratings) -> None:
    """If every choice is its own cluster in one way, only the other way determines the error."""
    people = np.concatenate([np.repeat(g.participants, len(g.trials)) for g in ratings.groups])
    items = np.concatenate(
        [[t.trial_id for t in g.trials] * len(g.participants) for g in ratings.groups]
    )
    choices = np.concatenate([(g.ratings > 3.5).ravel() for g in ratings.groups])
    choice_ids = np.arange(len(choices))
    for i in range(len(ratings.models)):
        tiled_ratios = [np.tile(g.ratios[i], len(g.participants)) for g in ratings.groups]
        ratios = np.concatenate(tiled_ratios)
        finite = np.isfinite(ratios)
        fits = [
            clustered_logit(choices[finite], ratios[finite], first[finite], second[finite])
            for first, second in ((people, choice_ids), (choice_ids, items))
        ]
        errors = [fit["estimate"].standard_error for fit in fits]
        result = regress_choices(ratings, i)
        assert (result["participants"], result["items"]) == (100, len(set(items[finite])))
        assert result["choices"] + result["left_out"] == 16_500
        assert errors[0] < errors[1] < 1.1 * result["estimate"].standard_error


# The sides of sentences are not published, so models have no bias towards a side
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
def test_likelihoods_equal_clmm(
    ratings: Ratings, model: str, flexible: float, slopes: float
) -> None:
    """Witness: clmm(rating ~ ratio + (1 | trial), link = "probit"), without catch trials.

    With slopes: ... + (0 + ratio | participant), threshold = "symmetric2".
    """
    for settings, log_likelihood in ((FLEXIBLE, flexible), (SLOPES, slopes)):
        fit = fit_mixed(ratings, [model], settings)
        assert fit.log_likelihood == pytest.approx(log_likelihood, abs=0.01)
        rated = fit.rated
        assert (rated.size, rated.sided, rated.n_trials) == (15_300, 0, 1_530)
        assert len(rated.participants) == 100


@pytest.mark.published
def test_estimates_of_gpt2_equal_those_of_clmm(ratings: Ratings) -> None:
    """Witness: clmm's summary, for ratios divided by their root mean square."""
    fit = fit_mixed(ratings, ["gpt2"], FLEXIBLE)
    unit = 20.217573  # root mean square without catch trials, nats
    assert fit["gpt2"]["estimate"].value * unit == pytest.approx(0.804313232, rel=1e-3)
    assert fit["gpt2"]["estimate"].standard_error * unit == pytest.approx(0.0220414121, rel=1e-3)
    assert [row["estimate"] for row in fit.thresholds] == pytest.approx(
        [-1.241276844, -0.411594169, 0.191699119, 0.746238170, 1.438968837], abs=1e-3
    )
    assert [row["standard_error"] for row in fit.thresholds] == pytest.approx(
        [0.0242527927, 0.0231363099, 0.0230202786, 0.0235234810, 0.0253006007], rel=1e-3
    )
    variances = {row["factor"]: row["variance"] for row in fit.variances}
    assert variances == pytest.approx({"trials": 0.51556303}, rel=1e-3)
    slopes = fit_mixed(ratings, ["gpt2"], SLOPES)
    assert slopes["gpt2"]["estimate"].value * unit == pytest.approx(0.887791485, rel=1e-3)
    assert slopes["gpt2"]["estimate"].standard_error * unit == pytest.approx(0.0346831254, rel=1e-3)
    assert {row["factor"]: row["variance"] for row in slopes.variances} == pytest.approx(
        {"trials": 0.55017038, "participants": 0.072318592}, rel=1e-3
    )
