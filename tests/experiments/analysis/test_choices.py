"""Choices analysed as choices: as ratings whose degrees of confidence nobody asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis import effects, tables
from contstim.experiments.analysis.agreement import failures
from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.measures import ACCURACY, COSINE, evaluate
from contstim.experiments.analysis.page import methods_text, report
from contstim.experiments.analysis.ratings import Scope
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.items.scale import Scale
from tests.experiments.analysis.simulation import simulate

MADE = simulate(groups=(5, 4), follow=0.7)
CHOSEN = [replace(r, rating=1 + (r.rating > 3), scale=Scale.CHOICE) for r in MADE.responses]


@pytest.fixture(scope="module")
def rated() -> Analysis:
    return analyze(MADE.trials, MADE.responses, MADE.scores)


@pytest.fixture(scope="module")
def chosen() -> Analysis:
    return analyze(MADE.trials, CHOSEN, MADE.scores)


def test_accuracies_ceilings_and_all_else_of_sides_are_those_of_ratings(
    rated: Analysis, chosen: Analysis
) -> None:
    """Witness: the same people's ratings, whose sides alone these results are made of."""
    assert {result.measure for result in chosen.results} == {ACCURACY}
    of_sides = [result for result in rated.results if result.measure is ACCURACY]
    tables_of = [
        tables.result_tables(replace(each, results=tuple(results)))
        for each, results in ((chosen, chosen.results), (rated, of_sides))
    ]
    for kind in ("models", "comparisons"):
        np.testing.assert_equal(tables_of[0][kind], tables_of[1][kind])
    assert max(row.value for row in chosen.result(Scope.RANDOM, ACCURACY).models) > 0.6
    for name in ("roles", "unanimity", "regressions", "orientations"):
        np.testing.assert_equal(getattr(chosen, name), getattr(rated, name))
    for name in ("agreement", "dominance"):
        np.testing.assert_equal(getattr(chosen, name), getattr(rated, name))


def test_signed_ranks_are_refused_with_the_reason(chosen: Analysis) -> None:
    message = "needs ratings of confidence"
    with pytest.raises(InputError, match=message):
        chosen.result(Scope.OVERALL, COSINE)
    masks = [np.ones((3, len(g.trials)), dtype=bool) for g in chosen.ratings.groups]
    with pytest.raises(InputError, match=message):
        evaluate(chosen.ratings, COSINE, masks)
    contrasts = every_contrast(chosen.ratings.models)
    with pytest.raises(InputError, match=message):
        effects.compare(chosen.ratings, Scope.RANDOM, COSINE, contrasts, chosen.sampling)


def test_the_page_and_the_methods_speak_of_choices(chosen: Analysis) -> None:
    figures = dict(drawings(chosen))
    assert "accuracy-overall" in figures
    assert not [name for name in figures if "cosine" in name]
    ticks = figures["reliability"].axes[0].get_xticks()
    assert ticks.tolist() == [1, 2]
    page = report(chosen, dict.fromkeys(figures, b""), title="Choices").html()
    assert f"gave {len(CHOSEN):,} choices" in page
    assert "1 (sentence_1) or 2 (sentence_2)" in page
    assert "osine" not in page
    assert "did not rate their confidence" in methods_text(chosen)[0]
    columns = tables.trials_table(chosen.ratings)
    assert [name for name in columns if name.startswith("rated_")] == ["rated_1", "rated_2"]
    for row, share in enumerate(columns["share_sentence_2"]):
        counts = columns["rated_1"][row], columns["rated_2"][row]
        assert share == pytest.approx(counts[1] / sum(counts))
        assert columns["mean_rating"][row] == pytest.approx(1 + share)


def test_failures_take_from_the_accuracy(chosen: Analysis) -> None:
    """Witness: all that trials take from a model's accuracy is what it lacks."""
    every = failures(chosen.ratings, Scope.RANDOM, worst=10_000)
    model = every[0]["model"]
    row = chosen.ratings.models.index(model)
    for group in chosen.ratings.groups:
        columns = [t.condition == "random-natural" for t in group.trials]
        wrong = (group.ratios[row, columns] > 0) != (group.ratings[:, columns] == 2)
        against = wrong.mean(axis=0)
        expected = sorted((against[against > 0.5] / sum(columns)).tolist(), reverse=True)
        errors = [f["error"] for f in every if (f["model"], f["group"]) == (model, group.number)]
        assert errors == pytest.approx(expected)
    ordered = [
        (-f["error"], f["log_prob_people_prefer_model"] - f["log_prob_model_prefers_model"])
        for f in every
        if f["model"] == model
    ]
    assert ordered == sorted(ordered)
