"""A study in waves, from its first wave to its archive."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from contstim.experiments.responses.table import Response, write_responses
from contstim.items.stimuli import Condition, read_trials
from contstim.study.handing_on.archive import archive_study
from contstim.study.planning import plan_study
from contstim.study.study_file import read_study
from tests.cli.running import invoke
from tests.study.small import omit

N_PEOPLE, N_TRIALS = 3, 3


@pytest.mark.slow
def test_study_in_waves_ends_with_a_verdict(done_study: Path, tmp_path: Path) -> None:
    study = tmp_path / "waves"
    study.mkdir()
    for name in ("corpus.txt", "more.txt", "study.toml"):
        shutil.copy(done_study / name, study / name)
    omit(study, "select.natural", "select.triplets", "design", "power", "simulate", "analyze")
    path, trials = study / "study.toml", study / "results" / "waves" / "trials.csv"
    text = path.read_text(encoding="utf-8").replace("per_pair = 4\n", "")
    rules = f"people_per_wave = {N_PEOPLE}\ntrials_per_person = {N_TRIALS}\ncatch_per_group = 1\n"
    text = f"{text}\n[waves]\nmax_people = 40\nmin_catch = 0\n{rules}"
    path.write_text(text, encoding="utf-8")
    assert "waves need about" in plan_study(read_study(path), measure=False).tests
    assert invoke("run", path).exit_code == 0
    (study / "answers").mkdir()
    path.write_text(text + 'data = ["answers"]\n', encoding="utf-8")
    for wave in range(1, 9):
        shown_trials = read_trials(trials)
        last = max(trial.group for trial in shown_trials)
        assert last == N_PEOPLE * wave
        responses = [
            # model_1 rejects sentence_1, so all participants agree with the bigram
            Response(f"p{t.group}", t.group, t.trial_id, rating, 1, 0, 900.0)
            for t in shown_trials
            if t.group > last - N_PEOPLE
            for rating in [6 if t.model_1 == "bigram" else 1]
        ]
        write_responses(study / "answers" / f"{wave}.csv", responses)
        assert invoke("run", path).exit_code == 0
        page = (study / "index.html").read_text(encoding="utf-8")
        if "bigram beats every other model" in page:
            break
    else:
        pytest.fail("no verdict")
    assert sum(trial.condition is Condition.SYNTHETIC_SYNTHETIC for trial in shown_trials) == (
        N_PEOPLE * N_TRIALS * wave
    )
    archive_study(read_study(path), tmp_path / "archive")
    for name in ("methods.md", "preregistration.md", "datasheet.md"):
        document = (tmp_path / "archive" / name).read_text(encoding="utf-8").lower()
        assert "e-value" in document or name == "datasheet.md"
        assert f"| {wave} |" in document or f"wave {wave}: " in document
    assert invoke("verify", study).exit_code == 0
