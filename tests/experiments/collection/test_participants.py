"""Groups, links with tokens, and withdrawals of participants."""

import csv
import hashlib
import hmac
import io
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.participants import participant_links, whose, withdraw
from contstim.experiments.collection.tables import collected_responses, participants_csv
from tests.cli.running import run
from tests.experiments.collection.conftest import NONCE, Serve, Served, sign_identity
from tests.experiments.collection.servers import CollectProcess, answer, small_study


def test_simulated_participants_are_marked_in_downloads(served: Served) -> None:
    requests: list[dict[str, object]] = [{}, {"simulated": False}, {"simulated": True}]
    for request in requests:
        joined = served.join(**request)
        served.save(joined, answer(f"t{joined['group']}-0"))
    identity = sign_identity("a")
    served.join(**identity)
    assert served.refusal_status(**identity, simulated=True) == 403
    participants = served.rows("participants")
    assert [row["simulated"] for row in participants] == ["false", "false", "true", "false"]
    names = [re.sub("[0-9a-f]{16}$", "", row["participant"]) for row in participants]
    assert names == ["p", "p", "simulated-", "p"]  # the last joined as a person
    rows = served.rows("responses")
    assert [row["simulated"] for row in rows] == ["false", "false", "true"]
    reply = served.http.post("/api/participants", json={"simulated": "yes"})
    assert (reply.status_code, "simulated must be" in reply.text) == (422, True)


def test_simulated_participants_are_refused_outside_rehearsals(serve: Serve) -> None:
    served = serve(rehearsal=False)
    assert served.refusal_status(simulated=True) == 403
    assert served.refusal_status(simulated=True, **sign_identity("7")) == 403
    assert served.download("participants").text.count("\n") == 1


def test_dropout_frees_a_slot_of_the_group(serve: Serve) -> None:
    """Otherwise groups fill in turn."""
    served = serve(dropout=10)
    for group in "123":
        joined = served.join()
        assert joined["group"] == group
        if group != "2":
            served.save(joined, *(answer(f"t{group}-{n}") for n in range(4)))
            assert served.complete(joined).status_code == 200
    served.now[0] += 601
    assert [served.join()["group"] for _ in range(4)] == ["2", "1", "2", "3"]
    rows = [(row["state"], row["answered"]) for row in served.rows("participants")]
    complete_row = ("complete", "4")
    assert rows == [complete_row, ("left", "0"), complete_row, *[("active", "0")] * 4]
    assert served.rows("participants")[0]["completed"] == "1970-01-12T13:46:40+00:00"


def test_failed_check_frees_a_slot_until_completion(served: Served) -> None:
    first, _ = served.join(), served.join()
    body = {name: first[name] for name in ("participant", "secret")}
    for failed in (True, False):  # a late earlier request does not undo the failure
        request = {**body, "responses": [], "failed": failed}
        assert served.http.post("/api/responses", json=request).json() == {"saved": []}
    rows = served.rows("participants")
    assert [row["state"] for row in rows] == ["failed", "active"]
    assert [served.join()["group"] for _ in range(2)] == ["1", "3"]
    served.save(first, *(answer(f"t1-{n}") for n in range(4)))
    served.complete(first)
    assert [served.join()["group"] for _ in range(2)] == ["2", "3"]


def test_repeated_request_to_join_is_one_participant(serve: Serve) -> None:
    """This includes the last request that a study accepts."""
    served = serve(participants=2)
    nonce, nonce_2 = NONCE, NONCE[::-1]
    first = served.join(nonce=nonce)
    assert served.join(nonce=nonce) == first
    ids = {"PROLIFIC_PID": "5f3c"}
    last = served.join(nonce=nonce_2, platform=ids)["participant"]
    assert served.join(nonce=nonce_2, platform=ids)["participant"] == last != first["participant"]
    assert served.refusal_status(nonce=nonce, platform=ids) == 403
    assert served.join(nonce=nonce) == first
    assert served.http.post("/api/participants", json={"nonce": nonce_2}).status_code == 403
    rows = served.rows("participants")
    assert [row["prolific_pid_hash"] != "" for row in rows] == [False, True]
    assert nonce not in str(rows)


URL = "https://experiment.example.org/study/"


