"""A study served in this process, with a clock that tests set."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from contstim.experiments.collection.database import Recorder
from contstim.experiments.collection.participants import StudyOptions, link_token
from contstim.experiments.collection.requests import RequestLimits
from contstim.experiments.collection.server import Connections, LimitedProtocol
from contstim.experiments.collection.service import Service, read_study
from tests.experiments.collection.servers import running, small_study

TOKEN = "an-administrator's-token"
LINK_KEY = "5c" * 32
NONCE = "p0123456789abcdef"


def sign_identity(identity: str) -> dict[str, Any]:
    """Return the fields that the page sends for an address written by `--links`."""
    return {"platform": {"participant": identity}, "token": link_token(LINK_KEY, identity)}


@dataclass
class Served:
    """A running server and a connection to it."""

    http: httpx2.Client
    port: int
    database: Path
    folder: Path
    now: list[float]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def join(self, **body: Any) -> dict[str, Any]:
        reply = self.http.post("/api/participants", json={"group": None, "platform": None, **body})
        assert reply.status_code == 201, reply.text
        return dict(reply.json())

    def refusal_status(self, **body: Any) -> int:
        """Return the status of a request to join that is refused both before consent and after."""
        open_reply, join_reply = (
            self.http.post(f"/api/{path}", json=body) for path in ("open", "participants")
        )
        assert open_reply.status_code == join_reply.status_code >= 400
        return join_reply.status_code

    def save(self, joined: dict[str, Any], *answers: dict[str, Any]) -> httpx2.Response:
        return self.http.post(
            "/api/responses",
            content=json.dumps({"participant": joined["participant"], "responses": answers}),
            headers={
                "Authorization": f"Bearer {joined['secret']}",
                "Content-Type": "application/json",
            },
        )

    def complete(self, joined: dict[str, Any]) -> httpx2.Response:
        return self.http.post(
            "/api/complete",
            json={"participant": joined["participant"]},
            headers={"Authorization": f"Bearer {joined['secret']}"},
        )

    def download(self, table: str) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        reply = self.http.get(f"/admin/{table}.csv", headers=headers)
        assert reply.status_code == 200
        return reply

    def rows(self, table: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.download(table).text)))


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serve a folder, by default a small study, with options of the server."""
    with ExitStack() as stack:

        def start(
            folder: Path | None = None,
            *,
            database: Path = tmp_path / "answers.sqlite",
            limits: RequestLimits | None = None,
            connections: Connections | None = None,
            **options: Any,
        ) -> Served:
            folder = (folder or small_study(tmp_path / "experiment")).resolve()
            study = read_study(folder)
            recorder = stack.enter_context(closing(Recorder(database, study.fingerprint)))
            now = [1_000_000.0]
            service = Service(
                folder,
                study,
                recorder,
                TOKEN,
                LINK_KEY,
                options=StudyOptions(**{"accept_platform_ids": True, "rehearsal": True, **options}),
                limits=limits or RequestLimits(),
                clock=lambda: now[0],
            )
            protocol = partial(LimitedProtocol, connections or Connections(100))
            server = running(lambda _port: service.application(), http=protocol)
            http, port = stack.enter_context(server)
            return Served(http, port, database, folder, now)

        yield start


@pytest.fixture
def served(serve: Serve) -> Served:
    """A served small study."""
    return serve()
