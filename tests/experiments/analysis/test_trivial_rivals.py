"""Trivial rivals, against counts by hand and models with the same preferences."""

from dataclasses import replace
from math import log10

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.page import methods_text
from contstim.experiments.analysis.ratings import Ratings, Scope
from contstim.experiments.analysis.run import Analysis
from contstim.experiments.analysis.trivial_rivals import (
    CHANGED,
    FREQUENCY,
    MISFITS,
    against_rivals,
    better_than_all_rivals,
    judge_rivals,
    trivial_rivals,
)
from contstim.items.stimuli import Condition, Kind, Trial
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence
from contstim.words.tags import TaggedWord, TagTable
from tests.experiments.analysis.simulation import simulate

WORDS = [("dogs", "NN2", 6), ("chase", "VVB", 5), ("cats", "NN2", 4), ("see", "VVB", 3)]
TABLE = TagTable("by hand", tuple(TaggedWord(*row) for row in (*WORDS, ("old", "AJ0", 9))))
NATURAL, KINDS = "Dogs chase old cats.", (Kind.SYNTHETIC_1, Kind.SYNTHETIC_2)


def build_trial(first: str, second: str, *, natural: bool = False) -> Trial:
    condition = Condition.NATURAL_SYNTHETIC if natural else Condition.SYNTHETIC_SYNTHETIC
    kinds = (Kind.NATURAL, Kind.SYNTHETIC_1) if natural else KINDS
    sentences = (Sentence.parse(first), Sentence.parse(second))
    return Trial(f"{first} {second}", 1, condition, "a", "b", *sentences, *kinds, "triplet")


TWIN = build_trial(NATURAL, "Dogs see old cats.", natural=True)


@pytest.mark.parametrize(
    ("first", "second", "changed", "misfits"),
    [
        ("Dogs see old cats.", "Cats see old dogs.", 1 - 3, 0),
        ("Old chase old cats.", "Dogs see old cats.", 0, 1 - 0),
        ("Old see old old.", "Dogs cats old cats.", 3 - 1, 2 - 1),
    ],
)
def test_fewer_changes_are_preferred(first: str, second: str, changed: int, misfits: int) -> None:
    """Witness: new words and misfits counted by hand, first sentence minus second sentence."""
    trial = build_trial(first, second)
    ratios = trivial_rivals([TWIN, trial], TABLE)[0]
    assert ratios[CHANGED] == {trial.trial_id: changed}
    assert ratios[MISFITS] == {trial.trial_id: misfits}


def test_more_frequent_words_are_preferred() -> None:
    """Witness: the formula of the Zipf scale; one of four words is replaced."""
    trial = build_trial(NATURAL, "Dogs see old cats.")
    ratio = trivial_rivals([trial], TABLE)[0][FREQUENCY][trial.trial_id]
    assert ratio == pytest.approx((log10(3 + 1) - log10(5 + 1)) / 4)
    counts = WordFrequencies({"chase": 1, "see": 3})
    ratio = trivial_rivals([trial], TABLE, counts)[0][FREQUENCY][trial.trial_id]
    assert ratio == pytest.approx((log10(3 + 1) - log10(1 + 1)) / 4)


def test_uncountable_rivals_are_left_out_with_a_note() -> None:
    foreign = [
        build_trial("Hunde jagen alte Katzen.", "Hunde sehen alte Katzen."),
        replace(
            build_trial("Hunde jagen alte Vögel.", "Hunde sehen alte Vögel."), source_id="other"
        ),
        build_trial("Hunde jagen rote Katzen.", "Hunde sehen rote Katzen.", natural=True),
    ]
    ratios, (lost_note, unlisted_note) = trivial_rivals(foreign, TABLE)
    assert [*ratios] == [CHANGED]
    assert [*ratios[CHANGED]] == [foreign[0].trial_id]
    assert "1 pair of synthetic sentences" in lost_note
    assert "frequency and tag misfits are not evaluated, because by hand contains" in unlisted_note
    frequencies = WordFrequencies({"hunde": 1})
    ratios, notes = trivial_rivals(foreign, TABLE, frequencies)
    assert {*ratios} == {CHANGED, FREQUENCY}
    assert "Trivial rivals: tag misfits are not evaluated" in notes[1]


def ratios_by_id(ratings: Ratings) -> dict[str, list[float]]:
    return {
        trial.trial_id: ratios
        for group in ratings.groups
        for trial, ratios in zip(group.trials, group.ratios.T.tolist(), strict=True)
    }


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """An experiment with two rivals that have the preferences of models b and c."""
    experiment = simulate(groups=(5, 5), follow=0.9)
    ratios = ratios_by_id(experiment.gather())
    rivals = {
        rival: {t: ratios_of_trial[n] for t, ratios_of_trial in ratios.items()}
        for rival, n in ((FREQUENCY, 1), (CHANGED, 2))
    }
    return experiment.analyze(sampling=Sampling("crossed"), rivals=(rivals, ()))


