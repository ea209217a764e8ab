"""A server continues with the lists of a later wave and keeps the responses of all waves."""

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from contstim.errors import StoreError
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.service import read_study
from contstim.experiments.design.artificial import ArtificialParticipants
from contstim.experiments.design.waves import read_waves
from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Triplet, read_trials
from contstim.steps.waves import DesignWaves
from contstim.testing.participants import RunSettings
from tests.experiments.collection.conftest import Serve, Served
from tests.experiments.collection.outages import run_with_kills
from tests.experiments.collection.servers import CollectProcess, export, small_study
from tests.experiments.stimuli import natural, some_triplets
from tests.steps.records import record_of

WAVES, PEOPLE, TRIALS, MODELS = 3, 17, 6, ("a", "b", "c")


def is_full(served: Served) -> bool:
    status, reply = (served.http.post(f"/api/{name}", json={}) for name in ("open", "participants"))
    return not status.json()["open"] and reply.status_code == 403 and reply.json()["full"]


def test_running_server_reads_and_fills_added_groups(serve: Serve, tmp_path: Path) -> None:
    folder = small_study(tmp_path / "study", groups=2)
    served = serve(folder, per_group=1)
    assert [served.join()["group"] for _ in range(2)] == ["1", "2"]
    assert is_full(served)
    small_study(folder, groups=3)
    joined = served.join()
    assert joined["group"] == "3"
    groups = served.http.get("/study.json").json()["groups"]
    assert joined["group"] in groups
    assert is_full(served)


def test_running_server_ignores_changed_trials(serve: Serve, tmp_path: Path) -> None:
    served = serve(small_study(tmp_path / "study", groups=2), per_group=1)
    small_study(tmp_path / "study", groups=3, trials=5)
    assert [served.join()["group"] for _ in range(2)] == ["1", "2"]
    assert is_full(served)


def test_database_accepts_only_added_groups(tmp_path: Path) -> None:
    def start(groups: int, trials: int = 4) -> None:
        study = read_study(small_study(tmp_path / "study", groups=groups, trials=trials))
        Recorder(tmp_path / "x.sqlite", study.fingerprint, extends=study.extends).close()

    start(2)
    start(3)
    for groups, trials in ((2, 4), (4, 3)):
        with pytest.raises(StoreError, match="another study"):
            start(groups, trials)


@pytest.mark.slow
def test_three_waves_of_participants_survive_kills(tmp_path: Path) -> None:
    write_table(tmp_path / "triplets.csv", columns_of(Triplet, some_triplets(120, MODELS)))
    text = "\n".join(sentence.text for sentence in natural(40))
    (tmp_path / "natural.txt").write_text(text, encoding="utf-8")
    out, database = tmp_path / "trials.csv", tmp_path / "study.sqlite"
    server = CollectProcess(tmp_path / "study", database)

    def run() -> None:
        files: dict[str, object] = {"out": out, "triplets": tmp_path / "triplets.csv"}
        files |= {"sentences": tmp_path / "natural.txt", "platform": "collected"}
        rules = {"people_per_wave": PEOPLE, "trials_per_person": TRIALS, "max_people": 50}
        data = (database,) if database.exists() else ()
        DesignWaves.of({**files, **rules, "data": data}).run()

    lost = duplicates = 0
    for wave in range(1, WAVES + 1):
        run()
        waves = read_waves(Path(f"{out}.waves.csv"))
        assert len(waves) == wave
        trials = read_trials(out)
        export(tmp_path / "study", trials)
        # They choose at random, so that no model is dropped
        participants = ArtificialParticipants(trials, np.zeros(len(trials)), 1.0, 0.0, wave)
        # Each wave has new participants, hence a new journal
        server.database.with_suffix(".journal").unlink(missing_ok=True)
        server.start()
        try:
            settings = RunSettings(server.url, waves[-1].people, PEOPLE, pause=0.02, patience=60)
            outcome = run_with_kills(server, participants, settings, 2, wave, withdrawals=0)
        finally:
            server.stop()
        lost, duplicates = lost + outcome.lost, duplicates + outcome.duplicates
    run()
    record = record_of(out)
    assert (lost, duplicates, record["finished"]) == (0, 0, 50)
    items_by_group = defaultdict(set)
    for trial in read_trials(out):
        if trial.model_1:
            items_by_group[trial.group].add(trial.source_id)
    items = [item for group in items_by_group.values() for item in group]
    assert len(items) == len({*items}) == 50 * TRIALS
    assert all(
        a.last_list < b.first_list for a, b in pairwise(read_waves(Path(f"{out}.waves.csv")))
    )
