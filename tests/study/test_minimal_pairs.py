"""A study of minimal pairs, from models to the analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.stimuli import Condition, read_controversial_minimal_pairs, read_trials
from contstim.study.running import run_study
from contstim.study.study_file import read_study
from contstim.tables import read_table

STUDY = """
title = "Minimal pairs"
[texts]
training = "english:1000"
natural = "english:100"
[models]
two = { train = "ngram", order = 2 }
three = { train = "ngram", order = 3 }
[generate.minimal-pairs]
out = "results/generated"
per_paradigm = 20
[minimal_pairs]
data = "results/generated"
per_pair = 4
[design]
groups = 2
random_per_group = 2
catch_per_group = 2
[responses]
simulate = "three"
[analysis]
"""


@pytest.mark.slow
def test_a_study_goes_from_generated_minimal_pairs_to_the_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run_study(read_study(tmp_path))
    pairs = read_controversial_minimal_pairs("results/minimal-pairs.csv")
    trials = read_trials("results/trials.csv")
    shown = {t.source_id for t in trials if t.condition is Condition.MINIMAL_PAIR}
    assert shown == {pair.trial_id for pair in pairs}
    assert len(pairs) == 4
    judges = read_table("results/analysis/tables/paradigms.csv")["judge"]
    assert {*judges} == {"grammar", "two", "three"}
