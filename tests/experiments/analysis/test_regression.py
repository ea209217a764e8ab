"""Two-way clustered logistic regression against its formula, and against simulated experiments."""

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
from tests.experiments.analysis.simulation import simulate as simulated
from tests.experiments.responses.experiment import make_responses, make_trials

Simulated = tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # choices, ratios, who, what


def simulate(
    seed: int, people: int = 20, items: int = 60, effect: float = 0.05, spread: float = 0.8
) -> Simulated:
    """Choices with an effect per nat, items that vary by `spread` (log odds), people by .08."""
    chance = np.random.default_rng(seed)
    ratios = chance.normal(0, 30, items)
    odds = effect * ratios + chance.normal(0, spread, items)
    odds = odds + chance.normal(0, 0.08, (people, 1))
    chosen = chance.random((people, items)) < 1 / (1 + np.exp(-odds))
    who, what = np.indices((people, items))
    flat = (chosen, np.tile(ratios, (people, 1)), who, what)
    a, b, c, d = (np.asarray(values, np.float64).ravel() for values in flat)
    return a, b, c, d


def sandwich(design: FloatArray, chosen: FloatArray, ways: list[FloatArray]) -> Simulated:
    """Newton's method, then cov(people) + cov(items) - cov(both), each G/(G-1) (N-1)/(N-K).

    Cameron, Gelbach & Miller (2011), Eqs. 2.10 and 2.12, one cluster after another.
    """
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        bread = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
        beta = beta + bread @ design.T @ (chosen - p)
    n, k = design.shape
    covariances = []
    for way in ways:
        labels = sorted(set(way.tolist()))
        meat = np.zeros((k, k))
        for label in labels:
            score = sum(
                (design[row] * (chosen[row] - p[row]) for row in np.flatnonzero(way == label)),
                np.zeros(k),
            )
            meat += np.outer(score, score)
        correction = len(labels) / (len(labels) - 1) * (n - 1) / (n - k)
        covariances.append(bread @ meat @ bread * correction)
    return beta, covariances[0], covariances[1], covariances[2]


def test_estimates_and_errors_are_the_literal_sandwich() -> None:
    chosen, ratios, who, what = simulate(3)
    other = np.random.default_rng(4).normal(5, 2, len(ratios))
    fitted = clustered_logit(chosen, {"gpt2": ratios, "rnn": other}, who, what)
    design = np.column_stack([ratios, other])
    beta, people, items, both = sandwich(design, chosen, [who, what, 1_000 * who + what])
    errors = np.sqrt(np.diag(people + items - both))
    found = [fitted["coefficients"][name] for name in ("gpt2", "rnn")]
    assert [each.value for each in found] == pytest.approx(beta, rel=1e-6)
    assert [each.standard_error for each in found] == pytest.approx(errors, rel=1e-6)
    assert (fitted["choices"], fitted["participants"], fitted["items"]) == (1_200, 20, 60)
    assert not fitted["repaired"]


def test_intervals_are_student_with_the_fewer_clusters() -> None:
    """Quantile of Student's t with 19 degrees of freedom at .975, from a printed table: 2.093."""
    fitted = clustered_logit(*_named(simulate(5)))
    slope = fitted["coefficients"]["ratio"]
    assert slope.high - slope.value == pytest.approx(2.093 * slope.standard_error, rel=1e-4)
    assert slope.low + slope.high == pytest.approx(2 * slope.value)
    assert slope.statistic == pytest.approx(slope.value / slope.standard_error)
    assert slope.p_value < 0.05


