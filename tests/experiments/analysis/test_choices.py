"""Analyses of two-choice, slider and missing responses, and of trials with contradicted roles."""

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

CHOICE_EXPERIMENT = simulate(groups=(5, 4), follow=0.7)
CHOICES = [
    replace(r, rating=1 + (r.rating > 3), scale=Scale.CHOICE) for r in CHOICE_EXPERIMENT.responses
]


@pytest.fixture(scope="module")
def rating_analysis() -> Analysis:
    return CHOICE_EXPERIMENT.analyze()


@pytest.fixture(scope="module")
def choice_analysis() -> Analysis:
    return analyze(CHOICE_EXPERIMENT.trials, CHOICES, CHOICE_EXPERIMENT.scores)


def test_choices_give_the_results_of_the_ratings_sides(
    rating_analysis: Analysis, choice_analysis: Analysis
) -> None:
    """Witness: ratings of the same participants; these results depend on sides only."""
    assert {result.measure for result in choice_analysis.results} == {ACCURACY}
    accuracy_results = [result for result in rating_analysis.results if result.measure is ACCURACY]
    tables_by_scale = [
        tables.result_tables(replace(analysis, results=tuple(results)))
        for analysis, results in (
            (choice_analysis, choice_analysis.results),
            (rating_analysis, accuracy_results),
        )
    ]
    for kind in ("models", "comparisons"):
        np.testing.assert_equal(tables_by_scale[0][kind], tables_by_scale[1][kind])
    assert max(row.value for row in choice_analysis.result(Scope.RANDOM, ACCURACY).models) > 0.6
    for name in ("roles", "unanimity", "regressions", "orientations", "agreement", "dominance"):
        np.testing.assert_equal(getattr(choice_analysis, name), getattr(rating_analysis, name))


def test_signed_ranks_of_choices_are_rejected(choice_analysis: Analysis) -> None:
    message = "needs ratings of confidence"
    with pytest.raises(InputError, match=message):
        choice_analysis.result(Scope.OVERALL, COSINE)
    masks = [np.ones((3, len(g.trials)), dtype=bool) for g in choice_analysis.ratings.groups]
    with pytest.raises(InputError, match=message):
        evaluate(choice_analysis.ratings, COSINE, masks)
    contrasts = every_contrast(choice_analysis.ratings.models)
    with pytest.raises(InputError, match=message):
        effects.compare(
            choice_analysis.ratings, Scope.RANDOM, COSINE, contrasts, choice_analysis.sampling
        )


def test_page_and_methods_describe_choices(choice_analysis: Analysis) -> None:
    figures = dict(drawings(choice_analysis))
    assert "accuracy-overall" in figures
    assert not [name for name in figures if "cosine" in name]
    ticks = figures["reliability"].axes[0].get_xticks()
    assert ticks.tolist() == [1, 2]
    page = report(choice_analysis, dict.fromkeys(figures, b""), title="Choices").html()
    assert f"gave {len(CHOICES):,} choices" in page
    assert "1 (sentence_1) or 2 (sentence_2)" in page
    assert "osine" not in page
    assert "did not rate their confidence" in methods_text(choice_analysis)[0]
    columns = tables.trials_table(choice_analysis.ratings)
    assert [name for name in columns if name.startswith("rated_")] == ["rated_1", "rated_2"]
    for row, share in enumerate(columns["share_sentence_2"]):
        counts = columns["rated_1"][row], columns["rated_2"][row]
        assert share == pytest.approx(counts[1] / sum(counts))
        assert columns["mean_rating"][row] == pytest.approx(1 + share)


def test_failures_add_up_to_missing_accuracy(choice_analysis: Analysis) -> None:
    """Witness: the share of accuracy that each trial costs a model, computed by hand."""
    rows = failures(choice_analysis.ratings, Scope.RANDOM, worst=10_000)
    model = rows[0]["model"]
    row = choice_analysis.ratings.models.index(model)
    for group in choice_analysis.ratings.groups:
        columns = [t.condition == "random-natural" for t in group.trials]
        wrong = (group.ratios[row, columns] > 0) != (group.ratings[:, columns] == 2)
        against = wrong.mean(axis=0)
        expected = sorted((against[against > 0.5] / sum(columns)).tolist(), reverse=True)
        errors = [f["error"] for f in rows if (f["model"], f["group"]) == (model, group.number)]
        assert errors == pytest.approx(expected)
    sort_keys = [
        (-f["error"], f["log_prob_people_prefer_model"] - f["log_prob_model_prefers_model"])
        for f in rows
        if f["model"] == model
    ]
    assert sort_keys == sorted(sort_keys)


