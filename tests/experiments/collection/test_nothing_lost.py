"""Kill the server and cut the network while people answer.

The witness is each participant's own journal of what the server acknowledged, and what they sent.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.collection.withdrawal import withdraw
from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.items.scale import Scale
from contstim.items.stimuli import Condition, Kind, Trial, on_scale
from contstim.testing.participants import RunSettings, take_part
from contstim.words.sentence import Sentence
from tests.experiments.collection.conftest import Serve
from tests.experiments.collection.outages import Outcome, acknowledged, under_cuts, under_kills
from tests.experiments.collection.servers import CollectProcess
from tests.experiments.collection.watched import (
    WatchedParticipants,
    export_watched,
    faults,
    known,
)

GROUPS, TRIALS, PEOPLE = 3, 12, 12


def people(scale: Scale) -> ArtificialParticipants:
    trials = tuple(
        Trial(
            f"{g}-{n:02}",
            g,
            Condition.RANDOM_NATURAL,
            "",
            "",
            Sentence.parse(f"A {g} {n}."),
            Sentence.parse(f"B {g} {n}."),
            Kind.NATURAL,
            Kind.NATURAL,
            "",
        )
        for g in range(1, GROUPS + 1)
        for n in range(TRIALS)
    )
    differences = np.linspace(-9, 9, len(trials))
    return WatchedParticipants(tuple(on_scale(trials, scale)), differences, 3.0, 0.1, 0)


def check(found: Outcome, outages: int) -> None:
    assert found.outages == outages
    assert found.acknowledged[-1] == found.rows == PEOPLE * TRIALS
    assert any(0 < told < found.rows for told in found.acknowledged)
    assert (found.lost, found.duplicates, found.traces) == (0, 0, ())


@pytest.mark.parametrize(
    ("scale", "kills"),
    [(Scale.SLIDER, 2), *(pytest.param(each, 5, marks=pytest.mark.slow) for each in Scale)],
)
def test_what_was_acknowledged_is_kept_once_whenever_the_server_is_killed(
    scale: Scale, kills: int, tmp_path: Path
) -> None:
    """All that a page tells of them is kept as they sent it, and nothing of whoever withdrew."""
    asked, begun = people(scale), time.time()
    study = export_watched(tmp_path / "study", asked.trials)
    server = CollectProcess(study, tmp_path / "study.sqlite")
    server.start()
    try:
        run = RunSettings(server.url, PEOPLE, PEOPLE, pause=0.2, patience=60, known=known)
        found = under_kills(server, asked, run, kills, 3)
    finally:
        server.stop()
    check(found, kills)
    assert found.withdrawn >= 1
    assert faults(server.database, asked, run, tmp_path / "study.journal", begun) == []


def test_what_was_acknowledged_is_kept_once_whenever_the_network_is_cut(
    serve: Serve, tmp_path: Path
) -> None:
    asked, begun = people(Scale.CONFIDENCE), 1_000_000.0
    served = serve(export_watched(tmp_path / "study", asked.trials))
    run = RunSettings("", PEOPLE, at_once=PEOPLE, pause=0.1, patience=60, known=known)
    check(under_cuts(served, asked, run, 2, 1), 2)
    assert faults(served.database, asked, run, tmp_path / "answers.journal", begun) == []


DAMAGES = {
    "responses": "UPDATE response SET away_ms = away_ms + 1 WHERE number = 1 AND position = 2",
    "times of arrival": "UPDATE response SET received = 3 WHERE number = 2 AND position = 1",
    "participants": "INSERT INTO participant SELECT 9, 'x', study_group, seed, joined, seen, "
    "completed, simulated, device, viewport, 0, 0, '{}' FROM participant WHERE number = 1",
    "second_tabs wrong": "UPDATE participant SET second_tabs = 7 WHERE number = 1",
    "code, state wrong": "UPDATE participant SET completed = NULL WHERE number = 2",
    "sona_id_plain wrong": "DELETE FROM identity WHERE number = 1",
    "answers to questions": "UPDATE participant SET questions = '{}' WHERE number = 2",
}


@pytest.mark.parametrize("found", DAMAGES)
def test_what_is_kept_otherwise_is_found_out(found: str, serve: Serve, tmp_path: Path) -> None:
    """The comparison itself can fail."""
    asked, journal = people(Scale.CHOICE), tmp_path / "journal"
    served = serve(export_watched(tmp_path / "study", asked.trials))
    run = RunSettings(f"http://127.0.0.1:{served.port}", 2, known=known)
    take_part(asked, run, journal)
    assert faults(served.database, asked, run, journal, 1_000_000) == []
    with closing(sqlite3.connect(served.database)) as connection:
        connection.execute(DAMAGES[found])
        connection.commit()
    told = faults(served.database, asked, run, journal, 1_000_000)
    assert any(found in each for each in told), told


def test_a_journal_that_claims_too_much_is_found_out(tmp_path: Path) -> None:
    """The comparison itself can fail: a line cut by a kill is no claim, a whole one is."""
    asked, journal = people(Scale.CONFIDENCE), tmp_path / "j"
    joined = '"joined": {"participant": "p1", "secret": "s", "group": "1", "seed": 3}'
    journal.write_text(
        f'{{"run": {{}}}}\n{{"number": 1, {joined}}}\n'
        '{"number": 1, "saved": ["1-03"]}\n{"number": 1, "saved": ["1-04"'
    )
    (claim,) = acknowledged(journal, asked, RunSettings("", 2))
    assert claim[:2] == ("p1", "1-03")


def test_traces_of_who_withdrew_are_found_out(serve: Serve, tmp_path: Path) -> None:
    """A name stands in the files as long as nobody withdraws it."""
    served = serve()
    name = served.join()["participant"]
    files = [*tmp_path.glob(f"{served.database.name}*")]
    assert any(name.encode() in file.read_bytes() for file in files)
    withdraw(served.database, name, "2026-11-28")
    assert not any(name.encode() in file.read_bytes() for file in files)