def test_errors_tell_how_estimates_scatter_over_experiments() -> None:
    """The witness is the scatter itself; errors that take items for granted are far too small."""
    runs = [simulate(seed, people=30, items=50, spread=1.5) for seed in range(60)]
    fits = [clustered_logit(*_named(run)) for run in runs]
    scatter = np.std([fit["coefficients"]["ratio"].value for fit in fits], ddof=1)
    clustered = np.mean([fit["coefficients"]["ratio"].standard_error for fit in fits])
    single = [(c, {"ratio": r}, np.arange(len(c)), np.arange(len(c))) for c, r, _, _ in runs[:5]]
    naive = np.mean(
        [clustered_logit(*run)["coefficients"]["ratio"].standard_error for run in single]
    )
    assert clustered == pytest.approx(scatter, rel=0.3)
    assert naive < 0.6 * scatter


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 2**32 - 1), effect=st.sampled_from([-0.05, 0.0, 0.05]))
def test_exchanging_the_sentences_of_any_trials_changes_nothing(seed: int, effect: float) -> None:
    """Property: choice and every difference turn together, for trials drawn at random."""
    chosen, ratios, who, what = simulate(seed, people=6, items=15, effect=effect)
    other = np.random.default_rng(seed).normal(2, 1, 15)[what.astype(int)]
    turned = (np.random.default_rng([seed, 1]).random(15) < 0.5)[what.astype(int)]
    sign = np.where(turned, -1.0, 1.0)
    plain = clustered_logit(chosen, {"gpt2": ratios, "length": other}, who, what)
    predictors = {"gpt2": sign * ratios, "length": sign * other}
    swapped = clustered_logit(np.where(turned, 1 - chosen, chosen), predictors, who, what)
    for name in ("gpt2", "length"):
        one, two = plain["coefficients"][name], swapped["coefficients"][name]
        assert two.value == pytest.approx(one.value, rel=1e-6, abs=1e-9)
        assert two.standard_error == pytest.approx(one.standard_error, rel=1e-6)
        assert two.p_value == pytest.approx(one.p_value, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("oriented", [False, True])
def test_a_planted_effect_is_recovered(oriented: bool) -> None:
    """Without variance of items it is .05 per nat, also if every ratio is negative."""
    chosen, ratios, who, what = simulate(8, people=60, items=400, spread=0.0)
    turned = (ratios > 0) & oriented
    chosen, ratios = np.where(turned, 1 - chosen, chosen), np.where(turned, -ratios, ratios)
    slope = clustered_logit(chosen, {"ratio": ratios}, who, what)["coefficients"]["ratio"]
    assert slope.low < 0.05 < slope.high
    assert slope.standard_error < 0.003
    assert slope.p_value < 1e-10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("one participant", "clustered by participants need at least 2"),
        ("one item", "clustered by items need at least 2"),
        ("no ratios", "'ratio' .* is zero everywhere"),
        ("infinite ratio", "not finite"),
        ("separated", "separate the choices perfectly"),
        ("separated in part", "separate the choices perfectly"),
        ("collinear", "collinear"),
    ],
)
def test_what_has_no_estimate_is_refused(change: str, message: str) -> None:
    chosen, ratios, who, what = simulate(2)
    who = np.zeros_like(who) if change == "one participant" else who
    what = np.zeros_like(what) if change == "one item" else what
    ratios = np.zeros_like(ratios) if change == "no ratios" else ratios
    ratios = np.where(ratios > 0, np.inf, ratios) if change == "infinite ratio" else ratios
    chosen = (ratios > 0).astype(float) if change.startswith("separated") else chosen
    ratios = np.where(what < 5, 0.0, ratios) if change == "separated in part" else ratios
    predictors = {"ratio": ratios} | ({"b": 2 * ratios} if change == "collinear" else {})
    with pytest.raises(InputError, match=message):
        clustered_logit(chosen, predictors, who, what)


def test_a_covariance_with_negative_eigenvalues_is_repaired_and_says_so() -> None:
    """With two people and two items the sum of covariances less the common one can be anything."""
    who, what = np.tile([0, 0, 0, 1, 1, 1], 3), np.tile([0, 0, 1, 1, 1, 0], 3)
    found = False
    for seed in range(10):
        chance = np.random.default_rng(seed)
        chosen, ratios = np.tile([0, 1, 1], 6), chance.normal(size=18)
        fitted = clustered_logit(chosen, {"ratio": ratios}, who, what)
        design = ratios[:, None]
        _, people, items, both = sandwich(design, chosen, [who, what, 10 * who + what])
        indefinite = bool(np.linalg.eigvalsh(people + items - both).min() < -1e-9)
        assert fitted["repaired"] == indefinite
        assert all(one.standard_error >= 0 for one in fitted["coefficients"].values())
        found = found or indefinite
    assert found


