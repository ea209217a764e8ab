"""The one writer: what it promises of the disk, and that requests do not harm one another."""

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


def test_a_commit_reaches_the_disk_before_it_is_acknowledged(recorder: Recorder) -> None:
    """SQLite's manual: in WAL mode FULL (2) syncs the log at each commit, NORMAL does not."""

    def pragmas(connection: sqlite3.Connection) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert asyncio.run(recorder.run(pragmas)) == ["wal", 2, 1]


def test_each_commit_changes_the_file_itself(recorder: Recorder) -> None:
    """A study that names the file as data compares its checksum."""

    def note(connection: sqlite3.Connection, name: str) -> None:
        connection.execute(NOTE, (name,))

    contents = [recorder.path.read_bytes()]
    for name in ("one", "two", "three"):
        asyncio.run(recorder.run(note, name=name))
        contents.append(recorder.path.read_bytes())
    assert len({*contents}) == 4


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
    assert kept == {"fingerprint", "salt", "secret", "server", "one", "two"}
