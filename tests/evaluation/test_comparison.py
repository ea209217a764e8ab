"""Comparisons of models and of restarts.

Witnesses: SciPy, counts by hand, and loops.
Matthews correlations are Pearson's r of two binary variables.
"""

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import contingency

from contstim.english import generate
from contstim.errors import InputError, ScoreError
from contstim.evaluation import comparison
from contstim.evaluation.restarts import majority, matthews
from contstim.items.scores import ScoreTable
from contstim.models.ngram.adapter import NgramModel
from contstim.reporting.report import Report
from contstim.words.sentence import Sentence


def make_table(*columns: list[float], texts: tuple[str, ...] = ()) -> ScoreTable:
    names = tuple(f"m{i}" for i in range(len(columns)))
    sentences = texts or tuple(f"Sentence {i}." for i in range(len(columns[0])))
    return ScoreTable(tuple(map(Sentence.parse, sentences)), names, np.array(columns).T)


def test_correlations_are_scipys_and_agreement_is_a_share() -> None:
    """Witnesses: scipy.stats, and a loop over all pairs of sentences."""
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=30), 1)
    y = np.round(x + rng.normal(size=30), 1)
    (row,) = comparison.model_agreements(make_table(x.tolist(), y.tolist()))
    assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert row["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic)
    same_order = [
        (1 + np.sign(x[i] - x[j]) * np.sign(y[i] - y[j])) / 2 for i, j in combinations(range(30), 2)
    ]
    assert row["agreement"] == pytest.approx(np.mean(same_order))
    assert row["kendall"] == pytest.approx(2 * np.mean(same_order) - 1)


def test_infinite_scores_are_ranked_constant_scores_undefined() -> None:
    (row,) = comparison.model_agreements(make_table([-np.inf, 1, 2, 3], [0, 1, 3, 2]))
    assert row["pearson"] == pytest.approx(stats.pearsonr([1, 2, 3], [1, 3, 2]).statistic)
    assert row["spearman"] == pytest.approx(stats.spearmanr([0, 1, 2, 3], [0, 1, 3, 2]).statistic)
    (row,) = comparison.model_agreements(make_table([1, 1, 1], [1, 2, 3]))
    assert math.isnan(row["spearman"])
    assert row["agreement"] == 0.5


def test_disagreements_are_the_largest_gains_in_rank() -> None:
    """Witness: ranks written by hand, 1/4 2/4 3/4 4/4 against 4/4 1/4 3/4 2/4."""
    rows = comparison.disagreements(make_table([-4, -3, -2, -1], [-1, -4, -2, -3]), top=2)
    assert [(d["model_1"], d["sentence"], d["rank_1"], d["rank_2"]) for d in rows] == [
        ("m0", "Sentence 0.", 0.25, 1.0),
        ("m1", "Sentence 3.", 0.5, 1.0),
        ("m1", "Sentence 1.", 0.25, 0.5),
    ]
    assert (rows[0]["log_prob_1"], rows[0]["log_prob_2"]) == (-4, -1)


def test_tables_are_joined_by_sentence() -> None:
    """Witness: the rows that are in both tables, selected by hand."""
    first = make_table([-1, -2, -3], texts=("One bird sings.", "Two birds sing", "Three do."))
    second = make_table(
        [-6, -5, -4], [-9, -8, -7], texts=("Three do.", "Two birds sing.", "Four do.")
    )
    joined, missing = comparison.join_tables({"a": first, "b": second})
    assert list(map(str, joined.sentences or ())) == ["Two birds sing.", "Three do."]
    assert joined.models == ("a:m0", "b:m0", "m1")
    np.testing.assert_array_equal(joined.log_probs, [[-2, -5, -8], [-3, -6, -9]])
    assert missing == {"a": ("Four do.",), "b": ("One bird sings.",)}


def test_reasons_for_refused_comparisons_are_named(bigram: NgramModel, trigram: NgramModel) -> None:
    table = make_table([-1, -2], texts=("One bird sings.", "Two birds sing."))
    with pytest.raises(ScoreError, match="got 0 of 4"):
        comparison.join_tables(
            {"a": table, "b": make_table([-1, -2], texts=("Three do.", "Four do."))}
        )
    with pytest.raises(ScoreError, match="a must have a column 'sentence'"):
        comparison.join_tables({"a": ScoreTable(None, ("m",), np.zeros((2, 1)))})
    with pytest.raises(InputError, match="at least 2 models, got 2-gram"):
        comparison.gather({}, [bigram], generate(5, seed=0))
    with pytest.raises(InputError, match="no sentences for the models"):
        comparison.gather({}, [bigram, trigram])


def test_models_and_tables_are_scored_together(bigram: NgramModel, trigram: NgramModel) -> None:
    """Witness: scores requested one sentence at a time."""
    sentences = generate(20, seed=4)
    published = ScoreTable(tuple(sentences[:15]), ("published",), np.arange(15.0)[:, None])
    table, left_out = comparison.gather({"mine": published}, [bigram, trigram], sentences)
    assert table.models == ("published", "2-gram", "3-gram")
    expected = [trigram.log_probs([sentence])[0] for sentence in table.sentences or ()]
    np.testing.assert_allclose(table.column("3-gram"), expected)
    assert left_out == {s.text: "not among the sentences of mine" for s in sentences[15:]}
    table, left_out = comparison.gather({"mine": published}, [bigram])
    assert (table.sentences, left_out) == (tuple(sentences[:15]), {})


def test_findings_of_a_comparison_are_complete() -> None:
    """`test_folder.py` tests the folder to which they are written."""
    table = make_table([-4, -3, -2, -1], [-1, -4, -2, -3], [-1, -2, -3, -4])
    findings = comparison.comparison_findings(
        table, top=1, left_out={"Gone.": "why"}, commands=["do"]
    )
    assert list(findings.tables["scores"]) == ["sentence", *table.models]
    page = Report(findings.title, findings.parts).markdown()
    assert "- `do`" in page
    assert "Excluded: 1 sentence" in page
    assert findings.tables["left_out"] == {"sentence": ["Gone."], "reason": ["why"]}
    assert len(findings.summary.rows) == 3


CELLS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60)


@given(CELLS)
def test_matthews_is_pearsons_r_of_two_classes(cells: list[tuple[bool, bool]]) -> None:
    """It is 0 if all or no cases belong to a class."""
    labels, predicted = np.array(cells, np.bool_).T
    if not (0 < labels.sum() < len(labels) and 0 < predicted.sum() < len(labels)):
        assert matthews(labels, predicted) == 0
        return
    assert matthews(labels, predicted) == pytest.approx(np.corrcoef(labels, predicted)[0, 1])
    table = contingency.crosstab(labels, predicted).count
    assert abs(matthews(labels, predicted)) == pytest.approx(
        contingency.association(table, method="cramer")
    )


@given(st.lists(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=3), min_size=1))
def test_an_odd_number_of_classifiers_decides_by_majority(rows: list[list[float]]) -> None:
    expected = [Counter(p > 0.5 for p in row).most_common(1)[0][0] for row in rows]
    assert majority(np.array(rows)).tolist() == expected


def test_ties_of_classifiers_go_to_the_surer_class() -> None:
    probabilities = np.array([[0.9, 0.2], [0.6, 0.1], [0.7, 0.8], [0.1, 0.4]])
    assert majority(probabilities).tolist() == [True, False, True, False]
