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
def folder(tmp_path: Path) -> Path:
    experiment = simulate(
        groups=(1, 1), each=1, conditions=[Condition.RANDOM_NATURAL, Condition.CATCH]
    )
    write_table(tmp_path / "trials.csv", trial_columns(experiment.trials))
    experiment.scores.write(tmp_path / "scores.csv")
    export(tmp_path / "study", experiment.trials)
    return tmp_path


PARTICIPANTS = "--trials trials.csv --scores scores.csv --model a --participants 3".split()


def refuse(folder: Path, *command: str) -> str:
    """Return the messages of a command, which must fail without output."""
    result = run(folder, *command, status=2)
    assert result.stdout == ""
    return result.stderr


def download(server: CollectProcess) -> httpx2.Response:
    header = {"Authorization": f"Bearer {server.token}"}
    return httpx2.get(f"{server.url}/admin/responses.csv", headers=header, trust_env=False)


def test_simulated_participants_respond_through_the_server(folder: Path) -> None:
    server = CollectProcess(folder / "study", folder / "kept" / "answers.sqlite")
    server.start()
    try:
        succeed(folder, "simulate", *PARTICIPANTS, "--server", server.url, "--out", "sent.csv")
        content = download(server).content
    finally:
        server.stop(signal.SIGINT)
    (folder / "responses.csv").write_bytes(content)
    sent_responses, downloaded_responses = (
        read_responses(folder / f"{n}.csv") for n in ("sent", "responses")
    )
    assert sorted(sent_responses, key=repr) == sorted(downloaded_responses, key=repr)
    assert len({response.participant for response in sent_responses}) == 3
    assert all(response.simulated for response in downloaded_responses)
    assert not (folder / "sent.csv.journal").exists()
    file_names = sorted(file.name for file in server.database.parent.iterdir())
    endings = ("", ".key", ".meta.json", ".token")
    assert file_names == [f"answers.sqlite{ending}" for ending in endings]
    database = str(server.database)
    options = (database, *"--trials trials.csv --out k.csv".split())
    result = run(folder, "import collected", *options, status=0)
    assert "3 of 3 participants were simulated" in result.stderr
    assert (folder / "k.csv").read_bytes() == content
    record = json.loads((folder / "sent.csv.meta.json").read_text())
    assert record["participants"] == 3
    assert record["noise_nats"] > 0
    for ending in endings:
        secret = Path(f"{server.database}{ending}")
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_simulation_without_a_server_writes_responses(folder: Path) -> None:
    (folder / "responses.csv.journal").write_text("of a run with --server\n")
    options = "--lapses 0 --out responses.csv --quiet".split()
    assert run(folder, "simulate", *PARTICIPANTS, *options, status=0).stderr == ""
    assert (folder / "responses.csv.journal").exists()
    rows = read_csv_rows(folder / "responses.csv")
    assert {row["participant"] for row in rows} == {f"simulated-{n}" for n in (1, 2, 3)}
    assert {row["simulated"] for row in rows} == {"true"}


def test_port_in_use_is_reported_and_no_file_remains(tmp_path: Path) -> None:
    """The test itself holds the port."""
    small_study(tmp_path / "study")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        messages = refuse(tmp_path, "collect", "study", "--port", port)
    assert f"Cannot listen at 127.0.0.1, port {port}" in messages
    assert "0 for any" in messages
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_second_server_refuses_a_database_in_use(tmp_path: Path) -> None:
    """The second server gives the database by another path, or after it was moved.

    After the first is killed, a new server can use the database.
    """
    study, database = small_study(tmp_path / "study"), tmp_path / "kept" / "a.sqlite"
    server = CollectProcess(study, database)
    server.start()
    (tmp_path / "link").symlink_to(database.parent)
    command = ("collect study --port 0 --database", "link/a.sqlite")
    moved = ("collect study --port 0 --database", "b.sqlite")
    try:
        record = Path(f"{database}.meta.json").read_bytes()
        messages = refuse(tmp_path, *command)
        assert f"a.sqlite is in use by the server at {server.url}/ (process " in messages
        assert "Name another database" in messages
        (tmp_path / "b.sqlite").hardlink_to(database)
        assert "b.sqlite has 2 names (hard links), and may be in use" in refuse(tmp_path, *moved)
        with pytest.raises(StoreError, match=r"b\.sqlite has 2 names"):
            collected_responses(tmp_path / "b.sqlite")  # the log of a.sqlite holds the last answers
        assert collected_responses(database) == ()
        (tmp_path / "b.sqlite").unlink()
        database.rename(tmp_path / "b.sqlite")
        assert "b.sqlite is in use" in refuse(tmp_path, *moved)
        (tmp_path / "b.sqlite").rename(database)
        assert download(server).status_code == 200  # it has read and closed the database
        assert "a.sqlite is in use" in refuse(tmp_path, *command)
        assert Path(f"{database}.meta.json").read_bytes() == record
        assert httpx2.get(server.url, trust_env=False).status_code == 200
    finally:
        server.stop(signal.SIGKILL)
    server.start()
    server.stop(signal.SIGINT)


def test_mistakes_end_with_an_error_message(folder: Path) -> None:
    small_study(folder / "good")
    small_study(folder / "elsewhere", save={"to": "datapipe"}, completion={"code": "C0DE"})
    small_study(folder / "leads", completion={"redirect": "javascript:alert(1)"})
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "study.json").write_text('{"groups": {"one": []}}')
    for arguments, message in (
        (["collect", "empty"], "export jspsych"),
        (["collect", "broken"], "not the study of an exported experiment"),
        (["collect", "good", "--redirect", "javascript:alert(1)"], "not a web address"),
        (["collect", "good", "--redirect", "app.prolific.com/submissions"], "not a web address"),
        (["collect", "leads"], "not a web address"),
        (["collect", "elsewhere"], "saves to datapipe"),
        (["collect", "good", "--database", "good/a.sqlite"], "participants can read"),
        (["collect", "good", "--host", "203.0.113.1", "--port", "0"], "Cannot listen"),
        (["simulate", *PARTICIPANTS, "--browser", "--out", "r.csv"], "--server"),
        (["simulate", *PARTICIPANTS, "--model", "z", "--out", "r.csv"], "got 'z'"),
    ):
        messages = run(folder, *arguments, status=2).stderr
        assert messages.startswith("error: "), messages
        assert message in messages
    assert not (folder / "r.csv").exists()
    assert not list(folder.glob("leads.sqlite*"))
