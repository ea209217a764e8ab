"""The server replies to every request as its OpenAPI description states, and never fails.

Schemathesis generates valid and invalid requests from docs/collecting.openapi.json. Hypothesis adds
nearly valid responses of a real participant, and bytes that are not HTTP.
"""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.experiments.collection.requests import RequestLimits
from tests.examples import examples
from tests.experiments.collection.conftest import TOKEN, Serve, Served
from tests.experiments.collection.servers import answer
from tests.experiments.collection.test_pages import send_bytes

JSON = {"Content-Type": "application/json"}
DESCRIPTION = Path(__file__).parents[3] / "docs" / "collecting.openapi.json"
UNLIMITED = (1e9, 1e9)
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance"
)
ADDRESSES = ("/api/open", "/api/participants", "/api/resume", "/api/responses", "/api/complete")


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(limits=RequestLimits(joining=UNLIMITED, asking=UNLIMITED, failing=UNLIMITED))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("schemathesis") is None, reason="Schemathesis is not installed")
def test_schemathesis_finds_no_undocumented_replies(served: Served, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "schemathesis.cli", "run", str(DESCRIPTION)]
    options = ["--url", f"http://127.0.0.1:{served.port}", "--checks", CHECKS, "--seed", "1"]
    options += ["--phases", "fuzzing", "--max-examples", "5"]
    options += ["--header", f"Authorization: Bearer {TOKEN}"]
    process = subprocess.run([*program, *options], cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout
    assert re.search(r"(\d+) generated, \1 passed", process.stdout), process.stdout


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 7, 2**63, 2**64, 1e308])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["\ud800", "\0", "t1-0", "=1+1", "' OR 1=1 --"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def test_invalid_fields_of_a_participant_get_valid_replies(served: Served) -> None:
    joined = served.join(group="1")

    @settings(max_examples=examples(10))
    @given(
        address=st.sampled_from(ADDRESSES),
        changed=st.dictionaries(st.sampled_from([*answer("t1-0")]), json_values, max_size=2),
        extra=st.dictionaries(
            st.sampled_from(
                [*joined, "responses", "platform", "questions", "second_tabs", "failed"]
            ),
            json_values,
            max_size=1,
        ),
    )
    def send(address: str, changed: dict[str, Any], extra: dict[str, Any]) -> None:
        body = {**joined, "responses": [{**answer("t1-0"), **changed}], "platform": None, **extra}
        header = {"Authorization": f"Bearer {joined['secret']}", **JSON}
        _check_reply(served.http.post(address, content=json.dumps(body), headers=header))

    send()
    for line in served.download("responses").text.splitlines()[1:]:
        assert re.fullmatch(r'"p[0-9a-f]{16}",1,"t1-0",[1-6],[12],\d+,(\d.*)?', line)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from([*ADDRESSES, "/", "/admin/responses.csv"]), body=st.binary())
def test_bytes_that_are_not_json_get_valid_replies(served: Served, path: str, body: bytes) -> None:
    _check_reply(served.http.post(path, content=body, headers=JSON))


methods = st.sampled_from([b"GET", b"POST", b"HEAD", b"", b"BREW"])
paths = st.sampled_from([a.encode() for a in ADDRESSES]) | st.binary(max_size=20).map(
    lambda suffix: b"/" + suffix
)
headers = st.lists(
    st.binary(max_size=20)
    | st.sampled_from(
        [
            b"Content-Type: application/json",
            b"Content-Length: 5",
            b"Content-Length: -1",
            b"Content-Length: 99999999999999999999",
            b"Transfer-Encoding: chunked",
            b"Authorization: Bearer \xff",
            b"Range: bytes=9-1,0-0,-5",
            b"Range: bytes=0-0,1-1,0-99999999999999999999",
            b"Expect: 100-continue",
            b"Upgrade: websocket",
            b"X-Forwarded-For: ,,,",
        ]
    ),
    max_size=3,
)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(method=methods, path=paths, lines=headers, body=st.binary(max_size=20))
def test_bytes_that_are_not_http_get_valid_replies_or_none(
    served: Served, method: bytes, path: bytes, lines: list[bytes], body: bytes
) -> None:
    head = [method + b" " + path + b" HTTP/1.1", b"Host: x", b"Connection: close", *lines]
    reply = send_bytes(served.port, b"\r\n".join(head) + b"\r\n\r\n" + body, patience=0.2)
    assert not reply or re.match(rb"HTTP/1\.1 [1234]\d\d ", reply), reply


def _check_reply(reply: httpx2.Response) -> None:
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        assert isinstance(reply.json()["error"], str)
