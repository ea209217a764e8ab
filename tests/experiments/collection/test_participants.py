"""Groups fill evenly; tokens prove identities; who withdraws leaves a count and hashes."""

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
from tests.experiments.collection.conftest import NONCE, Serve, Served, signed
from tests.experiments.collection.servers import CollectProcess, answer, small_study


def test_who_is_artificial_stays_marked_in_every_download(served: Served) -> None:
    wishes: list[dict[str, object]] = [{}, {"simulated": False}, {"simulated": True}]
    for wish in wishes:
        joined = served.join(**wish)
        served.save(joined, answer(f"t{joined['group']}-0"))
    again = signed("a")
    served.join(**again)
    assert served.refused(**again, simulated=True) == 403
    people = served.rows("participants")
    assert [row["simulated"] for row in people] == ["false", "false", "true", "false"]
    names = [re.sub("[0-9a-f]{16}$", "", row["participant"]) for row in people]
    assert names == ["p", "p", "simulated-", "p"]  # the last joined as a person
    rows = served.rows("responses")
    assert [row["simulated"] for row in rows] == ["false", "false", "true"]
    wrong = served.http.post("/api/participants", json={"simulated": "yes"})
    assert (wrong.status_code, "simulated must be" in wrong.text) == (422, True)


def test_artificial_participants_take_part_in_rehearsals_alone(serve: Serve) -> None:
    served = serve(rehearsal=False)
    assert served.refused(simulated=True) == 403
    assert served.refused(simulated=True, **signed("7")) == 403
    assert served.download("participants").text.count("\n") == 1


def test_a_dropout_frees_the_place_and_a_finisher_does_not(serve: Serve) -> None:
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
    done = ("complete", "4")
    assert rows == [done, ("left", "0"), done, *[("active", "0")] * 4]
    assert served.rows("participants")[0]["completed"] == "1970-01-12T13:46:40+00:00"


def test_who_fails_the_check_frees_the_place_unless_they_finish_after_all(served: Served) -> None:
    first, _ = served.join(), served.join()
    body = {name: first[name] for name in ("participant", "secret")}
    for failed in (True, False):  # an earlier request that arrives late takes nothing back
        told = {**body, "responses": [], "failed": failed}
        assert served.http.post("/api/responses", json=told).json() == {"saved": []}
    rows = served.rows("participants")
    assert [row["state"] for row in rows] == ["failed", "active"]
    assert [served.join()["group"] for _ in range(2)] == ["1", "3"]
    served.save(first, *(answer(f"t1-{n}") for n in range(4)))
    served.complete(first)
    assert [served.join()["group"] for _ in range(2)] == ["2", "3"]


def test_a_repeated_wish_makes_one_participant(serve: Serve) -> None:
    """Also the last one of a full study."""
    served = serve(participants=2)
    nonce, other = NONCE, NONCE[::-1]
    first = served.join(nonce=nonce)
    assert served.join(nonce=nonce) == first
    who = {"PROLIFIC_PID": "5f3c"}
    last = served.join(nonce=other, platform=who)["participant"]
    assert served.join(nonce=other, platform=who)["participant"] == last != first["participant"]
    assert served.refused(nonce=nonce, platform=who) == 403
    assert served.join(nonce=nonce) == first
    assert served.http.post("/api/participants", json={"nonce": other}).status_code == 403
    rows = served.rows("participants")
    assert [row["prolific_pid_hash"] != "" for row in rows] == [False, True]
    assert nonce not in str(rows)


URL = "https://experiment.example.org/study/"


