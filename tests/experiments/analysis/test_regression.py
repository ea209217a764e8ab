"""Two-way clustered logistic regression, against its formula and simulated experiments."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.experiments.analysis.ratings import gather, subset
from contstim.experiments.analysis.regression import clustered_logit, regress_choices, regressions
from contstim.experiments.responses.table import Response
from contstim.files.arrays import FloatArray
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from tests.examples import examples
from tests.experiments.analysis.simulation import simulate as simulate_experiment
from tests.experiments.responses.experiment import make_responses, make_trials

# Choices, ratios, participants, items
Simulated = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def simulate_choices(
    seed: int, people: int = 20, items: int = 60, effect: float = 0.05, spread: float = 0.8
) -> Simulated:
    """Simulate choices with an effect per nat.

    `spread` is the standard deviation (log odds) of items; that of participants is .08.
    """
    rng = np.random.default_rng(seed)
    ratios = rng.normal(0, 30, items)
    odds = effect * ratios + rng.normal(0, spread, items)
    odds = odds + rng.normal(0, 0.08, (people, 1))
    choices = rng.random((people, items)) < 1 / (1 + np.exp(-odds))
    participants, item_labels = np.indices((people, items))
    flat = (choices, np.tile(ratios, (people, 1)), participants, item_labels)
    a, b, c, d = (np.asarray(values, np.float64).ravel() for values in flat)
    return a, b, c, d


def sandwiches(design: FloatArray, choices: FloatArray, ways: list[FloatArray]) -> Simulated:
    """Compute cov(people) + cov(items) - cov(both), each G/(G-1) (N-1)/(N-K), by Newton's method.

    Cameron, Gelbach & Miller (2011), Eqs. 2.10 and 2.12, one cluster after another.
    """
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        bread = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
        beta = beta + bread @ design.T @ (choices - p)
    n, k = design.shape
    matrices = []
    for way in ways:
        unique_labels = sorted(set(way.tolist()))
        meat = np.zeros((k, k))
        for label in unique_labels:
            score = sum(
                (design[row] * (choices[row] - p[row]) for row in np.flatnonzero(way == label)),
                np.zeros(k),
            )
            meat += np.outer(score, score)
        correction = len(unique_labels) / (len(unique_labels) - 1) * (n - 1) / (n - k)
        matrices.append(bread @ meat @ bread * correction)
    return beta, matrices[0], matrices[1], matrices[2]


def test_estimates_and_errors_match_the_literal_sandwich() -> None:
    choices, ratios, participants, item_labels = simulate_choices(3)
    fit = clustered_logit(choices, ratios, participants, item_labels)
    (slope,), people, items, both = sandwiches(
        ratios[:, None], choices, [participants, item_labels, 1_000 * participants + item_labels]
    )
    error = np.sqrt(people + items - both).item()
    assert fit["estimate"].value == pytest.approx(slope, rel=1e-6)
    assert fit["estimate"].standard_error == pytest.approx(error, rel=1e-6)
    assert (fit["choices"], fit["participants"], fit["items"]) == (1_200, 20, 60)
    assert not fit["repaired"]


def test_intervals_use_students_t_of_the_fewer_clusters() -> None:
    """Quantile of Student's t with 19 degrees of freedom at .975, from a printed table: 2.093."""
    slope = clustered_logit(*simulate_choices(5))["estimate"]
    assert slope.high - slope.value == pytest.approx(2.093 * slope.standard_error, rel=1e-4)
    assert slope.low + slope.high == pytest.approx(2 * slope.value)
    assert slope.statistic == pytest.approx(slope.value / slope.standard_error)
    assert slope.p_value < 0.05


