"""Results of searches while others still run: tables for a page, and a table of triplets.

The store is open for one process alone, because locks of network file systems are not reliable. So
readers get a table of their own, which is replaced as a whole and works on every file system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from contstim.files.tables import columns_of, write_table
from contstim.items.stimuli import Triplet
from contstim.reporting.names import short_names
from contstim.reporting.report import Details, Table
from contstim.reporting.stimuli_page import stimuli_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.reporting.report import Part
    from contstim.store.triplets import Result

_SECONDS = 10.0  # between two writes of the table
_SHARE = 0.05  # of the time that writing may take
_SHOWN = 100  # triplets on a page


@dataclass
class MeanSeconds:
    """Mean time of the searches between two models, in this run."""

    total: float = 0.0
    searches: int = 0

    def add(self, seconds: float) -> None:
        """Count a search."""
        self.total += seconds
        self.searches += 1

    def __str__(self) -> str:
        return f"{self.total / self.searches:.1f}" if self.searches else "–"


def table_so_far(out: Path) -> Path:
    """Path of the table of triplets so far: `triplets.csv` has `triplets.so-far.csv`."""
    return out.with_name(f"{out.stem}.so-far{out.suffix}")


class TripletsSoFar:
    """A table of the triplets that are found, written every few seconds while searches run.

    Args:
        path: the table.
        names: names of the models, by their specifications.
    """

    def __init__(self, path: Path, names: Mapping[str, str]) -> None:
        self._path, self._names = path, names
        self._next = 0.0  # time of the next write

    def write(self, results: Mapping[tuple[str, str], Sequence[Result]]) -> None:
        """Write the triplets of results, unless that was done a moment ago.

        Raises:
            InputError: the file cannot be written.
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
            for triplet in _found(results)
        ]
        if not triplets:  # an earlier run may have left a table
            self._path.unlink(missing_ok=True)
            return
        write_table(self._path, columns_of(Triplet, triplets))
        ended = monotonic()
        self._next = ended + max(_SECONDS, (ended - began) / _SHARE)


def _found(results: Mapping[tuple[str, str], Sequence[Result]]) -> list[Triplet]:
    """The triplets of results, without those whose sentences are not all different."""
    every = (result for of_pair in results.values() for result in of_pair)
    return [r.triplet for r in every if r.triplet is not None and not r.in_vain]


def so_far(
    results: Mapping[tuple[str, str], Sequence[Result]],
    in_vain: Mapping[tuple[str, str], int],
    seconds: Mapping[tuple[str, str], MeanSeconds],
) -> Iterator[Part]:
    """Numbers and speed of the searches between every two models, and the triplets they found.

    Args:
        results: of searches, by the two models.
        in_vain: number of searches that found nothing new, by the two models.
        seconds: mean time of the searches, by the two models.
    """
    models = [*dict.fromkeys(model for pair in results for model in pair)]
    names = dict(zip(models, short_names(models), strict=True))
    rows: list[tuple[str | int, ...]] = []
    for pair, searched in results.items():
        found = len(_found({pair: searched}))
        failed = sum(result.state == "failed" for result in searched)
        one, two = (names[model] for model in pair)
        rows.append((one, two, found, in_vain[pair], failed, str(seconds[pair])))
    numbers = ("triplets", "searches without a result", "failed", "seconds a search")
    yield Table(("model 1", "model 2", *numbers), rows, texts=2, is_wide=True)
    triplets = [
        replace(triplet, model_1=names[triplet.model_1], model_2=names[triplet.model_2])
        for triplet in _found(results)
    ]
    if triplets:
        shown = triplets[:_SHOWN]
        limit = "" if len(shown) == len(triplets) else f" (the first {len(shown):,} are shown)"
        heading = f"{counted(len(triplets), 'triplet')} so far{limit}"
        yield Details(heading, [stimuli_table([triplet]) for triplet in shown], is_open=True)
