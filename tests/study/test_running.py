"""Runs that are killed, that find too little, and that follow reviews."""

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
from tests.study.small import change, review_with, run

_TIMES = {
    "records",
    "size",  # of certificates, which hold seconds
    "time",  # of searches; none where each had been kept before the last kill
    "seconds",
    "cpu_seconds",
    "wall_seconds",
    "network_seconds",
    "training_seconds",
    "tokens_per_second",
}
_TIMED = ".certificate.json"  # its checksum stands in records, and it holds how long it took


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "" if name.endswith(_TIMED) else _without_times(each)
            for name, each in value.items()
            if name not in _TIMES
        }
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def contents(folder: Path) -> dict[str, object]:
    """Every file of a study by its name, without times; no stores, which are caches."""
    files: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("contstim.sqlite"):
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            if name == "index.html":
                # Seconds of stages, sizes of files that hold seconds, and a checksum over these
                files[name] = re.sub(rb'<td class="number">.*?</td>|"[0-9a-f]{16}"', b"", content)
                continue
            files[name] = _without_times(json.loads(content)) if path.suffix == ".json" else content
    return files


def _start(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "contstim", "run", "--quiet"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def _new(folder: Path, like: Path) -> Path:
    folder.mkdir()
    for name in ("corpus.txt", "more.txt"):
        shutil.copy(like / name, folder)
    network = 'net = { train = "rnn", hidden = 8, embedding = 8, epochs = 2 }\n[vocabulary]'
    # Enough triplets to select from, as each natural sentence serves one pair of models only
    text = small.STUDY.replace("[vocabulary]", network).replace("per_pair = 4", "per_pair = 8")
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_thirty_kills_leave_no_trace(done_study: Path, tmp_path: Path) -> None:
    """Against a run of the same study that was not killed; one network is trained, too."""
    calm = _new(tmp_path / "calm", done_study)
    started = time.monotonic()
    process = _start(calm)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    whole = time.monotonic() - started
    killed = _new(tmp_path / "killed", done_study)
    chance = random.Random(5)
    for _ in range(30):
        process = _start(killed)
        try:
            process.wait(chance.uniform(0.1, whole / 3))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    process = _start(killed)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    found, expected = contents(killed), contents(calm)
    names = sorted(found.keys() | expected.keys())
    assert [name for name in names if found.get(name) != expected.get(name)] == []


def test_what_was_half_written_when_a_run_was_killed_is_removed(tmp_path: Path) -> None:
    """The page stands beside the results, and not among them."""
    (tmp_path / "study.toml").write_text('[texts]\ntraining = "english:20"\n')
    (tmp_path / "results").mkdir()
    halves = [
        tmp_path / name for name in (".index.html.7.partial", "results/.training.txt.7.partial")
    ]
    for half in halves:
        half.write_text("half")
    small.run(tmp_path)
    assert not any(half.exists() for half in halves)
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


def test_what_was_not_found_is_named_now_and_whenever_it_is_run_again(
    tmp_path: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Witness: a vocabulary of the sentence's own words, none of which may occur twice."""
    natural = Sentence.parse("She read a book")
    words = natural.words
    Vocabulary((words[0],), words[1:], frozenset()).save(tmp_path / "few.txt")
    (tmp_path / "natural.txt").write_text(f"{natural.text}\n", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for name in ("2gram.arpa", "3gram.arpa"):
        (tmp_path / name).symlink_to(trained / name)
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            app(["run", str(tmp_path)])
        assert ended.value.code == INCOMPLETE
        told = capsys.readouterr().err
        assert "warning: failed: bigram × trigram, 'She read a book" in told
        assert "triplets is incomplete" in told


def trials_of(folder: Path) -> list[Trial]:
    return list(read_trials(folder / "results" / "trials.csv"))


def reject(folder: Path, condition: Condition, rounds: int) -> Trial:
    """Write a review of all trials that rejects one, name it in the study, and return the trial."""
    trials = trials_of(folder)
    rejected = next(trial for trial in trials if trial.condition is condition)
    rows = (
        replace(item, decision=Decision("reject" if item.item_id == rejected.trial_id else ""))
        for item in undecided_items(trials, "Ann")
    )
    write_review(folder / f"{rounds}.csv", rows)
    review_with(folder, [f"{number}.csv" for number in range(1, rounds + 1)])
    return rejected


@pytest.mark.slow
@pytest.mark.parametrize(
    "conditions",
    [
        (Condition.NATURAL_CONTROVERSIAL, Condition.RANDOM_NATURAL),
        pytest.param(
            (Condition.SYNTHETIC_SYNTHETIC, Condition.NATURAL_CONTROVERSIAL, Condition.CATCH),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_only_uses_of_rejected_items_change(study: Path, conditions: tuple[Condition, ...]) -> None:
    """Witness: the tables before and after, trial by trial, over two and three rounds."""
    # Enough to choose from besides those whose sentences stand in random and catch trials
    change(study, ("per_pair = 4", "per_pair = 6"), ("min_count = 4", "min_count = 1"))
    run(study, last="design")
    for number, condition in enumerate(conditions, start=1):
        before, rejected = trials_of(study), reject(study, condition, number)
        gone = {rejected.trial_id, rejected.source_id} - {""}
        run(study, last="design")
        after = trials_of(study)
        assert len(after) == len(before)
        assert {t for t in before if not gone & {t.trial_id, t.source_id}} <= {*after}
        assert not gone & {name for t in after for name in (t.trial_id, t.source_id)}
        # Again, nothing changes any more
        run(study, first="design", last="design")
        assert trials_of(study) == after
