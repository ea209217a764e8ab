"""What the page may ask, and what it is told."""

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
from tests.experiments.collection.test_pages import raw
from tests.experiments.platforms.conftest import TRIALS


def test_a_participant_joins_answers_comes_back_and_completes(serve: Serve) -> None:
    served = serve(code="C0DE", redirect="https://example.org/?cc=C0DE")
    joined = served.join()
    assert joined["group"] == "1"
    assert joined["answered"] == []
    first = answer("t1-0", rating=6, left=2, position=1, rt_ms=1234)
    assert served.save(joined, first).json() == {"saved": ["t1-0"]}
    again = served.http.post("/api/resume", json=joined)
    assert again.status_code == 200
    assert again.json() == {**joined, "answered": [{**first, "rt_ms": 1234.0}]}
    refused = served.complete(joined)
    assert (refused.status_code, refused.json()["missing"]) == (409, 3)
    rest = [answer(f"t1-{n}", position=n + 1, rt_ms=None) for n in (1, 2, 3)]
    assert served.save(joined, *rest).json() == {"saved": ["t1-1", "t1-2", "t1-3"]}
    done = served.complete(joined)
    assert done.json() == {"code": "C0DE", "redirect": "https://example.org/?cc=C0DE"}
    assert done.headers["cache-control"] == "no-store"


def test_the_first_answer_stands_and_a_repeat_is_a_success(served: Served) -> None:
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


def test_an_impossible_answer_is_refused_with_its_whole_request(served: Served) -> None:
    joined = served.join(group="1")
    for name, value in ((name, value) for name, values in IMPOSSIBLE.items() for value in values):
        refused = served.save(joined, answer("t1-1"), {**answer("t1-0"), name: value})
        assert refused.status_code in (400, 422), (name, value)
        assert refused.json()["error"]
    assert served.download("responses").text.count("\n") == 1


