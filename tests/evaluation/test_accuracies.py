"""Accuracies, their correlations, contrasts and profiles."""

import numpy as np
import pytest
from scipy.stats import binned_statistic, pearsonr

from contstim import plot
from contstim.evaluation.accuracies import (
    Accuracies,
    accuracies,
    evaluate_minimal_pairs,
    profile,
    published_contrasts,
)
from contstim.evaluation.folder import page_table, table_of
from contstim.evaluation.minimal_pairs import MinimalPair
from contstim.evaluation.scores import PairScores, PairScoring
from contstim.words.sentence import Sentence

CONTRASTS = published_contrasts()


def random_scores(n: int = 400, seed: int = 0) -> PairScores:
    """Return random scores of random sentences, for three paradigms of two phenomena."""
    rng = np.random.default_rng(seed)
    paradigms = (("x_1", "x"), ("x_2", "x"), ("y_1", "y"))
    pairs = tuple(
        MinimalPair(paradigm, str(i), Sentence(("w",) * rng.integers(2, 9)), BAD, phenomenon)
        for i in range(n)
        for paradigm, phenomenon in [paradigms[rng.integers(3)]]
    )
    scores = np.round(rng.normal(-20, 3, (n, 2, 2)), 1)  # rounding makes some ties
    return PairScores(pairs, ("m", "n"), scores)


BAD = Sentence(("bad",))


def make_accuracies(values: list[list[float]], names: list[str]) -> Accuracies:
    return Accuracies(
        tuple(names),
        tuple(name.partition("_")[0] for name in names),
        np.full(len(names), 10),
        tuple("abcdefg"[: len(values[0])]),
        np.array(values),
    )


@pytest.mark.parametrize("ties", ["wrong", "half"])
def test_accuracy_is_a_mean_of_means(ties: str) -> None:
    """Witness: a count over pairs."""
    scores = random_scores()
    result = accuracies(scores, "half" if ties == "half" else "wrong")
    assert result.paradigms == ("x_1", "x_2", "y_1")
    for column, log_probs in enumerate(np.moveaxis(scores.log_probs, 2, 0)):
        shares = []
        for paradigm in result.paradigms:
            points = [
                1.0 if good > bad else 0.5 * (good == bad) * (ties == "half")
                for pair, (good, bad) in zip(scores.pairs, log_probs, strict=True)
                if pair.paradigm == paradigm
            ]
            shares.append(sum(points) / len(points))
        assert result.values[:, column] == pytest.approx(shares)
        assert result.mean()[column] == pytest.approx(sum(shares) / 3)
        groups = {"overall": result.paradigms, "x": ("x_1", "x_2"), "y": ("y_1",)}
        assert result.groups == groups
        assert result.mean(result.groups["x"])[column] == pytest.approx(sum(shares[:2]) / 2)
        assert result.mean(result.groups["y"])[column] == pytest.approx(shares[2])


def test_frames_hold_the_accuracies() -> None:
    table = accuracies(random_scores())
    scoring = PairScoring((random_scores(),), {}, ())
    evaluation = evaluate_minimal_pairs(scoring)
    cells, _scale = plot.minimal_pairs(evaluation, "phenomena-full-sentence")
    assert [label.get_text() for label in cells.get_xticklabels()] == ["m", "n"]
    frame = evaluation.to_frame()
    assert set(frame["method"]) == {"full-sentence"}
    np.testing.assert_array_equal(frame[["m", "n"]], table.values)


def test_intervals_of_a_paradigm_are_wilsons() -> None:
    """Witness: Wilson's (1927) formula, and 0 of 5 worked out by hand: 0 to z² / (5 + z²)."""
    result = make_accuracies([[0.0, 0.4], [1.0, 0.3]], ["x_1", "y_1"])
    z = 1.959963984540054
    for row, column in np.ndindex(2, 2):
        n, p = 10, result.values[row, column]
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        assert result.limits()[:, row, column] == pytest.approx((middle - half, middle + half))
    five = Accuracies(("x",), ("x",), np.array([5]), ("a",), np.zeros((1, 1)))
    assert five.interval()[:, 0] == pytest.approx((0, z**2 / (5 + z**2)), abs=1e-12)