@pytest.mark.parametrize("accept", [False, True])
def test_a_stranger_does_not_go_on_as_somebody_else(serve: Serve, accept: bool) -> None:
    """Nor with another's token, a tampered one, an empty one, or the identity spelt otherwise."""
    served = serve(accept_platform_ids=accept)
    seven = served.join(**signed("7"))
    served.save(seven, answer("t1-0"))
    own, other = signed("7")["token"], signed("8")["token"]
    who = {"participant": "7"}
    for token in (other, own[:-1], f"{own}0", own.upper(), "0" * 32, " ", "\u00e9"):
        assert served.refused(platform=who, token=token) == 403
    assert served.refused(platform=who, token="") == 422
    for spelt in ("07", "7 ", "8", ""):
        assert served.refused(platform={"participant": spelt}, token=own) == 403
    assert served.refused(token=own) == 403
    assert served.refused(platform=who) == 403
    stranger = {"PROLIFIC_PID": "7"}
    if accept:  # another participant, and that only once
        joined = served.join(platform=stranger, group="1")
        assert joined["participant"] != seven["participant"]
        assert joined["answered"] == []
    assert served.refused(platform=stranger) == 403
    assert served.refused(platform={**stranger, "PROLIFIC_PID": "9", **who}) == 403
    rows = served.rows("participants")
    assert [row["answered"] for row in rows] == ["1"] + ["0"] * accept


def test_the_command_writes_an_address_for_each_id(tmp_path: Path) -> None:
    """The witness is HMAC-SHA256 of the standard library, under the key in the file."""
    small_study(tmp_path / "study")
    ids = ["7", "Ann & Bob", "M\u00fcller", "a,b"]
    (tmp_path / "ids.txt").write_text("\ufeff" + "\r\n".join([*ids, "", " "]), encoding="utf-8")
    done = run(tmp_path, "collect", "study", "--links", "ids.txt", "--url", URL)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
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
    again = run(tmp_path, "collect", "study", "--links", "ids.txt", "--url", URL)
    assert again.stdout == done.stdout
    local = run(tmp_path, "collect", "study", "--links", "ids.txt").stdout.splitlines()
    assert local[1].startswith("7,http://127.0.0.1:8000/?participant=7&token=")