def test_errors_match_the_spread_of_estimates() -> None:
    """Witness: the SD over experiments. Errors that ignore items are far too small."""
    runs = [simulate_choices(seed, people=30, items=50, spread=1.5) for seed in range(60)]
    slopes = [clustered_logit(*run)["estimate"] for run in runs]
    sd = np.std([slope.value for slope in slopes], ddof=1)
    clustered = np.mean([slope.standard_error for slope in slopes])
    single = [(c, r, np.arange(len(c)), np.arange(len(c))) for c, r, _, _ in runs[:5]]
    naive = np.mean([clustered_logit(*run)["estimate"].standard_error for run in single])
    assert clustered == pytest.approx(sd, rel=0.3)
    assert naive < 0.6 * sd


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 2**32 - 1), effect=st.sampled_from([-0.05, 0.0, 0.05]))
def test_swapping_sentences_does_not_change_estimates(seed: int, effect: float) -> None:
    """Property: choice and ratio change sign together, for trials drawn at random."""
    choices, ratios, participants, items = simulate_choices(seed, people=6, items=15, effect=effect)
    is_swapped = (np.random.default_rng([seed, 1]).random(15) < 0.5)[items.astype(int)]
    sign = np.where(is_swapped, -1.0, 1.0)
    original = clustered_logit(choices, ratios, participants, items)["estimate"]
    swapped_choices = np.where(is_swapped, 1 - choices, choices)
    swapped = clustered_logit(swapped_choices, sign * ratios, participants, items)["estimate"]
    assert swapped.value == pytest.approx(original.value, rel=1e-6, abs=1e-9)
    assert swapped.standard_error == pytest.approx(original.standard_error, rel=1e-6)
    assert swapped.p_value == pytest.approx(original.p_value, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("oriented", [False, True])
def test_planted_effect_is_recovered(oriented: bool) -> None:
    """Without variance of items the effect is .05 per nat, also if all ratios are negative."""
    choices, ratios, participants, items = simulate_choices(8, people=60, items=400, spread=0.0)
    is_swapped = (ratios > 0) & oriented
    choices = np.where(is_swapped, 1 - choices, choices)
    ratios = np.where(is_swapped, -ratios, ratios)
    fit = clustered_logit(choices, ratios, participants, items)["estimate"]
    assert fit.low < 0.05 < fit.high
    assert fit.standard_error < 0.003
    assert fit.p_value < 1e-10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("one participant", "clustered by participants need at least 2"),
        ("one item", "clustered by items need at least 2"),
        ("no ratios", "All ratios of the model are zero"),
        ("separated", "separate the choices perfectly"),
        ("separated in part", "separate the choices perfectly"),
    ],
)
def test_errors_if_no_estimate_exists(change: str, message: str) -> None:
    choices, ratios, participants, items = simulate_choices(2)
    participants = np.zeros_like(participants) if change == "one participant" else participants
    items = np.zeros_like(items) if change == "one item" else items
    ratios = np.zeros_like(ratios) if change == "no ratios" else ratios
    choices = (ratios > 0).astype(float) if change.startswith("separated") else choices
    ratios = np.where(items < 5, 0.0, ratios) if change == "separated in part" else ratios
    with pytest.raises(InputError, match=message):
        clustered_logit(choices, ratios, participants, items)


def test_negative_variance_is_repaired() -> None:
    """With two participants and two items the variance can be negative."""
    participants, item_labels = np.tile([0, 0, 0, 1, 1, 1], 3), np.tile([0, 0, 1, 1, 1, 0], 3)
    any_negative = False
    for seed in range(10):
        rng = np.random.default_rng(seed)
        choices, ratios = np.tile([0, 1, 1], 6), rng.normal(size=18)
        fitted = clustered_logit(choices, ratios, participants, item_labels)
        design = ratios[:, None]
        _, people, items, both = sandwiches(
            design, choices, [participants, item_labels, 10 * participants + item_labels]
        )
        is_negative = (people + items - both).item() < -1e-9
        assert fitted["repaired"] == is_negative
        assert fitted["estimate"].standard_error >= 0
        any_negative = any_negative or is_negative
    assert any_negative