def test_intervals_of_means_have_the_nominal_coverage() -> None:
    """Witness: 4,000 samples of 12 pairs from each of three paradigms with known accuracy."""
    rng = np.random.default_rng(0)
    truth = np.array([0.95, 0.6, 0.8])
    shares = rng.binomial(12, truth[:, None], (3, 4_000)) / 12
    names, models = ("x_1", "x_2", "y_1"), tuple(map(str, range(4_000)))
    result = Accuracies(names, ("x", "x", "y"), np.full(3, 12), models, shares)
    low, high = result.interval()
    coverage = float(((low <= truth.mean()) & (truth.mean() <= high)).mean())
    assert coverage == pytest.approx(0.95, abs=0.02)
    assert result.pairs_of(["x_1", "y_1"]) == 24


def test_published_accuracies_have_no_interval() -> None:
    """By hand from Wilson's: .3 - √(.1433² + .2318²) / 2 and .3 + √(.3098² + .2873²) / 2."""
    models = make_accuracies([[0.2], [0.4]], ["x_1", "y_1"])
    result = models.with_column("people", {"x_1": 0.9, "y_1": 0.9})
    assert np.isfinite(result.interval()[:, 0]).all()
    assert np.isnan(result.interval()[:, 1]).all()
    (row,) = page_table(table_of([result.group_cells()])).rows
    assert row == ["2", "20", "0.300 (0.16-0.51)", "0.900"]


def test_correlations_are_pearsons_over_shared_paradigms() -> None:
    """Witness: scipy.stats.pearsonr."""
    rng = np.random.default_rng(1)
    values = np.column_stack([rng.random((9, 3)), np.ones(9)])
    values[[1, 4], 1] = np.nan
    result = make_accuracies(values.tolist(), [f"x_{i}" for i in range(9)])
    matrix = result.correlations()
    for i, j in np.ndindex(3, 3):
        complete = values[np.isfinite(values[:, [i, j]]).all(axis=1)]
        assert matrix[i, j] == pytest.approx(pearsonr(complete[:, i], complete[:, j]).statistic)
    assert np.isnan(matrix[3]).all()
    assert np.isnan(matrix[:, 3]).all()


def test_contrasts_divide_the_paradigms_of_agreement() -> None:
    """Adjectives and regularity each divide the eight determiner-noun paradigms into halves."""
    members = {name: set(paradigms) for name, paradigms in CONTRASTS.items()}
    without = members["intervening adjective", "without"]
    with_ = members["intervening adjective", "with"]
    regular = members["determiner-noun morphology", "regular"]
    irregular = members["determiner-noun morphology", "irregular"]
    assert without | with_ == regular | irregular
    assert len(without) == len(with_) == len(regular) == len(irregular) == 4
    assert all("adj" in name for name in with_)
    assert not any("adj" in name for name in without)
    assert all("irregular" in name for name in irregular)
    assert not any("irregular" in name for name in regular)


def test_profiles_are_means_within_bins() -> None:
    """Witness: scipy.stats.binned_statistic with the same edges."""
    scores = random_scores()
    bins = profile(scores)
    correct = scores.correct()
    good = scores.log_probs[:, 0]
    lengths = np.array([len(pair.good) for pair in scores.pairs], np.float64)
    for column, model in enumerate(scores.models):
        features = {
            "length": lengths,
            "perplexity": np.exp(-good[:, column] / lengths),
            "log_prob": good[:, column],
            "confidence": np.abs(good[:, column] - scores.log_probs[:, 1, column]),
        }
        for name, values in features.items():
            feature_bins = [row for row in bins if (row["model"], row["feature"]) == (model, name)]
            edges = [*(row["low"] for row in feature_bins), np.inf]
            for statistic, field in (("mean", "accuracy"), ("count", "pairs")):
                expected = binned_statistic(values, correct[:, column], statistic, edges).statistic
                assert [row[field] for row in feature_bins] == pytest.approx(expected.tolist())
            assert sum(row["pairs"] for row in feature_bins) == len(values)
            if name != "length":
                assert len(feature_bins) == 10
                assert max(row["pairs"] for row in feature_bins) < 1.4 * len(values) / 10


def test_profiles_exclude_infinite_and_relative_scores() -> None:
    scores = random_scores(40)
    scores.log_probs[:4, 0, 0] = -np.inf
    bins = profile(scores, relative={"n"})
    assert {row["feature"] for row in bins if row["model"] == "n"} == {"length", "confidence"}
    for feature, pairs in (("length", 40), ("log_prob", 36), ("confidence", 36)):
        feature_bins = [row for row in bins if (row["model"], row["feature"]) == ("m", feature)]
        assert sum(row["pairs"] for row in feature_bins) == pairs
        assert np.isfinite([row["mean"] for row in feature_bins]).all()
