"""Trivial rivals, against counts by hand and against models that prefer the same sentences."""

from dataclasses import replace
from math import log10

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.measures import ACCURACY
from contstim.experiments.analysis.page import methods_text
from contstim.experiments.analysis.ratings import Ratings, Scope, gather
from contstim.experiments.analysis.run import Analysis, analyze
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


def trial(first: str, second: str, *, natural: bool = False) -> Trial:
    condition = Condition.NATURAL_SYNTHETIC if natural else Condition.SYNTHETIC_SYNTHETIC
    kinds = (Kind.NATURAL, Kind.SYNTHETIC_1) if natural else KINDS
    sentences = (Sentence.parse(first), Sentence.parse(second))
    return Trial(f"{first} {second}", 1, condition, "a", "b", *sentences, *kinds, "triplet")


TWIN = trial(NATURAL, "Dogs see old cats.", natural=True)


@pytest.mark.parametrize(
    ("first", "second", "changed", "misfits"),
    [
        ("Dogs see old cats.", "Cats see old dogs.", 1 - 3, 0),
        ("Old chase old cats.", "Dogs see old cats.", 0, 1 - 0),
        ("Old see old old.", "Dogs cats old cats.", 3 - 1, 2 - 1),
    ],
)
def test_fewer_changes_are_preferred(first: str, second: str, changed: int, misfits: int) -> None:
    """Witness: new words and misfits counted by hand, of the first less of the second sentence."""
    made = trial(first, second)
    ratios = trivial_rivals([TWIN, made], TABLE)[0]
    assert ratios[CHANGED] == {made.trial_id: changed}
    assert ratios[MISFITS] == {made.trial_id: misfits}


def test_the_sentence_of_more_frequent_words_is_preferred() -> None:
    """Witness: one word of four replaced, the formula of the Zipf scale written out."""
    made = trial(NATURAL, "Dogs see old cats.")
    ratio = trivial_rivals([made], TABLE)[0][FREQUENCY][made.trial_id]
    assert ratio == pytest.approx((log10(3 + 1) - log10(5 + 1)) / 4)
    counts = WordFrequencies({"chase": 1, "see": 3})
    ratio = trivial_rivals([made], TABLE, counts)[0][FREQUENCY][made.trial_id]
    assert ratio == pytest.approx((log10(3 + 1) - log10(1 + 1)) / 4)


def test_what_cannot_be_counted_is_left_out_and_said() -> None:
    foreign = [
        trial("Hunde jagen alte Katzen.", "Hunde sehen alte Katzen."),
        replace(trial("Hunde jagen alte Vögel.", "Hunde sehen alte Vögel."), source_id="other"),
        trial("Hunde jagen rote Katzen.", "Hunde sehen rote Katzen.", natural=True),
    ]
    found, (lost, unlisted) = trivial_rivals(foreign, TABLE)
    assert [*found] == [CHANGED]
    assert [*found[CHANGED]] == [foreign[0].trial_id]
    assert "1 pair of synthetic sentences" in lost
    assert "word frequency and tag misfits are not evaluated, because by hand contains" in unlisted
    frequencies = WordFrequencies({"hunde": 1})
    found, left_out = trivial_rivals(foreign, TABLE, frequencies)
    assert {*found} == {CHANGED, FREQUENCY}
    assert "Trivial rivals: tag misfits are not evaluated" in left_out[1]


def ratios_by_id(ratings: Ratings) -> dict[str, list[float]]:
    return {
        trial.trial_id: ratios
        for group in ratings.groups
        for trial, ratios in zip(group.trials, group.ratios.T.tolist(), strict=True)
    }


@pytest.fixture(scope="module")
def analysed() -> Analysis:
    """An experiment with two rivals that prefer what the models b and c do."""
    made = simulate(groups=(5, 5), follow=0.9)
    of = ratios_by_id(gather(made.trials, made.responses, made.scores))
    rivals = {
        rival: {t: r[n] for t, r in of.items()} for rival, n in ((FREQUENCY, 1), (CHANGED, 2))
    }
    return analyze(
        *(made.trials, made.responses, made.scores),
        sampling=Sampling("crossed"),
        rivals=(rivals, ()),
    )


def test_a_rival_that_prefers_what_a_model_does_is_as_good(analysed: Analysis) -> None:
    """Witness: value, interval, difference and test of that model on the same trials."""
    for result in analysed.results:
        rivals = analysed.rivals_of(result)
        if result.scope not in (Scope.RANDOM, Scope.OVERALL):
            continue
        assert rivals is not None
        (rival,) = rivals.models
        (model,) = [row for row in result.models if row.model == "b"]
        assert rival == replace(model, model=FREQUENCY)
        ours = {row.first: row for row in rivals.comparisons}
        assert {row.second for row in rivals.comparisons} == {FREQUENCY}
        (theirs,) = [row for row in result.comparisons if (row.first, row.second) == ("a", "b")]
        for column in ("difference", "statistic", "p_value", "n_units"):
            assert getattr(ours["a"], column) == pytest.approx(getattr(theirs, column))
        assert ours["b"].difference == 0
        assert not better_than_all_rivals(rivals, "b")
        assert better_than_all_rivals(rivals, "a")
        text = against_rivals(rivals, "crossed")
        named = text.partition("): ")[2].partition(".")[0].split(", ")
        assert "b" in named
        assert "a" not in named


