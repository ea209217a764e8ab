"""Progress and results while searches run: tables for a page, and a file with the triplets.

Other processes cannot read the store of a running study. They can read the file at any time. It is
never incomplete, because each write replaces the whole file at once.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import chain
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from contstim.files.tables import write_table
from contstim.items.stimuli import triplet_columns
from contstim.reporting.report import Details, Table, short_names
from contstim.reporting.stimuli_page import stimuli_table
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contstim.items.stimuli import Triplet
    from contstim.reporter import Reporter
    from contstim.reporting.report import Part
    from contstim.store.triplets import Result

    ModelPair = tuple[str, str]

_RowT = TypeVar("_RowT", "Triplet", "Result")

_SECONDS = 10.0  # minimum time between two writes of the file
_SHARE = 0.05  # writing takes at most this proportion of the time
_SHOWN = 100  # maximum number of triplets on a page
_REPORT_SECONDS = 1.0  # minimum time between two reports if no search ends
_DEFAULT_SECONDS = 60.0  # expected time for a triplet if no search has been measured


def table_so_far(out: Path) -> Path:
    """Return the path of the table of triplets so far.

    For `triplets.csv`, it is `triplets.so-far.csv`.
    """
    return out.with_name(f"{out.stem}.so-far{out.suffix}")


def triplets_writer(
    path: Path, names: Mapping[str, str]
) -> Callable[[Mapping[ModelPair, Sequence[Result]]], None]:
    """Return a function that writes the triplets of results to a file.

    If the last write is recent, the function does nothing. The minimum time between two writes is
    ten seconds, or twenty times the duration of the first of these writes, whichever is longer. If
    there are no triplets, the function removes the file. The function raises an InputError if the
    file cannot be written. `names` maps specifications of models to names.
    """
    next_write = 0.0

    def write(results: Mapping[ModelPair, Sequence[Result]]) -> None:
        nonlocal next_write
        began = monotonic()
        if began < next_write:
            return
        triplets = [renamed(triplet, names) for triplet in _triplets(results)]
        if not triplets:  # an earlier run may have left a table
            path.unlink(missing_ok=True)
            return
        write_table(path, triplet_columns(triplets))
        ended = monotonic()
        next_write = ended + max(_SECONDS, (ended - began) / _SHARE)

    return write


def renamed(row: _RowT, names: Mapping[str, str]) -> _RowT:
    """Return a triplet or a result with new names of the models; `names` maps old to new names."""
    return replace(row, model_1=names[row.model_1], model_2=names[row.model_2])


def _triplets(results: Mapping[ModelPair, Sequence[Result]]) -> list[Triplet]:
    all_results = chain.from_iterable(results.values())
    return [r.triplet for r in all_results if r.triplet is not None and not r.is_unsuccessful]


def so_far(
    results: Mapping[ModelPair, Sequence[Result]], seconds: Mapping[ModelPair, Sequence[float]]
) -> Iterator[Part]:
    """Yield a table with a row for each pair of models, and the triplets.

    The columns are numbers of triplets and searches, and the mean duration of a search. `seconds`
    are the durations of each pair's searches in this run.
    """
    models = [*dict.fromkeys(model for pair in results for model in pair)]
    names = dict(zip(models, short_names(models), strict=True))
    rows: list[tuple[str | int, ...]] = []
    for pair, searched in results.items():
        n_triplets = len(_triplets({pair: searched}))
        unsuccessful = sum(result.is_unsuccessful for result in searched)
        failed = sum(result.state == "failed" for result in searched)
        one, two = (names[model] for model in pair)
        mean = f"{fmean(seconds[pair]):.1f}" if seconds[pair] else "–"
        rows.append((one, two, n_triplets, unsuccessful, failed, mean))
    numbers = ("triplets", "searches without a result", "failed", "seconds a search")
    yield Table(("model 1", "model 2", *numbers), rows, texts=2, is_wide=True)
    if triplets := [renamed(triplet, names) for triplet in _triplets(results)]:
        first = triplets[:_SHOWN]
        limit = "" if len(first) == len(triplets) else f" (the first {len(first):,} are shown)"
        heading = f"{quantity(len(triplets), 'triplet')} so far{limit}"
        yield Details(heading, [stimuli_table([triplet]) for triplet in first], is_open=True)


class SearchProgress:
    """Progress of the searches between all pairs of models.

    Each triplet has an expected time, which depends on the pair of models. Progress is the finished
    share of the total expected time, reported as a number of triplets. For example, 100 triplets
    are needed. If the finished triplets have 30 % of the total expected time, the progress is 30
    triplets, even if 50 triplets of fast models are finished. A running search counts in part.

    Args:
        expected: function that returns the expected seconds for a triplet of a pair of models, or
            None if they are unknown.

    Attributes:
        running: pair of models → start times of its running searches, oldest first.
    """

    def __init__(self, reporter: Reporter, expected: Callable[[ModelPair], float | None]) -> None:
        self._reporter, self._expected = reporter, expected
        self.running: defaultdict[ModelPair, list[float]] = defaultdict(list)
        self._ended: Mapping[ModelPair, int] = {}
        self._n_needed: Mapping[ModelPair, int] = {}
        self._costs: dict[ModelPair, float] = {}
        self._reported = 0.0

    def begin(self, pair: ModelPair) -> None:
        """Record the start of a search."""
        self.running[pair].append(monotonic())

    def end(self, pair: ModelPair) -> None:
        """Record the end of a search. The pair's oldest running search counts as the ended one."""
        if self.running[pair]:
            self.running[pair].pop(0)

    def report(self, ended: Mapping[ModelPair, int], n_needed: Mapping[ModelPair, int]) -> None:
        """Report the progress.

        `ended` is the number of finished triplets of each pair. `n_needed` is the number of
        triplets that each pair needs.
        """
        self._ended, self._n_needed = ended, n_needed
        self._costs = costs_of(n_needed, self._expected)
        self._report()

    def tick(self) -> None:
        """Report the progress of running searches, at most once a second."""
        if monotonic() >= self._reported + _REPORT_SECONDS:
            self._report()

    def _report(self) -> None:
        now = self._reported = monotonic()
        ended, total = sum(self._ended.values()), sum(self._n_needed.values())
        work = sum(self._costs[pair] * number for pair, number in self._n_needed.items())
        done = 0.0
        for pair, number in self._n_needed.items():
            # A running search counts less than 1, even if it takes longer than expected
            parts = (now - began for began in self.running[pair])
            running = sum(elapsed / (elapsed + self._costs[pair]) for elapsed in parts)
            done += self._costs[pair] * min(number, self._ended.get(pair, 0) + running)
        share = done / work if work else 1.0
        # Remove rounding errors from whole numbers
        triplets = round(share * total, 6)
        note = "" if triplets == ended else f"{ended:,} of {total:,} triplets"
        self._reporter.progress("triplets", triplets, total, note)


def costs_of(
    pairs: Iterable[ModelPair], expected: Callable[[ModelPair], float | None]
) -> dict[ModelPair, float]:
    """Return the expected seconds for a triplet of each pair of models.

    A pair without measurements gets the mean of the measured pairs that share a model with it. If
    no measured pair shares a model with it, it gets the mean of all measured pairs. If no pair is
    measured, all pairs get `_DEFAULT_SECONDS`.
    """
    seconds_of = {pair: seconds for pair in pairs if (seconds := expected(pair))}
    of_model = grouped((model, s) for pair, s in seconds_of.items() for model in pair)
    costs = {}
    for pair in pairs:
        of_pair = [s for model in pair for s in of_model.get(model, ())]
        similar = of_pair or [*seconds_of.values()]
        costs[pair] = seconds_of.get(pair) or (fmean(similar) if similar else _DEFAULT_SECONDS)
    return costs
