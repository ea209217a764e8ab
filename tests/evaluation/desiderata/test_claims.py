"""The paper's findings, on scores made so that they hold, or not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from contstim.correlation import Correlation
from contstim.evaluation.desiderata.carriers import Carrier, WordScores
from contstim.evaluation.desiderata.claims import check_claims
from contstim.evaluation.desiderata.desiderata_report import desiderata_parts
from contstim.evaluation.desiderata.evaluation import Desiderata, ModelDesiderata
from contstim.evaluation.desiderata.measures import Splitting
from contstim.reporting.report import Report
from contstim.scores import ScoreTable
from contstim.sentence import Sentence

N = 60


def _found(noises: tuple[float, float], lift: float, *, names: tuple[str, str]) -> Desiderata:
    """Scores of two rules that follow length and frequency with more or less noise."""
    rng = np.random.default_rng(2)
    tokens = rng.integers(4, 30, N).astype(float)
    logs, split = -rng.uniform(5, 12, N), np.arange(N) % 2 == 0
    columns = [-3 * tokens + noise * rng.normal(size=N) for noise in noises]
    words = [logs + noise * rng.normal(size=N) / 10 for noise in noises]
    words[0] = words[0] + lift * split
    table = ScoreTable(
        tuple(Sentence.parse(f"Sentence {i}.") for i in range(N)),
        (*names, "causal"),
        np.stack([*columns, -3 * tokens], axis=1),
    )
    nothing = Correlation.of(tokens, tokens)
    models = tuple(
        ModelDesiderata(n, nothing, nothing, nothing, (nothing,), Splitting.of(w, logs, split), 0)
        for n, w in zip(names, words, strict=True)
    )
    scored = tuple(WordScores(w[:, None], 1 + split.astype(np.int64)) for w in words)
    return Desiderata(
        models, "causal", (Carrier("_"),), table, np.stack([tokens, tokens], axis=1),
        tuple(f"w{i}" for i in range(N)), logs, scored, (), {},
    )  # fmt: skip


NAMES = ("hf:x@pll-original", "hf:x@pll-word-l2r")


def test_findings_hold_where_scores_were_made_so() -> None:
    """Outside witnesses: what was put in, and scipy.stats.pearsonr."""
    found = _found((20.0, 1.0), lift=5.0, names=NAMES)
    results = tuple(check_claims(found))
    assert [one.verdict for one in results] == ["holds"] * 4
    length = results[0]
    expected = stats.pearsonr(-found.scores.column(NAMES[0]), found.tokens[:, 0]).statistic
    assert length.original == pytest.approx(expected)
    assert length.low < length.original - length.adapted < length.high < 0
    assert results[3].original - results[3].adapted == pytest.approx(5, abs=1.5)


def test_findings_do_not_hold_where_scores_were_made_otherwise() -> None:
    results = tuple(check_claims(_found((1.0, 20.0), lift=-1.5, names=NAMES)))
    assert [one.verdict for one in results] == ["does not hold"] * 4


def test_what_an_interval_across_zero_says_is_undecided() -> None:
    """Two rules made alike: intervals hold zero, whichever number comes out higher."""
    found = _found((10.0, 10.0), lift=0.0, names=NAMES)
    results = tuple(check_claims(found))
    assert {one.original < one.adapted for one in results} == {True, False}
    for one in results:
        assert (one.verdict == "undecided") == (one.low <= 0 <= one.high)
    assert "undecided" in {str(one.verdict) for one in results}
    page = Report("Desiderata", tuple(desiderata_parts(found, results))).markdown()
    assert "| undecided |" in page
    assert "not sure" not in page


def test_rules_of_two_checkpoints_are_not_compared() -> None:
    names = ("hf:x@pll-original", "hf:y@pll-word-l2r")
    assert not list(check_claims(_found((1.0, 2.0), lift=0.0, names=names)))


def test_the_interval_is_scipys_bootstrap() -> None:
    """Outside witness: scipy.stats.bootstrap of the paired difference, percentile method."""
    found = _found((20.0, 10.0), lift=0.0, names=NAMES)
    (length, *_) = check_claims(found)
    rows = (-found.scores.column(NAMES[0]), -found.scores.column(NAMES[1]), found.tokens[:, 0])

    def difference(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
        return float(np.corrcoef(a, x)[0, 1] - np.corrcoef(b, x)[0, 1])

    theirs = stats.bootstrap(
        rows, difference, paired=True, vectorized=False, n_resamples=1000, method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval  # fmt: skip
    assert (length.low, length.high) == pytest.approx((theirs.low, theirs.high), abs=0.03)
