"""A collecting server in memory, as the page expects one; it can be told to fail."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CODE = "DONE-42"


@dataclass
class FakeServer:
    """What the server knows, and how it is to behave."""

    folder: Path
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    # For each participant, how many answers were kept when the code was given
    completed: dict[str, int] = field(default_factory=dict)
    # What the last one answered beside the trials
    questions: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)  # who failed the check of the instructions
    requests: list[str] = field(default_factory=list)
    failing: int = 0  # how many requests to the API it still answers with 503
    muttering: int = 0  # how many requests it still does what they ask for, and answers with 503
    refusing: bool = False  # whether it takes no answers
    forgetting: bool = False  # whether it loses all answers once, when it is first asked for a code
    redirect: str | None = None
    full: bool = False  # whether it takes nobody in any more
    address: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def groups(self) -> dict[str, list[dict[str, Any]]]:
        groups: dict[str, list[dict[str, Any]]] = json.loads(
            (self.folder / "study.json").read_text(encoding="utf-8")
        )["groups"]
        return groups

    def rows(self, participant: str) -> list[dict[str, Any]]:
        found = [row for (name, _), row in self.answers.items() if name == participant]
        return sorted(found, key=lambda row: row["position"])

    def answer(
        self, path: str, secret: str | None, body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        with self.lock:
            self.requests.append(path)
            if self.failing > 0:
                self.failing -= 1
                return 503, {"error": "busy"}
            done = self._do(path, secret, body)
            if self.muttering > 0:
                self.muttering -= 1
                return 503, {"error": "busy"}
            return done

    def _do(
        self, path: str, secret: str | None, body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if path == "/api/open":
            return 200, {"open": not self.full}
        if path == "/api/participants" and self.full:
            return 403, {"error": "The study is full.", "full": True}
        if path == "/api/participants":
            return 201, self._join(body)
        person = self.people.get(body["participant"])
        if person is None or (secret or body.get("secret")) != person["secret"]:
            return 403, {"error": "unknown participant"}
        if path == "/api/resume":
            return 200, {**person, "answered": self.rows(person["participant"])}
        self.questions = body.get("questions", self.questions)
        self.failed |= {body["participant"]} if body.get("failed") else set()
        if path == "/api/responses" and self.refusing:
            return 422, {"error": "The study is over."}
        if path == "/api/responses":
            return self._keep(person, body["responses"])
        return self._complete(person)

    def _join(self, body: dict[str, Any]) -> dict[str, Any]:
        for person in self.people.values():
            if body["platform"] and person["platform"] == body["platform"]:
                return {**person, "answered": self.rows(person["participant"])}
        started = Counter(person["group"] for person in self.people.values())
        group = body["group"] or min(self.groups, key=lambda name: started[name])
        number = len(self.people) + 1
        person = {
            "participant": f"p{number}",
            "secret": f"secret-{number}",
            "group": group,
            "seed": 1_000_003 * number,
            "platform": body["platform"],
        }
        self.people[f"p{number}"] = person
        return {**person, "answered": []}

    def _keep(
        self, person: dict[str, Any], responses: list[dict[str, Any]]
    ) -> tuple[int, dict[str, Any]]:
        known = {trial["trial_id"] for trial in self.groups[person["group"]]}
        for row in responses:
            if row["trial_id"] not in known or row["rating"] not in (None, *range(101)):
                return 422, {"error": "unknown trial or rating"}
            self.answers.setdefault((person["participant"], row["trial_id"]), row)
        return 200, {"saved": [row["trial_id"] for row in responses]}

    def _complete(self, person: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.forgetting:
            self.forgetting = False
            self.answers.clear()
        kept = len(self.rows(person["participant"]))
        missing = len(self.groups[person["group"]]) - kept
        if missing:
            return 409, {"missing": missing}
        self.completed[person["participant"]] = kept
        return 200, {"code": CODE, "redirect": self.redirect}


class Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, server_state: FakeServer, **kwargs: Any) -> None:
        self.state = server_state
        super().__init__(*args, directory=str(server_state.folder), **kwargs)

    def end_headers(self) -> None:
        """Files may change within a second, which is as exact as Last-Modified is."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        scheme, _, secret = (self.headers["Authorization"] or "").partition(" ")
        status, content = self.state.answer(self.path, secret if scheme == "Bearer" else None, body)
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


def start(state: FakeServer) -> tuple[ThreadingHTTPServer, str]:
    """Serve until `shutdown` is called; the address ends in a slash."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, server_state=state))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"
