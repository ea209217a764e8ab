"""The same models by R's `ordinal::clmm`, where R is installed."""

from __future__ import annotations

import csv
import shutil
import subprocess

import numpy as np
import pytest

from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from tests.experiments.analysis.mixed.ratings import draw

PROGRAM = r"""
suppressMessages(library(ordinal))
d <- read.csv("ratings.csv")
d$rating <- factor(d$rating, ordered = TRUE)
for (case in list(
  list("flexible", "probit", rating ~ a + (0 + side | person) + (1 | trial)),
  list("symmetric2", "logit", rating ~ a + b + (0 + side | person) + (1 | trial)),
  list("symmetric2", "probit",
       rating ~ a + (0 + side | person) + (0 + a | person) + (1 | trial))
)) {
  m <- clmm(case[[3]], data = d, link = case[[2]], threshold = case[[1]])
  deviations <- unlist(lapply(VarCorr(m), function(v) attr(v, "stddev")))
  cat("log-likelihood", format(as.numeric(logLik(m)), digits = 12), "\n")
  cat("estimates", format(coef(summary(m))[, 1], digits = 10), "\n")
  cat("errors", format(coef(summary(m))[, 2], digits = 10), "\n")
  cat("deviations", format(sort(as.numeric(deviations)), digits = 10), "\n")
}
"""
CASES = [
    (["a"], MixedSettings(thresholds="flexible", people="intercept")),
    (["a", "b"], MixedSettings(link="logit", people="intercept")),
    (["a"], MixedSettings()),
]


@pytest.fixture(scope="module")
def by_r(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[float]]]:
    """What clmm says of each case."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    folder = tmp_path_factory.mktemp("clmm")
    check = subprocess.run([program, "-e", "library(ordinal)"], capture_output=True, check=False)
    if check.returncode:
        pytest.skip("R has no package ordinal")
    with (folder / "ratings.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "trial", "rating", "side", "a", "b"])
        for group in RATINGS.groups:
            columns = [trial.trial_id for trial in group.trials], group.ratios.T
            for person, *rows in zip(group.participants, group.ratings, group.left, strict=True):
                for rating, left, trial, ratios in zip(*rows, *columns, strict=True):
                    # Of about unit size, which clmm needs
                    writer.writerow([person, trial, int(rating), 2 * left - 3, *ratios / 20])
    (folder / "fit.R").write_text(PROGRAM)
    done = subprocess.run(
        [program, "fit.R"], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    rows = [(name, [float(value) for value in values]) for name, *values in lines]
    return [dict(rows[start : start + 4]) for start in range(0, len(rows), 4)]


RATINGS = draw(21, people=5, trials=9, slopes=(0.06, 0.02), leaning=0.5, following=0.4)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_r_fits_the_same(by_r: list[dict[str, list[float]]], case: int) -> None:
    models, settings = CASES[case]
    expected, fit = by_r[case], fit_mixed(RATINGS, models, settings)
    assert fit.log_likelihood == pytest.approx(expected["log-likelihood"][0], abs=1e-4)
    ours = [(row["estimate"], row["standard_error"]) for row in fit.thresholds]
    slopes = [row["estimate"] for row in fit.coefficients]
    ours += [(20 * slope.value, 20 * slope.standard_error) for slope in slopes]
    estimates, errors = zip(*ours, strict=True)
    assert estimates == pytest.approx(expected["estimates"], rel=1e-3, abs=1e-3)
    assert errors == pytest.approx(expected["errors"], rel=2e-3)
    scales = [
        20 / fit[row["effect"]]["typical_ratio"] if row["effect"] in models else 1.0
        for row in fit.variances
    ]
    deviations = [row["standard_deviation"] for row in fit.variances]
    assert np.sort(np.multiply(deviations, scales)) == pytest.approx(
        expected["deviations"], rel=2e-3
    )
