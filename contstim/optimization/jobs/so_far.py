"""Results of searches while others still run: tables for a page, and a table of triplets.

The store is open for one process only, because locks of network file systems are not reliable. So
readers get a separate table, which is replaced as a whole and works on every file system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING

from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Triplet
from contstim.reporting.report import Details, Table, short_names
from contstim.reporting.stimuli_page import stimuli_table
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.reporting.report import Part
    from contstim.store.triplets import Result

_SECONDS = 10.0  # minimum time between two writes of the table
_SHARE = 0.05  # maximum share of the time for writing
_SHOWN = 100  # maximum number of triplets on a page


@dataclass
class MeanSeconds:
    """Mean time of a search between two models, in this run."""

    total: float = 0.0
    searches: int = 0

    def add(self, seconds: float) -> None:
        """Count a search."""
        self.total += seconds
        self.searches += 1

    def __str__(self) -> str:
        return f"{self.total / self.searches:.1f}" if self.searches else "–"


def table_so_far(out: Path) -> Path:
    """Return the path of the triplets so far: `triplets.so-far.csv` for `triplets.csv`."""
    return out.with_name(f"{out.stem}.so-far{out.suffix}")


class TripletsSoFar:
    """A table of the triplets so far, written every few seconds while searches run.

    Args:
        path: path of the table.
        names: names of the models, by specification.
    """

    def __init__(self, path: Path, names: Mapping[str, str]) -> None:
        self._path, self._names = path, names
        self._next = 0.0  # time of the next write

    def write(self, results: Mapping[tuple[str, str], Sequence[Result]]) -> None:
        """Write the triplets of results, unless the last write was a moment ago.

        Raises:
            InputError: if the file cannot be written.
        """
        began = monotonic()
        if began < self._next:
            return
        triplets = [
            replace(
                triplet,
                model_1=self._names.get(triplet.model_1, triplet.model_1),
                model_2=self._names.get(triplet.model_2, triplet.model_2),
            )
            for triplet in _triplets(results)
        ]
        if not triplets:  # there may be a table of an earlier run
            self._path.unlink(missing_ok=True)
            return
        write_table(self._path, columns_of(Triplet, triplets))
        ended = monotonic()
        self._next = ended + max(_SECONDS, (ended - began) / _SHARE)


def _triplets(results: Mapping[tuple[str, str], Sequence[Result]]) -> list[Triplet]:
    """Return the triplets whose three sentences are all different."""
    all_results = chain.from_iterable(results.values())
    return [r.triplet for r in all_results if r.triplet is not None and not r.is_unsuccessful]


def so_far(
    results: Mapping[tuple[str, str], Sequence[Result]],
    seconds: Mapping[tuple[str, str], MeanSeconds],
) -> Iterator[Part]:
    """Yield the number and speed of the searches between every two models, and their triplets.

    Args:
        results: results of the searches, by pair of models.
        seconds: mean time of a search, by pair of models.
    """
    models = [*dict.fromkeys(model for pair in results for model in pair)]
    names = dict(zip(models, short_names(models), strict=True))
    rows: list[tuple[str | int, ...]] = []
    for pair, searched in results.items():
        n_triplets = len(_triplets({pair: searched}))
        unsuccessful = sum(result.is_unsuccessful for result in searched)
        failed = sum(result.state == "failed" for result in searched)
        one, two = (names[model] for model in pair)
        rows.append((one, two, n_triplets, unsuccessful, failed, str(seconds[pair])))
    numbers = ("triplets", "searches without a result", "failed", "seconds a search")
    yield Table(("model 1", "model 2", *numbers), rows, texts=2, is_wide=True)
    triplets = [
        replace(triplet, model_1=names[triplet.model_1], model_2=names[triplet.model_2])
        for triplet in _triplets(results)
    ]
    if triplets:
        first = triplets[:_SHOWN]
        limit = "" if len(first) == len(triplets) else f" (the first {len(first):,} are shown)"
        heading = f"{quantity(len(triplets), 'triplet')} so far{limit}"
        yield Details(heading, [stimuli_table([triplet]) for triplet in first], is_open=True)
