"""Designs of the published size, and their power with the published scores."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.design.building import build_design
from contstim.experiments.design.calibration import MeasuredKind, MeasuredPeople, calibrate
from contstim.experiments.design.population import (
    CLOSE,
    TrialPreferences,
    preferences_by_scope,
)
from contstim.experiments.design.power import simulate_power
from contstim.experiments.reproduce.published import (
    MODELS,
    read_experiment,
    read_natural_pairs,
    read_stimulus_scores,
    read_triplets,
)
from contstim.items.reviews import Decision, Review, undecided_items
from contstim.items.stimuli import Condition, Pair, Trial, Triplet
from contstim.words.sentence import Sentence
from tests.published.readers import read_natural_scores, read_natural_sentences

pytestmark = pytest.mark.published

MIXTURE: dict[str, Any] = {"random_per_group": 9, "twins": True}
PUBLISHED = {
    Condition.NATURAL_CONTROVERSIAL: 36,
    Condition.NATURAL_SYNTHETIC: 72,
    Condition.SYNTHETIC_SYNTHETIC: 36,
    Condition.RANDOM_NATURAL: 9,
    Condition.CATCH: 12,
}


@pytest.fixture(scope="module")
def stimuli(published_data: Path) -> tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]]:
    folder = published_data / "contstimlang"
    pairs, triplets = read_natural_pairs(folder), read_triplets(folder, selected=True)
    return pairs, triplets, read_natural_sentences(folder)


def check_published_numbers(trials: tuple[Trial, ...]) -> None:
    for group in range(1, 11):
        group_trials = [trial for trial in trials if trial.group == group]
        assert Counter(trial.condition for trial in group_trials) == PUBLISHED
        roles = Counter(
            (trial.model_1, trial.model_2, trial.condition, trial.kind_2)
            for trial in group_trials
            if trial.model_1
        )
        assert len(roles) == 36 * 4
        assert set(roles.values()) == {1}
        texts = [s.bare for trial in group_trials for s in (trial.sentence_1, trial.sentence_2)]
        assert len(set(texts)) == len(texts)


def test_a_design_has_the_published_numbers(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    check_published_numbers(build_design(*stimuli, **MIXTURE).trials)


def test_a_design_with_shared_natural_sentences(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """108 of 360 triplets get the natural sentence of another triplet."""
    pairs, triplets, natural = stimuli
    order = np.random.default_rng(0).permutation(360)
    shared = list(triplets)
    for index, source_index in zip(order[:108], order[108:216], strict=True):
        shared[index] = replace(shared[index], natural=shared[source_index].natural)
    check_published_numbers(build_design(pairs, shared, natural, **MIXTURE).trials)


def test_trials_that_are_not_rejected_keep_their_groups(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """Rejected pairs and triplets are replaced by artificial ones of the same models."""
    pairs, triplets, natural = stimuli
    old_design = build_design(*stimuli, **MIXTURE)
    items = list(undecided_items(old_design.trials, "Ann"))
    for index in np.random.default_rng(0).permutation(len(items))[:20]:
        items[index] = replace(items[index], decision=Decision.REJECT)
    review = Review(tuple(items))
    new_pairs = [
        replace(
            pair,
            trial_id=f"pair-{n}",
            sentence_1=Sentence(("New", "pair", str(n))),
            sentence_2=Sentence(("Other", "pair", str(n))),
        )
        if pair.trial_id in review.rejected
        else pair
        for n, pair in enumerate(pairs)
    ]
    new_triplets = [
        replace(triplet, triplet_id=f"triplet-{n}", natural=Sentence(("New", "triplet", str(n))))
        if triplet.triplet_id in review.rejected
        else triplet
        for n, triplet in enumerate(triplets)
    ]
    new_design = build_design(new_pairs, new_triplets, natural, seed=1, review=review, **MIXTURE)
    check_published_numbers(new_design.trials)
    kept_trials = {
        trial
        for trial in old_design.trials
        if not review.rejected & {trial.trial_id, trial.source_id}
    }
    assert kept_trials <= set(new_design.trials)
    assert {item.item_id for item in new_design.changed} <= {
        trial.trial_id for trial in old_design.trials
    } - {trial.trial_id for trial in kept_trials}


def test_controversial_pairs_have_more_power_than_random_pairs(
    published_data: Path, stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]]
) -> None:
    """The main claim of the paper; only the direction of the difference is tested."""
    folder = published_data / "contstimlang"
    pairs, triplets, _ = stimuli
    design = build_design(pairs, triplets, random_per_group=0, catch_per_group=0, twins=True)
    scores = read_natural_scores(folder).log_probs
    first, second = np.random.default_rng(0).permutation(len(scores))[:600].reshape(2, 300)
    random = TrialPreferences(
        MODELS,
        scores[second] - scores[first],
        np.ones((300, 9), dtype=np.bool_),
        np.arange(300) % 10,
        np.zeros(300, dtype=np.int64),
    )
    studies = (
        preferences_by_scope(design.trials, read_stimulus_scores(folder)),
        replace(random, scopes={Scope.RANDOM: random.evaluates}),
    )
    shares = []
    for study, scope in zip(studies, (Scope.NATURAL, Scope.RANDOM), strict=True):
        kind, populations = study.of_scope(scope), calibrate(study, MeasuredPeople())[0][scope]
        rows = kind.thinned_rows(18)
        thinned = [population.of_trials(rows) for population in populations]
        shares.append(simulate_power(kind.of_trials(rows), thinned, simulations=60).mean_better)
    assert shares[0] > shares[1] + 0.1


@pytest.fixture(scope="module")
def experiment(published_data: Path) -> Analysis:
    """Accuracies of experiment 1."""
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    scores = read_stimulus_scores(folder)
    return analyze(trials, responses, scores, sampling=Sampling("groups"))


def kinds_in_experiment(measured: MeasuredPeople) -> list[tuple[Scope, MeasuredKind]]:
    return [(scope, kind) for scope, kind in measured.kinds.items() if scope is not Scope.MINIMAL]


def test_default_participants_equal_those_of_experiment_1(experiment: Analysis) -> None:
    """Witness: the analysis of experiment 1, on the trials of the most consistent model."""
    measured = MeasuredPeople()
    overall_results = experiment.result(Scope.OVERALL, ACCURACY).models
    best = max(overall_results, key=lambda model: model.value).model
    assert best == "gpt2"
    assert set(measured.kinds) == set(Scope) - {Scope.OVERALL}
    # Experiment 1 had no minimal pairs; natural controversial pairs provide the defaults
    assert measured.kinds[Scope.MINIMAL] == measured.kinds[Scope.NATURAL]
    for scope, kind in kinds_in_experiment(measured):
        results = {model.model: model for model in experiment.result(scope, ACCURACY).models}
        assert results[best].lower == pytest.approx(kind.ceiling, abs=1e-6)
        assert results[best].value == pytest.approx(kind.accuracy, abs=1e-6)
        rivals = sorted((m.value for name, m in results.items() if name != best), reverse=True)
        assert rivals == pytest.approx(kind.rivals, abs=1e-6)
    assert {len(g.participants) for g in experiment.ratings.groups} == {
        kind.raters for kind in measured.kinds.values()
    }
    trials = [trial for group in experiment.ratings.groups for trial in group.trials]
    assert not calibrate(preferences_by_scope(trials, experiment.scores), measured)[1]


def test_default_participant_variance_equals_the_mixed_model(experiment: Analysis) -> None:
    """Witness: `fit_mixed`, which agrees with R's clmm."""
    fit = fit_mixed(experiment.ratings, ["gpt2"], settings=MixedSettings(ratios="ranks"))
    sds = {(row["factor"], row["effect"]): row["standard_deviation"] for row in fit.variances}
    (slope,) = fit.coefficients
    following = sds["participants", "gpt2"] / slope["typical_effect"]
    assert following == pytest.approx(MeasuredPeople().following, abs=0.001)
    assert sds["trials", "intercept"] == pytest.approx(0.69, abs=0.005)  # as docs say
    assert fit.rated.sided == 0


