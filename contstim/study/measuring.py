"""Time-limited measurement of the speed of a study on this machine; see `probe`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from time import monotonic
from typing import IO, TYPE_CHECKING

from contstim.files.files import lock_holder, write_text
from contstim.store.times import times_beside
from contstim.study.places import LOCK, STORE

if TYPE_CHECKING:
    from contstim.reporter import Reporter
    from contstim.store.times import Times
    from contstim.study.study import Study
    from contstim.study.supply import NaturalSupply

_PULSE = 1.0  # seconds between two reports of progress
_TO_END = 3.0  # seconds that are left when the process should have ended by itself


def stored_times() -> Times:
    """Times that were measured for the study whose folder is the current one."""
    return times_beside(STORE)


def measure(
    study: Study, supply: NaturalSupply | None, seconds: float, reporter: Reporter
) -> tuple[Times, list[str]]:
    """Measure training, scoring and searches of stages that are not done; store the times.

    Another process measures and is killed when the time is over. While a run of the study stores
    times itself, the measured times are used and not stored.

    Args:
        study: as `read_study` reads it; the current folder is its own.
        supply: natural sentences that stages have yet to find.
        seconds: time limit in all.
        reporter: receives the elapsed time.

    Returns:
        All times, and one sentence for each failed measurement.
    """
    times, problems = stored_times(), []
    deadline = monotonic() + seconds
    with TemporaryDirectory() as folder:
        if supply is not None and supply.found_sentences is not None:
            lines = "".join(f"{sentence.text}\n" for sentence in supply.found_sentences.sentences)
            write_text(f"{folder}/{study.files['sentences'].name}", lines)
            if supply.vocabulary is not None:
                supply.vocabulary.save(f"{folder}/{study.files['vocabulary'].name}")
        command = [sys.executable, "-m", "contstim.study.probe"]
        arguments = [str(study.path), folder, str(max(1.0, seconds - _TO_END))]
        # The other process must find the modules of this one
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
        ) as process:
            assert process.stdout is not None
            lines_read: SimpleQueue[str] = SimpleQueue()
            Thread(target=_forward_lines, args=(process.stdout, lines_read), daemon=True).start()
            try:
                while (remaining := deadline - monotonic()) > 0:
                    reporter.progress("measuring", seconds - remaining, seconds)
                    try:
                        line = lines_read.get(timeout=min(_PULSE, remaining))
                    except Empty:
                        continue
                    if not line:
                        break
                    message = json.loads(line)
                    if "problem" in message:
                        problems.append(message["problem"])
                    elif "context" in message:
                        times.add_context(message["context"], message["facts"])
                    else:
                        times.add(message.pop("key"), **message)
                if process.poll():
                    problems.append(f"Measuring ended early, with status {process.returncode}.")
            finally:
                process.kill()
    reporter.progress("measuring", seconds, seconds)
    if lock_holder(LOCK) is None:
        times.save()
    return times, problems


def _forward_lines(pipe: IO[str], lines: SimpleQueue[str]) -> None:
    """Pass on lines as they come, and an empty one at the end."""
    for line in pipe:
        lines.put(line)
    lines.put("")
