"""The database writer: durable commits and independent requests."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from contstim.experiments.collection.database import Recorder, open_readable

NOTE = "INSERT INTO study VALUES (?, 'x')"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with closing(Recorder(tmp_path / "a.sqlite", "f")) as recorder:
        yield recorder


def test_commits_are_synced_to_the_disk(recorder: Recorder) -> None:
    """Per SQLite's manual, in WAL mode FULL (2) syncs the log at each commit; NORMAL does not."""

    def read_pragmas(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert asyncio.run(recorder.run(read_pragmas)) == ["wal", 2, 1]


def test_each_commit_changes_the_database_file(recorder: Recorder) -> None:
    """A study that uses the file as data compares its checksum."""

    def insert_note(connection: sqlite3.Connection, name: str) -> None:
        connection.execute(NOTE, (name,))

    contents = [recorder.path.read_bytes()]
    for name in ("one", "two", "three"):
        asyncio.run(recorder.run(insert_note, name=name))
        contents.append(recorder.path.read_bytes())
    assert len({*contents}) == 4


def test_failed_request_is_rolled_back_alone(recorder: Recorder) -> None:
    async def run_jobs() -> list[object]:
        def insert_note(connection: sqlite3.Connection, name: str) -> str:
            connection.execute(NOTE, (name,))
            if name == "bad":
                raise KeyError(name)
            return name

        jobs = [recorder.run(partial(insert_note, name=name)) for name in ("one", "bad", "two")]
        return list(await asyncio.gather(*jobs, return_exceptions=True))

    first, error, second = asyncio.run(run_jobs())
    assert (first, second) == ("one", "two")
    assert isinstance(error, KeyError)
    with closing(open_readable(recorder.path)) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM study")}
    assert names == {"fingerprint", "salt", "secret", "server", "one", "two"}
