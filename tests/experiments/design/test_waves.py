"""Waves: the items of each list, and the expected size. Witness: counts."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr

from contstim.experiments.design.waves import (
    TooFewItemsError,
    Wave,
    WaveRules,
    _strengths,
    design_wave,
    simulate_sizes,
    simulate_waves,
)
from contstim.files.arrays import FloatArray
from contstim.items.stimuli import Condition, Trial
from tests.experiments.stimuli import MODELS, natural, some_triplets

PAIRS = [*combinations(MODELS, 2)]
RULES = WaveRules(people_per_wave=5, trials_per_person=8)


def targeted_trials(trials: list[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.model_1]


def test_lists_share_no_item_and_matches_are_balanced() -> None:
    triplets = some_triplets(30)
    rejected = {triplets[0].triplet_id}
    options = {"natural": natural(30), "catch_per_group": 2, "rejected": rejected}
    first = design_wave(RULES, PAIRS, triplets, [], 0, **options)  # type: ignore[arg-type]
    second = design_wave(RULES, PAIRS[:2], triplets, first, 5, **options)  # type: ignore[arg-type]
    sources = [trial.source_id for trial in targeted_trials([*first, *second])]
    assert len(sources) == len({*sources}) == 80
    assert rejected.isdisjoint(sources)
    for trials, groups, n_pairs in ((first, range(1, 6), 6), (second, range(6, 11), 2)):
        sizes = Counter(trial.group for trial in targeted_trials(trials))
        assert sizes == dict.fromkeys(groups, 8)
        matches = Counter((trial.model_1, trial.model_2) for trial in targeted_trials(trials))
        assert len(matches) == n_pairs
        assert max(matches.values()) - min(matches.values()) <= 1
        catch = Counter(t.group for t in trials if t.condition is Condition.CATCH)
        assert catch == dict.fromkeys(groups, 2)
        for group in groups:
            texts = [text for t in trials if t.group == group for text in t.bare]
            assert len(texts) == len({*texts})
    names = [trial.trial_id for trial in (*first, *second)]
    assert len(names) == len({*names})


def test_items_that_share_a_sentence_are_in_different_lists() -> None:
    triplets = some_triplets(10, ("a", "b", "c"))
    # The first item of each pair of models comes from the same sentence
    source = triplets[0].natural
    shared = [replace(t, natural=source) if i % 10 == 0 else t for i, t in enumerate(triplets)]
    rules = WaveRules(people_per_wave=4, trials_per_person=3)
    trials = design_wave(rules, [*combinations("abc", 2)], shared, [], 0)
    groups = [trial.group for trial in trials if trial.source == source]
    assert len(groups) == len({*groups}) == 3


def test_stated_number_of_missing_items_suffices() -> None:
    with pytest.raises(TooFewItemsError) as error:
        design_wave(RULES, PAIRS, some_triplets(6), [], 0)
    assert error.value.needed == 7
    assert len(design_wave(RULES, PAIRS, some_triplets(7), [], 0)) == 40


def test_last_wave_is_smaller_and_final() -> None:
    rules = WaveRules(people_per_wave=10, people_per_list=5, max_people=15)
    assert [rules.lists(people) for people in (0, 10, 15)] == [2, 1, 0]


def test_wave_identifies_its_trials() -> None:
    trials = design_wave(RULES, PAIRS, some_triplets(7), [], 0)
    wave = Wave.of(1, trials, 1)
    assert (wave.first_list, wave.last_list, wave.matches, wave.items) == (1, 5, 6, 40)
    assert wave.trials_of([*trials, replace(trials[0], group=6)]) == trials
    assert Wave.of(1, trials[::-1], 1) == wave
    assert Wave.of(1, [replace(trials[0], group=2), *trials[1:]], 1).sha256 != wave.sha256


def test_simulated_waves_drop_models_that_always_lose() -> None:
    rules = WaveRules(people_per_wave=4, trials_per_person=6)

    def first_wins(_: tuple[str, str], n_lists: int, n_trials: int) -> FloatArray:
        return np.full(n_lists, 1.0 if n_trials else 0.0)

    *_, (verdict, people, items) = simulate_waves(rules, "abc", first_wins)
    assert (verdict.winner, people) == ("a", 12)
    # The match of b and c stops when c is dropped by a
    assert items["b", "c"] < items["a", "b"]


def test_strengths_predict_the_accuracies() -> None:
    accuracies = np.array([0.8, 0.6, 0.35, 0.25])
    strengths = _strengths(accuracies)
    for index, accuracy in enumerate(accuracies):
        shares = [ndtr(strengths[index] - strengths[rival]) for rival in range(4) if rival != index]
        assert np.mean(shares) == pytest.approx(accuracy, abs=1e-4)


def test_more_participants_decide_more_studies() -> None:
    small, large = (
        simulate_sizes(WaveRules(people_per_wave=6, max_people=max_people), 3, simulations=20)
        for max_people in (6, 60)
    )
    assert small[2].mean() < large[2].mean()
    assert {*small[0]} == {6}
    assert large[0].max() <= 60
