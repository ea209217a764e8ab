"""Shares, correlations, fits and pairs apart. Witnesses: scipy, numpy, and counting by hand."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from contstim.errors import InputError
from contstim.evaluation.acceptability.acceptability_report import ScoreSources, write_acceptability
from contstim.evaluation.acceptability.criteria import Criterion
from contstim.evaluation.acceptability.evaluation import (
    AcceptabilityEvaluation,
    evaluate_acceptability,
)
from contstim.evaluation.acceptability.results import (
    count_discordant,
    criterion_shares,
    delta_correlations,
    discordant_criteria,
    discordant_models,
    fits,
)
from contstim.evaluation.acceptability.sentence_scores import SentenceScores
from contstim.reporting.names import short_names
from contstim.tables import read_table
from tests.evaluation.acceptability.tables import simulated


@pytest.fixture(scope="module")
def found() -> AcceptabilityEvaluation:
    return evaluate_acceptability(*simulated(60, 3))


def test_deltas_are_differences_of_z_scores(found: AcceptabilityEvaluation) -> None:
    judgements, scores = simulated(60, 3)
    z = stats.zscore(scores.values, axis=0)
    np.testing.assert_allclose(found.deltas, z[::2] - z[1::2])
    people = np.array([one.judgement for one in judgements.sentences])
    np.testing.assert_allclose(found.people, people[::2] - people[1::2])
    again = evaluate_acceptability(judgements, scores, standardize_people=True)
    z_people = stats.zscore(people)
    np.testing.assert_allclose(again.people, z_people[::2] - z_people[1::2])


def test_the_frame_has_a_row_for_each_pair(found: AcceptabilityEvaluation) -> None:
    """Witness: the deltas."""
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["delta m1"], found.deltas[:, 1])
    np.testing.assert_array_equal(frame["blimp m1"] == 1, found.deltas[:, 1] > 0)


def test_shares_add_up_over_phenomena(found: AcceptabilityEvaluation) -> None:
    whole = {(s.model, s.criterion): s for s in criterion_shares(found)}
    for key, share in whole.items():
        parts = [s for s in criterion_shares(found, "phenomenon") if (s.model, s.criterion) == key]
        assert [s.phenomenon for s in parts] == ["p0", "p1", "p2"]
        assert sum(s.met for s in parts) == share.met
        assert sum(s.pairs for s in parts) == share.pairs == 60
        assert sum(s.disputed for s in parts) == share.disputed == int((found.people <= 0).sum())
        assert share.share == share.met / 60


def test_correlations_and_fits_are_those_of_scipy(found: AcceptabilityEvaluation) -> None:
    names, matrix = delta_correlations(found)
    columns = [found.people, *found.deltas.T]
    for i, first in enumerate(columns):
        for j, second in enumerate(columns):
            assert matrix[i, j] == pytest.approx(stats.pearsonr(first, second).statistic)
    assert names == ("people", "m0", "m1", "m2")
    for column, fit in enumerate(fits(found)):
        x, y = found.sentence_scores[:, column], found.sentence_judgements
        assert (fit.slope, fit.intercept) == pytest.approx(tuple(np.polyfit(x, y, 1)))
        assert fit.pearson == pytest.approx(np.corrcoef(x, y)[0, 1])
        ranks = stats.rankdata(x), stats.rankdata(y)
        assert fit.spearman == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_models_apart_by_counting(found: AcceptabilityEvaluation) -> None:
    expected = {
        (criterion.name, found.models[i], found.models[j], row)
        for criterion in found.criteria
        for i, j in permutations(range(3), 2)
        for row in range(60)
        for met in [criterion.met(found.people[row], found.deltas[row])]
        if met[i] and not met[j]
    }
    apart = discordant_models(found)
    assert {(one.at, one.passes, one.fails, one.pair) for one in apart} == expected
    counts = count_discordant(apart, found)
    assert sum(count.pairs for count in counts) == len(apart) == len(expected)
    disputed = sum(bool(found.disputed[one.pair]) for one in apart)
    assert sum(count.disputed for count in counts) == disputed


def test_what_passes_the_adc_and_fails_blimp_is_disputed_by_people(
    found: AcceptabilityEvaluation,
) -> None:
    """The ADC asks for equal signs, so a negative delta that it accepts is people's too."""
    apart = discordant_criteria(found)
    assert {one.at for one in apart} == set(found.models)
    for one in apart:
        delta = found.deltas[one.pair, found.models.index(one.at)]
        assert (delta > 0) == (one.passes == "blimp")
        if one.fails == "blimp":
            assert found.disputed[one.pair]


def test_without_blimp_deltas_are_compared_with_each_other() -> None:
    found = evaluate_acceptability(*simulated(60, 1), criteria=(Criterion(0.5), Criterion(1)))
    apart = discordant_criteria(found)
    assert {(one.passes, one.fails) for one in apart} == {("adc-1", "adc-0.5")}


def test_pairs_without_scores_are_excluded_and_counted() -> None:
    judgements, scores = simulated(6, 2)
    values = scores.values.copy()
    values[3, 1] = np.nan
    found = evaluate_acceptability(judgements, SentenceScores(scores.models, values))
    assert list(found.excluded_for().values()) == [0, 0, 1]
    assert len(found.pairs) == 5
    values[::2] = np.nan
    with pytest.raises(InputError, match=r"None of 6 pairs can be evaluated \(6: a score"):
        evaluate_acceptability(judgements, SentenceScores(scores.models, values))


@pytest.mark.parametrize("name", ["people", ""])
def test_no_model_takes_the_row_of_people(name: str) -> None:
    judgements, scores = simulated(6, 2)
    with pytest.raises(InputError, match=f"A model cannot be called '{name}'"):
        evaluate_acceptability(judgements, SentenceScores(("m0", name), scores.values))


def test_one_pair_has_no_correlation(tmp_path: Path) -> None:
    """Warnings are errors here, numpy's of too few degrees of freedom too."""
    found = evaluate_acceptability(*simulated(1, 2))
    names, matrix = delta_correlations(found)
    assert matrix.shape == (len(names), len(names)) == (3, 3)
    assert np.isnan(matrix).all()
    write_acceptability(found, tmp_path, ScoreSources())
    header, *rows = read_table(tmp_path / "correlations.csv").items()
    assert header == ("", ["people", "m0", "m1"])
    assert rows == [(name, ["", "", ""]) for name in ("people", "m0", "m1")]


@pytest.mark.parametrize(
    "long",
    [
        ["first-" + "x" * 60, "other-" + "x" * 60],
        ["a" * 40 + "1" + "b" * 40, "a" * 40 + "2" + "b" * 40],
        ["x" * 60 + "-first", "x" * 60 + "-other"],
    ],
)
def test_long_names_of_figures_are_distinct(long: list[str]) -> None:
    found = short_names(["people", *long, "hf:runs/a/gpt2"])
    assert len(set(found)) == 4
    assert (found[0], found[3]) == ("people", "gpt2")
    assert all(len(name) <= 28 for name in found)


@pytest.mark.parametrize("value", [2.5, np.nan])
def test_a_model_that_tells_nothing_is_named(value: float) -> None:
    judgements, scores = simulated(6, 2)
    values = scores.values.copy()
    values[:, 1] = value
    with pytest.raises(InputError, match="m1 gives every sentence the same score, or none"):
        evaluate_acceptability(judgements, SentenceScores(scores.models, values))