@pytest.mark.parametrize("accept", [False, True])
def test_tokens_and_identities_of_others_are_refused(serve: Serve, accept: bool) -> None:
    """Cases: another's token, an altered or empty token, and other spellings of the identity."""
    served = serve(accept_platform_ids=accept)
    participant = served.join(**sign_identity("7"))
    served.save(participant, answer("t1-0"))
    token_7, token_8 = sign_identity("7")["token"], sign_identity("8")["token"]
    platform = {"participant": "7"}
    for token in (token_8, token_7[:-1], f"{token_7}0", token_7.upper(), "0" * 32, " ", "\u00e9"):
        assert served.refusal_status(platform=platform, token=token) == 403
    assert served.refusal_status(platform=platform, token="") == 422
    for identity in ("07", "7 ", "8", ""):
        assert served.refusal_status(platform={"participant": identity}, token=token_7) == 403
    assert served.refusal_status(token=token_7) == 403
    assert served.refusal_status(platform=platform) == 403
    stranger = {"PROLIFIC_PID": "7"}
    if accept:  # a new participant, who can join only once
        joined = served.join(platform=stranger, group="1")
        assert joined["participant"] != participant["participant"]
        assert joined["answered"] == []
    assert served.refusal_status(platform=stranger) == 403
    assert served.refusal_status(platform={**stranger, "PROLIFIC_PID": "9", **platform}) == 403
    rows = served.rows("participants")
    assert [row["answered"] for row in rows] == ["1"] + ["0"] * accept


def test_links_command_writes_an_address_per_id(tmp_path: Path) -> None:
    """Witness: HMAC-SHA256 of the standard library, with the key in the file."""
    small_study(tmp_path / "study")
    ids = ["7", "Ann & Bob", "M\u00fcller", "a,b"]
    (tmp_path / "ids.txt").write_text("\ufeff" + "\r\n".join([*ids, "", " "]), encoding="utf-8")
    result = run(tmp_path, "collect", "study", "--links", "ids.txt", "--url", URL)
    assert (result.returncode, result.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["participant"] for row in rows] == ids
    file = tmp_path / "study.sqlite.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = bytes.fromhex(file.read_text())
    assert len(key) == 32
    for identity, row in zip(ids, rows, strict=True):
        text = f"link\x1f{identity}".encode()
        token = hmac.new(key, text, hashlib.sha256).hexdigest()[:32]
        assert row["link"].startswith(f"{URL}?")
        query = parse_qs(urlsplit(row["link"]).query)
        assert query == {"participant": [identity], "token": [token]}
    assert not (tmp_path / "study.sqlite").exists()
    second_result = run(tmp_path, "collect", "study", "--links", "ids.txt", "--url", URL)
    assert second_result.stdout == result.stdout
    local_lines = run(tmp_path, "collect", "study", "--links", "ids.txt").stdout.splitlines()
    assert local_lines[1].startswith("7,http://127.0.0.1:8000/?participant=7&token=")


def test_invalid_ids_addresses_and_keys_raise_errors(tmp_path: Path) -> None:
    ids, database = tmp_path / "ids.txt", tmp_path / "a.sqlite"
    for text in ("", "\n \n", "7\n8\n7 \n"):
        ids.write_text(text)
        with pytest.raises(InputError, match="a different ID on each line"):
            participant_links(database, ids, URL)
    ids.write_text("7\n")
    with pytest.raises(InputError, match="not a web address"):
        participant_links(database, ids, "example.org")
    ((_, link),) = participant_links(database, ids, f"{URL}?group=2")
    assert [*parse_qs(urlsplit(link).query)] == ["group", "participant", "token"]
    for key in ("", "xyz", "0" * 63):
        (tmp_path / "a.sqlite.key").write_text(key)
        with pytest.raises(InputError, match="64 hexadecimal digits"):
            participant_links(database, ids, URL)


