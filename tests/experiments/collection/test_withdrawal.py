"""Whose a code is, and what is left of somebody who withdraws: a count and keyed hashes."""

from __future__ import annotations

import csv
import io
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.participants import whose, withdraw
from contstim.experiments.collection.tables import collected_responses, participants_csv
from tests.cli.running import run
from tests.experiments.collection.conftest import NONCE, Serve, Served, signed
from tests.experiments.collection.servers import CollectProcess, answer, small_study

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


def test_a_code_says_whose_it_is(serve: Serve) -> None:
    served = serve()
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
def test_who_withdraws_is_gone_from_every_file_while_the_server_runs(serve: Serve, by: str) -> None:
    """The witness is the files' bytes; the others' rows are as they were."""
    served = serve()
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
    assert [] not in (
        left_in(served.database, BOB["PROLIFIC_PID"]),
        left_in(served.database, "Manx"),
    )
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
    rows = list(csv.DictReader(io.StringIO(served.download("participants").text)))
    assert [row["number"] for row in rows] == ["2", "3"]


def test_several_people_are_told_and_nobody_is_deleted(serve: Serve) -> None:
    served = serve()
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


def test_a_deleted_identity_is_nobody_elses_number(serve: Serve) -> None:
    """SONA's IDs are small numbers, and so are those of participants.csv."""
    served = serve()
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


def test_an_open_page_of_somebody_who_withdrew_saves_nothing(serve: Serve) -> None:
    """Neither by the page, nor by the request to take part, nor by the address again."""
    served = serve()
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


@pytest.mark.parametrize(
    ("before", "gone"), [("DELETE", False), ("COMMIT", False), ("PRAGMA wal_checkpoint", True)]
)
def test_a_withdrawal_that_is_killed_is_whole_or_has_not_happened(
    serve: Serve, before: str, gone: bool
) -> None:
    served = serve()
    name, _ = finished(served, platform=ANN)
    finished(served, "2", platform=BOB)
    done = subprocess.run([sys.executable, "-c", CUT, str(served.database), before], check=False)
    assert done.returncode == -signal.SIGKILL
    answers = [each for each in collected_responses(served.database) if each.participant == name]
    assert len(answers) == (0 if gone else 4)
    assert (ANN["PROLIFIC_PID"] in served.download("participants").text) is False  # but hashed
    assert len(list(csv.DictReader(io.StringIO(served.download("participants").text)))) == 2 - gone
    if not gone:
        withdraw(served.database, name, "2026-11-27")
    assert len(collected_responses(served.database)) == 4


def test_what_was_acknowledged_and_withdrawn_stays_so_when_the_server_is_killed(
    tmp_path: Path,
) -> None:
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
    assert [(r.participant, r.input, r.blurs, r.away_ms) for r in kept] == [
        (bob, "key", n, n / 2) for n in range(4)
    ]


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