def test_rival_with_a_models_preferences_gets_its_results(analysis: Analysis) -> None:
    """Witness: value, interval, difference and test of that model on the same trials."""
    for result in analysis.results:
        rivals = analysis.rivals_of(result)
        if result.scope not in (Scope.RANDOM, Scope.OVERALL):
            continue
        assert rivals is not None
        (rival,) = rivals.models
        (model,) = [row for row in result.models if row.model == "b"]
        assert rival == replace(model, model=FREQUENCY)
        rival_rows = {row.first: row for row in rivals.comparisons}
        assert {row.second for row in rivals.comparisons} == {FREQUENCY}
        (model_row,) = [row for row in result.comparisons if (row.first, row.second) == ("a", "b")]
        for column in ("difference", "statistic", "p_value", "n_units"):
            assert getattr(rival_rows["a"], column) == pytest.approx(getattr(model_row, column))
        assert rival_rows["b"].difference == 0
        assert not better_than_all_rivals(rivals, "b")
        assert better_than_all_rivals(rivals, "a")
        text = against_rivals(rivals, "crossed")
        named_models = text.partition("): ")[2].partition(".")[0].split(", ")
        assert "b" in named_models
        assert "a" not in named_models


def test_all_models_and_rivals_form_one_family(analysis: Analysis) -> None:
    """Witness: the same contrasts one by one, and the correction by statsmodels."""
    result = analysis.result(Scope.SYNTHETIC, ACCURACY)
    both_rivals = analysis.rivals_of(result)
    assert both_rivals is not None
    rows = {(row.first, row.second): row for row in both_rivals.comparisons}
    models = [row.model for row in result.models]
    assert {*rows} == {(model, rival) for model in models for rival in (FREQUENCY, CHANGED)}
    ratios = ratios_by_id(analysis.ratings)
    for rival, column in ((FREQUENCY, 1), (CHANGED, 2)):
        # Use the name of the rival that may be judged without the others
        single_ratios = {FREQUENCY: {t: values[column] for t, values in ratios.items()}}
        single_rival = judge_rivals(analysis.ratings, result, single_ratios, analysis.sampling)
        assert single_rival is not None
        for row in single_rival.comparisons:
            row_of_both = rows[row.first, rival]
            assert row_of_both.difference == pytest.approx(row.difference)
            assert row_of_both.p_value == pytest.approx(row.p_value, nan_ok=True)
    p_values = [row.p_value for row in both_rivals.comparisons if not np.isnan(row.p_value)]
    expected = multipletests(p_values, method="fdr_bh")[1]
    q_values = [row.q_value for row in both_rivals.comparisons if not np.isnan(row.p_value)]
    np.testing.assert_allclose(q_values, expected)


def test_rivals_are_judged_on_their_common_trials(analysis: Analysis) -> None:
    """Witness: rivals that judge no other trials."""
    result = analysis.result(Scope.SYNTHETIC, ACCURACY)
    trials = [t for t in analysis.ratings.trials if t.condition is Condition.SYNTHETIC_SYNTHETIC]
    frequency = {t.trial_id: (-1.0) ** n for n, t in enumerate(trials)}
    changed = {t.trial_id: 1.0 for t in trials[::3]}
    common_only = {FREQUENCY: {t: frequency[t] for t in changed}, CHANGED: changed}
    all_trials = {FREQUENCY: frequency, CHANGED: changed}
    expected, actual = (
        judge_rivals(analysis.ratings, result, rivals, analysis.sampling)
        for rivals in (common_only, all_trials)
    )
    assert expected is not None
    assert actual is not None
    assert actual.models == expected.models
    assert {row.n_trials for row in actual.models} == {len(changed)}


def test_rival_that_always_ties_is_ignored(analysis: Analysis) -> None:
    """Witness: the results without that rival, whose accuracy is always one half."""
    result = analysis.result(Scope.SYNTHETIC, ACCURACY)
    trials = [t.trial_id for t in analysis.ratings.trials]
    other_rival = {FREQUENCY: {t: (-1.0) ** n for n, t in enumerate(trials)}}
    tied_rival = {MISFITS: dict.fromkeys(trials, 0.0)}
    other_result, both_result, tied_result = (
        judge_rivals(analysis.ratings, result, ratios, analysis.sampling)
        for ratios in (other_rival, other_rival | tied_rival, tied_rival)
    )
    assert other_result is not None
    assert both_result is not None
    assert both_result.models == other_result.models
    assert both_result.comparisons == other_result.comparisons
    assert tied_result is None


def test_methods_describe_the_rivals_in_use(analysis: Analysis) -> None:
    random_only = tuple(r for r in analysis.rivals if r.scope is Scope.RANDOM)
    rival_names = ("Word frequency", "Words changed", "Tag misfits")
    for rivals, is_described in (
        (analysis.rivals, [True, True, False]),
        (random_only, [True, False, False]),
    ):
        text = " ".join(methods_text(replace(analysis, rivals=rivals)))
        assert [f'"{name}" prefers' in text for name in rival_names] == is_described


def test_changed_words_judge_synthetic_pairs_only(analysis: Analysis) -> None:
    models = {(r.scope): [row.model for row in r.models] for r in analysis.rivals}
    assert models.pop(Scope.SYNTHETIC) == [FREQUENCY, CHANGED]
    assert models == {key: [FREQUENCY] for key in (Scope.RANDOM, Scope.NATURAL, Scope.OVERALL)}
    # A model is compared on the trials that target it, a rival on all trials
    result = analysis.result(Scope.SYNTHETIC, ACCURACY)
    rivals = analysis.rivals_of(result)
    assert rivals is not None
    assert {row.n_trials for row in rivals.models} == {12}
    assert {row.n_trials for row in result.models} == {8}