@pytest.mark.parametrize(
    "options",
    [
        ["--withdraw", ""],
        ["--whose", ""],
        ["--withdraw", " "],
        ["--links", "ids.txt", "--host", "0.0.0.0"],
        ["--links", "ids.txt", "--port", "0"],
        ["--links", ""],
        ["--links", "absent.txt"],
    ],
)
def test_invalid_options_start_no_server(tmp_path: Path, options: list[str]) -> None:
    small_study(tmp_path / "study")
    (tmp_path / "ids.txt").write_text("7\n")
    result = run(tmp_path, "collect", "study", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert not list(tmp_path.glob("study.sqlite*"))


ANN, BOB = ({"PROLIFIC_PID": name, "STUDY_ID": "study-1"} for name in ("ann-5f3c", "bob-17"))


def add_finished_participant(served: Served, group: str = "1", **request: Any) -> tuple[str, str]:
    """Save all responses of a new participant; return the name and the completion code."""
    joined = served.join(group=group, **request)
    served.save(joined, *(answer(f"t{group}-{n}", rt_ms=4321.25) for n in range(4)))
    return joined["participant"], served.complete(joined).json()["code"]


def find_in(database: Path, text: str) -> list[str]:
    """Return the files of a database that contain a text, also on unused pages."""
    files = database.parent.glob(f"{database.name}*")
    return [file.name for file in files if text.encode() in file.read_bytes()]


def test_whose_describes_the_participant(served: Served) -> None:
    name, code = add_finished_participant(served)
    served.join()
    for spelling in (code, f" {code.lower()} "):
        line = whose(served.database, spelling)
        assert line == f"The completion code of {name} (number 1, group 1, 4 answers, complete)."
    assert whose(served.database, name).startswith(f"The name of {name} (number 1, ")
    for identity in ("13AA000000", "1"):
        with pytest.raises(InputError, match="has no participant"):
            whose(served.database, identity)
    for function in (whose, partial(withdraw, day="2026-11-27")):
        for text in ("", " "):
            with pytest.raises(InputError, match="must not be empty"):
                function(served.database, text)


@pytest.mark.parametrize("by", ["id", "code", "name"])
def test_withdrawal_deletes_data_from_every_file(served: Served, by: str) -> None:
    """Witness: the bytes of the files; rows of other participants do not change."""
    name, code = add_finished_participant(served, platform=ANN)
    other_name, _ = add_finished_participant(served, "2", platform=BOB)
    with closing(sqlite3.connect(served.database)) as connection:
        values = [('["Welsh"]', 1), ('["Manx"]', 2)]
        connection.executemany("UPDATE participant SET questions = ? WHERE number = ?", values)
        connection.commit()
    responses = [r for r in collected_responses(served.database) if r.participant == other_name]
    identity = {"id": ANN["PROLIFIC_PID"], "code": code, "name": name}[by]
    kind = {"id": "PROLIFIC_PID", "code": "completion code", "name": "name"}[by]
    assert withdraw(served.database, identity, "2026-11-27") == (
        f"Deleted the participant with this {kind}: number 1, group 1, 4 answers, complete."
    )
    assert find_in(served.database, ANN["PROLIFIC_PID"]) == find_in(served.database, name) == []
    assert find_in(served.database, "Welsh") == []
    assert all(find_in(served.database, text) for text in (BOB["PROLIFIC_PID"], "Manx"))
    assert list(collected_responses(served.database)) == responses
    for table in ("responses", "participants"):
        assert name not in served.download(table).text
    assert list(collected_responses(served.database)) == responses
    assert find_in(served.database, "withdrawn 2026-11-27") != []
    with pytest.raises(InputError, match="has no participant"):
        withdraw(served.database, identity, "2026-11-27")
    # The slot is free, but not for the same person, and numbers are not reused
    assert served.refusal_status(platform=ANN) == 410
    assert served.join()["group"] == "1"
    rows = served.rows("participants")
    assert [row["number"] for row in rows] == ["2", "3"]


def test_ambiguous_identity_deletes_no_one(served: Served) -> None:
    served.join(platform=ANN)
    served.join(platform={**ANN, "STUDY_ID": "study-2"})
    table = participants_csv(served.database, 0)
    message = (
        r"PROLIFIC_PID of p\w+ \(number 1, .*; the PROLIFIC_PID of p\w+ \(number 2, .* the name"
    )
    with pytest.raises(InputError, match=message):  # the same ID in two studies
        withdraw(served.database, ANN["PROLIFIC_PID"], "2026-11-27")
    for identity in (ANN["STUDY_ID"], "None"):
        with pytest.raises(InputError, match="has no participant"):
            withdraw(served.database, identity, "2026-11-27")
    assert participants_csv(served.database, 0) == table
    with pytest.raises(StoreError):
        withdraw(served.database.with_name("absent.sqlite"), "1", "2026-11-27")


def test_withdrawn_id_does_not_match_participant_numbers(served: Served) -> None:
    """IDs of SONA are small numbers, like the numbers in participants.csv."""
    for sona_id in ("2", "1", "3"):
        served.join(platform={"sona_id": sona_id, "SESSION_ID": "9"})
    assert "this sona_id: number 1," in withdraw(served.database, "2", "2026-11-27")
    with closing(sqlite3.connect(served.database)) as connection:
        connection.execute("DELETE FROM identity")
        connection.commit()
    table = participants_csv(served.database, 0)
    for identity in ("1", "2", "3", "9"):
        with pytest.raises(InputError, match=r"has no participant .* if identities are stored"):
            withdraw(served.database, identity, "2026-11-27")
    assert participants_csv(served.database, 0) == table


def test_withdrawn_participant_can_save_nothing(served: Served) -> None:
    """The page, the request to join and the address are refused."""
    for request, identity in (
        ({"platform": ANN}, ANN["PROLIFIC_PID"]),
        (sign_identity("7"), "7"),
        ({}, ""),
    ):
        joined = served.join(**request, nonce=NONCE)
        served.save(joined, answer(f"t{joined['group']}-0"))
        withdraw(served.database, identity or joined["participant"], "2026-11-27")
        resume_reply = served.http.post("/api/resume", json=joined)
        for reply in (resume_reply, served.save(joined, answer("t1-1")), served.complete(joined)):
            assert (reply.status_code, reply.json()["withdrawn"]) == (410, True)
        assert served.refusal_status(**request, nonce=NONCE) == 410
        if request:
            assert served.refusal_status(**request) == 410
    assert collected_responses(served.database) == ()
    assert served.download("participants").text.count("\n") == 1


KILLED_WITHDRAWAL = """
import sys, sqlite3
from pathlib import Path
from contstim.experiments.collection import participants

class KilledConnection(sqlite3.Connection):
    def execute(self, statement, *values):
        if statement.startswith(sys.argv[2]):
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(statement, *values)

connect = sqlite3.connect
def connect_or_die(*args, **options):
    reading = "mode=ro" in str(args)
    return connect(*args, **options, **({} if reading else {"factory": KilledConnection}))

participants.sqlite3.connect = connect_or_die
participants.withdraw(Path(sys.argv[1]), "ann-5f3c", "2026-11-27")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "is_deleted"),
    [("DELETE", False), ("COMMIT", False), ("PRAGMA wal_checkpoint", True)],
)
def test_killed_withdrawal_is_all_or_nothing(served: Served, sql: str, is_deleted: bool) -> None:
    name, _ = add_finished_participant(served, platform=ANN)
    add_finished_participant(served, "2", platform=BOB)
    run = subprocess.run(
        [sys.executable, "-c", KILLED_WITHDRAWAL, str(served.database), sql], check=False
    )
    assert run.returncode == -signal.SIGKILL
    responses = [r for r in collected_responses(served.database) if r.participant == name]
    assert len(responses) == (0 if is_deleted else 4)
    # Only its hash is stored
    assert (ANN["PROLIFIC_PID"] in served.download("participants").text) is False
    assert len(served.rows("participants")) == 2 - is_deleted
    if not is_deleted:
        withdraw(served.database, name, "2026-11-27")
    assert len(collected_responses(served.database)) == 4


def test_responses_and_withdrawals_survive_kills(tmp_path: Path) -> None:
    """The commands run next to a server, which is then killed."""
    server = CollectProcess(small_study(tmp_path / "study"), tmp_path / "study.sqlite")
    server.start()
    with httpx2.Client(base_url=server.url, trust_env=False) as http:
        participants = []
        for ids in (ANN, BOB):
            joined = http.post("/api/participants", json={"platform": ids, "group": "1"}).json()
            answers = [answer(f"t1-{n}", input="key", blurs=n, away_ms=n / 2) for n in range(4)]
            body = {name: joined[name] for name in ("participant", "secret")}
            saved = http.post("/api/responses", json={**body, "responses": answers}).json()["saved"]
            assert len(saved) == 4
            code = http.post("/api/complete", json=body).json()["code"]
            participants.append((joined["participant"], code))
    (ann, ann_code), (bob, bob_code) = participants
    whose_result = run(tmp_path, "collect", "study", "--whose", bob_code)
    assert (whose_result.returncode, whose_result.stdout.split()[4]) == (0, bob)
    error_result = run(tmp_path, "collect", "study", "--whose", "13AA000000")
    assert (error_result.returncode, error_result.stdout) == (2, "")
    assert "has no participant '13AA000000'" in error_result.stderr
    result = run(tmp_path, "collect", "study", "--withdraw", ann_code)
    server.stop(signal.SIGKILL)
    assert result.returncode == 0, result.stderr
    assert "code: number 1, group 1, 4 answers, complete. Download responses.csv" in result.stdout
    assert not {ann, ann_code, ANN["PROLIFIC_PID"]} & {
        *result.stdout.split(),
        *result.stderr.split(),
    }
    assert find_in(server.database, ann) == find_in(server.database, ANN["PROLIFIC_PID"]) == []
    server.start()
    server.stop(signal.SIGINT)
    collected = collected_responses(server.database)
    values = [(r.participant, r.input, r.blurs, r.away_ms) for r in collected]
    assert values == [(bob, "key", n, n / 2) for n in range(4)]


def test_full_study_is_closed_except_to_its_participants(serve: Serve) -> None:
    served = serve(participants=1)

    def is_open(**request: Any) -> bool:
        return bool(served.http.post("/api/open", json=request).json()["open"])

    assert is_open()
    served.join(platform=ANN, nonce=NONCE)
    identity = {"platform": ANN, "nonce": NONCE}
    assert (is_open(), is_open(platform=BOB), is_open(**identity)) == (False, False, True)
    reply = served.http.post("/api/participants", json={"platform": BOB})
    assert (reply.status_code, reply.json()["full"]) == (403, True)
    withdraw(served.database, ANN["PROLIFIC_PID"], "2026-11-27")
    assert is_open(platform=BOB)
