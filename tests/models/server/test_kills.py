"""Ten thousand sentences, while client and server are killed: none is lost, none scored twice."""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from contstim.english import generate
from contstim.items.scores import ScoreTable
from contstim.models.checkpoints import Checkpoint
from contstim.words.sentence import Sentence
from tests.models.server.fakes import MODEL
from tests.models.server.hashed import HashedNetwork

ROOT = Path(__file__).parents[3]
N_SENTENCES = 10_000


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return int(listener.getsockname()[1])


def _stored(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as database:
            return int(database.execute("SELECT count(*) FROM score").fetchone()[0])
    except sqlite3.Error:  # not there yet
        return 0


@pytest.mark.slow
def test_ten_thousand_sentences_survive_kills_of_either_side(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    tokenizer, out = checkpoint.tokenizer, tmp_path / "scores.csv"
    store = tmp_path / "contstim.sqlite"
    several = generate(3 * N_SENTENCES, seed=3, words=6)
    sentences = [Sentence.parse(t) for t in dict.fromkeys(s.text for s in several)][:N_SENTENCES]
    assert len(sentences) == N_SENTENCES
    (tmp_path / "sentences.txt").write_text("".join(f"{s.text}\n" for s in sentences), "utf-8")
    port, chance = _free_port(), random.Random(1)
    server = [sys.executable, "-m", "tests.models.server.hashed", str(port)]
    server.append(f"{checkpoint.location}/tokenizer.json")
    address = f"http://127.0.0.1:{port}/v1#{MODEL}?tokenizer={checkpoint.location}&patience=60"
    client = [sys.executable, "-m", "contstim", "score", "--model", f"tiny=server:{address}"]
    client += ["--sentences", str(tmp_path / "sentences.txt"), "--out", str(out), "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def start(command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, stderr=subprocess.PIPE
        )

    kills = {"server": 0, "client": 0}
    serving, asking = start(server), None
    try:
        time.sleep(2)
        asking, deadline = start(client), time.monotonic() + 500
        # Each kill waits until the work has gone on for a while
        steps = sorted(chance.sample(range(50, N_SENTENCES - 500, 50), 10))
        while asking.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if steps and _stored(store) >= steps[0]:
                steps.pop(0)
                if len(steps) % 2:
                    os.kill(serving.pid, signal.SIGKILL)
                    serving.communicate()
                    kills["server"] += 1
                    serving = start(server)
                else:
                    os.kill(asking.pid, signal.SIGKILL)
                    asking.communicate()
                    kills["client"] += 1
                    asking = start(client)
        _, message = asking.communicate(timeout=10)
        assert asking.returncode == 0, message
    finally:
        for process in filter(None, (serving, asking)):
            process.kill()
            process.communicate()
    assert min(kills.values()) >= 2, kills
    network, beginning = HashedNetwork(len(tokenizer)), tokenizer.bos_token_id
    rows = tokenizer([s.text for s in sentences])["input_ids"]
    expected = [network.score([beginning, *row], 1) for row in rows]
    table = ScoreTable.read(out)
    assert table.sentences == tuple(sentences)
    np.testing.assert_allclose(table.log_probs[:, 0], expected, rtol=0, atol=1e-4)
    assert _stored(store) == N_SENTENCES
