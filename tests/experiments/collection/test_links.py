"""Whoever lacks the token of an address can neither take part as its participant nor go on."""

from __future__ import annotations

import csv
import hashlib
import hmac
import io
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from contstim.errors import InputError
from contstim.experiments.collection.participants import participant_links
from tests.cli.running import run
from tests.experiments.collection.conftest import Serve, signed
from tests.experiments.collection.servers import answer, small_study

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
    rows = list(csv.DictReader(io.StringIO(served.download("participants").text)))
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
    assert (
        run(tmp_path, "collect", "study", "--links", "ids.txt", "--url", URL).stdout == done.stdout
    )
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
