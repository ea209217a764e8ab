"""What the administrator downloads: text whatever it holds, and nobody's identity."""

import csv
import io
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from contstim.errors import StoreError
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.tables import PLATFORM, collected_responses
from contstim.experiments.responses.table import read_responses
from contstim.testing.platform import PlantedAnswers, ReadContract
from tests.experiments.collection.conftest import NONCE, Serve, Served
from tests.experiments.collection.servers import answer, small_study, write_study

NASTY = (
    "<script>alert(1)</script>",
    "\"'`,;\n\r\t'",
    "Robert'); DROP TABLE response;--",
    '=HYPERLINK("http://example.org/?x="&A1,"click")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "'=1+1",
    "'quoted'",
    "＝１＋１",
    "\t=1+1",
    "x" * 10_000,
    "נִקּוּד 🙂 \u202e",
    "NUL \0 inside",
)
FORMULA = re.compile("[=+\\-@\t\r\n＝＋－＠]")


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_nasty_trials_come_out_as_text_and_read_back(serve: Serve, tmp_path: Path) -> None:
    trials = [{"trial_id": text, "sentence_1": text, "sentence_2": text} for text in NASTY]
    served = serve(write_study(tmp_path / "nasty", {"1": trials}, title=NASTY[0]))
    joined = served.join()
    for position, text in enumerate(NASTY, start=1):
        assert served.save(joined, answer(text, position=position)).json() == {"saved": [text]}
    assert served.complete(joined).status_code == 200
    given = served.download("responses")
    assert given.headers["content-type"].startswith("text/csv")
    assert given.headers["content-disposition"] == 'attachment; filename="responses.csv"'
    assert given.headers["x-content-type-options"] == "nosniff"
    rows = cells(given.text)
    assert len(rows) == 1 + len(NASTY)
    assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
    (tmp_path / "responses.csv").write_bytes(given.content)
    read = read_responses(tmp_path / "responses.csv")
    assert [one.trial_id for one in read] == list(NASTY)
    assert read == collected_responses(served.database)
    page = served.http.get("/study.json")
    assert page.headers["content-type"] == "application/json"
    assert [one["sentence_1"] for one in page.json()["groups"]["1"]] == list(NASTY)


def test_nasty_identities_are_accepted_once_and_come_out_as_hashes(served: Served) -> None:
    for text in NASTY:
        who = {"PROLIFIC_PID": text, "STUDY_ID": text, "SESSION_ID": text}
        joined = served.join(platform=who, nonce=NONCE)
        assert served.refused(platform=who) == 403
        assert served.join(platform=who, nonce=NONCE)["participant"] == joined["participant"]
        for wrong in (
            served.http.post("/api/participants", json={"group": text}),
            served.http.post("/api/resume", json={"participant": text, "secret": text}),
        ):
            assert wrong.status_code in (403, 422)
            assert wrong.headers["content-type"] == "application/json"
    given = served.download("participants").text
    rows = cells(given)
    assert len(rows) == 1 + len(NASTY)
    assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
    for row in rows[1:]:
        assert all(re.fullmatch("[0-9a-f]{32}", cell) for cell in row[-3:])
    assert not [
        text for text in NASTY if text in given or text in served.download("responses").text
    ]


@pytest.mark.parametrize("identities", ["hashed", "plain"])
def test_identities_are_kept_as_chosen(serve: Serve, tmp_path: Path, identities: str) -> None:
    """Fields that the study does not name are dropped; a visit's own do not make another person."""
    named = ["sona_id", "workerId", "assignmentId", "lab"]
    served = serve(small_study(tmp_path / "study", identify=named, identities=identities))
    sona, worker = {"sona_id": "17"}, {"workerId": "=A1", "assignmentId": "x"}
    join = partial(served.join, nonce=NONCE)
    first = join(platform={**sona, "lab": "", "email": "ann@example.org"})["participant"]
    second = join(platform=worker)["participant"]
    assert join(platform=sona)["participant"] == first
    assert join(platform={**worker, "assignmentId": "y"})["participant"] == second
    assert served.join(platform={**sona, "lab": "2"})["participant"] not in (first, second)
    text = served.download("participants").text
    one, two, three = csv.DictReader(io.StringIO(text))
    assert "ann@" not in text
    assert b"ann@" not in Path(f"{served.database}-wal").read_bytes()
    if identities == "plain":
        assert (one["sona_id_plain"], one["workerid_plain"]) == ("17", "")
        assert (two["workerid_plain"], two["assignmentid_plain"]) == ("'=A1", "x")
    else:
        assert not {"17", "=A1", "x"} & {*one.values(), *two.values()} - {""}
        assert one["sona_id_hash"] == three["sona_id_hash"] != ""
    assert [row["number"] for row in (one, two, three)] == ["1", "2", "3"]


def test_a_database_of_another_layout_is_refused_and_left(served: Served) -> None:
    joined = served.join(group="1")
    with closing(sqlite3.connect(served.database)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = served.database.read_bytes()
    for use in (collected_responses, lambda path: Recorder(path, "f")):
        with pytest.raises(StoreError, match=r"its layout is 2, but this version needs \d"):
            use(served.database)
    assert served.database.read_bytes() == before
    assert joined["participant"].encode() in before


class TestContract(ReadContract):
    platform = PLATFORM

    def data(
        self, folder: Path, out: Path, answers: PlantedAnswers, people: Mapping[str, str]
    ) -> list[Path]:
        path = out / "study.sqlite"
        Recorder(path, "fingerprint").close()
        lists = self.lists(folder)
        with closing(sqlite3.connect(path)) as connection:
            for number, (name, group) in enumerate(people.items(), start=1):
                connection.execute(
                    "INSERT INTO participant (number, participant, study_group, seed, joined, seen)"
                    " VALUES (?, ?, ?, 3, 0, 0)",
                    (number, name, group),
                )
                for position, row in enumerate(answers.shuffled(lists[group]), start=1):
                    left = int(row["left"])
                    button, rt_ms = answers.press(name, row["trial_id"], row["left"], position)
                    rating = button if left == 1 else 7 - button
                    answer = (number, row["trial_id"], rating, left, position, rt_ms, 0)
                    marks = ", ".join("?" * len(answer))
                    connection.execute(
                        f"INSERT INTO response VALUES ({marks}, NULL, NULL, NULL)", answer
                    )
            connection.commit()
        return [path]
