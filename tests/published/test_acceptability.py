"""LI-Adger's published scores, judgements and pairs.

Witnesses: the counts of the published bert-large-cased pseudo-log-likelihoods (2,061, 888, 1,561
and 2,051 of 2,365), the authors' own z-scores, and the definitions written out with `csv` and
plain Python, which share no code with the package.
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
def found(folder: Path, table: Path) -> AcceptabilityEvaluation:
    judgements = read_judgements(folder)
    return evaluate_acceptability(judgements, published_scores(judgements, table))


@cache
def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def counted(folder: Path, table: Path, model: str, delta: float | None) -> tuple[int, int]:
    """Pairs that meet a criterion, and all pairs, from the definition."""
    scores = {row["id"]: float(row[model]) for row in rows(table)}
    mean, deviation = statistics.fmean(scores.values()), statistics.pstdev(scores.values())
    people = {
        row["id"]: float(row["judgement"])
        for row in rows(folder / "data" / "human_ME_results_li-adger_sentences.csv")
        if row["judgement"] != "#N/A"
    }
    met = total = 0
    for pair in rows(folder / "data" / "li-adger_min_pairs.csv"):
        good, bad = pair["gramm_id"], pair["ungramm_id"]
        if pair["discard"] == "X" or good not in people or bad not in people:
            continue
        dh = people[good] - people[bad]
        dm = (scores[good] - mean) / deviation - (scores[bad] - mean) / deviation
        total += 1
        if delta is None:
            met += dm > 0
        else:
            met += (dh > 0) - (dh < 0) == (dm > 0) - (dm < 0) and abs(dh - dm) < delta
    return met, total


def test_the_published_counts(found: AcceptabilityEvaluation) -> None:
    column = found.models.index(BEST)
    met = [int(passed[:, column].sum()) for passed in found.met.values()]
    assert met == [2_061, 888, 1_561, 2_051]
    assert len(found.pairs) == 2_365
    assert list(found.excluded_for().values()) == [28, 0, 0]
    assert np.isnan(found.sentence_judgements).sum() == 2


@pytest.mark.parametrize("delta", [None, 0.5, 1.0, 5.0, 0.25])
def test_every_column_at_every_delta(
    folder: Path, table: Path, found: AcceptabilityEvaluation, delta: float | None
) -> None:
    met = criterion_met(delta, found.people[:, None], found.deltas).sum(axis=0)
    for column, model in enumerate(found.models):
        assert counted(folder, table, model, delta) == (met[column], len(found.pairs))


def test_z_scores_are_published(folder: Path, table: Path, found: AcceptabilityEvaluation) -> None:
    columns = tuple(f"{model}_zscores" for model in found.models)
    settings = AcceptabilitySettings(column=columns, scores_as_given=True)
    theirs = published_scores(read_judgements(folder), table, settings)
    np.testing.assert_allclose(found.sentence_scores, theirs.values, atol=1e-12)
    given = evaluate_acceptability(found.judgements, theirs, settings)
    for name, passed in found.met.items():
        assert (given.met[name] == passed).all()


def test_pairs_without_a_judgement_are_counted(found: AcceptabilityEvaluation, table: Path) -> None:
    """Were no pair discarded, the two pairs without a judgement would still be left out."""
    judgements = found.judgements
    kept = replace(judgements, pairs=tuple(replace(p, discarded=False) for p in judgements.pairs))
    all_pairs = evaluate_acceptability(kept, published_scores(kept, table))
    assert list(all_pairs.excluded_for().values()) == [0, 2, 0]


def test_correlations_and_fits(found: AcceptabilityEvaluation) -> None:
    """Witness: scipy and numpy on the same numbers."""
    names, matrix = delta_correlations(found)
    assert names[0] == "people"
    for i, model in enumerate(found.models, start=1):
        expected = stats.pearsonr(found.people, found.deltas[:, i - 1]).statistic
        assert matrix[0, i] == pytest.approx(expected)
        assert names[i] == model
    both = ~np.isnan(found.sentence_judgements)
    for column, fit in enumerate(fits(found)):
        x, y = found.sentence_scores[both, column], found.sentence_judgements[both]
        slope, intercept = np.polyfit(x, y, 1)
        assert (fit["slope"], fit["intercept"]) == pytest.approx((slope, intercept))
        assert fit["sentences"] == 4_176


def test_a_table_of_pairs_gives_the_same_scores(
    folder: Path, table: Path, found: AcceptabilityEvaluation, tmp_path: Path
) -> None:
    """The format of the authors' table of all models: NAME_gramm and NAME_ungramm for a pair.

    Texts are those of the pairs, of which two differ from the judged ones by a stray full stop.
    """
    scores = {row["id"]: row[BEST] for row in rows(table)}
    path = tmp_path / "pairs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        texts = ["gramm_sentence", "ungramm_sentence"]
        header = ["gramm_id", "ungramm_id", *texts, "m_gramm", "m_ungramm", "m_zscore-delta"]
        writer.writerow(header)
        for pair in rows(folder / "data" / "li-adger_min_pairs.csv"):
            both = pair["gramm_id"], pair["ungramm_id"]
            given = [pair[name] for name in texts]
            writer.writerow([*both, *given, *(scores[name] for name in both), "0"])
    unfolded = published_scores(found.judgements, path)
    assert unfolded.models == ("m",)
    column = found.sentence_scores[:, [found.models.index(BEST)]]
    np.testing.assert_allclose(z_scores(unfolded.values), column, atol=1e-9)


def test_sentences_that_a_table_lacks_are_listed(table: Path, folder: Path, tmp_path: Path) -> None:
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    short = tmp_path / "short.csv"
    short.write_text("".join(lines[:1] + lines[4:]), encoding="utf-8")
    judgements = read_judgements(folder)
    with pytest.raises(ScoreError, match=r"lacks scores of 3 of 4,178 sentences: 'Kerry attempted"):
        published_scores(judgements, short)
    rest = published_scores(judgements, short, AcceptabilitySettings(allow_missing=True))
    assert len({one.sentence for one in rest.left_out}) == 3
    assert list(evaluate_acceptability(judgements, rest).excluded_for().values()) == [28, 0, 3]


@pytest.mark.usefixtures("folder")
def test_every_published_claim_holds(published_data: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["reproduce", "adc", "--data", str(published_data), "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "9 of 9 claims hold" in done.stdout
    made = rows(tmp_path / "claims.csv")
    assert [claim["holds"] for claim in made] == ["True"] * 9
    assert "2,061 of 2,365" in (tmp_path / "report.md").read_text(encoding="utf-8")