@pytest.mark.parametrize("unfinished", [False, True])
def test_choices_of_an_experiment_are_those_for_sentence_2(unfinished: bool) -> None:
    """The same arrays put together by hand, trial by trial; one person may have gone early."""
    trials = make_trials()
    people = {"ann": 1, "bob": 1, "cleo": 2, "dora": 2}
    responses = make_responses(trials, people, seed=5)
    if unfinished:
        responses = [r for r in responses if r.participant != "bob" or r.trial_id[-1] in "024"]
    chance = np.random.default_rng(1)
    texts = tuple(text for trial in trials for text in (trial.sentence_1, trial.sentence_2))
    scores = ScoreTable(texts, ("gpt2", "rnn"), -chance.gamma(9, 6, (len(texts), 2)))
    catch = {t.trial_id for t in trials if t.condition is Condition.CATCH}
    own = [r for r in responses if r.trial_id not in catch]
    row = {text: scores.log_probs[n] for n, text in enumerate(texts)}
    by_id = {trial.trial_id: trial for trial in trials}

    def ratio(response: Response) -> float:
        trial = by_id[response.trial_id]
        return float(row[trial.sentence_2][1] - row[trial.sentence_1][1])

    expected = clustered_logit(
        [r.rating > 3 for r in own],
        {"rnn": np.array(list(map(ratio, own)))},
        [r.participant for r in own],
        [r.trial_id for r in own],
    )
    ratings = gather(trials, responses, scores, partial=unfinished)
    assert ratings.size == len(responses)
    asked = [np.array([t.trial_id not in catch for t in g.trials]) for g in ratings.groups]
    found = regress_choices(subset(ratings, asked), ["rnn"])
    ours, theirs = (each["coefficients"]["rnn"] for each in (found, expected))
    assert ours.value == pytest.approx(theirs.value)
    assert ours.standard_error == pytest.approx(theirs.standard_error)
    assert (found["choices"], found["items"]) == (len(own), 16)
    assert len(own) == (32 - 5 if unfinished else 32)
    assert found["left_out"] == 0  # what nobody saw is no answer
    with pytest.raises(InputError, match="must be some of gpt2, rnn, got lstm"):
        regress_choices(ratings, ["lstm"])


def _named(run: Simulated) -> tuple[FloatArray, dict[str, FloatArray], FloatArray, FloatArray]:
    chosen, ratios, who, what = run
    return chosen, {"ratio": ratios}, who, what


def test_narrow_ratios_are_noted() -> None:
    """On random pairs the ratios are made a hundredth of what they are; the others stay."""
    made = simulated(groups=(6, 6), each=6, follow=0.7)
    ratings = gather(made.trials, made.responses, made.scores)
    groups = []
    for group in ratings.groups:
        narrow = [trial.condition is Condition.RANDOM_NATURAL for trial in group.trials]
        log_probs = np.where(np.array(narrow)[:, None], 0.01 * group.log_probs, group.log_probs)
        groups.append(replace(group, log_probs=log_probs))
    found = list(regressions(replace(ratings, groups=tuple(groups)), 0.95))
    noted = {one["scope"] for one in found if "per nat cannot be compared" in one["note"]}
    assert noted == {"random-natural"}
    by_hand = np.concatenate(
        [g.ratios[0][[t.condition is Condition.RANDOM_NATURAL for t in g.trials]] for g in groups]
    )
    (own,) = (x for x in found if (x["scope"], x["model"]) == ("random-natural", "a"))
    assert own["typical_ratio"] == pytest.approx(np.sqrt(np.mean(by_hand**2)))


def test_coefficients_that_rest_on_few_choices_are_noted() -> None:
    """People follow model a but in a few choices, which are counted here one by one."""
    made = simulated(conditions=(Condition.RANDOM_NATURAL,), follow=0.97, seed=3)
    ratings = gather(made.trials, made.responses, made.scores)
    against = sum(
        int((np.sign(group.ratings - 3.5) * np.sign(group.ratios[0]) < 0).sum())
        for group in ratings.groups
    )
    assert 0 < against < 10
    notes = {
        one["model"]: one["note"] for one in regressions(ratings, 0.95) if one["scope"] != "overall"
    }
    assert notes["a"].startswith(f"{against} of 144 choices go against the model")
    assert notes["b"] == notes["c"] == ""