SLIDER_EXPERIMENT = simulate(groups=(4, 3), follow=0.7)
# Same order and symmetry around the middle
SLIDER_OF_RATING = {1: 10, 2: 25, 3: 45, 4: 55, 5: 75, 6: 90}
SLIDER_RESPONSES = [
    replace(r, rating=SLIDER_OF_RATING[r.rating], scale=Scale.SLIDER)
    for r in SLIDER_EXPERIMENT.responses
]


def gather_ratings(responses: Sequence[Response]) -> Ratings:
    return gather(SLIDER_EXPERIMENT.trials, responses, SLIDER_EXPERIMENT.scores)


def evaluate_all_trials(ratings: Ratings, measure: Measure) -> np.ndarray:
    masks = [np.ones((len(ratings.models), len(g.trials)), dtype=bool) for g in ratings.groups]
    return evaluate(ratings, measure, masks).values


def test_slider_gives_the_results_of_equally_ordered_ratings() -> None:
    """Witness: ratings with the same sides and ranks; both measures use nothing else."""
    rating_analysis, slider_analysis = (
        analyze(SLIDER_EXPERIMENT.trials, responses, SLIDER_EXPERIMENT.scores)
        for responses in (SLIDER_EXPERIMENT.responses, SLIDER_RESPONSES)
    )
    rating_tables, slider_tables = (
        tables.result_tables(analysis) for analysis in (rating_analysis, slider_analysis)
    )
    for name in ("models", "comparisons", "roles", "unanimity", "regressions", "failures"):
        np.testing.assert_equal(rating_tables[name], slider_tables[name])
    assert not [name for name in slider_tables["trials"] if name.startswith("rated_")]
    assert "in the middle of the slider prefers neither" in methods_text(slider_analysis)[0]
    assert "not given in time" not in methods_text(slider_analysis)[0]


@pytest.mark.parametrize("rating", [50, UNRATED])
def test_neutral_rating_counts_half_and_has_no_rank(rating: int) -> None:
    """Witness: the formulas of both measures, written out for the participant with this rating."""
    ratings = gather_ratings([replace(SLIDER_RESPONSES[0], rating=rating), *SLIDER_RESPONSES[1:]])
    group = ratings.groups[0]
    assert ratings.n_missing == (rating == UNRATED)
    person, index = 0, [t.trial_id for t in group.trials].index(SLIDER_RESPONSES[0].trial_id)
    ratios, ratings_of_person = group.ratios[0], np.array(group.ratings[person])
    ratings_of_person[index] = 50
    points = [float((r > 0) == (g > 50)) for r, g in zip(ratios, ratings_of_person, strict=True)]
    points[index] = 0.5
    assert evaluate_all_trials(ratings, ACCURACY)[0, 0] == pytest.approx(np.mean(points))

    def ranks(values: np.ndarray) -> np.ndarray:
        sizes = np.abs(values)
        below = [sum(s < size for s in sizes if s) for size in sizes]
        equal = [sum(s == size for s in sizes) for size in sizes]
        signed: np.ndarray = np.sign(values) * (np.array(below) + (np.array(equal) + 1) / 2)
        return signed

    n = len(ratings_of_person)
    norm = [k * (k + 1) * (2 * k + 1) / 6 for k in (n, n - 1)]
    expected = ranks(ratios) @ ranks(ratings_of_person - 50) / np.sqrt(norm[0] * norm[1])
    assert evaluate_all_trials(ratings, COSINE)[0, 0] == pytest.approx(expected)