def test_ids_and_keys_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
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
    for damaged in ("", "xyz", "0" * 63):
        (tmp_path / "a.sqlite.key").write_text(damaged)
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
def test_options_without_a_value_serve_nothing(tmp_path: Path, options: list[str]) -> None:
    small_study(tmp_path / "study")
    (tmp_path / "ids.txt").write_text("7\n")
    done = run(tmp_path, "collect", "study", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert not list(tmp_path.glob("study.sqlite*"))


ANN, BOB = ({"PROLIFIC_PID": name, "STUDY_ID": "study-1"} for name in ("ann-5f3c", "bob-17"))


def finished(served: Served, group: str = "1", **who: Any) -> tuple[str, str]:
    """Name and code of somebody who answers everything."""
    joined = served.join(group=group, **who)
    served.save(joined, *(answer(f"t{group}-{n}", rt_ms=4321.25) for n in range(4)))
    return joined["participant"], served.complete(joined).json()["code"]


def left_in(database: Path, text: str) -> list[str]:
    """Files of a database in which a text stands, whatever SQLite thinks of the page."""
    files = database.parent.glob(f"{database.name}*")
    return [file.name for file in files if text.encode() in file.read_bytes()]


def test_a_code_says_whose_it_is(served: Served) -> None:
    name, code = finished(served)
    served.join()
    for given in (code, f" {code.lower()} "):
        told = whose(served.database, given)
        assert told == f"The completion code of {name} (number 1, group 1, 4 answers, complete)."
    assert whose(served.database, name).startswith(f"The name of {name} (number 1, ")
    for nobody in ("13AA000000", "1"):
        with pytest.raises(InputError, match="has no participant"):
            whose(served.database, nobody)
    for work in (whose, partial(withdraw, day="2026-11-27")):
        for blank in ("", " "):
            with pytest.raises(InputError, match="must not be empty"):
                work(served.database, blank)


@pytest.mark.parametrize("by", ["id", "code", "name"])
def test_who_withdraws_is_gone_from_every_file(served: Served, by: str) -> None:
    """The witness is the files' bytes; the others' rows are as they were."""
    name, code = finished(served, platform=ANN)
    other, _ = finished(served, "2", platform=BOB)
    with closing(sqlite3.connect(served.database)) as connection:
        said = [('["Welsh"]', 1), ('["Manx"]', 2)]
        connection.executemany("UPDATE participant SET questions = ? WHERE number = ?", said)
        connection.commit()
    kept = [each for each in collected_responses(served.database) if each.participant == other]
    who = {"id": ANN["PROLIFIC_PID"], "code": code, "name": name}[by]
    kind = {"id": "PROLIFIC_PID", "code": "completion code", "name": "name"}[by]
    assert withdraw(served.database, who, "2026-11-27") == (
        f"Deleted the participant with this {kind}: number 1, group 1, 4 answers, complete."
    )
    assert left_in(served.database, ANN["PROLIFIC_PID"]) == left_in(served.database, name) == []
    assert left_in(served.database, "Welsh") == []
    assert all(left_in(served.database, text) for text in (BOB["PROLIFIC_PID"], "Manx"))
    assert list(collected_responses(served.database)) == kept
    for table in ("responses", "participants"):
        assert name not in served.download(table).text
    assert list(collected_responses(served.database)) == kept
    assert left_in(served.database, "withdrawn 2026-11-27") != []
    with pytest.raises(InputError, match="has no participant"):
        withdraw(served.database, who, "2026-11-27")
    # the place is free again, but not for the same person, and a number is nobody else's
    assert served.refused(platform=ANN) == 410
    assert served.join()["group"] == "1"
    rows = served.rows("participants")
    assert [row["number"] for row in rows] == ["2", "3"]


def test_several_people_are_told_and_nobody_is_deleted(served: Served) -> None:
    served.join(platform=ANN)
    served.join(platform={**ANN, "STUDY_ID": "study-2"})
    before = participants_csv(served.database, 0)
    both = r"PROLIFIC_PID of p\w+ \(number 1, .*; the PROLIFIC_PID of p\w+ \(number 2, .* the name"
    with pytest.raises(InputError, match=both):  # in two studies
        withdraw(served.database, ANN["PROLIFIC_PID"], "2026-11-27")
    for nobody in (ANN["STUDY_ID"], "None"):
        with pytest.raises(InputError, match="has no participant"):
            withdraw(served.database, nobody, "2026-11-27")
    assert participants_csv(served.database, 0) == before
    with pytest.raises(StoreError):
        withdraw(served.database.with_name("absent.sqlite"), "1", "2026-11-27")


def test_a_deleted_identity_is_nobody_elses_number(served: Served) -> None:
    """SONA's IDs are small numbers, and so are those of participants.csv."""
    for sona in ("2", "1", "3"):
        served.join(platform={"sona_id": sona, "SESSION_ID": "9"})
    assert "this sona_id: number 1," in withdraw(served.database, "2", "2026-11-27")
    with closing(sqlite3.connect(served.database)) as connection:
        connection.execute("DELETE FROM identity")
        connection.commit()
    before = participants_csv(served.database, 0)
    for who in ("1", "2", "3", "9"):
        with pytest.raises(InputError, match=r"has no participant .* if identities are stored"):
            withdraw(served.database, who, "2026-11-27")
    assert participants_csv(served.database, 0) == before


def test_an_open_page_of_somebody_who_withdrew_saves_nothing(served: Served) -> None:
    """Neither by the page, nor by the request to take part, nor by the address again."""
    for who, known_as in (({"platform": ANN}, ANN["PROLIFIC_PID"]), (signed("7"), "7"), ({}, "")):
        joined = served.join(**who, nonce=NONCE)
        served.save(joined, answer(f"t{joined['group']}-0"))
        withdraw(served.database, known_as or joined["participant"], "2026-11-27")
        resumed = served.http.post("/api/resume", json=joined)
        for refused in (resumed, served.save(joined, answer("t1-1")), served.complete(joined)):
            assert (refused.status_code, refused.json()["withdrawn"]) == (410, True)
        assert served.refused(**who, nonce=NONCE) == 410
        if who:
            assert served.refused(**who) == 410
    assert collected_responses(served.database) == ()
    assert served.download("participants").text.count("\n") == 1


CUT = """
import sys, sqlite3
from pathlib import Path
from contstim.experiments.collection import participants

class Dying(sqlite3.Connection):
    def execute(self, statement, *values):
        if statement.startswith(sys.argv[2]):
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        return super().execute(statement, *values)

connect = sqlite3.connect
def connected(*given, **named):
    reading = "mode=ro" in str(given)
    return connect(*given, **named, **({} if reading else {"factory": Dying}))

participants.sqlite3.connect = connected
participants.withdraw(Path(sys.argv[1]), "ann-5f3c", "2026-11-27")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "gone"), [("DELETE", False), ("COMMIT", False), ("PRAGMA wal_checkpoint", True)]
)
def test_killed_withdrawals_are_whole_or_absent(served: Served, before: str, gone: bool) -> None:
    name, _ = finished(served, platform=ANN)
    finished(served, "2", platform=BOB)
    done = subprocess.run([sys.executable, "-c", CUT, str(served.database), before], check=False)
    assert done.returncode == -signal.SIGKILL
    answers = [each for each in collected_responses(served.database) if each.participant == name]
    assert len(answers) == (0 if gone else 4)
    assert (ANN["PROLIFIC_PID"] in served.download("participants").text) is False  # but hashed
    assert len(served.rows("participants")) == 2 - gone
    if not gone:
        withdraw(served.database, name, "2026-11-27")
    assert len(collected_responses(served.database)) == 4


def test_answers_and_withdrawals_survive_kills(tmp_path: Path) -> None:
    """The commands as a researcher runs them, beside a running server that is then killed."""
    server = CollectProcess(small_study(tmp_path / "study"), tmp_path / "study.sqlite")
    server.start()
    with httpx2.Client(base_url=server.url, trust_env=False) as http:
        people = []
        for who in (ANN, BOB):
            joined = http.post("/api/participants", json={"platform": who, "group": "1"}).json()
            given = [answer(f"t1-{n}", input="key", blurs=n, away_ms=n / 2) for n in range(4)]
            body = {name: joined[name] for name in ("participant", "secret")}
            saved = http.post("/api/responses", json={**body, "responses": given}).json()["saved"]
            assert len(saved) == 4
            code = http.post("/api/complete", json=body).json()["code"]
            people.append((joined["participant"], code))
    (ann, ann_code), (bob, bob_code) = people
    told = run(tmp_path, "collect", "study", "--whose", bob_code)
    assert (told.returncode, told.stdout.split()[4]) == (0, bob)
    wrong = run(tmp_path, "collect", "study", "--whose", "13AA000000")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "has no participant '13AA000000'" in wrong.stderr
    done = run(tmp_path, "collect", "study", "--withdraw", ann_code)
    server.stop(signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert "code: number 1, group 1, 4 answers, complete. Download responses.csv" in done.stdout
    assert not {ann, ann_code, ANN["PROLIFIC_PID"]} & {*done.stdout.split(), *done.stderr.split()}
    assert left_in(server.database, ann) == left_in(server.database, ANN["PROLIFIC_PID"]) == []
    server.start()
    server.stop(signal.SIGINT)
    kept = collected_responses(server.database)
    stored = [(r.participant, r.input, r.blurs, r.away_ms) for r in kept]
    assert stored == [(bob, "key", n, n / 2) for n in range(4)]


def test_a_full_study_says_so_before_consent_but_lets_its_people_go_on(serve: Serve) -> None:
    served = serve(participants=1)

    def is_open(**who: Any) -> bool:
        return bool(served.http.post("/api/open", json=who).json()["open"])

    assert is_open()
    served.join(platform=ANN, nonce=NONCE)
    ann = {"platform": ANN, "nonce": NONCE}
    assert (is_open(), is_open(platform=BOB), is_open(**ann)) == (False, False, True)
    refused = served.http.post("/api/participants", json={"platform": BOB})
    assert (refused.status_code, refused.json()["full"]) == (403, True)
    withdraw(served.database, ANN["PROLIFIC_PID"], "2026-11-27")
    assert is_open(platform=BOB)
