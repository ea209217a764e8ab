"""Measurements in a file next to a study's store: times of work, and comparisons of contexts.

Units of work are triplets, scored sentences, loaded models and trainings. Units and seconds are
summed over runs. A run with mostly cached results measures few units, so it hardly changes the mean
time. A context is the text that a causal model reads before a sentence.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError
from contstim.files.documents import read_json_object, write_json

if TYPE_CHECKING:
    from collections.abc import Collection

_MEMORY = 100.0  # maximum weight of older measurements, in units
_SECONDS = 30.0  # minimum time between two automatic writes of the file


@dataclass(frozen=True)
class MeasuredTime:
    """Total time of several units of work.

    Attributes:
        units: number of completed units.
        seconds: time of these units and of unfinished units.
        rows: number of sequences that networks processed.
    """

    units: float = 0.0
    seconds: float = 0.0
    rows: float = 0.0

    @property
    def a_unit(self) -> float | None:
        """Seconds per unit; None if no unit was completed."""
        return self.seconds / self.units if self.units else None


class Times:
    """Times measured on this machine, in a JSON file. Times from another machine are discarded.

    Args:
        path: path of the file; a missing or unreadable file counts as empty.

    Attributes:
        contexts: specification of a causal model → comparison of its context with other contexts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._machine = platform.node()
        self._times: dict[str, MeasuredTime] = {}
        self.contexts: dict[str, dict[str, Any]] = {}
        self._saved, self._changed = monotonic(), False
        with suppress(ContstimError, AttributeError, KeyError, TypeError):
            content = read_json_object(path)
            if content["machine"] == self._machine:
                times = content["times"].items()
                self._times = {key: MeasuredTime(**values) for key, values in times}
                self.contexts = dict(content.get("contexts", {}))

    def get(self, key: str) -> MeasuredTime:
        """Return the total time of a kind of work; 0 units if this work was not measured."""
        return self._times.get(key, MeasuredTime())

    def add(self, key: str, *, units: float, seconds: float, rows: float = 0.0) -> None:
        """Add units of a kind of work; write the file if the last write was over 30 seconds ago."""
        old = self.get(key)
        share = min(1.0, _MEMORY / old.units) if old.units else 1.0
        sums = (share * old.units + units, share * old.seconds + seconds, share * old.rows + rows)
        self._times[key] = MeasuredTime(*sums)
        self._changed = True
        if monotonic() > self._saved + _SECONDS:
            self.save()

    def add_context(self, specification: str, facts: dict[str, Any]) -> None:
        """Store a comparison of the context of a model with other contexts."""
        self.contexts[specification] = facts
        self._changed = True

    def forget_models(self, specifications: Collection[str]) -> None:
        """Remove the measurements of retrained models, given by their specifications."""
        for key in [*self._times]:
            kind, *models = key.split(" ")
            if kind in ("load", "score", "search") and not {*models}.isdisjoint(specifications):
                del self._times[key]
                self._changed = True
        for specification in specifications:
            self._changed |= self.contexts.pop(specification, None) is not None

    def save(self) -> None:
        """Write the file, if measurements were added since the last write."""
        self._saved = monotonic()
        if self._changed:
            times = {key: asdict(measured) for key, measured in sorted(self._times.items())}
            # If the times cannot be written, the run continues
            with suppress(ContstimError):
                content = {"machine": self._machine, "times": times, "contexts": self.contexts}
                write_json(self.path, content)
            self._changed = False


def times_beside(store: Path | str) -> Times:
    """Read the times in the file next to a store, such as `contstim.sqlite.times.json`."""
    return Times(Path(f"{store}.times.json"))
