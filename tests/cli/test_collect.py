"""`contstim collect` and `contstim simulate` as a user runs them."""

import json
import signal
import socket
import stat
from pathlib import Path

import httpx2
import pytest

from contstim.errors import StoreError
from contstim.experiments.collection.tables import collected_responses
from contstim.experiments.responses.table import read_responses
from contstim.files.tables import write_table
from contstim.items.stimuli import Condition, trial_columns
from contstim.testing.platform import read_csv_rows
from tests.cli.running import run, succeed
from tests.experiments.analysis.simulation import simulate
from tests.experiments.collection.servers import CollectProcess, export, small_study


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    made = simulate(groups=(1, 1), each=1, conditions=[Condition.RANDOM_NATURAL, Condition.CATCH])
    write_table(tmp_path / "trials.csv", trial_columns(made.trials))
    made.scores.write(tmp_path / "scores.csv")
    export(tmp_path / "study", made.trials)
    return tmp_path


WHO = "--trials trials.csv --scores scores.csv --model a --participants 3".split()


def test_a_study_is_rehearsed_from_server_to_download(planted: Path) -> None:
    server = CollectProcess(planted / "study", planted / "kept" / "answers.sqlite")
    server.start()
    try:
        succeed(planted, "simulate", *WHO, "--server", server.url, "--out", "sent.csv")
        header = {"Authorization": f"Bearer {server.token}"}
        given = httpx2.get(f"{server.url}/admin/responses.csv", headers=header, verify=False)
    finally:
        server.stop(signal.SIGINT)
    (planted / "responses.csv").write_bytes(given.content)
    sent, downloaded = (read_responses(planted / f"{n}.csv") for n in ("sent", "responses"))
    assert sorted(sent, key=repr) == sorted(downloaded, key=repr)
    assert len({one.participant for one in sent}) == 3
    assert all(one.simulated for one in downloaded)
    assert not (planted / "sent.csv.journal").exists()
    files = sorted(file.name for file in server.database.parent.iterdir())
    endings = ("", ".key", ".meta.json", ".token")
    assert files == [f"answers.sqlite{ending}" for ending in endings]
    database = str(server.database)
    kept = run(
        planted,
        "import",
        "collected",
        database,
        "--trials",
        "trials.csv",
        "--out",
        "k.csv",
        status=0,
    )
    assert "3 of 3 participants were simulated" in kept.stderr
    assert (planted / "k.csv").read_bytes() == given.content
    record = json.loads((planted / "sent.csv.meta.json").read_text())
    assert record["participants"] == 3
    assert record["noise_nats"] > 0
    for ending in endings:
        secret = Path(f"{server.database}{ending}")
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_without_a_server_responses_are_written_at_once(planted: Path) -> None:
    (planted / "responses.csv.journal").write_text("of a run with --server\n")
    done = run(planted, "simulate", *WHO, "--lapses", "0", "--out", "responses.csv", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert (planted / "responses.csv.journal").exists()
    rows = read_csv_rows(planted / "responses.csv")
    assert {row["participant"] for row in rows} == {f"simulated-{n}" for n in (1, 2, 3)}
    assert {row["simulated"] for row in rows} == {"true"}


def test_a_port_that_is_used_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    """The real command, against a port that this test holds."""
    small_study(tmp_path / "study")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        done = run(tmp_path, "collect", "study", "--port", port)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Cannot listen at 127.0.0.1, port {port}" in done.stderr
    assert "0 for any" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_a_second_server_does_not_share_a_database_and_follows_when_the_first_is_killed(
    tmp_path: Path,
) -> None:
    """Two real servers; the second names the database by another path, or after it was moved."""
    study, database = small_study(tmp_path / "study"), tmp_path / "kept" / "a.sqlite"
    first = CollectProcess(study, database)
    first.start()
    (tmp_path / "link").symlink_to(database.parent)
    second = ("collect", "study", "--database", "link/a.sqlite", "--port", "0")
    try:
        record = Path(f"{database}.meta.json").read_bytes()
        done = run(tmp_path, *second)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"a.sqlite is in use by the server at {first.url}/ (process " in done.stderr
        assert "Name another database" in done.stderr
        (tmp_path / "b.sqlite").hardlink_to(database)
        linked = run(tmp_path, "collect", "study", "--database", "b.sqlite", "--port", "0")
        assert (linked.returncode, linked.stdout) == (2, "")
        assert "b.sqlite has 2 names (hard links), and may be in use" in linked.stderr
        with pytest.raises(StoreError, match=r"b\.sqlite has 2 names"):
            collected_responses(tmp_path / "b.sqlite")  # a log of a.sqlite has the last answers
        assert collected_responses(database) == ()
        (tmp_path / "b.sqlite").unlink()
        database.rename(tmp_path / "b.sqlite")
        moved = run(tmp_path, "collect", "study", "--database", "b.sqlite", "--port", "0")
        assert (moved.returncode, moved.stdout) == (2, "")
        assert "b.sqlite is in use" in moved.stderr
        (tmp_path / "b.sqlite").rename(database)
        given = httpx2.get(
            f"{first.url}/admin/responses.csv",
            headers={"Authorization": f"Bearer {first.token}"},
            trust_env=False,
        )
        assert given.status_code == 200  # which reads the database and lets go of it
        done = run(tmp_path, *second)
        assert "a.sqlite is in use" in done.stderr
        assert Path(f"{database}.meta.json").read_bytes() == record
        assert httpx2.get(first.url, trust_env=False).status_code == 200
    finally:
        first.stop(signal.SIGKILL)
    first.start()
    first.stop(signal.SIGINT)


def test_mistakes_are_explained(planted: Path) -> None:
    small_study(planted / "good")
    small_study(planted / "elsewhere", save={"to": "datapipe"}, completion={"code": "C0DE"})
    small_study(planted / "leads", completion={"redirect": "javascript:alert(1)"})
    (planted / "empty").mkdir()
    (planted / "broken").mkdir()
    (planted / "broken" / "study.json").write_text('{"groups": {"one": []}}')
    for arguments, message in (
        (["collect", "empty"], "export jspsych"),
        (["collect", "broken"], "not the study of an exported experiment"),
        (["collect", "good", "--redirect", "javascript:alert(1)"], "not a web address"),
        (["collect", "good", "--redirect", "app.prolific.com/submissions"], "not a web address"),
        (["collect", "leads"], "not a web address"),
        (["collect", "elsewhere"], "saves to datapipe"),
        (["collect", "good", "--database", "good/a.sqlite"], "participants can read"),
        (["collect", "good", "--host", "203.0.113.1", "--port", "0"], "Cannot listen"),
        (["simulate", *WHO, "--browser", "--out", "r.csv"], "--server"),
        (["simulate", *WHO, "--model", "z", "--out", "r.csv"], "got 'z'"),
    ):
        done = run(planted, *arguments, status=2)
        assert done.stderr.startswith("error: "), done.stderr
        assert message in done.stderr
    assert not (planted / "r.csv").exists()
    assert not list(planted.glob("leads.sqlite*"))