def test_a_refusal_names_the_field_in_plain_words_and_never_its_value(served: Served) -> None:
    joined = served.join(group="1")
    said = {
        name: served.save(joined, answer("t1-1"), {**answer("t1-0"), name: value}).json()["error"]
        for name, value in {"rating": 101, "left": "secret", "rt_ms": True, "trial_id": ""}.items()
    }
    assert said == {
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


def test_what_any_web_page_may_send_without_being_asked_back_is_refused(served: Served) -> None:
    """Content types that browsers send across origins without a preflight (Fetch standard)."""
    plain = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    for kind in (*plain, "", "text/plain; application/json"):
        for address in ("participants", "resume", "responses", "complete"):
            refused = served.http.post(
                f"/api/{address}", content=b"{}", headers={"Content-Type": kind}
            )
            assert refused.status_code == 415, kind
            assert "application/json" in refused.json()["error"]
    assert served.download("participants").text.count("\n") == 1
    said = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert served.http.post("/api/participants", content=b"{}", headers=said).status_code == 201


def test_a_body_without_a_stated_length_or_an_end_is_not_waited_for(serve: Serve) -> None:
    served = serve(limits=RequestLimits(body_seconds=0.2))
    endless = (b" " * 50_000 for _ in range(10))
    given = served.http.post("/api/participants", content=endless, headers=JSON)
    assert given.status_code == 413
    head = (
        b"POST /api/participants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: 9\r\n\r\n{"
    )
    assert raw(served.port, head, patience=2).startswith(b"HTTP/1.1 408 ")


def test_nobody_reads_or_writes_for_another(served: Served) -> None:
    one, other = served.join(), served.join()
    stolen = {"participant": one["participant"], "secret": other["secret"]}
    assert served.http.post("/api/resume", json=stolen).status_code == 403
    assert served.save(stolen, answer("t1-0")).status_code == 403
    assert served.complete(stolen).status_code == 403
    nobody = {"participant": "p0", "secret": one["secret"]}
    assert served.http.post("/api/resume", json=nobody).status_code == 403
    bare = served.http.post("/api/responses", json={"participant": one["participant"]})
    assert bare.status_code == 403
    assert served.download("responses").text.count("\n") == 1


def test_downloads_need_the_token(served: Served) -> None:
    for table in ("responses", "participants"):
        address = f"/admin/{table}.csv"
        assert served.http.get(address).status_code == 401
        for token in ("", "wrong", "é", "\0", f"{TOKEN} ", TOKEN[:-1], f"{TOKEN}x"):
            assert served.http.get(address, params={"token": token}).status_code == 401
        for header in (b"Bearer", b"Bearer wrong", b"Bearer \xe9", f"Basic {TOKEN}".encode()):
            refused = served.http.get(address, headers={b"Authorization": header})
            assert refused.status_code == 401
        assert served.http.get(address, params={"token": TOKEN}).status_code == 200


def test_who_asks_too_often_waits(serve: Serve) -> None:
    served = serve(limits=RequestLimits(joining=(2, 0.5), asking=(2, 1), failing=(2, 0.1)))
    first, second = served.join(), served.join()
    refused = served.http.post("/api/participants", json={})
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "2"
    for _ in range(2):
        assert served.save(first, answer("t1-0")).status_code == 200
    assert served.save(first, answer("t1-0")).status_code == 429
    assert served.save(second, answer("t2-0")).status_code == 200
    served.now[0] += 1
    assert served.save(first, answer("t1-0")).status_code == 200
    guesses = [served.http.get("/admin/responses.csv?token=no").status_code for _ in range(4)]
    assert guesses == [401, 401, 429, 429]


def test_a_full_disk_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that holds the database replaces the disk; nothing is acknowledged."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    served = serve()
    joined = served.join()
    other = sqlite3.connect(served.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = served.save(joined, answer("t1-0"))
    other.execute("ROLLBACK")
    other.close()
    assert refused.status_code == 503
    assert served.download("responses").text.count("\n") == 1
    assert served.save(joined, answer("t1-0")).status_code == 200


def moved(database: Path) -> None:
    database.rename(database.with_name("aside"))


def copied(database: Path) -> None:
    moved(database)
    shutil.copyfile(database.with_name("aside"), database)


def taken(database: Path) -> None:
    database.unlink()
    database.write_text("something else")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "moved": moved,
    "replaced": copied,
    "another's": taken,
    "read-only": lambda database: database.chmod(0o400),
    "without its log": lambda database: Path(f"{database}-wal").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_without_its_database_the_server_acknowledges_nothing(served: Served, damage: str) -> None:
    """SQLite itself goes on writing into a file that no longer has a name."""
    joined, other = served.join(), served.join()
    assert served.save(joined, *(answer(f"t1-{n}") for n in range(4))).status_code == 200
    DAMAGES[damage](served.database)
    refused = [
        served.save(joined, answer("t1-0")),
        served.save(other, answer("t2-0")),
        served.complete(joined),
        served.http.post("/api/participants", json={}),
        served.http.get("/admin/responses.csv", headers={"Authorization": f"Bearer {TOKEN}"}),
    ]
    assert [given.status_code for given in refused] == [503] * 5
    assert {given.json()["error"] for given in refused} == {
        "Answers cannot be saved now: the database of the server is missing. Try again."
    }
    assert "code" not in refused[2].json()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_text("no database" * 1000)
    with pytest.raises(StoreError, match="Cannot use"):
        Recorder(tmp_path / "a.sqlite", "x")
    other = sqlite3.connect(tmp_path / "b.sqlite")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(StoreError, match="not a database of answers"):
        Recorder(tmp_path / "b.sqlite", "x")


def test_ratings_fit_the_scale_and_lack_at_deadlines_only(serve: Serve, tmp_path: Path) -> None:
    slider = serve(small_study(tmp_path / "slider", scale="slider", deadline=4.0))
    joined = slider.join(group="1")
    late = {**answer("t1-1"), "rating": None, "rt_ms": None}
    assert slider.save(joined, answer("t1-0", rating=0), late).status_code == 200
    trials = on_scale(TRIALS, Scale.SLIDER)
    rows = import_collected([slider.database], trials).responses
    assert {row.scale for row in rows} == {Scale.SLIDER}
    assert [(row.trial_id, row.rating) for row in rows] == [("t1-0", 0), ("t1-1", UNRATED)]
    assert ',"t1-1","",' in slider.download("responses").text


def test_answers_to_questions_come_from_the_database(served: Served) -> None:
    """Before the first answer to a trial; each request adds to them, and takes none back."""
    joined = served.join(group="1")
    known = {"participant": joined["participant"], "secret": joined["secret"]}

    def tell(address: str, questions: dict[str, str], status: int = 200, **more: Any) -> None:
        body = {**known, "questions": questions, **more}
        assert served.http.post(f"/api/{address}", json=body).status_code == status

    def told() -> list[tuple[str, str]]:
        given = collected_questions(served.database)
        assert {each.participant for each in given} <= {joined["participant"]}
        return [(each.question, each.answer) for each in given]

    tell("responses", {"age": "30", "null": "\0"}, responses=[])
    assert told() == [("age", "30"), ("null", "\0")]
    tell("complete", {"age": "32"}, status=409)  # refused, and so not kept
    tell("responses", {"age": "31"}, responses=[answer(f"t1-{n}") for n in range(4)])
    for given in ({"age": "31", "remarks": "=1"}, {"age": "31"}):  # the latter of another tab
        tell("complete", given)
    assert told() == [("age", "31"), ("null", "\0"), ("remarks", "=1")]