def test_every_model_is_tested_against_every_rival_in_one_family(analysed: Analysis) -> None:
    """Witness: the same contrasts one by one, and the correction by statsmodels."""
    result = analysed.result(Scope.SYNTHETIC, ACCURACY)
    both = analysed.rivals_of(result)
    assert both is not None
    rows = {(row.first, row.second): row for row in both.comparisons}
    models = [row.model for row in result.models]
    assert {*rows} == {(model, rival) for model in models for rival in (FREQUENCY, CHANGED)}
    ratios = ratios_by_id(analysed.ratings)
    for rival, column in ((FREQUENCY, 1), (CHANGED, 2)):
        # As if it were called by the name of the rival that may stand alone
        alone = {FREQUENCY: {t: r[column] for t, r in ratios.items()}}
        one = judge_rivals(analysed.ratings, result, alone, analysed.sampling)
        assert one is not None
        for row in one.comparisons:
            same = rows[row.first, rival]
            assert same.difference == pytest.approx(row.difference)
            assert same.p_value == pytest.approx(row.p_value, nan_ok=True)
    p_values = [row.p_value for row in both.comparisons if not np.isnan(row.p_value)]
    expected = multipletests(p_values, method="fdr_bh")[1]
    found = [row.q_value for row in both.comparisons if not np.isnan(row.p_value)]
    np.testing.assert_allclose(found, expected)


def test_rivals_are_judged_on_trials_that_all_of_them_judge(analysed: Analysis) -> None:
    """Witness: the rivals that say nothing of any other trial."""
    result = analysed.result(Scope.SYNTHETIC, ACCURACY)
    trials = [t for t in analysed.ratings.trials if t.condition is Condition.SYNTHETIC_SYNTHETIC]
    frequency = {t.trial_id: (-1.0) ** n for n, t in enumerate(trials)}
    some = {t.trial_id: 1.0 for t in trials[::3]}
    few = {FREQUENCY: {t: frequency[t] for t in some}, CHANGED: some}
    more = {FREQUENCY: frequency, CHANGED: some}
    expected, found = (
        judge_rivals(analysed.ratings, result, rivals, analysed.sampling) for rivals in (few, more)
    )
    assert expected is not None
    assert found is not None
    assert found.models == expected.models
    assert {row.n_trials for row in found.models} == {len(some)}


def test_a_rival_that_ties_in_all_trials_says_nothing(analysed: Analysis) -> None:
    """Witness: the same without that rival, which is worth one half whatever people answer."""
    result = analysed.result(Scope.SYNTHETIC, ACCURACY)
    trials = [t.trial_id for t in analysed.ratings.trials]
    worse = {FREQUENCY: {t: (-1.0) ** n for n, t in enumerate(trials)}}
    tied = {MISFITS: dict.fromkeys(trials, 0.0)}
    alone, both, nothing = (
        judge_rivals(analysed.ratings, result, ratios, analysed.sampling)
        for ratios in (worse, worse | tied, tied)
    )
    assert alone is not None
    assert both is not None
    assert both.models == alone.models
    assert both.comparisons == alone.comparisons
    assert nothing is None


def test_the_methods_tell_of_the_rivals_that_there_are(analysed: Analysis) -> None:
    one = tuple(r for r in analysed.rivals if r.scope is Scope.RANDOM)
    names = ("Word frequency", "Words changed", "Tag misfits")
    for rivals, told in ((analysed.rivals, [True, True, False]), (one, [True, False, False])):
        text = " ".join(methods_text(replace(analysed, rivals=rivals)))
        assert [f'"{name}" prefers' in text for name in names] == told


def test_words_are_rivals_of_synthetic_pairs_alone(analysed: Analysis) -> None:
    judged = {(r.scope): [row.model for row in r.models] for r in analysed.rivals}
    assert judged.pop(Scope.SYNTHETIC) == [FREQUENCY, CHANGED]
    assert judged == {key: [FREQUENCY] for key in (Scope.RANDOM, Scope.NATURAL, Scope.OVERALL)}
    # Each model is compared on its own trials, a rival judged on all of them
    result = analysed.result(Scope.SYNTHETIC, ACCURACY)
    rivals = analysed.rivals_of(result)
    assert rivals is not None
    assert {row.n_trials for row in rivals.models} == {12}
    assert {row.n_trials for row in result.models} == {8}
