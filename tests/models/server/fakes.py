"""Servers that speak the three dialects, healthy or with one fault.

A fake reads rows of token ids with a network of this process. Each fault changes one step of
`FakeServer`: reading, answering or HTTP. Servers answer in a thread through a socket. In tests of
parts other than HTTP, they answer without a thread and without a socket.
"""

import json
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

import httpx2
import numpy as np

Row = list[int]
Values = list[float | None]
Network = Callable[[Row], np.ndarray]  # ids -> log p of next tokens, (n_tokens, n_vocabulary)

MODEL = "tiny/gpt2"


@dataclass
class Reply:
    """An HTTP reply: a status, JSON or raw bytes, and headers."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # close in the middle of the body
    pause: float = 0.0  # seconds before the body


class FakeServer:
    """A healthy server; subclasses are faulty.

    Args:
        network: computes log-probabilities from token ids.
        tokenizer: decodes token ids.
        key: required key of requests.
        window: reported maximum number of tokens.
        returns_ids: whether `completions` can return tokens as ids.
    """

    cap = 20  # maximum number of alternatives
    version = "9.9"
    is_probed = False  # True after the probes, when some fakes become faulty

    def __init__(
        self,
        network: Network,
        tokenizer: Any,
        *,
        key: str = "",
        window: int = 64,
        returns_ids: bool = True,
    ) -> None:
        self.network, self.tokenizer = network, tokenizer
        self.key, self.window, self.returns_ids = key, window, returns_ids
        self.requests: list[tuple[str, Any]] = []
        self.rng = np.random.default_rng(0)
        self.lock = threading.Lock()

    @property
    def location(self) -> str:
        """The folder of the tokenizer."""
        return str(self.tokenizer.name_or_path)

    # Steps that faulty servers change

    def replace_row(self, row: Row) -> Row:
        """Return the tokens that the server reads instead of the tokens in the request."""
        return row

    def values(self, row: Row, log_probs: np.ndarray) -> Values:
        """Return log p of the tokens read; `log_probs` are those of all next tokens."""
        return [None, *(float(log_probs[i - 1, row[i]]) for i in range(1, len(row)))]

    def answers(self, values: Values, row: Row) -> tuple[Values, Row]:
        """Return the values and the tokens that the answer contains."""
        return values, row

    def next_values(self, log_probs: np.ndarray) -> np.ndarray:
        """Return log p of all possible next tokens, (n_vocabulary,)."""
        following: np.ndarray = log_probs[-1]
        return following

    def replace_reply(self, reply: Reply) -> Reply:
        """Return the reply that the client receives."""
        return reply

    # The three dialects

    def respond(self, path: str, body: Any, key: str) -> Reply:
        with self.lock:  # one request at a time: networks of tests are small
            self.requests.append((path, body))
            if self.key and key != f"Bearer {self.key}":
                return Reply({"error": f"bad key {key}"}, 401)
            if path == "/v1/models":
                model_entry = {"id": MODEL, "object": "model", "max_model_len": self.window}
                return Reply({"object": "list", "data": [model_entry]})
            if path in {"/version", "/server_info"}:
                return Reply({"version": self.version})
            if path == "/v1/completions":
                return self.replace_reply(self.completions(body))
            if path == "/generate":
                return self.replace_reply(self.generate(body))
            return Reply({"error": "there is nothing here"}, 404)

    def read_row(self, row: Row) -> tuple[Values, Row, np.ndarray, int]:
        row = self.replace_row(row)
        log_probs = self.network(row)
        # Sampled from the model's own probabilities
        shares = np.exp(log_probs[-1]).cumsum()
        sampled = int(np.searchsorted(shares, self.rng.random() * shares[-1]))
        values, reported_row = self.answers(self.values(row, log_probs), row)
        return values, reported_row, self.next_values(log_probs), sampled

    def select_likeliest(self, following: np.ndarray, n: int, sampled: int) -> dict[int, float]:
        n = min(n, self.cap)
        order = sorted(np.argpartition(-following, n)[:n].tolist(), key=lambda t: -following[t])
        return {token: float(following[token]) for token in (*order, sampled)}

    def completions(self, body: Any) -> Reply:
        if body.get("model") != MODEL:
            return Reply({"error": "there is no such model"}, 404)
        n = body.get("logprobs")
        if n is not None and n > self.cap:
            return Reply({"error": f"logprobs is {n}, at most {self.cap}"}, 400)
        as_ids = self.returns_ids and body.get("return_tokens_as_token_ids", False)
        choices, n_prompt = [], 0
        for index, row in enumerate(body["prompt"]):
            if len(row) + body["max_tokens"] > self.window:
                return Reply({"error": f"at most {self.window} tokens"}, 400)
            values, reported_row, following, sampled = self.read_row(row)
            n_prompt += len(reported_row)
            generated = [sampled][: body["max_tokens"]]
            text_row, echoed = (reported_row, values) if body.get("echo") else ([], [])
            text_row = [*text_row, *generated]
            choice: dict[str, Any] = {"index": index, "finish_reason": "length"}
            choice["text"] = self.tokenizer.decode(text_row)
            if n is not None:
                name = self.tokenizer.decode if not as_ids else (lambda ids: f"token_id:{ids[0]}")
                top = self.select_likeliest(following, n, sampled)
                choice["logprobs"] = {
                    "tokens": [name([token]) for token in text_row],
                    "token_logprobs": [*echoed, *(float(following[t]) for t in generated)],
                    "top_logprobs": [{name([t]): v for t, v in top.items()}],
                }
            if "prompt_logprobs" in body:
                choice["prompt_logprobs"] = [
                    None if value is None else self.make_entry(token, value)
                    for token, value in zip(reported_row, values, strict=True)
                ]
            choices.append(choice)
        usage = {"prompt_tokens": n_prompt, "completion_tokens": len(choices)}
        return Reply({"model": MODEL, "choices": choices, "usage": usage})

    def make_entry(self, token: int, value: float) -> dict[str, Any]:
        facts = {"logprob": value, "rank": 3, "decoded_token": self.tokenizer.decode([token])}
        likeliest_entry = {"logprob": -0.1, "rank": 1, "decoded_token": "x"}
        return {str(token): facts, **({} if token == 1 else {"1": likeliest_entry})}

    def generate(self, body: Any) -> Reply:
        parts = []
        for row in body["input_ids"]:
            values, reported_row, following, sampled = self.read_row(row)
            texts = [self.tokenizer.decode([token]) for token in reported_row]
            top = self.select_likeliest(following, body.get("top_logprobs_num", 0), sampled)
            meta = {
                "prompt_tokens": len(reported_row),
                "weight_version": "default",
                "input_token_logprobs": [
                    list(e) for e in zip(values, reported_row, texts, strict=True)
                ],
                "output_token_logprobs": [[float(following[sampled]), sampled, "x"]],
                "output_top_logprobs": [[[v, t, "x"] for t, v in top.items()]],
            }
            parts.append({"text": "x", "meta_info": meta})
        return Reply(parts)

    @contextmanager
    def running(self, port: int = 0) -> Iterator[str]:
        """Yield the address of the running server, without the model."""
        server = _Http(("127.0.0.1", port), _Handler)
        server.fake = self
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            server.hang_up()
            server.server_close()
            thread.join()

    @contextmanager
    def in_process(self, host: str = "at.hand") -> Iterator[str]:
        """Yield an address at which clients that are created meanwhile call this object."""

        def answer(request: httpx2.Request) -> httpx2.Response:
            body = json.loads(request.content) if request.content else None
            key = request.headers.get("Authorization", "")
            reply = self.respond(request.url.path, body, key)
            content = json.dumps(reply.body).encode()
            return httpx2.Response(reply.status, headers=reply.headers, content=content)

        http = partial(httpx2.AsyncClient, transport=httpx2.MockTransport(answer))
        with mock.patch.object(httpx2, "AsyncClient", http):
            yield f"http://{host}/v1"


MakeFake = Callable[..., FakeServer]
"""Makes a server of a kind; see the fixture `make_fake`."""


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # a rejected connection is retried only after a second
    fake: FakeServer

    def __init__(self, *arguments: Any) -> None:
        self.sockets: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.sockets.add(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        """Break the open connections, as when the process dies."""
        for connection in self.sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hung up, but print errors in fakes."""
        del request, client_address
        error = sys.exception()
        if not isinstance(error, OSError):
            traceback.print_exception(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._reply(None)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self._reply(json.loads(self.rfile.read(length)))

    def _reply(self, body: Any) -> None:
        assert isinstance(self.server, _Http)
        reply = self.server.fake.respond(self.path, body, self.headers.get("Authorization", ""))
        if reply.pause:
            threading.Event().wait(reply.pause)
        content = json.dumps(reply.body).encode()
        self.send_response(reply.status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.cut:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Print nothing."""
