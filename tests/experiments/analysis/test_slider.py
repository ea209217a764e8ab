"""Answers on a slider, in the middle of it, and answers that were not given in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis import tables
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.measures import ACCURACY, COSINE, Measure, evaluate
from contstim.experiments.analysis.mixed.models import fit_mixed
from contstim.experiments.analysis.page import methods_text
from contstim.experiments.analysis.ratings import Ratings, gather, roles
from contstim.experiments.analysis.regression import regress_choices
from contstim.experiments.analysis.run import analyze
from contstim.experiments.responses.admission import Exclusions
from contstim.experiments.responses.table import UNRATED, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition
from tests.experiments.analysis.simulation import simulate

MADE = simulate(groups=(4, 3), follow=0.7)
SLID_TO = {1: 10, 2: 25, 3: 45, 4: 55, 5: 75, 6: 90}  # as far from the middle, in the same order
SLID = [replace(r, rating=SLID_TO[r.rating], scale=Scale.SLIDER) for r in MADE.responses]


def rated(responses: Sequence[Response]) -> Ratings:
    return gather(MADE.trials, responses, MADE.scores)


def of_everybody(ratings: Ratings, measure: Measure) -> np.ndarray:
    masks = [np.ones((len(ratings.models), len(g.trials)), dtype=bool) for g in ratings.groups]
    return evaluate(ratings, measure, masks).values


def test_results_of_a_slider_are_those_of_ratings_in_the_same_order() -> None:
    """Witness: both measures ask for sides and ranks alone, and the ratings have the same."""
    by_six, by_slider = (
        analyze(MADE.trials, responses, MADE.scores) for responses in (MADE.responses, SLID)
    )
    six, slider = (tables.result_tables(each) for each in (by_six, by_slider))
    for name in ("models", "comparisons", "roles", "unanimity", "regressions", "failures"):
        np.testing.assert_equal(six[name], slider[name])
    assert not [name for name in slider["trials"] if name.startswith("rated_")]
    assert "in the middle of the slider prefers neither" in methods_text(by_slider)[0]
    assert "not given in time" not in methods_text(by_slider)[0]


@pytest.mark.parametrize("rating", [50, UNRATED])
def test_who_prefers_neither_counts_one_half_and_has_no_rank(rating: int) -> None:
    """Witness: the formulas of both measures, written out for the person of the answer."""
    ratings = rated([replace(SLID[0], rating=rating), *SLID[1:]])
    group = ratings.groups[0]
    assert ratings.n_missing == (rating == UNRATED)
    person, place = 0, [t.trial_id for t in group.trials].index(SLID[0].trial_id)
    ratios, given = group.ratios[0], np.array(group.ratings[person])
    given[place] = 50
    agreed = [float((r > 0) == (g > 50)) for r, g in zip(ratios, given, strict=True)]
    agreed[place] = 0.5
    assert of_everybody(ratings, ACCURACY)[0, 0] == pytest.approx(np.mean(agreed))

    def ranks(values: np.ndarray) -> np.ndarray:
        sizes = np.abs(values)
        below = [sum(s < size for s in sizes if s) for size in sizes]
        alike = [sum(s == size for s in sizes) for size in sizes]
        signed: np.ndarray = np.sign(values) * (np.array(below) + (np.array(alike) + 1) / 2)
        return signed

    n = len(given)
    norm = [k * (k + 1) * (2 * k + 1) / 6 for k in (n, n - 1)]
    expected = ranks(ratios) @ ranks(given - 50) / np.sqrt(norm[0] * norm[1])
    assert of_everybody(ratings, COSINE)[0, 0] == pytest.approx(expected)


def test_what_was_not_rated_in_time_is_left_out_of_means_and_models() -> None:
    """Witness: the same table without these rows, trial by trial."""
    late = [replace(r, rating=UNRATED) if n % 7 == 0 else r for n, r in enumerate(MADE.responses)]
    ratings = rated(late)
    columns = tables.trials_table(ratings)
    for trial_id, mean in zip(columns["trial_id"], columns["mean_rating"], strict=True):
        given = [r.rating for r in late if r.trial_id == trial_id and r.rating != UNRATED]
        assert mean == pytest.approx(np.mean(given))
    model = ratings.models[0]
    few = Exclusions(max_missing=0.2)
    assert analyze(MADE.trials, late, MADE.scores, exclusions=few).ratings.n_missing
    with pytest.raises(InputError, match=r"No participant remains: g1p0: rated \d+ of 48 trials"):
        analyze(MADE.trials, late, MADE.scores)
    assert (
        regress_choices(ratings, [model])["choices"] == ratings.size == len(late) - len(late[::7])
    )
    fit, full = fit_mixed(ratings, [model]), fit_mixed(rated(MADE.responses), [model])
    assert np.sign(fit[model]["typical_effect"]) == np.sign(full[model]["typical_effect"])
    assert np.isfinite(fit.log_likelihood)
    # Fewer answers are likelier together
    assert full.log_likelihood < fit.log_likelihood < full.log_likelihood * 0.8


def test_mixed_models_group_a_slider_and_know_its_middle() -> None:
    """Witness: three degrees on either side are ratings of six, which fit as they do."""
    model = MADE.scores.models[0]
    six = fit_mixed(rated(MADE.responses), [model])
    slider = fit_mixed(rated(SLID), [model])
    assert slider.log_likelihood == pytest.approx(six.log_likelihood, abs=1e-6)
    undecided = [replace(r, rating=50) if n % 9 == 0 else r for n, r in enumerate(SLID)]
    assert fit_mixed(rated(undecided), [model]).scheme.names == ("50|66", "66|83", "83|100")


def test_who_prefers_neither_is_on_no_side_of_a_trial_and_half_on_either_in_shares() -> None:
    """Witness: loops over single answers."""
    chance = np.random.default_rng(5)
    slid = [replace(r, rating=int(chance.choice([50, 80, 80, 20]))) for r in SLID]
    analysis = analyze(
        *(MADE.trials, slid, MADE.scores),
        exclusions=Exclusions(min_catch=0),
        sampling=Sampling(),
        unanimous=0.75,
    )
    for row in analysis.unanimity:
        unanimous = 0
        for trial in (t for t in MADE.trials if t.condition is row["condition"]):
            given = [r.rating for r in slid if r.trial_id == trial.trial_id]
            sides = [sum(g < 50 for g in given), sum(g > 50 for g in given)]
            unanimous += max(sides) >= 0.75 * len(given)
        assert row["near_unanimous"] == unanimous
    assert sum(row["near_unanimous"] for row in analysis.unanimity) > 0
    figure = next(f for name, f in drawings(analysis) if name == "roles-natural-synthetic")
    drawn = figure.axes[0].images[0].get_array()
    assert drawn is not None
    models = MADE.scores.models
    for accept, reject in permutations(models, 2):
        own = {
            t.trial_id
            for t in MADE.trials
            if t.condition is Condition.NATURAL_SYNTHETIC and roles(t) == (accept, reject)
        }
        given = [r.rating for r in slid if r.trial_id in own]
        half = sum(g > 50 for g in given) + sum(g == 50 for g in given) / 2
        cell = models.index(accept), models.index(reject)
        assert drawn[cell] == pytest.approx(half / len(given))
