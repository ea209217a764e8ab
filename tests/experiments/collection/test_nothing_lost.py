"""Kill the server and cut the network while people answer; benchmarks/collecting.py does it longer.

The witness is each participant's own journal of what the server acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial
from contstim.testing.participants import RunSettings
from tests.experiments.collection.conftest import Serve
from tests.experiments.collection.outages import Outcome, acknowledged, under_cuts, under_kills
from tests.experiments.collection.servers import CollectProcess, export

GROUPS, TRIALS, PEOPLE = 3, 12, 12


@pytest.fixture
def people() -> ArtificialParticipants:
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
    return ArtificialParticipants(trials, np.linspace(-9, 9, len(trials)), 3.0, 0.1, 0)


def check(found: Outcome, outages: int) -> None:
    assert found.outages == outages
    assert found.acknowledged[-1] == found.rows == PEOPLE * TRIALS
    assert 0 < found.acknowledged[0] < found.rows
    assert (found.lost, found.duplicates) == (0, 0)


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_what_was_acknowledged_is_kept_once_whenever_the_server_is_killed(
    kills: int, people: ArtificialParticipants, tmp_path: Path
) -> None:
    server = CollectProcess(export(tmp_path / "study", people.trials), tmp_path / "study.sqlite")
    server.start()
    try:
        run = RunSettings(server.url, PEOPLE, at_once=PEOPLE, pause=0.1, patience=60)
        check(under_kills(server, people, run, kills, 1), kills)
    finally:
        server.stop()


def test_what_was_acknowledged_is_kept_once_whenever_the_network_is_cut(
    people: ArtificialParticipants, serve: Serve, tmp_path: Path
) -> None:
    served = serve(export(tmp_path / "study", people.trials))
    run = RunSettings("", PEOPLE, at_once=PEOPLE, pause=0.1, patience=60)
    check(under_cuts(served, people, run, 2, 1), 2)


def test_a_journal_that_claims_too_much_is_found_out(tmp_path: Path) -> None:
    """The comparison itself can fail: a line cut by a kill is no claim, a whole one is."""
    joined = '"joined": {"participant": "p1", "secret": "s", "group": "1", "seed": 3}'
    given = '{"trial_id": "t", "rating": 1, "left": 2, "position": 3, "rt_ms": 4}'
    journal = tmp_path / "j"
    journal.write_text(
        f'{{"run": {{}}}}\n{{"number": 1, {joined}}}\n{{"number": 1, "answer": {given}}}\n'
        '{"number": 1, "saved": ["t"]}\n{"number": 1, "saved": ["u"'
    )
    assert acknowledged(journal, 2) == {("p1", "t", 1, 2, 3)}
