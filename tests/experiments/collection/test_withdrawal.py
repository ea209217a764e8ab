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

import pytest

from contstim.errors import InputError, StoreError
from contstim.experiments.collection.tables import collected_responses, participants_csv
from contstim.experiments.collection.withdrawal import whose, withdraw
from tests.experiments.collection.conftest import NONCE, Serve, Served, signed
from tests.experiments.collection.servers import answer

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
        with pytest.raises(InputError, match="is nobody in"):
            whose(served.database, nobody)
    for work in (whose, partial(withdraw, day="2026-11-27")):
        for blank in ("", " "):
            with pytest.raises(InputError, match="must have a name"):
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
        f"Deleted: the participant whose {kind} it is: number 1, group 1, 4 answers, complete."
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
    with pytest.raises(InputError, match="is nobody in"):
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
        with pytest.raises(InputError, match="is nobody in"):
            withdraw(served.database, nobody, "2026-11-27")
    assert participants_csv(served.database, 0) == before
    with pytest.raises(StoreError):
        withdraw(served.database.with_name("absent.sqlite"), "1", "2026-11-27")


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
from contstim.experiments.collection import withdrawal

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

withdrawal.sqlite3.connect = connected
withdrawal.withdraw(Path(sys.argv[1]), "ann-5f3c", "2026-11-27")
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