def test_missing_ratings_are_left_out_of_means_and_models() -> None:
    """Witness: the same table without the missing rows, trial by trial."""
    rated = SLIDER_EXPERIMENT.responses
    responses = [r if n % 7 else replace(r, rating=UNRATED) for n, r in enumerate(rated)]
    ratings = gather_ratings(responses)
    columns = tables.trials_table(ratings)
    for trial_id, mean in zip(columns["trial_id"], columns["mean_rating"], strict=True):
        values = [r.rating for r in responses if r.trial_id == trial_id and r.rating != UNRATED]
        assert mean == pytest.approx(np.mean(values))
    model = ratings.models[0]
    lenient = Exclusions(max_missing=0.2)
    assert analyze(
        SLIDER_EXPERIMENT.trials, responses, SLIDER_EXPERIMENT.scores, exclusions=lenient
    ).ratings.n_missing
    with pytest.raises(InputError, match=r"No participant remains: g1p0: rated \d+ of 48 trials"):
        analyze(SLIDER_EXPERIMENT.trials, responses, SLIDER_EXPERIMENT.scores)
    n_rated = len(responses) - len(responses[::7])
    assert (
        regress_choices(ratings, ratings.models.index(model))["choices"] == ratings.size == n_rated
    )
    complete_fit = fit_mixed(gather_ratings(SLIDER_EXPERIMENT.responses), [model])
    fit = fit_mixed(ratings, [model])
    assert np.sign(fit[model]["typical_effect"]) == np.sign(complete_fit[model]["typical_effect"])
    assert np.isfinite(fit.log_likelihood)
    # Fewer responses have a higher joint likelihood
    assert complete_fit.log_likelihood < fit.log_likelihood < complete_fit.log_likelihood * 0.8


def test_mixed_models_bin_slider_ratings_around_the_middle() -> None:
    """Witness: three degrees on either side are six ratings, and both fits are equal."""
    model = SLIDER_EXPERIMENT.scores.models[0]
    rating_fit = fit_mixed(gather_ratings(SLIDER_EXPERIMENT.responses), [model])
    slider_fit = fit_mixed(gather_ratings(SLIDER_RESPONSES), [model])
    assert slider_fit.log_likelihood == pytest.approx(rating_fit.log_likelihood, abs=1e-6)
    neutral = [replace(r, rating=50) if n % 9 == 0 else r for n, r in enumerate(SLIDER_RESPONSES)]
    names = fit_mixed(gather_ratings(neutral), [model]).scheme.names
    assert names == ("50|66", "66|83", "83|100")


def test_neutral_ratings_count_half_in_shares_and_not_in_sides() -> None:
    """Witness: loops over single responses."""
    rng = np.random.default_rng(5)
    responses = [replace(r, rating=int(rng.choice([50, 80, 80, 20]))) for r in SLIDER_RESPONSES]
    analysis = analyze(
        *(SLIDER_EXPERIMENT.trials, responses, SLIDER_EXPERIMENT.scores),
        exclusions=Exclusions(min_catch=0),
        sampling=Sampling(),
        unanimous=0.75,
    )
    for row in analysis.unanimity:
        unanimous = 0
        for trial in (t for t in SLIDER_EXPERIMENT.trials if t.condition is row["condition"]):
            trial_ratings = [r.rating for r in responses if r.trial_id == trial.trial_id]
            sides = [sum(g < 50 for g in trial_ratings), sum(g > 50 for g in trial_ratings)]
            unanimous += max(sides) >= 0.75 * len(trial_ratings)
        assert row["near_unanimous"] == unanimous
    assert sum(row["near_unanimous"] for row in analysis.unanimity) > 0
    figure = next(f for name, f in drawings(analysis) if name == "roles-natural-synthetic")
    heat_map = figure.axes[0].images[0].get_array()
    assert heat_map is not None
    models = SLIDER_EXPERIMENT.scores.models
    for accept, reject in permutations(models, 2):
        trial_ids = {
            t.trial_id
            for t in SLIDER_EXPERIMENT.trials
            if t.condition is Condition.NATURAL_SYNTHETIC and roles(t) == (accept, reject)
        }
        trial_ratings = [r.rating for r in responses if r.trial_id in trial_ids]
        half = sum(g > 50 for g in trial_ratings) + sum(g == 50 for g in trial_ratings) / 2
        cell = models.index(accept), models.index(reject)
        assert heat_map[cell] == pytest.approx(half / len(trial_ratings))


