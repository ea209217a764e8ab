"""LI-Adger's published scores, judgements and pairs.

Witnesses: the published counts for bert-large-cased (2,061, 888, 1,561 and 2,051 of 2,365), the
published z-scores, and the definitions in plain Python, which share no code with the package.
"""

import csv
import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from contstim.cli.program import app
from contstim.errors import ScoreError
from contstim.evaluation.acceptability import AcceptabilitySettings, read_judgements
from contstim.evaluation.criteria import (
    AcceptabilityEvaluation,
    criterion_met,
    delta_correlations,
    evaluate_acceptability,
    fits,
    z_scores,
)
from contstim.evaluation.judged_scores import published_scores

BEST = "bert-large-cased_mlm"
pytestmark = pytest.mark.published


@pytest.fixture(scope="module")
def folder(published_data: Path) -> Path:
    if not (published_data / "li-adger").is_dir():
        pytest.skip(f"no li-adger in {published_data}")
    return published_data / "li-adger"


@pytest.fixture(scope="module")
def table(folder: Path) -> Path:
    return folder / "output" / "bert_mlm_results_li-adger_sentences.csv"


@pytest.fixture(scope="module")
def evaluation(folder: Path, table: Path) -> AcceptabilityEvaluation:
    judgements = read_judgements(folder)
    return evaluate_acceptability(judgements, published_scores(judgements, table))


@cache
def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def count_pairs(folder: Path, table: Path, model: str, delta: float | None) -> tuple[int, int]:
    """Count the pairs that meet a criterion, and all pairs, by the definition."""
    scores = {row["id"]: float(row[model]) for row in read_rows(table)}
    mean, deviation = statistics.fmean(scores.values()), statistics.pstdev(scores.values())
    judgements = {
        row["id"]: float(row["judgement"])
        for row in read_rows(folder / "data" / "human_ME_results_li-adger_sentences.csv")
        if row["judgement"] != "#N/A"
    }
    n_met = n_pairs = 0
    for pair in read_rows(folder / "data" / "li-adger_min_pairs.csv"):
        good, bad = pair["gramm_id"], pair["ungramm_id"]
        if pair["discard"] == "X" or good not in judgements or bad not in judgements:
            continue
        dh = judgements[good] - judgements[bad]
        dm = (scores[good] - mean) / deviation - (scores[bad] - mean) / deviation
        n_pairs += 1
        if delta is None:
            n_met += dm > 0
        else:
            n_met += (dh > 0) - (dh < 0) == (dm > 0) - (dm < 0) and abs(dh - dm) < delta
    return n_met, n_pairs


def test_counts_equal_the_published_counts(evaluation: AcceptabilityEvaluation) -> None:
    column = evaluation.models.index(BEST)
    n_met = [int(passed[:, column].sum()) for passed in evaluation.met.values()]
    assert n_met == [2_061, 888, 1_561, 2_051]
    assert len(evaluation.pairs) == 2_365
    assert list(evaluation.excluded_for().values()) == [28, 0, 0]
    assert np.isnan(evaluation.sentence_judgements).sum() == 2


@pytest.mark.parametrize("delta", [None, 0.5, 1.0, 5.0, 0.25])
def test_counts_at_every_delta_follow_the_definition(
    folder: Path, table: Path, evaluation: AcceptabilityEvaluation, delta: float | None
) -> None:
    n_met = criterion_met(delta, evaluation.people[:, None], evaluation.deltas).sum(axis=0)
    for column, model in enumerate(evaluation.models):
        assert count_pairs(folder, table, model, delta) == (n_met[column], len(evaluation.pairs))


def test_z_scores_equal_the_published_z_scores(
    folder: Path, table: Path, evaluation: AcceptabilityEvaluation
) -> None:
    columns = tuple(f"{model}_zscores" for model in evaluation.models)
    settings = AcceptabilitySettings(column=columns, scores_as_given=True)
    expected = published_scores(read_judgements(folder), table, settings)
    np.testing.assert_allclose(evaluation.sentence_scores, expected.values, atol=1e-12)
    new_evaluation = evaluate_acceptability(evaluation.judgements, expected, settings)
    for name, passed in evaluation.met.items():
        assert (new_evaluation.met[name] == passed).all()


