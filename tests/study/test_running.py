"""Runs that are killed, runs with unsuccessful searches, and runs after reviews."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.cli.output import INCOMPLETE
from contstim.cli.program import app
from contstim.items.reviews import Decision, undecided_items, write_review
from contstim.items.stimuli import Condition, Trial, read_trials
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.study import small
from tests.study.small import change, run, set_reviews

# `size` is that of certificates, which contain seconds. `time` is that of searches, and missing if
# all were stored before the last kill
_TIMES = {
    *("records", "size", "time", "seconds", "cpu_seconds", "wall_seconds", "network_seconds"),
    *("training_seconds", "tokens_per_second"),
}
_TIMED = ".certificate.json"  # contains seconds; records contain its checksum


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "" if name.endswith(_TIMED) else _without_times(item)
            for name, item in value.items()
            if name not in _TIMES
        }
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def read_contents(folder: Path) -> dict[str, object]:
    """Return the content of each file of a study, without times and stores."""
    files: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("contstim.sqlite"):
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            if name == "index.html":
                # Seconds of stages, sizes of files that contain seconds, and a checksum of these
                files[name] = re.sub(rb'<td class="number">.*?</td>|"[0-9a-f]{16}"', b"", content)
                continue
            files[name] = _without_times(json.loads(content)) if path.suffix == ".json" else content
    return files


def _start_run(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "contstim", "run", "--quiet"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish_run(folder: Path) -> None:
    process = _start_run(folder)
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def _write_study(folder: Path, source: Path) -> Path:
    folder.mkdir()
    for name in ("corpus.txt", "more.txt"):
        shutil.copy(source / name, folder)
    network = 'net = { train = "rnn", hidden = 8, embedding = 8, epochs = 2 }\n[vocabulary]'
    # More triplets, because each natural sentence is used for one pair of models only
    text = small.STUDY.replace("[vocabulary]", network).replace("per_pair = 4", "per_pair = 8")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_thirty_kills_do_not_change_the_results(done_study: Path, tmp_path: Path) -> None:
    """Witness: a run of the same study, with a network, that was not killed."""
    reference = _write_study(tmp_path / "calm", done_study)
    start = time.monotonic()
    _finish_run(reference)
    run_seconds = time.monotonic() - start
    killed = _write_study(tmp_path / "killed", done_study)
    rng = random.Random(5)
    for _ in range(30):
        process = _start_run(killed)
        try:
            process.wait(rng.uniform(0.1, run_seconds / 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    _finish_run(killed)
    contents, expected = read_contents(killed), read_contents(reference)
    names = sorted(contents.keys() | expected.keys())
    assert [name for name in names if contents.get(name) != expected.get(name)] == []


def test_partial_files_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    """The page is outside the folder of results."""
    (tmp_path / "study.toml").write_text('[texts]\ntraining = "english:20"\n')
    (tmp_path / "results").mkdir()
    partial_files = [
        tmp_path / name for name in (".index.html.7.partial", "results/.training.txt.7.partial")
    ]
    for file in partial_files:
        file.write_text("half")
    small.run(tmp_path)
    assert not any(file.exists() for file in partial_files)
    assert (tmp_path / "index.html").is_file()


STUDY = """\
title = "One sentence"
[models]
bigram = "kenlm:2gram.arpa"
trigram = "kenlm:3gram.arpa"
[triplets]
vocabulary = "few.txt"
sentences = "natural.txt"
per_pair = 1
frame = "none"
"""


def test_unsuccessful_searches_are_reported_by_every_run(
    tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The vocabulary contains only words of the sentence, and none may occur twice."""
    natural = Sentence.parse("She read a book")
    words = natural.words
    Vocabulary((words[0],), words[1:], frozenset()).save(tmp_path / "few.txt")
    (tmp_path / "natural.txt").write_text(f"{natural.text}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for name in ("2gram.arpa", "3gram.arpa"):
        (tmp_path / name).symlink_to(trained / name)
    for _ in range(2):
        with pytest.raises(SystemExit) as exit_info:
            app(["run", str(tmp_path)])
        assert exit_info.value.code == INCOMPLETE
        messages = capsys.readouterr().err
        assert "warning: failed: bigram × trigram, 'She read a book" in messages
        assert "triplets is incomplete" in messages


def read_study_trials(folder: Path) -> list[Trial]:
    return list(read_trials(folder / "results" / "trials.csv"))


def reject_trial(folder: Path, condition: Condition, rounds: int) -> Trial:
    """Write a review that rejects one trial, add it to the study, and return the trial."""
    trials = read_study_trials(folder)
    rejected = next(trial for trial in trials if trial.condition is condition)
    rows = (
        replace(item, decision=Decision("reject" if item.item_id == rejected.trial_id else ""))
        for item in undecided_items(trials, "Ann")
    )
    write_review(folder / f"{rounds}.csv", rows)
    set_reviews(folder, [f"{number}.csv" for number in range(1, rounds + 1)])
    return rejected


@pytest.mark.slow
@pytest.mark.parametrize(
    "conditions",
    [
        (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL),
        (Condition.SYNTHETIC_SYNTHETIC, Condition.NATURAL_CONTROVERSIAL, Condition.CATCH),
    ],
)
def test_rejection_changes_only_its_trials(study: Path, conditions: tuple[Condition, ...]) -> None:
    """Witness: tables before and after, compared trial by trial over two or three rounds."""
    # More items, because sentences of random and catch trials cannot be selected
    change(study, ("per_pair = 4", "per_pair = 6"), ("min_count = 4", "min_count = 1"))
    run(study, last="design")
    for number, condition in enumerate(conditions, start=1):
        old_trials, trial = read_study_trials(study), reject_trial(study, condition, number)
        ids = {trial.trial_id, trial.source_id} - {""}
        run(study, last="design")
        new_trials = read_study_trials(study)
        assert len(new_trials) == len(old_trials)
        assert {t for t in old_trials if not ids & {t.trial_id, t.source_id}} <= {*new_trials}
        assert not ids & {name for t in new_trials for name in (t.trial_id, t.source_id)}
        # A repeated run changes nothing
        run(study, first="design", last="design")
        assert read_study_trials(study) == new_trials
