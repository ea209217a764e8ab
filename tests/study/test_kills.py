"""A study that is killed thirty times ends with the same files as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.study import small

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
