"""Servers that are killed and networks that are cut, while participants answer.

What participants were told is saved, by their own journals, is then compared with the database.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.testing.participants import Journal, RunSettings, take_part
from tests.experiments.collection.conftest import Served
from tests.experiments.collection.servers import CollectProcess


@dataclass(frozen=True)
class Outcome:
    """What an outage did.

    Attributes:
        outages: how many there were while participants answered.
        acknowledged: answers that participants were told are saved, at each outage and in the end.
        lost: of these, how many the database lacks or holds otherwise.
        duplicates: answers beyond the first of a participant to a trial.
        rows: answers in the database in the end.
    """

    outages: int
    acknowledged: tuple[int, ...]
    lost: int
    duplicates: int
    rows: int


def under_kills(
    server: CollectProcess,
    people: ArtificialParticipants,
    run: RunSettings,
    kills: int,
    seed: int,
) -> Outcome:
    """Kill the server at random moments; start it again at once."""
    chance = random.Random(seed)

    def outage() -> None:
        time.sleep(chance.uniform(0.05, 0.8))
        server.stop()
        time.sleep(chance.uniform(0.0, 0.2))
        server.start()
        server.wait_until_it_answers()

    return _under(outage, server, people, run, kills)


def under_cuts(
    server: CollectProcess | Served,
    people: ArtificialParticipants,
    run: RunSettings,
    cuts: int,
    seed: int,
) -> Outcome:
    """Cut all connections at random moments, every other time after swallowing answers."""
    chance = random.Random(seed)
    with Wire(server.port) as wire:

        def outage() -> None:
            time.sleep(chance.uniform(0.05, 0.6))
            wire.cut(swallow=chance.random() < 0.5, seconds=chance.uniform(0.05, 0.3))

        through = RunSettings(
            f"http://127.0.0.1:{wire.port}",
            run.participants,
            run.at_once,
            run.pause,
            run.patience,
        )
        return _under(outage, server, people, through, cuts)


def _under(
    outage: Callable[[], None],
    server: CollectProcess | Served,
    people: ArtificialParticipants,
    run: RunSettings,
    times: int,
) -> Outcome:
    journal = server.database.with_suffix(".journal")
    failures: list[BaseException] = []

    def answer() -> None:
        try:
            take_part(people, run, journal)
        except BaseException as error:
            failures.append(error)

    answering = Thread(target=answer)
    answering.start()
    counts: list[int] = []
    lost = done = 0
    while done < times and _under_way(answering, journal, run, counts[-1] if counts else 0):
        outage()
        done += answering.is_alive()
        told = acknowledged(journal, run.participants)
        counts.append(len(told))
        lost += len(told - held(server.database))
    answering.join()
    if failures:
        raise failures[0]
    told = acknowledged(journal, run.participants)
    rows, distinct = _counts(server.database)
    final = lost + len(told - held(server.database))
    return Outcome(done, (*counts, len(told)), final, rows - distinct, rows)


def _under_way(answering: Thread, journal: Path, run: RunSettings, before: int) -> bool:
    """Wait until participants are told again that something is saved; False if they are done."""
    while answering.is_alive() and len(acknowledged(journal, run.participants)) <= before:
        time.sleep(0.02)
    return answering.is_alive()


def acknowledged(path: Path, participants: int) -> set[tuple[str, str, int, int, int]]:
    """What participants were told is saved: participant, trial, rating, left, position."""
    if not path.exists():
        return set()
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    run = json.loads(copy.read_text().partition("\n")[0] or '{"run": {}}')["run"]
    journal = Journal(copy, run)
    try:
        return {
            (own.joined["participant"], trial, one["rating"], one["left"], one["position"])
            for own in map(journal.copy, range(1, participants + 1))
            if own.joined is not None
            for trial in own.saved
            for one in [own.answers[trial]]
        }
    finally:
        journal.close()


_HELD = """SELECT participant, trial_id, rating, left_sentence, position
    FROM response JOIN participant USING (number)"""


def held(database: Path) -> set[tuple[str, str, int, int, int]]:
    """What the database holds, in the same form."""
    connection = sqlite3.connect(database)
    try:
        return set(connection.execute(_HELD).fetchall())
    finally:
        connection.close()


def _counts(database: Path) -> tuple[int, int]:
    connection = sqlite3.connect(database)
    try:
        rows = connection.execute(_HELD).fetchall()
        return len(rows), len({row[:2] for row in rows})
    finally:
        connection.close()


class Wire:
    """A network between participants and server, which can be cut."""

    def __init__(self, port: int) -> None:
        self._server_port, self.port = port, 0
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._dead = self._swallowing = False
        self._ready = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Wire:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def cut(self, *, swallow: bool, seconds: float) -> None:
        """Break every connection and refuse new ones for a while.

        Args:
            swallow: first let requests through, but none of the answers.
            seconds: how long each of the two lasts.
        """
        if swallow:
            self._swallowing = True
            time.sleep(seconds)
        self._dead = True
        self._loop.call_soon_threadsafe(self._abort)
        time.sleep(seconds)
        self._swallowing = self._dead = False

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        self._abort()
        server.close()
        await asyncio.sleep(0.05)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._dead:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        both = {writer, far_writer}
        self._writers |= both
        await asyncio.gather(
            self._pass(reader, far_writer, answers=False),
            self._pass(far_reader, writer, answers=True),
        )
        self._writers -= both

    async def _pass(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        try:
            while part := await source.read(65536):
                if not (answers and self._swallowing):
                    to.write(part)
                    await to.drain()
        except OSError:
            pass
        finally:
            to.close()
