"""`contstim mixed` and `contstim controls` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.analysis.simulation import Experiment, simulate
from tests.experiments.responses.experiment import make_responses, make_trials, scores_of

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


def test_controls_write_a_table_each(tmp_path: Path, trained: Path) -> None:
    trials = make_trials()
    people = {"ann": 1, "bob": 1, "cleo": 2, "dora": 2}
    write_table(tmp_path / "trials.csv", trial_columns(trials))
    write_responses(tmp_path / "responses.csv", make_responses(trials, people))
    scores = scores_of(trials)
    scores.write(tmp_path / "scores.csv")
    sentences = list(map(str, scores.sentences or ()))
    lengths = [float(len(sentence.split())) for sentence in sentences]
    tokens: dict[str, list[Any]] = {
        "sentence": sentences,
        "gpt2": lengths,
        "rnn": [9.0] * len(sentences),
    }
    write_table(tmp_path / "tokens.csv", tokens)
    write_table(tmp_path / "features.csv", {"sentence": sentences, "words": lengths})
    (tmp_path / "corpus.txt").write_text("Alpha beta gamma.\nOther alpha.\n")
    common = "controls --trials trials.csv --responses responses.csv --scores scores.csv --out out"
    said = succeed(
        tmp_path,
        *common.split(),
        *"--tokens tokens.csv --features features.csv --text corpus.txt".split(),
    )
    assert "fewer tokens" in said
    assert "prefers more" in said
    tables = {}
    for name in ("token_counts", "feature_preferences"):
        tables[name] = read_csv_rows(tmp_path / "out" / f"{name}.csv")
    assert [row["model"] for row in tables["token_counts"]] == ["gpt2", "rnn"] * 2
    assert {row["feature"] for row in tables["feature_preferences"]} == {"words", "zipf"}
    model = trained / "2gram.arpa"
    succeed(tmp_path, *common.split(), "--model", f"rnn=kenlm:{model}", "--quiet")
    record = json.loads((tmp_path / "out" / "controls.meta.json").read_text(encoding="utf-8"))
    assert model.name in {name.rpartition("/")[2] for name in record["inputs"]}
    assert record["models"]["rnn"]["specification"] == f"kenlm:{model}"
    failed = run(tmp_path, *common.split())
    assert failed.returncode == 2
    assert "no control variables" in failed.stderr