@pytest.mark.parametrize("unfinished", [False, True])
def test_choices_of_an_experiment_are_for_sentence_2(unfinished: bool) -> None:
    """Witness: the same arrays built trial by trial. One participant may have left early."""
    trials = make_trials()
    people = {"ann": 1, "bob": 1, "cleo": 2, "dora": 2}
    responses = make_responses(trials, people, seed=5)
    if unfinished:
        responses = [r for r in responses if r.participant != "bob" or r.trial_id[-1] in "024"]
    rng = np.random.default_rng(1)
    texts = tuple(text for trial in trials for text in (trial.sentence_1, trial.sentence_2))
    scores = ScoreTable(texts, ("gpt2", "rnn"), -rng.gamma(9, 6, (len(texts), 2)))
    catch = {t.trial_id for t in trials if t.condition is Condition.CATCH}
    rated = [r for r in responses if r.trial_id not in catch]
    log_probs_of = {text: scores.log_probs[n] for n, text in enumerate(texts)}
    by_id = {trial.trial_id: trial for trial in trials}

    def compute_ratio(response: Response) -> float:
        trial = by_id[response.trial_id]
        return float(log_probs_of[trial.sentence_2][1] - log_probs_of[trial.sentence_1][1])

    expected = clustered_logit(
        [r.rating > 3 for r in rated],
        np.array(list(map(compute_ratio, rated))),
        [r.participant for r in rated],
        [r.trial_id for r in rated],
    )
    ratings = gather(trials, responses, scores, partial=unfinished)
    assert ratings.size == len(responses)
    masks = [np.array([t.trial_id not in catch for t in g.trials]) for g in ratings.groups]
    fit = regress_choices(subset(ratings, masks), ratings.models.index("rnn"))
    slope, reference = fit["estimate"], expected["estimate"]
    assert slope.value == pytest.approx(reference.value)
    assert slope.standard_error == pytest.approx(reference.standard_error)
    assert (fit["choices"], fit["items"]) == (len(rated), 16)
    assert len(rated) == (32 - 5 if unfinished else 32)
    assert fit["left_out"] == 0  # unseen trials are not missing ratings


def test_narrow_ratios_are_noted() -> None:
    """Ratios of random pairs are divided by 100, all others stay."""
    experiment = simulate_experiment(groups=(6, 6), each=6, follow=0.7)
    ratings = experiment.gather()
    groups = []
    for group in ratings.groups:
        narrow = [trial.condition is Condition.RANDOM_NATURAL for trial in group.trials]
        log_probs = np.where(np.array(narrow)[:, None], 0.01 * group.log_probs, group.log_probs)
        groups.append(replace(group, log_probs=log_probs))
    rows = list(regressions(replace(ratings, groups=tuple(groups)), 0.95))
    noted_scopes = {row["scope"] for row in rows if "per nat cannot be compared" in row["note"]}
    assert noted_scopes == {"random-natural"}
    by_hand = np.concatenate(
        [g.ratios[0][[t.condition is Condition.RANDOM_NATURAL for t in g.trials]] for g in groups]
    )
    (row_of_a,) = (row for row in rows if (row["scope"], row["model"]) == ("random-natural", "a"))
    assert row_of_a["typical_ratio"] == pytest.approx(np.sqrt(np.mean(by_hand**2)))


def test_coefficients_that_rest_on_few_choices_are_noted() -> None:
    """Participants follow model a except in a few choices, which are counted one by one."""
    experiment = simulate_experiment(conditions=(Condition.RANDOM_NATURAL,), follow=0.97, seed=3)
    ratings = experiment.gather()
    n_against = sum(
        int((np.sign(group.ratings - 3.5) * np.sign(group.ratios[0]) < 0).sum())
        for group in ratings.groups
    )
    assert 0 < n_against < 10
    rows = [row for row in regressions(ratings, 0.95) if row["scope"] != "overall"]
    note_by_model = {row["model"]: row["note"] for row in rows}
    assert note_by_model["a"].startswith(f"{n_against} of 144 choices go against the model")
    assert note_by_model["b"] == note_by_model["c"] == ""
