"""Exported folders for collecting, and servers in this process or in their own."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette

from contstim.experiments.collection.server import listen
from contstim.experiments.platforms.jspsych.study import IDENTITY, VISIT
from contstim.experiments.responses.questionnaire import Question
from contstim.items.stimuli import Trial
from tests.interrupts import hear_interrupts

COLUMNS = ("trial_id", "sentence_1", "sentence_2")


def write_study(
    folder: Path, groups: Mapping[str, Iterable[Mapping[str, str]]], **fields: Any
) -> Path:
    """Write a folder as `export jspsych` does, with the files that a server reads."""
    folder.mkdir(parents=True, exist_ok=True)
    study = {
        "version": 1,
        "id": "a-study",
        "title": "Which sentence is likelier?",
        "minutes": 5,
        "scale": "confidence",
        "check_attempts": 2,
        "break_every": 0,
        "deadline": 0.0,
        "save": {"to": "server"},
        "completion": {},
        "texts": {},
        "questions": [asdict(Question("age", "before", "number", "Age?", False, highest=99))],
        "identify": [*IDENTITY],
        "visit": [*VISIT],
        "identities": "hashed",
        "return_link": "",
        "groups": {
            group: [{"stratum": 0, **trial} for trial in trials] for group, trials in groups.items()
        },
        **fields,
    }
    (folder / "study.json").write_text(json.dumps(study), encoding="utf-8")
    (folder / "index.html").write_text("<!doctype html><title>x</title>", encoding="utf-8")
    (folder / "experiment.js").write_text("'use strict'", encoding="utf-8")
    return folder


def small_study(folder: Path, *, groups: int = 3, trials: int = 4, **fields: Any) -> Path:
    """Write a study with the given numbers of groups and of trials per group."""
    return write_study(
        folder,
        {
            str(g): [
                dict(zip(COLUMNS, (f"t{g}-{n}", f"One {g} {n}.", f"Two {g} {n}."), strict=True))
                for n in range(trials)
            ]
            for g in range(1, groups + 1)
        },
        **fields,
    )


def export(folder: Path, trials: Iterable[Trial]) -> Path:
    """Write a study with the trials of a design."""
    groups: dict[str, list[dict[str, str]]] = defaultdict(list)
    for trial in trials:
        groups[str(trial.group)].append({name: str(getattr(trial, name)) for name in COLUMNS})
    return write_study(folder, groups)


def answer(trial_id: str, **fields: Any) -> dict[str, Any]:
    """Return a response as the page sends it."""
    return {"trial_id": trial_id, "rating": 4, "left": 1, "position": 1, "rt_ms": 812.5, **fields}


class _QuickServer(uvicorn.Server):
    """A server that stops at once, without the library's ticks of a tenth of a second."""

    async def main_loop(self) -> None:
        ticks = count()
        while not await self.on_tick(next(ticks)):
            await asyncio.sleep(0.002)


@contextmanager
def running(
    application: Callable[[int], Starlette], port: int = 0, **settings: Any
) -> Iterator[tuple[httpx2.Client, int]]:
    """Serve an application in this process, and yield a client and the port."""
    with listen("127.0.0.1", port) as listener:
        port = int(listener.getsockname()[1])
        config = uvicorn.Config(
            application(port),
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="error",
            **settings,
        )
        server = _QuickServer(config)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{port}"
            with httpx2.Client(base_url=address, trust_env=False, verify=False) as http:
                yield http, port
        finally:
            server.should_exit = True
            thread.join()


class CollectProcess:
    """`contstim collect` in another process, which tests kill and restart."""

    def __init__(self, folder: Path, database: Path, *, open_files: int | None = None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free_socket:
            self.port = int(free_socket.getsockname()[1])
        self.database = database
        program = [sys.executable, "-m", "contstim", "collect", str(folder), "--quiet"]
        program += ["--accept-platform-ids", "--rehearsal"]
        self._command = [*program, "--database", str(database), "--port", str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None
        self._open_files = open_files
        self.log = folder.parent / f"{database.name}.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        return Path(f"{self.database}.token").read_text().strip()

    def start(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "CONTSTIM_ADMIN_TOKEN"}
        command = self._command
        if self._open_files:
            limited_command = f'ulimit -n {self._open_files} && exec "$@"'
            command = ["bash", "-c", limited_command, "bash", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                bufsize=0,
                preexec_fn=hear_interrupts,
            )
        assert self._process.stdout is not None
        if not self._process.stdout.readline().startswith(b"http://127.0.0.1:"):
            self.stop()
            raise AssertionError("the server does not start")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal and wait until the process ends."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_until_it_answers(self) -> None:
        for _ in range(400):
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server does not come up")
