"""Two-choice, slider and missing responses, and trials whose roles the scores contradict."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError
from contstim.experiments.analysis import effects, tables
from contstim.experiments.analysis.agreement import failures, orientations
from contstim.experiments.analysis.effects import Sampling
from contstim.experiments.analysis.families import every_contrast
from contstim.experiments.analysis.figures import drawings
from contstim.experiments.analysis.measures import ACCURACY, COSINE, Measure, evaluate
from contstim.experiments.analysis.mixed.models import fit_mixed
from contstim.experiments.analysis.page import methods_text, report
from contstim.experiments.analysis.ratings import Ratings, Scope, gather, roles
from contstim.experiments.analysis.regression import regress_choices
from contstim.experiments.analysis.run import Analysis, analyze
from contstim.experiments.responses.admission import Exclusions
from contstim.experiments.responses.table import UNRATED, Response
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, Kind, check_trials
from tests.experiments.analysis.simulation import Experiment, simulate

MADE = simulate(groups=(5, 4), follow=0.7)
CHOSEN = [replace(r, rating=1 + (r.rating > 3), scale=Scale.CHOICE) for r in MADE.responses]


@pytest.fixture(scope="module")
def rated() -> Analysis:
    return analyze(MADE.trials, MADE.responses, MADE.scores)


@pytest.fixture(scope="module")
def chosen() -> Analysis:
    return analyze(MADE.trials, CHOSEN, MADE.scores)


def test_results_of_sides_are_those_of_ratings(rated: Analysis, chosen: Analysis) -> None:
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
    for name in ("roles", "unanimity", "regressions", "orientations", "agreement", "dominance"):
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


EXPERIMENT = simulate(groups=(4, 3), follow=0.7)
SLID_TO = {1: 10, 2: 25, 3: 45, 4: 55, 5: 75, 6: 90}  # as far from the middle, in the same order
SLID = [replace(r, rating=SLID_TO[r.rating], scale=Scale.SLIDER) for r in EXPERIMENT.responses]


def gather_ratings(responses: Sequence[Response]) -> Ratings:
    return gather(EXPERIMENT.trials, responses, EXPERIMENT.scores)


def of_everybody(ratings: Ratings, measure: Measure) -> np.ndarray:
    masks = [np.ones((len(ratings.models), len(g.trials)), dtype=bool) for g in ratings.groups]
    return evaluate(ratings, measure, masks).values


def test_results_of_a_slider_are_those_of_ratings_in_the_same_order() -> None:
    """Witness: both measures ask for sides and ranks alone, and the ratings have the same."""
    by_six, by_slider = (
        analyze(EXPERIMENT.trials, responses, EXPERIMENT.scores)
        for responses in (EXPERIMENT.responses, SLID)
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
    ratings = gather_ratings([replace(SLID[0], rating=rating), *SLID[1:]])
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
    rated = EXPERIMENT.responses
    late = [r if n % 7 else replace(r, rating=UNRATED) for n, r in enumerate(rated)]
    ratings = gather_ratings(late)
    columns = tables.trials_table(ratings)
    for trial_id, mean in zip(columns["trial_id"], columns["mean_rating"], strict=True):
        given = [r.rating for r in late if r.trial_id == trial_id and r.rating != UNRATED]
        assert mean == pytest.approx(np.mean(given))
    model = ratings.models[0]
    few = Exclusions(max_missing=0.2)
    assert analyze(EXPERIMENT.trials, late, EXPERIMENT.scores, exclusions=few).ratings.n_missing
    with pytest.raises(InputError, match=r"No participant remains: g1p0: rated \d+ of 48 trials"):
        analyze(EXPERIMENT.trials, late, EXPERIMENT.scores)
    answered = len(late) - len(late[::7])
    assert regress_choices(ratings, [model])["choices"] == ratings.size == answered
    full, fit = (fit_mixed(r, [model]) for r in (gather_ratings(EXPERIMENT.responses), ratings))
    assert np.sign(fit[model]["typical_effect"]) == np.sign(full[model]["typical_effect"])
    assert np.isfinite(fit.log_likelihood)
    # Fewer answers are likelier together
    assert full.log_likelihood < fit.log_likelihood < full.log_likelihood * 0.8


def test_mixed_models_group_a_slider_and_know_its_middle() -> None:
    """Witness: three degrees on either side are ratings of six, which fit as they do."""
    model = EXPERIMENT.scores.models[0]
    six = fit_mixed(gather_ratings(EXPERIMENT.responses), [model])
    slider = fit_mixed(gather_ratings(SLID), [model])
    assert slider.log_likelihood == pytest.approx(six.log_likelihood, abs=1e-6)
    undecided = [replace(r, rating=50) if n % 9 == 0 else r for n, r in enumerate(SLID)]
    names = fit_mixed(gather_ratings(undecided), [model]).scheme.names
    assert names == ("50|66", "66|83", "83|100")


def test_who_prefers_neither_is_on_no_side_of_a_trial_and_half_on_either_in_shares() -> None:
    """Witness: loops over single answers."""
    chance = np.random.default_rng(5)
    slid = [replace(r, rating=int(chance.choice([50, 80, 80, 20]))) for r in SLID]
    analysis = analyze(
        *(EXPERIMENT.trials, slid, EXPERIMENT.scores),
        exclusions=Exclusions(min_catch=0),
        sampling=Sampling(),
        unanimous=0.75,
    )
    for row in analysis.unanimity:
        unanimous = 0
        for trial in (t for t in EXPERIMENT.trials if t.condition is row["condition"]):
            given = [r.rating for r in slid if r.trial_id == trial.trial_id]
            sides = [sum(g < 50 for g in given), sum(g > 50 for g in given)]
            unanimous += max(sides) >= 0.75 * len(given)
        assert row["near_unanimous"] == unanimous
    assert sum(row["near_unanimous"] for row in analysis.unanimity) > 0
    figure = next(f for name, f in drawings(analysis) if name == "roles-natural-synthetic")
    drawn = figure.axes[0].images[0].get_array()
    assert drawn is not None
    models = EXPERIMENT.scores.models
    for accept, reject in permutations(models, 2):
        own = {
            t.trial_id
            for t in EXPERIMENT.trials
            if t.condition is Condition.NATURAL_SYNTHETIC and roles(t) == (accept, reject)
        }
        given = [r.rating for r in slid if r.trial_id in own]
        half = sum(g > 50 for g in given) + sum(g == 50 for g in given) / 2
        cell = models.index(accept), models.index(reject)
        assert drawn[cell] == pytest.approx(half / len(given))


N, S1, S2, SHUFFLED = Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2, Kind.SHUFFLED
TARGETED = (
    Condition.NATURAL_CONTROVERSIAL,
    Condition.NATURAL_SYNTHETIC,
    Condition.SYNTHETIC_SYNTHETIC,
)


@pytest.fixture(scope="module")
def made() -> Experiment:
    return simulate(groups=(2, 2), each=1)


def refused(made: Experiment, condition: Condition, message: str, **change: Any) -> None:
    place = next(n for n, t in enumerate(made.trials) if t.condition is condition)
    trials = list(made.trials)
    trials[place] = replace(trials[place], **change)
    with pytest.raises(InputError, match=f"'{trials[place].trial_id}' is {condition}.*{message}"):
        gather(trials, made.responses, made.scores)


@pytest.mark.parametrize(
    ("condition", "models"),
    [
        *product(TARGETED, [("", ""), ("a", ""), ("", "b"), ("b", "b")]),
        *product((Condition.RANDOM_NATURAL, Condition.CATCH), [("a", "b"), ("a", ""), ("", "b")]),
    ],
)
def test_models_named(made: Experiment, condition: Condition, models: tuple[str, str]) -> None:
    message = f"two models.*{models[0]!r} and {models[1]!r}"
    message = message if condition in TARGETED else "leave model_1 and model_2 empty"
    refused(made, condition, message, model_1=models[0], model_2=models[1])


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.MINIMAL_PAIR])
def test_sentence_kinds_are_those_of_the_condition(made: Experiment, condition: Condition) -> None:
    """Of all pairs of kinds only those pass that the definition of `Trial` names."""
    allowed = {
        Condition.NATURAL_CONTROVERSIAL: [(N, N)],
        Condition.NATURAL_SYNTHETIC: [(N, S1), (N, S2)],
        Condition.SYNTHETIC_SYNTHETIC: [(S1, S2)],
        Condition.RANDOM_NATURAL: [(N, N)],
        Condition.CATCH: [(N, SHUFFLED), (Kind.INSTRUCTION, Kind.INSTRUCTION)],
    }[condition]
    trial = next(t for t in made.trials if t.condition is condition)
    for kinds in ((one, two) for one in Kind for two in Kind):
        if kinds in allowed:
            check_trials([replace(trial, kind_1=kinds[0], kind_2=kinds[1])])
        else:
            message = f"are {kinds[0]} and {kinds[1]}"
            refused(made, condition, message, kind_1=kinds[0], kind_2=kinds[1])


def test_roles_that_the_scores_contradict_are_counted_by_condition(made: Experiment) -> None:
    """Witness: each trial by the words of `Trial`, sentence by sentence."""
    lookup = {
        (text, model): float(made.scores.log_probs[row, column])
        for row, text in enumerate(made.scores.sentences or ())
        for column, model in enumerate(made.scores.models)
    }
    wrong = dict.fromkeys(TARGETED, 0)
    for trial in made.trials:
        first, second = (
            lookup[trial.sentence_2, model] - lookup[trial.sentence_1, model] if model else 0.0
            for model in (trial.model_1, trial.model_2)
        )
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            wrong[trial.condition] += (first if trial.kind_2 is S1 else second) >= 0
        elif trial.condition in TARGETED:
            wrong[trial.condition] += first <= 0 or second >= 0
    found = orientations(gather(made.trials, made.responses, made.scores))
    assert {condition: wrongly for condition, (_, wrongly) in found.items()} == wrong
    assert [trials for trials, _ in found.values()] == [6, 12, 6]
    assert 0 < wrong[Condition.NATURAL_SYNTHETIC] < 12
