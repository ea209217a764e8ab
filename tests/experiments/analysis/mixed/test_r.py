"""Mixed models against `ordinal::clmm` and `lme4::glmer` of R, whose results are in `r.json`.

Where R is installed, a slow test checks the recorded results. To record again, with the versions of
R (`base`) and of both packages: `python -m tests.experiments.analysis.mixed.test_r`
"""

import csv
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import Ratings
from contstim.items.scale import Scale
from tests.experiments.analysis.mixed.ratings import code_choices, draw_ratings

RATINGS = draw_ratings(21, people=5, trials=9, slopes=(0.06, 0.02), leaning=0.5, following=0.4)
DRAWN = draw_ratings(21, people=7, trials=12, slopes=(0.06, 0.02), leaning=0.5, following=0.4)
CHOICES = code_choices(DRAWN, 1, 2, Scale.CHOICE)


@dataclass(frozen=True)
class Case:
    """A model, and the R call that fits the same model to a table `d`."""

    ratings: Ratings  # the data
    models: list[str]  # predictors
    settings: MixedSettings  # of contstim
    call: str  # in R
    likelihood: float = 1e-4  # tolerance of log-likelihoods
    errors: float = 2e-3  # relative tolerance of standard errors and deviations


EFFECTS = "(0 + side | person) + (0 + a | person) + (1 | trial)"
CASES = {
    "flexible thresholds": Case(
        RATINGS,
        ["a"],
        MixedSettings(thresholds="flexible", people="intercept"),
        "clmm(rating ~ a + (0 + side | person) + (1 | trial), d, threshold = 'flexible')",
    ),
    "two models, logit": Case(
        RATINGS,
        ["a", "b"],
        MixedSettings(link="logit", people="intercept"),
        "clmm(rating ~ a + b + (0 + side | person) + (1 | trial), d, link = 'logit', "
        "threshold = 'symmetric2')",
    ),
    "slopes of people": Case(
        RATINGS,
        ["a"],
        MixedSettings(),
        f"clmm(rating ~ a + {EFFECTS}, d, threshold = 'symmetric2')",
    ),
    # lme4 has no intercept and approximates a logit like contstim, ordinal a probit
    "choices, lme4": Case(
        CHOICES,
        ["a"],
        MixedSettings(link="logit"),
        f"lme4::glmer(rating ~ 0 + a + {EFFECTS}, d, family = binomial)",
        *(1e-3, 3e-3),
    ),
    "choices, ordinal": Case(
        CHOICES,
        ["a"],
        MixedSettings(thresholds="flexible"),
        f"clmm(rating ~ a + {EFFECTS}, d)",
        *(1e-3, 3e-3),
    ),
}
RECORD = Path(__file__).parent / "r.json"
PROGRAM = r"""
suppressMessages(library(ordinal))
d <- read.csv("ratings.csv")
d$rating <- factor(d$rating, ordered = TRUE)
clmm <- function(formula, d, link = "probit", threshold = "flexible") {
  ordinal::clmm(formula, data = d, link = link, threshold = threshold)
}
m <- CALL
fixed <- coef(summary(m))
say <- function(...) cat(format(c(...), digits = 12), "\n")
say(as.numeric(logLik(m)))
say(fixed[, 1])
say(fixed[, 2])
say(sort(as.numeric(unlist(lapply(VarCorr(m), function(v) attr(v, "stddev"))))))
"""


VERSIONS = 'for (p in c("base", "ordinal", "lme4")) cat(p, format(packageVersion(p)), "\\n")'


def fit_with_r(case: Case, folder: Path) -> list[list[float]]:
    """Return log-likelihood, estimates (thresholds first), standard errors and deviations."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("R is not installed")
    with (folder / "ratings.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "trial", "rating", "side", "a", "b"])
        for group in case.ratings.groups:
            columns = [trial.trial_id for trial in group.trials], group.ratios.T
            for person, *rows in zip(group.participants, group.ratings, group.left, strict=True):
                for rating, left, trial, ratios in zip(*rows, *columns, strict=True):
                    # clmm needs ratios of about unit size
                    writer.writerow([person, trial, int(rating), 2 * left - 3, *ratios / 20])
    (folder / "fit.R").write_text(PROGRAM.replace("CALL", case.call))
    process = subprocess.run([program, "fit.R"], cwd=folder, capture_output=True, text=True)
    if "no package called" in process.stderr:
        pytest.skip("R lacks ordinal or lme4")
    return [[float(value) for value in line.split()] for line in process.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_r_reproduces_the_recorded_results(name: str, tmp_path: Path) -> None:
    recorded = json.loads(RECORD.read_text())["fits"][name]
    for values, expected in zip(fit_with_r(CASES[name], tmp_path), recorded, strict=True):
        assert values == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_fits_match_r(name: str) -> None:
    case = CASES[name]
    (likelihood,), estimates, errors, deviations = json.loads(RECORD.read_text())["fits"][name]
    fit = fit_mixed(case.ratings, case.models, case.settings)
    assert fit.log_likelihood == pytest.approx(likelihood, abs=case.likelihood)
    coefficients = [(row["estimate"], row["standard_error"]) for row in fit.thresholds]
    slopes = [row["estimate"] for row in fit.coefficients]
    coefficients += [(20 * slope.value, 20 * slope.standard_error) for slope in slopes]
    columns = list(zip(*coefficients, strict=True))
    assert columns[0] == pytest.approx(estimates, rel=1e-3, abs=1e-3)
    assert columns[1] == pytest.approx(errors, rel=case.errors)
    factors = [
        20 / fit[row["effect"]]["typical_ratio"] if row["effect"] in case.models else 1.0
        for row in fit.variances
    ]
    fitted = [row["standard_deviation"] for row in fit.variances]
    assert np.sort(np.multiply(fitted, factors)) == pytest.approx(deviations, rel=case.errors)


def record_fits() -> None:
    """Run all fits in R and write one line each, with the versions of R and its packages."""
    output = subprocess.run(["Rscript", "-e", VERSIONS], capture_output=True, text=True, check=True)
    versions = dict(line.split() for line in output.stdout.splitlines())
    with tempfile.TemporaryDirectory() as folder:
        fits = [
            f'    "{name}": [\n      '
            + ",\n      ".join(json.dumps(row) for row in fit_with_r(case, Path(folder)))
            + "\n    ]"
            for name, case in CASES.items()
        ]
    text = f'{{\n  "versions": {json.dumps(versions)},\n  "fits": {{\n'
    RECORD.write_text(text + ",\n".join(fits) + "\n  }\n}\n")


if __name__ == "__main__":
    record_fits()