def test_unjudged_pairs_are_excluded(evaluation: AcceptabilityEvaluation, table: Path) -> None:
    """If no pair is discarded, two pairs are excluded because they have no judgement."""
    judgements = evaluation.judgements
    pairs = tuple(replace(pair, discarded=False) for pair in judgements.pairs)
    all_pairs = replace(judgements, pairs=pairs)
    new_evaluation = evaluate_acceptability(all_pairs, published_scores(all_pairs, table))
    assert list(new_evaluation.excluded_for().values()) == [0, 2, 0]


def test_correlations_and_fits_equal_those_of_scipy(evaluation: AcceptabilityEvaluation) -> None:
    """Witness: scipy and numpy on the same numbers."""
    names, matrix = delta_correlations(evaluation)
    assert names[0] == "people"
    for i, model in enumerate(evaluation.models, start=1):
        expected = stats.pearsonr(evaluation.people, evaluation.deltas[:, i - 1]).statistic
        assert matrix[0, i] == pytest.approx(expected)
        assert names[i] == model
    judged = ~np.isnan(evaluation.sentence_judgements)
    for column, fit in enumerate(fits(evaluation)):
        x, y = evaluation.sentence_scores[judged, column], evaluation.sentence_judgements[judged]
        slope, intercept = np.polyfit(x, y, 1)
        assert (fit["slope"], fit["intercept"]) == pytest.approx((slope, intercept))
        assert fit["sentences"] == 4_176


def test_a_table_of_pairs_gives_the_same_scores(
    folder: Path, table: Path, evaluation: AcceptabilityEvaluation, tmp_path: Path
) -> None:
    """The table has the published format: columns NAME_gramm and NAME_ungramm, one row per pair.

    Texts are from the table of pairs; two differ from the judged sentences by a full stop.
    """
    scores = {row["id"]: row[BEST] for row in read_rows(table)}
    path = tmp_path / "pairs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        text_columns = ["gramm_sentence", "ungramm_sentence"]
        header = ["gramm_id", "ungramm_id", *text_columns, "m_gramm", "m_ungramm", "m_zscore-delta"]
        writer.writerow(header)
        for pair in read_rows(folder / "data" / "li-adger_min_pairs.csv"):
            ids = pair["gramm_id"], pair["ungramm_id"]
            sentences = [pair[name] for name in text_columns]
            writer.writerow([*ids, *sentences, *(scores[sentence_id] for sentence_id in ids), "0"])
    pair_scores = published_scores(evaluation.judgements, path)
    assert pair_scores.models == ("m",)
    column = evaluation.sentence_scores[:, [evaluation.models.index(BEST)]]
    np.testing.assert_allclose(z_scores(pair_scores.values), column, atol=1e-9)


def test_error_lists_sentences_without_scores(table: Path, folder: Path, tmp_path: Path) -> None:
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    short_table = tmp_path / "short.csv"
    short_table.write_text("".join(lines[:1] + lines[4:]), encoding="utf-8")
    judgements = read_judgements(folder)
    with pytest.raises(ScoreError, match=r"lacks scores of 3 of 4,178 sentences: 'Kerry attempted"):
        published_scores(judgements, short_table)
    scores = published_scores(judgements, short_table, AcceptabilitySettings(allow_missing=True))
    assert len({item.sentence for item in scores.left_out}) == 3
    assert list(evaluate_acceptability(judgements, scores).excluded_for().values()) == [28, 0, 3]


@pytest.mark.usefixtures("folder")
def test_every_published_claim_holds(published_data: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["reproduce", "adc", "--data", str(published_data), "--out", str(tmp_path)]
    )
    assert result.exit_code == 0, result.output
    assert "9 of 9 claims hold" in result.stdout
    claim_rows = read_rows(tmp_path / "claims.csv")
    assert [row["holds"] for row in claim_rows] == ["True"] * 9
    assert "2,061 of 2,365" in (tmp_path / "report.md").read_text(encoding="utf-8")
