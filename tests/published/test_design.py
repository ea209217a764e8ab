"""A design of the published size, and its power with the published scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.evaluation import ACCURACY
from contstim.experiments.analysis.run import analyze
from contstim.experiments.analysis.scopes import Scope
from contstim.experiments.design.building import build_design
from contstim.experiments.design.calibration import Ceilings, calibrate
from contstim.experiments.design.power import simulate_power
from contstim.experiments.design.simulated import (
    TrialPreferences,
    calibrate_noise,
    preferences_by_condition,
    preferences_by_scope,
)
from contstim.experiments.reproduce.golan2023_data import read_experiment
from contstim.experiments.reproduce.published.scores import (
    read_natural_scores,
    read_stimulus_scores,
)
from contstim.experiments.reproduce.published.stimuli import (
    read_natural_pairs,
    read_natural_sentences,
    read_triplets,
)
from contstim.reviews import Decision, Review, undecided
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Pair, Trial, Triplet

pytestmark = pytest.mark.published

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
    check(build_design(*stimuli).trials)


def test_the_published_numbers_with_shared_natural_sentences(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """108 of 360 triplets take the natural sentence of a triplet of another model pair."""
    pairs, triplets, natural = stimuli
    order = np.random.default_rng(0).permutation(360)
    shared = list(triplets)
    for one, other in zip(order[:108], order[108:216], strict=True):
        shared[one] = replace(shared[one], natural=shared[other].natural)
    check(build_design(pairs, shared, natural).trials)


def test_twenty_rejected_trials_leave_all_others_in_their_groups(
    stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]],
) -> None:
    """Rejected pairs and triplets are replaced by made-up ones of the same models."""
    pairs, triplets, natural = stimuli
    before = build_design(*stimuli)
    items = list(undecided(before.trials, "Ann"))
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
    after = build_design(new_pairs, new_triplets, natural, seed=1, review=review)
    check(after.trials)
    stay = {t for t in before.trials if not review.rejected & {t.trial_id, t.source_id}}
    print(after.certificate)
    assert stay <= set(after.trials)
    assert after.certificate.kept == after.certificate.kept_bound == len(stay)


def test_controversial_pairs_need_fewer_trials_than_random_ones(
    published_data: Path, stimuli: tuple[tuple[Pair, ...], tuple[Triplet, ...], list[Sentence]]
) -> None:
    """The paper's reason to exist; the direction, not a number of ours, is what is tested."""
    folder = published_data / "contstimlang"
    pairs, triplets, _ = stimuli
    found = build_design(pairs, triplets, random_per_group=0, catch_per_group=0)
    targeted = preferences_by_condition(found.trials, read_stimulus_scores(folder))
    scores = read_natural_scores(folder).log_probs
    one, two = np.random.default_rng(0).permutation(len(scores))[:600].reshape(2, 300)
    random = TrialPreferences(
        targeted[Condition.NATURAL_CONTROVERSIAL].models,
        scores[two] - scores[one],
        np.ones((300, 9), dtype=np.bool_),
        np.arange(300) % 10,
        np.zeros(300, dtype=np.int64),
    )
    noise = np.array([calibrate_noise(d, 0.748889) for d in random.differences.T])
    needed = [
        simulate_power(c, noise, simulations=50).trials_needed(0.8)
        for c in (targeted[Condition.NATURAL_CONTROVERSIAL], random)
    ]
    assert needed[0] is not None
    assert needed[1] is not None
    assert needed[0] < needed[1]


def test_default_noise_ceilings_are_those_of_the_published_ratings(published_data: Path) -> None:
    """Witness: the analysis of experiment 1, on the trials of the most consistent model."""
    folder = published_data / "contstimlang"
    trials, responses = read_experiment(folder, published_data / "contstimlang-fork" / "data")
    scores = read_stimulus_scores(folder)
    found = analyze(trials, responses, scores, sampling=Sampling("groups", samples=0))
    ceilings = Ceilings()
    overall = found.result(Scope.OVERALL, ACCURACY).models
    best = max(overall, key=lambda one: one.value).model
    assert best == "gpt2"
    assert set(ceilings.values) == set(Scope) - {Scope.OVERALL}
    for scope, value in ceilings.values.items():
        own = {one.model: one.lower for one in found.result(scope, ACCURACY).models}
        assert own[best] == pytest.approx(value, abs=1e-6)
    assert {len(group.participants) for group in found.ratings.groups} == {ceilings.raters}
    noise = calibrate(preferences_by_scope(trials, scores), ceilings)
    assert not noise.unreached
