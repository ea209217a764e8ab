"""Comparisons of models and ceilings, on experiments with a planted effect."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from statsmodels.stats.proportion import proportion_confint

from contstim.errors import InputError
from contstim.experiments.analysis.crossed import BOTH, VarianceComponents
from contstim.experiments.analysis.effects import Sampling, Units, compare, suited_units
from contstim.experiments.analysis.families import CEILING, Correction, every_contrast
from contstim.experiments.analysis.intervals import Uncertainty
from contstim.experiments.analysis.measures import ACCURACY, COSINE, MEASURES
from contstim.experiments.analysis.ratings import Ratings, Scope, gather, subset
from contstim.experiments.design.artificial import artificial_participants, simulate_responses
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition
from tests.examples import examples
from tests.experiments.analysis.simulation import simulate

UNITS: tuple[Units, ...] = ("groups", "participants")


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return simulate(groups=(5,) * 10, each=6, follow=0.85).gather()


@pytest.mark.parametrize("scope", [s for s in Scope if s not in (Scope.OVERALL, Scope.MINIMAL)])
def test_planted_model_is_recovered(ratings: Ratings, scope: Scope) -> None:
    """Planted: .85 of choices follow model a; the others are at chance."""
    family = every_contrast(ratings.models)
    result = compare(ratings, scope, ACCURACY, family, Sampling("groups"))
    values = {row.model: row.value for row in result.models}
    assert values["a"] == pytest.approx(0.85, abs=0.04)
    assert values["b"] == pytest.approx(0.5, abs=0.12)
    assert result.beaten_by("a") == {"b", "c"}
    assert result.below_ceiling() == {"b", "c"}


@pytest.mark.slow
def test_true_model_is_not_below_the_ceiling() -> None:
    """Planted: artificial participants follow a model whose scores do not detect shuffled words.

    In 5 studies with 12 results each, at most .05 are significantly below. With catch trials, which
    participants pass regardless of the model, nearly all overall results are.
    """
    experiment = simulate(groups=(6, 6), each=3)
    log_probs = experiment.scores.log_probs.copy()
    for row, trial in enumerate(experiment.trials):
        if trial.condition is Condition.CATCH:
            log_probs[2 * row : 2 * row + 2] = log_probs[2 * row : 2 * row + 2][::-1]
    scores = replace(experiment.scores, log_probs=log_probs)
    family = every_contrast(scores.models)
    below: dict[bool, list[bool]] = {False: [], True: []}
    for seed in range(5):
        people = artificial_participants(experiment.trials, scores, "a", seed=seed)
        ratings = gather(experiment.trials, simulate_responses(people, 12), scores)
        for scope in Scope:
            for measure in MEASURES:
                result = compare(ratings, scope, measure, family, Sampling("crossed"))
                below[False].append("a" in result.below_ceiling())
        published = Sampling("crossed", catch_trials=True)
        result = compare(ratings, Scope.OVERALL, COSINE, family, published)
        below[True].append("a" in result.below_ceiling())
    assert np.mean(below[False]) <= 0.05
    assert np.mean(below[True]) > 0.9


def test_results_are_means_over_groups_of_participant_means() -> None:
    """Groups differ in size. Computed by hand from the values of all participants."""
    ratings = simulate(groups=(2, 5, 3)).gather()
    family = [("a", CEILING)]
    step = (ratings, Scope.NATURAL, COSINE, family)
    groups, by_person = (compare(*step, Sampling(units)) for units in UNITS)
    evaluation = groups.evaluation
    of_model, of_ceiling = evaluation.values[:, 0], evaluation.lower[:, 0]
    for side, values in (("value_first", of_model), ("value_second", of_ceiling)):
        means = [values[evaluation.groups == n].mean() for n in (1, 2, 3)]
        assert getattr(groups.comparisons[0], side) == pytest.approx(np.mean(means))
        assert getattr(by_person.comparisons[0], side) == pytest.approx(values.mean())
    assert (groups.comparisons[0].n_units, by_person.comparisons[0].n_units) == (3, 10)
    assert by_person.comparisons[0].holds_for == "these items"


def test_crossed_test_divides_the_difference_by_its_error(ratings: Ratings) -> None:
    """Witness: scipy's t-distribution. The interval excludes 0 if p is below .05."""
    family = every_contrast(ratings.models)
    result = compare(ratings, Scope.OVERALL, COSINE, family, Sampling("crossed"))
    for test in result.comparisons:
        t = test.difference / test.interval.standard_error
        freedom = test.interval.degrees_of_freedom
        assert test.statistic == pytest.approx(t)
        assert test.p_value == pytest.approx(2 * student.sf(abs(t), freedom))
        excludes_zero = test.interval.low > 0 or test.interval.high < 0
        assert excludes_zero == (test.p_value < 0.05)
        assert test.holds_for == SIMILAR
        assert np.sign(test.standardised) == np.sign(test.difference)
        assert test.low_standardised <= test.standardised <= test.high_standardised
        # The rank-biserial correlation belongs to the signed-rank test, which was not run
        assert np.isnan([test.rank_biserial, test.low_rank_biserial]).all()
    assert result.detectability.needed == 1


