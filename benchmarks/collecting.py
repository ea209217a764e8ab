"""How fast `contstim collect` saves, and whether it loses anything.

    python benchmarks/collecting.py [--quick] [--participants 200] [--seconds 30] [--outages 20]

Load: participants answer over kept-open connections, first one answer a second each at random
times, then each as soon as the last answer is saved; a save is timed from before the request is
written until its acknowledgement is read. Outages: 50 participants answer while the server is
killed (SIGKILL), then while the network between is cut, at random moments; what they were told is
saved is compared with the database. Server, participants and network share this machine.
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
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from contstim.sentence import Sentence

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.stimuli import Condition, Kind, Trial
from contstim.testing.participants import RunSettings
from tests.experiments.collection.outages import Outcome, under_cuts, under_kills
from tests.experiments.collection.servers import CollectProcess, answer, export

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
    joined = await connection.post("participants", {"group": None, "platform": None})
    own = [trial.trial_id for trial in design() if str(trial.group) == joined["group"]]
    place = 0
    while perf_counter() < until:
        await asyncio.sleep(random.uniform(0, 2 * pause))
        sent = [answer(own[place % len(own)], position=place % len(own) + 1)]
        body = {"participant": joined["participant"], "responses": sent}
        await connection.post("responses", body, joined["secret"])
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
        f"{found.rows:,} in the database; lost {found.lost}, duplicates {found.duplicates}"
    )
    if found.lost or found.duplicates:
        raise SystemExit("something was lost")


def measure_load(folder: Path, participants: int, seconds: float) -> None:
    print(f"{participants} participants at once, {os.cpu_count()} processors")
    print(f"other work on this machine: load {os.getloadavg()[0]:.1f} over the last minute")
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
    people = ArtificialParticipants(trials, differences, 5.0, 0.02, seed)
    print(f"{participants} participants at once")
    for name, outage in (("kills of the server", under_kills), ("cuts of the network", under_cuts)):
        server = CollectProcess(folder, folder.parent / f"{outage.__name__}.sqlite")
        server.start()
        visit = RunSettings(server.url, participants, participants, pause=0.025 * outages)
        report_outage(name, outage(server, people, visit, outages, seed))
        server.stop(signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--participants", type=int, default=200, help="under load")
    parser.add_argument("--seconds", type=float, default=30, help="of load")
    parser.add_argument("--outages", type=int, default=20, help="kills, and as many cuts; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.quick:
        options.participants, options.seconds, options.outages = 40, 2.0, 2
    random.seed(options.seed)
    trials = design()
    with tempfile.TemporaryDirectory() as place:
        folder = export(Path(place) / "experiment", trials)
        measure_load(folder, options.participants, options.seconds)
        if options.outages:
            people = 10 if options.quick else 50
            measure_outages(folder, trials, people, options.outages, options.seed)


if __name__ == "__main__":
    main()
