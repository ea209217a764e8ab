"""A log that nobody can fill: so many messages at once, and so many a minute in the long run."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from contstim.experiments.collection.limits import Rate, Throttle
from contstim.experiments.collection.messages import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGERS = ("uvicorn", "asyncio", "contstim")
_RATE = Rate(burst=20, per_second=0.1)
_LONGEST = 2_000  # characters of a message, with what led to it


class SparingHandler(logging.StreamHandler[TextIO]):
    """Writes messages, each source's (logger's) at a limited rate, and counts those left out."""

    def __init__(self, rate: Rate = _RATE, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._throttle = Throttle(rate)
        self._left_out: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or count it."""
        try:
            self._throttle.take(record.name, record.created)
        except Refusal:
            self._left_out[record.name] = self._left_out.get(record.name, 0) + 1
            return
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The message, cut to a length, and how many before it were left out."""
        text = super().format(record)[:_LONGEST]
        more = self._left_out.pop(record.name, 0)
        return f"{text} ({more:,} messages before this one were left out)" if more else text


@contextmanager
def sparing_log() -> Iterator[None]:
    """Let a server's messages go to standard error at a limited rate, and nowhere else."""
    handler = SparingHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
