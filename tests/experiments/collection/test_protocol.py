"""Requests of the page and replies of the server."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import StoreError
from contstim.experiments.collection import database
from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.requests import RequestLimits
from contstim.experiments.collection.tables import collected_questions, import_collected
from contstim.experiments.responses.table import UNRATED
from contstim.items.scale import Scale
from contstim.items.stimuli import on_scale
from tests.experiments.collection.conftest import TOKEN, Serve, Served
from tests.experiments.collection.servers import answer, small_study
from tests.experiments.collection.test_pages import send_bytes
from tests.experiments.platforms.conftest import TRIALS


def test_participant_joins_responds_resumes_and_completes(serve: Serve) -> None:
    served = serve(code="C0DE", redirect="https://example.org/?cc=C0DE")
    joined = served.join()
    assert joined["group"] == "1"
    assert joined["answered"] == []
    first_response = answer("t1-0", rating=6, left=2, position=1, rt_ms=1234)
    assert served.save(joined, first_response).json() == {"saved": ["t1-0"]}
    resume_reply = served.http.post("/api/resume", json=joined)
    assert resume_reply.status_code == 200
    assert resume_reply.json() == {**joined, "answered": [{**first_response, "rt_ms": 1234.0}]}
    early_reply = served.complete(joined)
    assert (early_reply.status_code, early_reply.json()["missing"]) == (409, 3)
    other_responses = [answer(f"t1-{n}", position=n + 1, rt_ms=None) for n in (1, 2, 3)]
    assert served.save(joined, *other_responses).json() == {"saved": ["t1-1", "t1-2", "t1-3"]}
    reply = served.complete(joined)
    assert reply.json() == {"code": "C0DE", "redirect": "https://example.org/?cc=C0DE"}
    assert reply.headers["cache-control"] == "no-store"


def test_repeated_response_succeeds_but_first_is_stored(served: Served) -> None:
    joined = served.join()
    for rating in (2, 5):
        assert served.save(joined, answer("t1-0", rating=rating)).json() == {"saved": ["t1-0"]}
    assert served.download("responses").text.count("t1-0") == 1
    assert '"t1-0",2,1,1,812.5' in served.download("responses").text


IMPOSSIBLE: dict[str, list[Any]] = {
    "rating": [0, 7, 3.5, "3", True, 10**400],
    "left": [3, None],
    "position": [0, 1.5],
    "rt_ms": [-1, "fast", 10**400],
    "trial_id": ["t2-0", "", "x" * 20_000, ["t1-0"], "\ud800"],
}


def test_impossible_response_rejects_the_whole_request(served: Served) -> None:
    joined = served.join(group="1")
    for name, value in ((name, value) for name, values in IMPOSSIBLE.items() for value in values):
        reply = served.save(joined, answer("t1-1"), {**answer("t1-0"), name: value})
        assert reply.status_code in (400, 422), (name, value)
        assert reply.json()["error"]
    assert served.download("responses").text.count("\n") == 1


def test_errors_name_the_field_but_not_its_value(served: Served) -> None:
    joined = served.join(group="1")
    errors = {
        name: served.save(joined, answer("t1-1"), {**answer("t1-0"), name: value}).json()["error"]
        for name, value in {"rating": 101, "left": "secret", "rt_ms": True, "trial_id": ""}.items()
    }
    assert errors == {
        "rating": "responses.1.rating should be less than or equal to 100.",
        "left": "responses.1.left must be a whole number.",
        "rt_ms": "responses.1.rt_ms must be a number.",
        "trial_id": "responses.1.trial_id should have at least 1 character.",
    }
    for body, sentence in (
        (["p1"], "The body must be an object."),
        ({"platform": {"PROLIFIC_PID": 5}}, "platform.PROLIFIC_PID must be a text."),
    ):
        assert served.http.post("/api/participants", json=body).json() == {"error": sentence}


JSON = {"Content-Type": "application/json"}


def test_requests_without_preflight_are_refused(served: Served) -> None:
    """These content types need no preflight across origins (Fetch standard)."""
    types = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for kind in (*types, "", "text/plain; application/json"):
        for address in ("participants", "resume", "responses", "complete"):
            r = served.http.post(f"/api/{address}", content=b"{}", headers={"Content-Type": kind})
            assert r.status_code == 415, kind
            assert "application/json" in r.json()["error"]
    assert served.download("participants").text.count("\n") == 1
    json_type = {"Content-Type": "Application/JSON; charset=utf-8"}
    reply = served.http.post("/api/participants", content=b"{}", headers=json_type)
    assert reply.status_code == 201


def test_bodies_without_length_or_end_are_refused(serve: Serve) -> None:
    served = serve(limits=RequestLimits(body_seconds=0.2))
    chunks = (b" " * 50_000 for _ in range(10))
    reply = served.http.post("/api/participants", content=chunks, headers=JSON)
    assert reply.status_code == 413
    head = (
        b"POST /api/participants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: 9\r\n\r\n{"
    )
    assert send_bytes(served.port, head, patience=2).startswith(b"HTTP/1.1 408 ")


def test_secret_of_another_participant_is_refused(served: Served) -> None:
    first, second = served.join(), served.join()
    credentials = {"participant": first["participant"], "secret": second["secret"]}
    assert served.http.post("/api/resume", json=credentials).status_code == 403
    assert served.save(credentials, answer("t1-0")).status_code == 403
    assert served.complete(credentials).status_code == 403
    unknown_participant = {"participant": "p0", "secret": first["secret"]}
    assert served.http.post("/api/resume", json=unknown_participant).status_code == 403
    reply = served.http.post("/api/responses", json={"participant": first["participant"]})
    assert reply.status_code == 403
    assert served.download("responses").text.count("\n") == 1


def test_downloads_need_the_token(served: Served) -> None:
    for table in ("responses", "participants"):
        address = f"/admin/{table}.csv"
        assert served.http.get(address).status_code == 401
        for token in ("", "wrong", "é", "\0", f"{TOKEN} ", TOKEN[:-1], f"{TOKEN}x"):
            assert served.http.get(address, params={"token": token}).status_code == 401
        for header in (b"Bearer", b"Bearer wrong", b"Bearer \xe9", f"Basic {TOKEN}".encode()):
            reply = served.http.get(address, headers={b"Authorization": header})
            assert reply.status_code == 401
        assert served.http.get(address, params={"token": TOKEN}).status_code == 200


def test_request_rates_are_limited(serve: Serve) -> None:
    served = serve(limits=RequestLimits(joining=(2, 0.5), asking=(2, 1), failing=(2, 0.1)))
    first, second = served.join(), served.join()
    reply = served.http.post("/api/participants", json={})
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == "2"
    for _ in range(2):
        assert served.save(first, answer("t1-0")).status_code == 200
    assert served.save(first, answer("t1-0")).status_code == 429
    assert served.save(second, answer("t2-0")).status_code == 200
    served.now[0] += 1
    assert served.save(first, answer("t1-0")).status_code == 200
    guesses = [served.http.get("/admin/responses.csv?token=no").status_code for _ in range(4)]
    assert guesses == [401, 401, 429, 429]


def test_unwritable_database_gives_503(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock by another process replaces the full disk; nothing is acknowledged."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    served = serve()
    joined = served.join()
    connection = sqlite3.connect(served.database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    reply = served.save(joined, answer("t1-0"))
    connection.execute("ROLLBACK")
    connection.close()
    assert reply.status_code == 503
    assert served.download("responses").text.count("\n") == 1
    assert served.save(joined, answer("t1-0")).status_code == 200


def move_database(database: Path) -> None:
    database.rename(database.with_name("aside"))


def replace_by_copy(database: Path) -> None:
    move_database(database)
    shutil.copyfile(database.with_name("aside"), database)


def replace_by_text(database: Path) -> None:
    database.unlink()
    database.write_text("something else")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "moved": move_database,
    "replaced": replace_by_copy,
    "another's": replace_by_text,
    "read-only": lambda database: database.chmod(0o400),
    "without its log": lambda database: Path(f"{database}-wal").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_database_gives_503(served: Served, damage: str) -> None:
    """SQLite itself continues to write into a deleted file."""
    joined, second = served.join(), served.join()
    assert served.save(joined, *(answer(f"t1-{n}") for n in range(4))).status_code == 200
    DAMAGES[damage](served.database)
    replies = [
        served.save(joined, answer("t1-0")),
        served.save(second, answer("t2-0")),
        served.complete(joined),
        served.http.post("/api/participants", json={}),
        served.http.get("/admin/responses.csv", headers={"Authorization": f"Bearer {TOKEN}"}),
    ]
    assert [reply.status_code for reply in replies] == [503] * 5
    assert {reply.json()["error"] for reply in replies} == {
        "Answers cannot be saved now: the database of the server is missing. Try again."
    }
    assert "code" not in replies[2].json()


def test_other_files_raise_errors(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("no database" * 1000)
    with pytest.raises(StoreError, match="Cannot use"):
        Recorder(tmp_path / "a.sqlite", "x")
    connection = sqlite3.connect(tmp_path / "b.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(StoreError, match="not a database of answers"):
        Recorder(tmp_path / "b.sqlite", "x")


def test_slider_ratings_and_missed_deadlines_are_stored(serve: Serve, tmp_path: Path) -> None:
    slider = serve(small_study(tmp_path / "slider", scale="slider", deadline=4.0))
    joined = slider.join(group="1")
    missed = {**answer("t1-1"), "rating": None, "rt_ms": None}
    assert slider.save(joined, answer("t1-0", rating=0), missed).status_code == 200
    trials = on_scale(TRIALS, Scale.SLIDER)
    rows = import_collected([slider.database], trials).responses
    assert {row.scale for row in rows} == {Scale.SLIDER}
    assert [(row.trial_id, row.rating) for row in rows] == [("t1-0", 0), ("t1-1", UNRATED)]
    assert ',"t1-1","",' in slider.download("responses").text


def test_answers_to_questions_accumulate(served: Served) -> None:
    """They can precede the first response; each request adds answers and removes none."""
    joined = served.join(group="1")
    credentials = {"participant": joined["participant"], "secret": joined["secret"]}

    def send(address: str, questions: dict[str, str], status: int = 200, **fields: Any) -> None:
        body = {**credentials, "questions": questions, **fields}
        assert served.http.post(f"/api/{address}", json=body).status_code == status

    def read_answers() -> list[tuple[str, str]]:
        stored = collected_questions(served.database)
        assert {row.participant for row in stored} <= {joined["participant"]}
        return [(row.question, row.answer) for row in stored]

    send("responses", {"age": "30", "null": "\0"}, responses=[])
    assert read_answers() == [("age", "30"), ("null", "\0")]
    send("complete", {"age": "32"}, status=409)  # refused, so not stored
    send("responses", {"age": "31"}, responses=[answer(f"t1-{n}") for n in range(4)])
    for answers in ({"age": "31", "remarks": "=1"}, {"age": "31"}):  # the second from another tab
        send("complete", answers)
    assert read_answers() == [("age", "31"), ("null", "\0"), ("remarks", "=1")]
