"""The server of a review: saved decisions, refused requests, and protected files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contstim.errors import InputError
from contstim.experiments.collection.reviewing import ReviewFile, review_application, review_file
from contstim.items.reviews import Decision, Review, read_reviews, undecided_items, write_review
from contstim.items.stimuli import Pair
from contstim.reporting.review import ReviewPage
from contstim.words.sentence import Sentence
from tests.experiments.collection.servers import running
from tests.experiments.stimuli import some_pairs, some_triplets

TRIPLETS = some_triplets(1)
IDS = [triplet.triplet_id for triplet in TRIPLETS]


@dataclass
class Served:
    http: httpx2.Client
    port: int
    file: ReviewFile

    def decide(self, *decisions: tuple[str, str, str], **headers: str) -> httpx2.Response:
        fields = ("item_id", "decision", "reason")
        return self.http.post(
            "/decisions",
            json={
                "fingerprint": self.file.content.fingerprint,
                "decisions": [dict(zip(fields, row, strict=True)) for row in decisions],
            },
            headers=headers,
        )


def open_review(path: Path, reviewer: str = "", review: Review | None = None) -> ReviewFile:
    return ReviewFile.open(path, ReviewPage(TRIPLETS, "x", reviewer=reviewer), "t.csv", review)


@contextmanager
def serve_review(file: ReviewFile) -> Iterator[Served]:
    with running(partial(review_application, file)) as (http, port):
        yield Served(http, port, file)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve_review(open_review(tmp_path / "review.csv")) as server:
        yield server


def test_decisions_are_saved_before_the_reply(served: Served) -> None:
    assert not served.file.path.exists()
    assert served.decide((IDS[0], "keep", ""), (IDS[1], "reject", "odd")).json() == {"saved": 2}
    assert served.decide((IDS[0], "reject", "it's “rude”")).status_code == 200
    review = read_reviews([served.file.path])
    assert [item.item_id for item in review.decisions] == IDS
    assert review.rejected == set(IDS[:2])
    assert served.decide((IDS[0], "", ""), (IDS[1], "", "")).status_code == 200
    assert not read_reviews([served.file.path]).last_decisions
    assert open_review(served.file.path).decisions.keys() <= set(IDS)  # the review can be resumed


def test_review_resumes_where_it_stopped(tmp_path: Path) -> None:
    for reviewer in ("", "Ann"):
        path = review_file(tmp_path / "review.html", reviewer)
        with serve_review(open_review(path, reviewer)) as server:
            server.decide((IDS[2], "reject", "odd"))
        with serve_review(open_review(path, reviewer)) as server:
            assert f'"id": "{IDS[2]}"' in server.http.get("/").text
            server.decide((IDS[3], "keep", ""))
        review = read_reviews([path])
        assert {d.reviewer for d in review.decisions} == {reviewer or "review"}
        decisions = {d.item_id: str(d.decision) for d in review.decisions if d.decision}
        assert decisions == {IDS[2]: "reject", IDS[3]: "keep"}
    assert {file.name for file in tmp_path.iterdir()} == {"review.csv", "review-Ann.csv"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:PORT", "origin": "http://localhost:PORT"}, 200),
        ({"host": "evil.example:PORT"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_other_sites_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    headers = {name: value.replace("PORT", str(served.port)) for name, value in headers.items()}
    assert served.http.get("/", headers=headers).status_code == status
    assert served.decide((IDS[0], "keep", ""), **headers).status_code == status
    assert served.file.path.exists() is (status == 200)


def test_forms_of_other_sites_cannot_save_decisions(served: Served) -> None:
    reply = served.http.post("/decisions", content="{}", headers={"content-type": "text/plain"})
    assert reply.status_code == 415
    page_headers = served.http.get("/").headers
    assert page_headers["content-security-policy"] == "frame-ancestors 'none'"
    assert page_headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda body: body | {"fingerprint": "of-others"}, 409),
        (lambda body: body | {"decisions": []}, 422),
        (lambda body: body | {"decisions": body["decisions"] * 2 + [{}]}, 422),
        (lambda body: {**body, "decisions": [body["decisions"][0] | {"item_id": "x"}]}, 422),
        (lambda body: {**body, "decisions": [body["decisions"][0] | {"decision": "no"}]}, 422),
        (lambda body: {**body, "decisions": [body["decisions"][0] | {"reason": "a\nb"}]}, 422),
        (lambda body: {**body, "decisions": [body["decisions"][0] | {"reason": "a" * 501}]}, 422),
        (lambda body: [body], 422),
    ],
)
def test_invalid_decisions(served: Served, change: Callable[[Any], Any], status: int) -> None:
    body = {
        "fingerprint": served.file.content.fingerprint,
        "decisions": [{"item_id": IDS[0], "decision": "keep", "reason": ""}],
    }
    reply = served.http.post("/decisions", json=change(body))
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]
    assert not served.file.path.exists()


def test_missing_folder_gives_503(served: Served) -> None:
    folder = served.file.path.with_name("gone")
    folder.write_text("")
    served.file.path = folder / "review.csv"
    reply = served.decide((IDS[1], "keep", ""))
    assert reply.status_code == 503
    assert "Cannot write" in reply.json()["error"]


def test_other_reviews_are_not_overwritten(tmp_path: Path) -> None:
    def check_refusal(stimuli: Any, message: str, reviewer: str = "Bea") -> None:
        items = undecided_items(stimuli, reviewer)
        decided_items = [replace(item, decision=Decision.KEEP) for item in items]
        write_review(tmp_path / "review.csv", decided_items)
        content = (tmp_path / "review.csv").read_bytes()
        with pytest.raises(InputError, match=f"is not overwritten by this review. {message}"):
            open_review(tmp_path / "review.csv", "Ann")
        assert (tmp_path / "review.csv").read_bytes() == content

    check_refusal(TRIPLETS, "It is the review of Bea")
    check_refusal([replace(TRIPLETS[0], triplet_id="x")], "The review is about other items", "Ann")
    changed = replace(TRIPLETS[0], natural=Sentence.parse("We saw another one"))
    check_refusal([changed], f"{changed.triplet_id} has changed since the review", "Ann")
    pair: Pair = some_pairs(1)[0]
    check_refusal([pair], "It is a review of pairs", "Ann")
    (tmp_path / "review.csv").write_text("something else")
    with pytest.raises(InputError, match="is not overwritten"):
        open_review(tmp_path / "review.csv", "Ann")
