"""Groups fill evenly, whoever drops out."""

from __future__ import annotations

import csv
import io
import re

from tests.experiments.collection.conftest import Serve, signed
from tests.experiments.collection.servers import answer


def test_people_are_dealt_to_the_groups_in_turn(serve: Serve) -> None:
    served = serve()
    assert [served.join()["group"] for _ in range(7)] == list("1231231")


def test_who_is_artificial_stays_marked_in_every_download(serve: Serve) -> None:
    served = serve()
    wishes: list[dict[str, object]] = [{}, {"simulated": False}, {"simulated": True}]
    for wish in wishes:
        joined = served.join(**wish)
        served.save(joined, answer(f"t{joined['group']}-0"))
    again = signed("a")
    served.join(**again)
    assert served.refused(**again, simulated=True) == 403
    people = list(csv.DictReader(io.StringIO(served.download("participants").text)))
    assert [row["simulated"] for row in people] == ["false", "false", "true", "false"]
    names = [re.sub("[0-9a-f]{16}$", "", row["participant"]) for row in people]
    assert names == ["p", "p", "simulated-", "p"]  # the last joined as a person
    rows = list(csv.DictReader(io.StringIO(served.download("responses").text)))
    assert [row["simulated"] for row in rows] == ["false", "false", "true"]
    wrong = served.http.post("/api/participants", json={"simulated": "yes"})
    assert (wrong.status_code, "simulated must be" in wrong.text) == (422, True)


def test_artificial_participants_take_part_in_rehearsals_alone(serve: Serve) -> None:
    served = serve(rehearsal=False)
    assert served.refused(simulated=True) == 403
    assert served.refused(simulated=True, **signed("7")) == 403
    assert served.download("participants").text.count("\n") == 1


def test_a_dropout_frees_the_place_and_a_finisher_does_not(serve: Serve) -> None:
    served = serve(dropout=10)
    for group in "123":
        joined = served.join()
        assert joined["group"] == group
        if group != "2":
            served.save(joined, *(answer(f"t{group}-{n}") for n in range(4)))
            assert served.complete(joined).status_code == 200
    served.now[0] += 601
    assert [served.join()["group"] for _ in range(4)] == ["2", "1", "2", "3"]


def test_who_fails_the_check_frees_the_place_unless_they_finish_after_all(serve: Serve) -> None:
    served = serve()
    first, _ = served.join(), served.join()
    body = {name: first[name] for name in ("participant", "secret")}
    for failed in (True, False):  # an earlier request that arrives late takes nothing back
        told = {**body, "responses": [], "failed": failed}
        assert served.http.post("/api/responses", json=told).json() == {"saved": []}
    rows = list(csv.DictReader(io.StringIO(served.download("participants").text)))
    assert [row["state"] for row in rows] == ["failed", "active"]
    assert [served.join()["group"] for _ in range(2)] == ["1", "3"]
    served.save(first, *(answer(f"t1-{n}") for n in range(4)))
    served.complete(first)
    assert [served.join()["group"] for _ in range(2)] == ["2", "3"]


def test_a_wish_that_is_repeated_because_its_answer_was_lost_makes_one_participant(
    serve: Serve,
) -> None:
    """Also the last one of a full study."""
    served = serve(participants=2)
    nonce, other = "p0123456789abcdef", "pfedcba9876543210"
    first = served.join(nonce=nonce)
    assert served.join(nonce=nonce) == first
    who = {"PROLIFIC_PID": "5f3c"}
    last = served.join(nonce=other, platform=who)["participant"]
    assert served.join(nonce=other, platform=who)["participant"] == last != first["participant"]
    assert served.refused(nonce=nonce, platform=who) == 403
    assert served.join(nonce=nonce) == first
    assert served.http.post("/api/participants", json={"nonce": other}).status_code == 403
    rows = list(csv.DictReader(io.StringIO(served.download("participants").text)))
    assert [row["prolific_pid_hash"] != "" for row in rows] == [False, True]
    assert nonce not in str(rows)