def test_standardised_differences_divide_by_the_sd_of_responses() -> None:
    """Witness: numpy's variance of the difference in single responses of each participant."""
    ratings = simulate(groups=(60,), each=40, conditions=(Condition.RANDOM_NATURAL,)).gather()
    family = [("a", "b")]
    (test,) = compare(ratings, Scope.RANDOM, ACCURACY, family, Sampling("crossed")).comparisons
    shares = np.array([test.value_first, test.value_second])
    agree = next((g.ratios[:2, None] > 0) == (g.ratings > 3.5) for g in ratings.groups)
    differences = agree[0].astype(float) - agree[1]
    assert shares == pytest.approx(agree.mean(axis=(1, 2)))
    within = differences.var(axis=1, ddof=1).mean()
    assert test.difference / test.standardised == pytest.approx(np.sqrt(within), rel=0.02)


def test_few_groups_and_shared_items_are_crossed() -> None:
    """By hand: five groups reach p = .0625, six reach .03125, which is enough for one contrast."""
    random = (Condition.RANDOM_NATURAL,)
    planned = [("a", "b")]
    for groups, contrasts, units in (
        ((9,), planned, "crossed"),
        ((3,) * 5, planned, "crossed"),
        ((3,) * 6, planned, "groups"),
        ((3,) * 10, every_contrast("abc"), "groups"),
    ):
        ratings = simulate(groups=groups, conditions=random).gather()
        assert suited_units(ratings, contrasts, Sampling()) == units
    # Holm's first of six tests must be below .05 / 6, which nine groups reach and seven do not.
    for n, units in ((7, "crossed"), (9, "groups")):
        ratings = simulate(groups=(3,) * n, conditions=random).gather()
        holm = Sampling(correction="holm")
        assert suited_units(ratings, every_contrast("abc"), holm) == units
    first, *others = ratings.groups
    same_trials = replace(others[0], trials=first.trials)
    shared = Ratings(ratings.models, (first, same_trials, *others[1:]))
    assert suited_units(shared, planned, Sampling()) == "crossed"


@pytest.mark.parametrize("units", ["groups", "participants", "crossed"])
def test_zero_variance_is_noted_without_warnings(units: Units) -> None:
    """Two models with constant scores, and constant ratings."""
    experiment = simulate(groups=(3, 3), conditions=(Condition.RANDOM_NATURAL,))
    flat = np.zeros((len(experiment.scores.log_probs), 2)) - 5
    scores = ScoreTable(experiment.scores.sentences, ("a", "b"), flat)
    responses = tuple(replace(r, rating=2) for r in experiment.responses)
    ratings = gather(experiment.trials, responses, scores)
    note = "no variance: all participants of a group have the same value"
    for measure in MEASURES:
        result = compare(ratings, Scope.RANDOM, measure, every_contrast("ab"), Sampling(units))
        pair, *ceilings = result.comparisons
        assert (pair.difference, pair.p_value, pair.significant) == (0.0, 1.0, False)
        assert pair.interval.note == note
        assert pair.interval.low < 0 < pair.interval.high
        for value in result.models:  # further items may be exceptions
            assert value.interval.low < value.value < value.interval.high
        for test in ceilings:  # participants agree and the model is at chance: no variance
            assert test.interval.note == note
            assert test.testable == (units != "groups")


