"""The one writer: what it promises of the disk, and that requests do not harm one another."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from contstim.errors import StoreError
from contstim.experiments.collection.database import (
    APPLICATION_ID,
    TABLES,
    open_readable,
    server_lock,
)
from contstim.experiments.collection.exports import collected_responses
from contstim.experiments.collection.participants import AdmissionPolicy
from contstim.experiments.collection.recorder import Recorder

NOTE = "INSERT INTO study VALUES (?, 'x')"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with closing(Recorder(tmp_path / "a.sqlite", "f")) as recorder:
        yield recorder


def test_a_commit_reaches_the_disk_before_it_is_acknowledged(recorder: Recorder) -> None:
    """SQLite's manual: in WAL mode FULL (2) syncs the log at each commit, NORMAL does not."""

    def pragmas(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert asyncio.run(recorder.run(pragmas)) == ["wal", 2, 1]


def test_a_request_that_fails_is_undone_and_its_neighbours_are_kept(recorder: Recorder) -> None:
    async def together() -> list[object]:
        def work(connection: sqlite3.Connection, name: str) -> str:
            connection.execute(NOTE, (name,))
            if name == "bad":
                raise KeyError(name)
            return name

        jobs = [recorder.run(partial(work, name=name)) for name in ("one", "bad", "two")]
        return list(await asyncio.gather(*jobs, return_exceptions=True))

    one, bad, two = asyncio.run(together())
    assert (one, two) == ("one", "two")
    assert isinstance(bad, KeyError)
    with closing(open_readable(recorder.path)) as connection:
        kept = {row[0] for row in connection.execute("SELECT name FROM study")}
    assert kept == {"fingerprint", "salt", "secret", "one", "two"}


def test_a_database_keeps_its_keys(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        with closing(Recorder(tmp_path / "a.sqlite", "f")) as recorder:
            keys.append(recorder.keys)
    with closing(Recorder(tmp_path / "b.sqlite", "f")) as recorder:
        assert recorder.keys.secret != keys[0].secret
        assert recorder.keys.salt != keys[0].salt
    assert keys[0] == keys[1]
    assert keys[0].opens("p1", keys[1].participant_secret("p1"))
    assert not keys[0].opens("p2", keys[0].participant_secret("p1"))


def test_a_database_from_before_the_mark_is_read_and_goes_on(tmp_path: Path) -> None:
    """Such a database, made by hand: layout 1 had the same tables without `simulated`."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as old:
        for statement in TABLES:
            old.execute(re.sub(r",\s+simulated INTEGER NOT NULL DEFAULT 0", "", statement))
        assert "simulated" not in str(old.execute("SELECT sql FROM sqlite_schema").fetchall())
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
        values = [("secret", "00"), ("salt", "11"), ("fingerprint", "f")]
        old.executemany("INSERT INTO study VALUES (?, ?)", values)
        old.execute("INSERT INTO participant VALUES (1, 'p1', '1', 7, 0, 0, NULL)")
        old.execute("INSERT INTO response VALUES (1, 't', 4, 1, 1, NULL, 0)")
        old.commit()
    before = collected_responses(path)
    assert [one.simulated for one in before] == [False]
    with closing(Recorder(path, "f")) as recorder:
        join = partial(
            AdmissionPolicy(("1",)).join, group=None, identity=None, now=1.0, simulated=True
        )
        asyncio.run(recorder.run(join))
        with closing(open_readable(path)) as connection:
            marks = connection.execute("SELECT simulated FROM participant").fetchall()
    assert [mark[0] for mark in marks] == [0, 1]
    assert repr(collected_responses(path)) == repr(before)


def test_one_server_at_a_time_has_the_lock_of_a_database(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    with server_lock(database, "http://a/"):
        for _ in range(2):
            with (
                pytest.raises(StoreError, match=r"in use: the server at http://a/ \(process \d+\)"),
                server_lock(database, "http://b/"),
            ):
                pytest.fail("two servers have one database")
    with server_lock(database, "http://b/"), server_lock(tmp_path / "b.sqlite", "http://c/"):
        assert "http://b/" in Path(f"{database}.lock").read_text()
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match="Cannot use the lock"),
        server_lock(tmp_path / "file" / "a.sqlite", "http://a/"),
    ):
        pytest.fail("there is no such folder")


def test_a_snapshot_does_not_move_while_the_server_writes(recorder: Recorder) -> None:
    with closing(open_readable(recorder.path)) as connection:
        before = connection.execute("SELECT count(*) FROM study").fetchone()[0]
        asyncio.run(recorder.run(lambda c: c.execute(NOTE, ("later",)).rowcount))
        assert connection.execute("SELECT count(*) FROM study").fetchone()[0] == before
