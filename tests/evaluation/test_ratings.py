"""Scores against ratings of single sentences. Witnesses: SciPy, and formulas by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from contstim.errors import InputError
from contstim.evaluation.acceptability import Judgements, read_judgements
from contstim.evaluation.judged_scores import JudgedScores
from contstim.evaluation.ratings import RatingEvaluation, evaluate_ratings
from contstim.files.arrays import FloatArray
from contstim.files.tables import read_table, write_table
from contstim.steps.evaluation import EvaluateAcceptability
from contstim.words.sentence import Sentence


def evaluate_arrays(ratings: FloatArray, scores: FloatArray) -> RatingEvaluation:
    sentences = {str(n): Sentence.parse(f"It is number x{n}.") for n in range(len(ratings))}
    judgements = Judgements(sentences, ratings, ())
    names = tuple(f"m{n}" for n in range(scores.shape[1]))
    return evaluate_ratings(judgements, JudgedScores(names, scores))


def test_coefficients_and_pearsons_interval_are_scipys() -> None:
    rng = np.random.default_rng(1)
    ratings = rng.integers(1, 8, 40).astype(np.float64)  # with ties
    scores = np.column_stack([ratings + rng.normal(0, 2, 40), rng.normal(0, 1, 40)])
    for row, column in zip(evaluate_arrays(ratings, scores).correlations(), scores.T, strict=True):
        pearson = stats.pearsonr(column, ratings)
        assert row["sentences"] == 40
        assert row["pearson"] == pytest.approx(pearson.statistic, rel=1e-12)
        interval = pearson.confidence_interval(0.95)
        assert (row["pearson: low"], row["pearson: high"]) == pytest.approx(tuple(interval), 1e-5)
        assert row["spearman"] == pytest.approx(stats.spearmanr(column, ratings).statistic)
        assert row["kendall"] == pytest.approx(stats.kendalltau(column, ratings).statistic)


def test_rank_intervals_follow_their_papers_and_cover_truth() -> None:
    """Witnesses: the papers' formulas, and coverage (nominally 95 %) in 300 simulations."""
    rng = np.random.default_rng(2)
    n_covered = np.zeros(2)
    for _ in range(300):
        ratings, noise = rng.normal(size=(2, 30))
        (row,) = evaluate_arrays(ratings, (ratings + noise)[:, None]).correlations()
        # For two normal variables with correlation r: 6/π arcsin(r/2) and 2/π arcsin(r)
        r = math.sqrt(0.5)
        truths = (6 / math.pi * math.asin(r / 2), 2 / math.pi * math.asin(r))
        for n, (name, truth) in enumerate(zip(("spearman", "kendall"), truths, strict=True)):
            n_covered[n] += row[f"{name}: low"] <= truth <= row[f"{name}: high"]
        z = np.arctanh([row["spearman"], row["kendall"]])
        variances = [(1 + row["spearman"] ** 2 / 2) / 27, 0.437 / 26]
        low = np.tanh(z - 1.959964 * np.sqrt(variances))
        assert [row["spearman: low"], row["kendall: low"]] == pytest.approx(low.tolist())
    assert (n_covered / 300 > 0.9).all()


def test_only_sentences_with_a_rating_and_all_scores_count() -> None:
    ratings = np.array([1.0, 2.0, 3.0, 4.0, math.nan, 6.0])
    scores = np.array([[1.0, 6.0], [2.0, 5.0], [3.0, 4.0], [4.0, 3.0], [0.0, 0.0], [9.0, math.nan]])
    rows = evaluate_arrays(ratings, scores).correlations()
    assert [(row["sentences"], row["spearman"]) for row in rows] == [(4, 1), (4, -1)]
    assert math.isnan(rows[0]["kendall: low"])
    with pytest.raises(InputError, match="2 sentences of 3 have a rating and a score"):
        evaluate_arrays(np.array([1.0, 2.0, math.nan]), np.ones((3, 1)))


@pytest.mark.parametrize("column", ["judgement", "rating", "mean_rating"])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_ratings_are_read_from_all_tables(tmp_path: Path, column: str, ending: str) -> None:
    """Several ratings of a sentence are averaged."""
    path = tmp_path / f"ratings{ending}"
    texts = ["It rains.", "It rain.", "It rains"]
    write_table(path, {"sentence": texts, column: ["5", "NA", "6"]})
    judgements = read_judgements(path)
    assert [sentence.text for sentence in judgements.texts] == texts[:2]
    assert judgements.values[0] == 5.5
    assert math.isnan(judgements.values[1])
    assert judgements.pairs == ()


def test_two_columns_of_ratings_are_refused_by_name(tmp_path: Path) -> None:
    write_table(tmp_path / "r.csv", {"sentence": ["A b."], "rating": [1], "mean": [2]})
    with pytest.raises(InputError, match="several columns of judgements: rating, mean"):
        read_judgements(tmp_path / "r.csv")


def test_a_folder_of_ratings_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[str] = []

    def save(_: object, path: Path) -> bytes:
        figures.append(path.name)
        return b""

    monkeypatch.setattr("contstim.evaluation.folder.save", save)
    texts = [f"Word{n} is here." for n in range(8)]
    ratings, scores = [1, 2, 3, 4, 5, 6, 7, 7], [-9.0, -8.5, -7.0, -7.5, -5.0, -4.0, -6.0, -3.0]
    write_table(tmp_path / "ratings.tsv", {"sentence": texts, "rating": ratings})
    write_table(tmp_path / "scores.tsv", {"sentence": texts, "m": scores, "rating": ratings})
    out = tmp_path / "out"
    step = EvaluateAcceptability(
        data=tmp_path / "ratings.tsv", scores=(tmp_path / "scores.tsv",), out=out
    )
    step.run()
    table = read_table(out / "correlations.csv")
    assert table["model"] == ["m"]
    assert float(table["spearman"][0]) == pytest.approx(stats.spearmanr(ratings, scores).statistic)
    assert read_table(out / "sentences.csv")["sentence"] == texts
    assert figures == ["scatter"]
    record = json.loads((out / "report.md.meta.json").read_text(encoding="utf-8"))
    assert record["sentences_compared"] == 8
    assert any("Bonett & Wright" in method for method in record["intervals"])
