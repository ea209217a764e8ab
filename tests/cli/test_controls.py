"""`contstim controls` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contstim.experiments.responses.table import write_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import trial_columns
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.responses.experiment import make_responses, make_trials, scores_of


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