def test_default_item_variance_equals_the_mixed_model(experiment: Analysis) -> None:
    """Witness: `fit_mixed`, which agrees with R's clmm, condition by condition."""
    groups = (
        replace(group, ratings=np.where(group.ratings > 3.5, 6.0, 1.0))
        for group in experiment.ratings.groups
    )
    choices = replace(experiment.ratings, groups=tuple(groups))
    for scope, kind in kinds_in_experiment(MeasuredPeople()):
        condition = next(c for c in Condition if str(scope).startswith(str(c)))
        settings = MixedSettings(ratios="ranks")
        fit = fit_mixed(choices, ["gpt2"], settings, conditions=(condition,))
        (sd,) = (row["standard_deviation"] for row in fit.variances if row["factor"] == "trials")
        assert sd == pytest.approx(kind.items, abs=0.001)


# Without a pilot, the best simulated model is GPT-2, which was second in `ACCEPT`
@pytest.mark.parametrize(
    ("scope", "information"),
    [
        *((s, "a pilot") for s in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.ACCEPT)),
        *((s, "nothing") for s in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT)),
    ],
)
def test_simulated_power_equals_that_of_resampled_trials(
    experiment: Analysis, scope: Scope, information: str
) -> None:
    """Witness: responses of experiment 1, resampled by trial with balanced model pairs."""
    ratings = experiment.ratings
    trials = [trial for group in ratings.groups for trial in group.trials]
    study = preferences_by_scope(trials, experiment.scores)
    results = {s: experiment.result(s, ACCURACY).models for s in study.scopes}
    best_results = {s: {model.model: model for model in results[s]}["gpt2"] for s in results}
    kinds = {
        s: replace(
            published,
            ceiling=best_results[s].lower,
            of_models={model.model: model.value for model in results[s]},
            items=None,
        )
        for s, published in MeasuredPeople().kinds.items()
        if s in results
    }
    measured = MeasuredPeople(kinds, best="gpt2")
    if information == "nothing":
        measured = MeasuredPeople()
    kind = study.of_scope(scope)
    populations = [
        population
        for population in calibrate(study, measured)[0][scope]
        if information == "a pilot" or (population.name, population.rivals) == ("gpt2", CLOSE)
    ]
    power = simulate_power(kind, populations, simulations=1000)
    # Mean choice of every trial, -1 to 1, and the agreement of each model with it.
    choices = np.concatenate(
        [
            np.sign(group.ratings - 3.5).mean(axis=0)[
                [trial.condition != Condition.CATCH for trial in group.trials]
            ]
            for group in ratings.groups
        ]
    )[study.rows(scope)]
    agreement = np.sign(kind.differences) * kind.evaluates * choices[:, None]
    best_index = int((agreement.sum(axis=0) / kind.evaluates.sum(axis=0)).argmax())
    strata = [np.flatnonzero(kind.strata == stratum) for stratum in np.unique(kind.strata)]
    rng = np.random.default_rng(0)
    sizes = [n for n in (36, 90, 360) if n <= len(power.mean_first_by_trials)]
    for n in sizes:
        wins = 0.0
        for _ in range(1000):
            order = np.concatenate([rng.permutation(len(strata)) for _ in range(n)])[:n]
            sampled_trials = [rng.choice(strata[stratum]) for stratum in order]
            counts = kind.evaluates[sampled_trials].sum(axis=0)
            if counts.all():
                means = np.round(agreement[sampled_trials].sum(axis=0) / counts, 12)
                wins += (means[best_index] == means.max()) / (means == means.max()).sum()
        assert power.populations[0].first_by_trials[n - 1] == pytest.approx(wins / 1000, abs=0.08)