SIMILAR = "people and items like these"
BETWEEN_GROUPS = "the variance is that between groups, because there are too few "


@pytest.mark.parametrize(
    ("groups", "trials", "population", "note"),
    [
        ((1,), 12, "items like these, for this participant", "one participant: the interval"),
        ((4,), 1, "people like these, on this trial", "one trial: the interval"),
        ((1,), 1, "this answer alone", "one participant and one trial"),
        ((1, 1, 1), 12, SIMILAR, f"{BETWEEN_GROUPS}p"),
        ((4, 4, 4), 1, SIMILAR, f"{BETWEEN_GROUPS}t"),
        ((4, 3, 1), 12, SIMILAR, "a participant who is alone"),
        ((4, 3), 12, SIMILAR, ""),
    ],
)
def test_interval_notes(groups: tuple[int, ...], trials: int, population: str, note: str) -> None:
    ratings = simulate(groups=groups, conditions=(Condition.RANDOM_NATURAL,)).gather()
    first = [np.arange(12) < trials for _ in ratings.groups]
    few = subset(ratings, first)
    result = compare(few, Scope.RANDOM, ACCURACY, every_contrast("abc"), Sampling("crossed"))
    interval = result.models[0].interval
    assert interval.population == population
    assert interval.note.startswith(note) or "no variance" in interval.note
    assert bool(interval.note) == bool(note)
    assert np.isfinite(interval.low) == (population != "this answer alone")
    if max(groups) == 1:
        lone = result.comparisons[-1]
        assert lone.interval.note == "no group has a ceiling: each has one participant"
        assert np.isnan(lone.p_value)


def uncertainty(difference: float, variance: float, freedom: float, items: float) -> Uncertainty:
    """Build an accuracy difference with the variance of `items` independent responses."""
    variances = components(variance, freedom, items, people=9)
    return Uncertainty(np.array(difference), variances, np.array(1 + abs(difference)), (-1, 1))


def components(variance: float, freedom: float, items: float, people: int) -> VarianceComponents:
    part = (np.array(variance), np.array(freedom))
    residual = np.array(variance * items)
    components = (*part, part, part, residual, *part)
    return VarianceComponents(*components, people, items, items, BOTH, "")


def test_few_agreements_do_not_prove_equivalence() -> None:
    """By hand: models that differ on 3 % of items agree on k items with probability .97^k."""
    assert uncertainty(0.0, 0.0, 1.0, 10).equivalence_p_value(0.03) == pytest.approx(0.97**10)
    assert uncertainty(0.0, 0.0, 1.0, 99).equivalence_p_value(0.03) < 0.05 < 0.97**98
    assert uncertainty(0.5, 0.0, 1.0, 1000).equivalence_p_value(0.03) == 1.0


def test_limits_and_tests_without_variance_are_exact() -> None:
    """By hand: Clopper and Pearson's limits of k out of k, and the sign test of k differences."""
    for k in (3, 12, 80):
        no_difference = uncertainty(0.0, 0.0, 1.0, k)
        width = 1 - proportion_confint(k, k, method="beta")[0]
        assert (
            no_difference.interval(0.95).low,
            no_difference.interval(0.95).high,
        ) == pytest.approx((-width, width))
        assert no_difference.p_values() == 1.0
        full_difference = uncertainty(1.0, 0.0, 1.0, k)
        assert full_difference.p_values() == pytest.approx(2 * 0.5**k)
        assert (full_difference.interval(0.95).low > 0) == (2 * 0.5**k < 0.05)


