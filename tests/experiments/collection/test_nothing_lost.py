"""Kill the server while people answer.

The witness is each participant's own journal of what the server acknowledged, and what they sent.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from contstim.testing.participants import RunSettings
from tests.experiments.collection.outages import Outcome, under_kills
from tests.experiments.collection.servers import CollectProcess
from tests.experiments.collection.watched import WatchedParticipants, export_watched, faults, known
from tests.experiments.stimuli import new_trial

GROUPS, TRIALS, PEOPLE, KILLS = 3, 12, 12, 5


def people(scale: Scale) -> ArtificialParticipants:
    trials = tuple(
        new_trial(f"{g}-{n:02}", g, f"A {g} {n}.", f"B {g} {n}.")
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


@pytest.mark.slow
@pytest.mark.parametrize("scale", Scale)
def test_what_was_acknowledged_is_kept_once_whenever_the_server_is_killed(
    scale: Scale, tmp_path: Path
) -> None:
    """All that a page tells of them is kept as they sent it, and nothing of whoever withdrew."""
    asked, begun = people(scale), time.time()
    study = export_watched(tmp_path / "study", asked.trials)
    server = CollectProcess(study, tmp_path / "study.sqlite")
    server.start()
    try:
        run = RunSettings(server.url, PEOPLE, PEOPLE, pause=0.2, patience=60, fields_of=known)
        found = under_kills(server, asked, run, KILLS, 3)
    finally:
        server.stop()
    check(found, KILLS)
    assert found.withdrawn >= 1
    assert faults(server.database, asked, run, tmp_path / "study.journal", begun) == []