N, S1, S2, SHUFFLED = Kind.NATURAL, Kind.SYNTHETIC_1, Kind.SYNTHETIC_2, Kind.SHUFFLED
TARGETED = (
    Condition.NATURAL_CONTROVERSIAL,
    Condition.NATURAL_SYNTHETIC,
    Condition.SYNTHETIC_SYNTHETIC,
)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return simulate(groups=(2, 2), each=1)


def assert_gather_rejects(
    experiment: Experiment, condition: Condition, message: str, **change: Any
) -> None:
    index = next(n for n, t in enumerate(experiment.trials) if t.condition is condition)
    trials = list(experiment.trials)
    trials[index] = replace(trials[index], **change)
    with pytest.raises(InputError, match=f"'{trials[index].trial_id}' is {condition}.*{message}"):
        gather(trials, experiment.responses, experiment.scores)


@pytest.mark.parametrize(
    ("condition", "models"),
    [
        *product(TARGETED, [("", ""), ("a", ""), ("", "b"), ("b", "b")]),
        *product((Condition.RANDOM_NATURAL, Condition.CATCH), [("a", "b"), ("a", ""), ("", "b")]),
    ],
)
def test_targeted_trials_name_two_models_and_others_none(
    experiment: Experiment, condition: Condition, models: tuple[str, str]
) -> None:
    message = f"two models.*{models[0]!r} and {models[1]!r}"
    message = message if condition in TARGETED else "leave model_1 and model_2 empty"
    assert_gather_rejects(experiment, condition, message, model_1=models[0], model_2=models[1])


@pytest.mark.parametrize("condition", [c for c in Condition if c is not Condition.MINIMAL_PAIR])
def test_sentence_kinds_fit_the_condition(experiment: Experiment, condition: Condition) -> None:
    """Only the pairs of kinds that the definition of `Trial` names are valid."""
    allowed = {
        Condition.NATURAL_CONTROVERSIAL: [(N, N)],
        Condition.NATURAL_SYNTHETIC: [(N, S1), (N, S2)],
        Condition.SYNTHETIC_SYNTHETIC: [(S1, S2)],
        Condition.RANDOM_NATURAL: [(N, N)],
        Condition.CATCH: [(N, SHUFFLED), (Kind.INSTRUCTION, Kind.INSTRUCTION)],
    }[condition]
    trial = next(t for t in experiment.trials if t.condition is condition)
    for kinds in ((kind_1, kind_2) for kind_1 in Kind for kind_2 in Kind):
        if kinds in allowed:
            check_trials([replace(trial, kind_1=kinds[0], kind_2=kinds[1])])
        else:
            message = f"are {kinds[0]} and {kinds[1]}"
            assert_gather_rejects(experiment, condition, message, kind_1=kinds[0], kind_2=kinds[1])


def test_contradicted_roles_are_counted_by_condition(experiment: Experiment) -> None:
    """Witness: the definition of `Trial`, checked sentence by sentence."""
    lookup = {
        (text, model): float(experiment.scores.log_probs[row, column])
        for row, text in enumerate(experiment.scores.sentences or ())
        for column, model in enumerate(experiment.scores.models)
    }
    wrong = dict.fromkeys(TARGETED, 0)
    for trial in experiment.trials:
        first, second = (
            lookup[trial.sentence_2, model] - lookup[trial.sentence_1, model] if model else 0.0
            for model in (trial.model_1, trial.model_2)
        )
        if trial.condition is Condition.NATURAL_SYNTHETIC:
            wrong[trial.condition] += (first if trial.kind_2 is S1 else second) >= 0
        elif trial.condition in TARGETED:
            wrong[trial.condition] += first <= 0 or second >= 0
    counts_by_condition = orientations(experiment.gather())
    assert {condition: n_wrong for condition, (_, n_wrong) in counts_by_condition.items()} == wrong
    assert [trials for trials, _ in counts_by_condition.values()] == [6, 12, 6]
    assert 0 < wrong[Condition.NATURAL_SYNTHETIC] < 12
