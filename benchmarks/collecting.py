"""How fast `contstim collect` saves, and whether it loses anything.

    python benchmarks/collecting.py [--quick] [--participants 200] [--seconds 30] [--outages 25]

For each scale a study with questions, breaks and a deadline. Load: participants answer over
kept-open connections, first one answer a second each at random times, then each as soon as the last
answer is saved; a save is timed from before the request is written until its acknowledgement is
read. Outages: as many participants answer at once while the server is killed (SIGKILL), then while
the network between is cut, at random moments; what they were told is saved is compared with the
database at each outage, and in the end everything that they sent with everything that is kept of
them. Before every third kill somebody takes part and withdraws, whose name, ID and words must stand
in no file of the database. Server, participants and network share this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from contstim.items.scale import Scale
from contstim.words.sentence import Sentence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contstim.items.stimuli import Condition, Kind, Trial, on_scale
from contstim.testing.participants import RunSettings
from tests.experiments.collection.outages import Outcome, under_cuts, under_kills
from tests.experiments.collection.servers import CollectProcess, answer
from tests.experiments.collection.watched import (
    WatchedParticipants,
    export_watched,
    faults,
    known,
)

GROUPS, TRIALS = 10, 60


def design() -> tuple[Trial, ...]:
    return tuple(
        Trial(
            f"random-{group}-{n:03}",
            group,
            Condition.RANDOM_NATURAL,
            *(
                "",
                "",
                Sentence.parse(f"The first of {group} and {n}."),
                Sentence.parse(f"The second of {group} and {n}."),
            ),
            *(Kind.NATURAL, Kind.NATURAL, ""),
        )
        for group in range(1, GROUPS + 1)
        for n in range(TRIALS)
    )


class Connection:
    """One participant's kept-open connection, with as little work in between as possible."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def post(self, path: str, body: object, secret: str = "") -> dict[str, Any]:
        content = json.dumps(body).encode()
        head = (
            f"POST /api/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {secret}\r\n\r\n"
        )
        if not hasattr(self, "_reader"):
            opened = await asyncio.open_connection("127.0.0.1", self._port)
            self._reader, self._writer = opened
        started = perf_counter()
        self._writer.write(head.encode() + content)
        answered = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = int(answered.lower().partition("content-length:")[2].partition("\r\n")[0])
        found: dict[str, Any] = json.loads(await self._reader.readexactly(length))
        self.seconds = perf_counter() - started
        if answered.startswith("HTTP/1.1 429"):  # faster than the server lets one address be
            await asyncio.sleep(1)
            return await self.post(path, body, secret)
        if not answered.startswith("HTTP/1.1 20"):
            raise RuntimeError(f"{answered} {found}")
        return found

    def close(self) -> None:
        self._writer.close()


async def participate(port: int, pause: float, until: float, times: list[float]) -> None:
    connection = Connection(port)
    joined = await connection.post("participants", {"device": "phone", "viewport": "390x844"})
    told = {"participant": joined["participant"], "questions": known(1)["questions"]}
    own = [trial.trial_id for trial in design() if str(trial.group) == joined["group"]]
    place = 0
    while perf_counter() < until:
        await asyncio.sleep(random.uniform(0, 2 * pause))
        how = {"rating": 1, "input": "key", "blurs": place % 3, "away_ms": 12.5}
        sent = [answer(own[place % len(own)], position=place % len(own) + 1, **how)]
        await connection.post("responses", {**told, "responses": sent}, joined["secret"])
        times.append(connection.seconds)
        place += 1
    connection.close()


async def load(port: int, participants: int, pause: float, seconds: float) -> list[float]:
    times: list[float] = []
    until = perf_counter() + seconds
    await asyncio.gather(*(participate(port, pause, until, times) for _ in range(participants)))
    return times


def report_load(name: str, times: list[float], seconds: float) -> None:
    p50, p99, worst = 1000 * np.quantile(times, [0.5, 0.99, 1])
    print(
        f"  {name:28} {len(times):7,} saves, {len(times) / seconds:7,.0f}/s; a save takes "
        f"p50 {p50:6.1f} ms, p99 {p99:6.1f} ms, longest {worst:6.1f} ms"
    )


def report_outage(name: str, found: Outcome) -> None:
    print(
        f"  {name:28} {found.outages:3} while answering; {found.acknowledged[-1]:,} acknowledged, "
        f"{found.rows:,} in the database; lost {found.lost}, duplicates {found.duplicates}; "
        f"{found.withdrawn} withdrew, traces {len(found.traces)}"
    )
    if found.lost or found.duplicates or found.traces:
        raise SystemExit("something was lost, doubled, or left of somebody who withdrew")


def measure_load(folder: Path, participants: int, seconds: float) -> None:
    for name, pause in (("one answer a second each", 1.0), ("as fast as acknowledged", 0.0)):
        server = CollectProcess(folder, folder.parent / f"load-{pause}.sqlite")
        server.start()
        times = asyncio.run(load(server.port, participants, pause, seconds))
        server.stop(signal.SIGTERM)
        report_load(name, times, seconds)


def measure_outages(
    folder: Path, trials: tuple[Trial, ...], participants: int, outages: int, seed: int
) -> None:
    differences = np.random.default_rng(seed).normal(0, 10, len(trials))
    people = WatchedParticipants(trials, differences, 5.0, 0.02, seed)
    for name, outage in (("kills of the server", under_kills), ("cuts of the network", under_cuts)):
        server = CollectProcess(folder, folder.parent / f"{outage.__name__}.sqlite")
        server.start()
        pause, begun = 0.025 * outages, time.time()
        visit = RunSettings(server.url, participants, participants, pause=pause, known=known)
        report_outage(name, outage(server, people, visit, outages, seed))
        server.stop(signal.SIGTERM)
        journal = server.database.with_suffix(".journal")
        if wrong := faults(server.database, people, visit, journal, begun):
            raise SystemExit("\n".join(wrong[:10]))
        print(f"  {'':28} {participants} sessions complete; every column as it was sent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--participants", type=int, default=200, help="under load")
    parser.add_argument("--seconds", type=float, default=30, help="of load")
    parser.add_argument("--outages", type=int, default=25, help="kills, and as many cuts; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        options.participants, options.seconds, options.outages = 40, 2.0, 2
    random.seed(options.seed)
    print(f"{options.participants} participants at once, {os.cpu_count()} processors")
    print(f"other work on this machine: load {os.getloadavg()[0]:.1f} over the last minute")
    for scale in list(Scale)[: 1 if options.quick else None]:
        print(scale)
        trials = tuple(on_scale(design(), scale))
        with tempfile.TemporaryDirectory() as place:
            folder = export_watched(Path(place) / "experiment", trials)
            measure_load(folder, options.participants, options.seconds)
            if options.outages:
                measure_outages(folder, trials, options.participants, options.outages, options.seed)


if __name__ == "__main__":
    main()
