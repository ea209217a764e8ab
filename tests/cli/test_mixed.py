"""`contstim mixed` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.analysis.simulation import Experiment, simulate

COMMON = "mixed --trials trials.csv --responses responses.csv --scores scores.csv --out out".split()


def write(folder: Path, experiment: Experiment) -> None:
    write_table(folder / "trials.csv", trial_columns(experiment.trials))
    write_responses(folder / "responses.csv", experiment.responses)
    experiment.scores.write(folder / "scores.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixed")
    write(folder, simulate(groups=(5, 5), follow=0.8))
    return folder


def test_every_table_is_written_and_the_followed_model_is_first(folder: Path) -> None:
    said = succeed(folder, *COMMON, "--together", "--people", "intercept")
    assert "72 trials" in said
    assert "log-likelihood" in said
    fits = {row["models"]: row for row in read_csv_rows(folder / "out" / "fits.csv")}
    assert set(fits) == {"(no model)", "a", "b", "c", "a + b", "a + c", "b + c", "a + b + c"}
    assert {row["ratings"] for row in fits.values()} == {"360"}
    assert float(fits["a"]["log_likelihood"]) > float(fits["b"]["log_likelihood"])
    comparisons = read_csv_rows(folder / "out" / "comparisons.csv")
    assert [(row["first"], row["second"]) for row in comparisons] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert {row["family"] for row in comparisons} == {"3 pairs of models"}
    assert len(read_csv_rows(folder / "out" / "additions.csv")) == 6
    record = (folder / "out" / "fits.csv.meta.json").read_text(encoding="utf-8")
    assert '"thresholds": "symmetric"' in record
    assert '"catch"' not in record


def test_what_cannot_be_fitted_ends_with_a_message(tmp_path: Path) -> None:
    write(tmp_path, simulate(groups=(1,)))
    failed = run(tmp_path, *COMMON)
    assert failed.returncode == 2
    assert "estimate their variance: 1 participant" in failed.stderr
    assert not (tmp_path / "out").exists()
