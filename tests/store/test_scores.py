from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import StoreError
from contstim.store import Store


def test_keeps_scores_by_fingerprint_and_sentence(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    texts = [f"sentence {i}." for i in range(1_200)]
    scores = -np.arange(1_200) / 7
    scores[3] = -np.inf
    with Store(path) as store:
        store.save("model-a", "{}", texts, scores)
    with Store(path) as store:
        np.testing.assert_array_equal(store.log_probs("model-a", texts[::-1]), scores[::-1])
        assert np.isnan(store.log_probs("model-b", texts)).all()
        assert np.isnan(store.log_probs("model-a", ["unseen."])).all()


@pytest.mark.parametrize("exists", [False, True])
def test_work_that_fails_before_its_first_result_leaves_no_store(
    tmp_path: Path, exists: bool
) -> None:
    path = tmp_path / "new" / "study.sqlite"
    if exists:
        Store(path).close()
    with pytest.raises(ValueError, match="refused"), Store(path):
        raise ValueError("refused")
    assert path.exists() == path.parent.exists() == exists
    with suppress(ValueError), Store(path) as store:
        store.save("model-a", "{}", ["One two."], np.array([-1.0]))
        raise ValueError("late")
    with Store(path) as store:
        assert store.log_probs("model-a", ["One two."]) == [-1.0]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    code = f"from contstim.store import Store; Store({str(path)!r})"
    Store(path).close()
    with Store(path):
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "StoreError" in other.stderr
    assert "in use by another process" in other.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database at all, but long enough to be read as one" * 50)
    with pytest.raises(StoreError, match="not a readable study store"):
        Store(damaged)
    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE other (x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store(foreign)
    assert foreign.read_bytes() == before


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    Store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        Store(path)