@pytest.mark.parametrize(("right", "k"), [(80, 80), (1, 1), (79, 80), (20, 40), (0, 12)])
def test_interval_of_independent_responses_is_wilsons(right: int, k: int) -> None:
    """Witness: statsmodels. One participant's responses vary by item only."""
    share = right / k
    variance = share * (1 - share) / k
    variances = components(variance, np.inf, k, people=1)
    value = Uncertainty(np.array(share), variances, np.array(1.0), (0.0, 1.0), is_value=True)
    interval = value.interval(0.95)
    expected = proportion_confint(right, k, method="wilson")
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("units", ["groups", "participants"])
@pytest.mark.parametrize(("n", "follow"), [(5, 1.0), (2, 0.9)])
def test_interval_contains_the_difference_strictly(units: Units, n: int, follow: float) -> None:
    """Also if all groups have the same difference, or all responses but one agree."""
    experiment = simulate(groups=(n,) * 10, conditions=[Condition.RANDOM_NATURAL], follow=follow)
    log_probs = experiment.scores.log_probs.copy()
    log_probs[:, 1] = log_probs[:, 0]
    log_probs[[2, 3], 1] = log_probs[[3, 2], 0]  # b differs from a on one trial only
    log_probs[:, 2] = 0.0  # c has no preference: right in half of all cases
    scores = replace(experiment.scores, log_probs=log_probs)
    ratings = replace(experiment, scores=scores).gather()
    result = compare(ratings, Scope.RANDOM, ACCURACY, every_contrast("abc"), Sampling(units))
    for row in result.comparisons:
        low, high = row.interval.low, row.interval.high
        assert low < row.difference < high
        assert high - low > 0.005
        assert (low <= 0 <= high) != row.significant


@settings(max_examples=examples(8))
@given(
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.sampled_from((1, 4)),
    st.sampled_from(("groups", "participants", "crossed")),
    st.sampled_from(("bh", "holm")),
    st.sampled_from((0.55, 0.8, 1.0)),
)
def test_significance_and_interval_agree(
    seed: int, groups: int, people: int, units: Units, correction: Correction, follow: float
) -> None:
    """Property: a difference is significant if and only if its interval excludes zero."""
    conditions = [Condition.RANDOM_NATURAL, Condition.NATURAL_CONTROVERSIAL]
    experiment = simulate(
        groups=(people,) * groups, each=1, conditions=conditions, follow=follow, seed=seed
    )
    ratings, sampling = experiment.gather(), Sampling(units, correction=correction)
    for scope in (Scope.RANDOM, Scope.NATURAL):
        for measure in MEASURES:
            result = compare(ratings, scope, measure, every_contrast("abc"), sampling)
            for test in result.comparisons:
                if not np.isnan(test.p_value):
                    includes_zero = test.interval.low <= 0 <= test.interval.high
                    assert test.significant == (not includes_zero)
                    assert (test.verdict in ("different", "both")) == test.significant


def test_equivalence_matches_scipys_one_sided_tests() -> None:
    """Witness: groups of one participant are compared by t-tests of groups."""
    ratings = simulate(groups=(1,) * 14, each=4, conditions=[Condition.RANDOM_NATURAL]).gather()
    family = [("a", "b"), ("b", "c")]
    sampling = Sampling("crossed", smallest_effect=0.2)
    result = compare(ratings, Scope.RANDOM, ACCURACY, family, sampling)
    for contrast in result.comparisons:
        columns = [ratings.models.index(name) for name in (contrast.first, contrast.second)]
        values = result.evaluation.values
        differences = values[:, columns[0]] - values[:, columns[1]]
        expected = max(
            ttest_1samp(differences, -0.2, alternative="greater").pvalue,
            ttest_1samp(differences, 0.2, alternative="less").pvalue,
        )
        assert contrast.equivalence_p == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("effect", [0.0, -0.1, 1.0])
def test_invalid_smallest_effects_are_rejected(effect: float) -> None:
    with pytest.raises(InputError, match="smallest_effect must be between 0 and 1"):
        Sampling(smallest_effect=effect)
