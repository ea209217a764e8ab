"""A design of the published size, and its power with the published scores."""

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
    ScopedPreferences,
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
from tests.published.readers import (
    read_natural_scores,
    read_natural_sentences,
)

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


def check(trials: tuple[Trial, ...]) -> None:
    for group in range(1, 11):
        own = [t for t in trials if t.group == group]
        assert Counter(t.condition for t in own) == PUBLISHED
        roles = Counter((t.model_1, t.model_2, t.condition, t.kind_2) for t in own if t.model_1)
        assert len(roles) == 36 * 4
        assert set(roles.values()) == {1}
        texts = [s.bare for t in own for s in (t.sentence_1, t.sentence_2)]
        assert len(set(texts)) == len(texts)


def test_the_published_numbers(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    check(build_design(*stimuli, **MIXTURE).trials)


def test_the_published_numbers_with_shared_natural_sentences(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """108 of 360 triplets take the natural sentence of a triplet of another model pair."""
    pairs, triplets, natural = stimuli
    order = np.random.default_rng(0).permutation(360)
    shared = list(triplets)
    for one, other in zip(order[:108], order[108:216], strict=True):
        shared[one] = replace(shared[one], natural=shared[other].natural)
    check(build_design(pairs, shared, natural, **MIXTURE).trials)


def test_twenty_rejected_trials_leave_all_others_in_their_groups(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """Rejected pairs and triplets are replaced by made-up ones of the same models."""
    pairs, triplets, natural = stimuli
    before = build_design(*stimuli, **MIXTURE)
    items = list(undecided_items(before.trials, "Ann"))
    for place in np.random.default_rng(0).permutation(len(items))[:20]:
        items[place] = replace(items[place], decision=Decision.REJECT)
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
    after = build_design(new_pairs, new_triplets, natural, seed=1, review=review, **MIXTURE)
    check(after.trials)
    stay = {t for t in before.trials if not review.rejected & {t.trial_id, t.source_id}}
    assert stay <= set(after.trials)
    assert {i.item_id for i in after.changed} <= {t.trial_id for t in before.trials} - {
        t.trial_id for t in stay
    }


def test_controversial_pairs_tell_more_models_apart_than_as_many_random_ones(
    published_data: Path, stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]]
) -> None:
    """The paper's reason to exist; the direction, not a number of ours, is what is tested."""
    folder = published_data / "contstimlang"
    pairs, triplets, _ = stimuli
    found = build_design(pairs, triplets, random_per_group=0, catch_per_group=0, twins=True)
    scores = read_natural_scores(folder).log_probs
    one, two = np.random.default_rng(0).permutation(len(scores))[:600].reshape(2, 300)
    random = TrialPreferences(
        MODELS,
        scores[two] - scores[one],
        np.ones((300, 9), dtype=np.bool_),
        np.arange(300) % 10,
        np.zeros(300, dtype=np.int64),
    )
    studies = (
        preferences_by_scope(found.trials, read_stimulus_scores(folder)),
        ScopedPreferences(random, {Scope.RANDOM: random.evaluates}),
    )
    shares = []
    for study, scope in zip(studies, (Scope.NATURAL, Scope.RANDOM), strict=True):
        kind, people = study.of_scope(scope), calibrate(study, MeasuredPeople())[0][scope]
        rows = kind.thinned_rows(18)
        some = [population.of_trials(rows) for population in people]
        shares.append(simulate_power(kind.of_trials(rows), some, simulations=60).mean_better)
    assert shares[0] > shares[1] + 0.1


@pytest.fixture(scope="module")
def experiment(published_data: Path) -> Analysis:
    """Accuracies of experiment 1."""
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    scores = read_stimulus_scores(folder)
    return analyze(trials, responses, scores, sampling=Sampling("groups"))


def _shown(measured: MeasuredPeople) -> list[tuple[Scope, MeasuredKind]]:
    return [(scope, each) for scope, each in measured.kinds.items() if scope is not Scope.MINIMAL]


def test_default_people_are_those_of_the_published_ratings(experiment: Analysis) -> None:
    """Witness: the analysis of experiment 1, on the trials of the most consistent model."""
    measured = MeasuredPeople()
    overall = experiment.result(Scope.OVERALL, ACCURACY).models
    best = max(overall, key=lambda model: model.value).model
    assert best == "gpt2"
    assert set(measured.kinds) == set(Scope) - {Scope.OVERALL}
    # Nobody was shown minimal pairs, whose people are those of natural controversial pairs
    assert measured.kinds[Scope.MINIMAL] == measured.kinds[Scope.NATURAL]
    for scope, known in _shown(measured):
        own = {model.model: model for model in experiment.result(scope, ACCURACY).models}
        assert own[best].lower == pytest.approx(known.ceiling, abs=1e-6)
        assert own[best].value == pytest.approx(known.accuracy, abs=1e-6)
        others = sorted((m.value for name, m in own.items() if name != best), reverse=True)
        assert others == pytest.approx(known.rivals, abs=1e-6)
    assert {len(g.participants) for g in experiment.ratings.groups} == {
        known.raters for known in measured.kinds.values()
    }
    trials = [trial for group in experiment.ratings.groups for trial in group.trials]
    assert not calibrate(preferences_by_scope(trials, experiment.scores), measured)[1]


def test_people_differ_as_in_the_mixed_model_of_experiment_1(experiment: Analysis) -> None:
    """Witness: `fit_mixed`, which agrees with R's clmm."""
    fit = fit_mixed(experiment.ratings, ["gpt2"], settings=MixedSettings(ratios="ranks"))
    spread = {(v["factor"], v["effect"]): v["standard_deviation"] for v in fit.variances}
    (slope,) = fit.coefficients
    following = spread["participants", "gpt2"] / slope["typical_effect"]
    assert following == pytest.approx(MeasuredPeople().following, abs=0.001)
    assert spread["trials", "intercept"] == pytest.approx(0.69, abs=0.005)  # as docs say
    assert fit.rated.sided == 0


def test_items_vary_as_in_the_mixed_model_of_the_choices(experiment: Analysis) -> None:
    """Witness: `fit_mixed`, which agrees with R's clmm, condition by condition."""
    groups = (
        replace(group, ratings=np.where(group.ratings > 3.5, 6.0, 1.0))
        for group in experiment.ratings.groups
    )
    choices = replace(experiment.ratings, groups=tuple(groups))
    for scope, known in _shown(MeasuredPeople()):
        condition = next(c for c in Condition if str(scope).startswith(str(c)))
        settings = MixedSettings(ratios="ranks")
        fit = fit_mixed(choices, ["gpt2"], settings, conditions=(condition,))
        (of_trials,) = (v["standard_deviation"] for v in fit.variances if v["factor"] == "trials")
        assert of_trials == pytest.approx(known.items, abs=0.001)


# Where models accept synthetic sentences GPT-2, which is planted where nothing is known, was second
@pytest.mark.parametrize(
    ("scope", "known"),
    [
        *((s, "a pilot") for s in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.ACCEPT)),
        *((s, "nothing") for s in (Scope.RANDOM, Scope.NATURAL, Scope.SYNTHETIC, Scope.REJECT)),
    ],
)
def test_simulated_people_choose_alike(experiment: Analysis, scope: Scope, known: str) -> None:
    """Witness: answers of experiment 1, drawn anew trial by trial, model pairs evenly."""
    ratings = experiment.ratings
    trials = [trial for group in ratings.groups for trial in group.trials]
    study = preferences_by_scope(trials, experiment.scores)
    results = {s: experiment.result(s, ACCURACY).models for s in study.evaluates}
    best = {s: {model.model: model for model in results[s]}["gpt2"] for s in results}
    kinds = {
        s: replace(
            published,
            ceiling=best[s].lower,
            of_models={model.model: model.value for model in results[s]},
            items=None,
        )
        for s, published in MeasuredPeople().kinds.items()
        if s in results
    }
    measured = MeasuredPeople(kinds, best="gpt2")
    if known == "nothing":
        measured = MeasuredPeople()
    kind = study.of_scope(scope)
    people = [
        population
        for population in calibrate(study, measured)[0][scope]
        if known == "a pilot" or (population.name, population.rivals) == ("gpt2", CLOSE)
    ]
    power = simulate_power(kind, people, simulations=1000)
    # People's mean choice of every trial, -1 to 1, and what each model's agreement is with it.
    choices = np.concatenate(
        [
            np.sign(group.ratings - 3.5).mean(axis=0)[
                [trial.condition != Condition.CATCH for trial in group.trials]
            ]
            for group in ratings.groups
        ]
    )[study.rows(scope)]
    agreed = np.sign(kind.differences) * kind.evaluates * choices[:, None]
    first = int((agreed.sum(axis=0) / kind.evaluates.sum(axis=0)).argmax())
    members = [np.flatnonzero(kind.strata == stratum) for stratum in np.unique(kind.strata)]
    rng = np.random.default_rng(0)
    sizes = [n for n in (36, 90, 360) if n <= len(power.mean_first_by_trials)]
    for n in sizes:
        wins = 0.0
        for _ in range(1000):
            order = np.concatenate([rng.permutation(len(members)) for _ in range(n)])[:n]
            drawn = [rng.choice(members[stratum]) for stratum in order]
            counts = kind.evaluates[drawn].sum(axis=0)
            if counts.all():
                means = np.round(agreed[drawn].sum(axis=0) / counts, 12)
                wins += (means[first] == means.max()) / (means == means.max()).sum()
        assert power.populations[0].first_by_trials[n - 1] == pytest.approx(wins / 1000, abs=0.08)
