"""Progress of the searches of a study, weighted by the expected time of each pair of models."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contstim.reporter import Reporter

    ModelPair = tuple[str, str]

_REPORT_SECONDS = 1.0  # minimum time between two reports while no search ends
_DEFAULT_SECONDS = 60.0  # expected time of a search without measurements


class SearchProgress:
    """Progress of the searches between all pairs of models.

    Work is the expected time of searches: a pair of two networks counts more than one of two n-gram
    models. A running search counts in part, by its time so far.

    Args:
        reporter: receives the progress, in triplets.
        expected: function that returns the seconds for a triplet of a pair; None if unknown.
    """

    def __init__(self, reporter: Reporter, expected: Callable[[ModelPair], float | None]) -> None:
        self._reporter, self._expected = reporter, expected
        self._running: defaultdict[ModelPair, list[float]] = defaultdict(list)
        self._ended: Mapping[ModelPair, int] = {}
        self._n_needed: Mapping[ModelPair, int] = {}
        self._costs: dict[ModelPair, float] = {}
        self._reported = 0.0

    def begin(self, pair: ModelPair) -> None:
        """Record the start of a search."""
        self._running[pair].append(monotonic())

    def end(self, pair: ModelPair) -> None:
        """Record the end of a search, and take it for the oldest running one of the pair."""
        if self._running[pair]:
            self._running[pair].pop(0)

    def report(self, ended: Mapping[ModelPair, int], n_needed: Mapping[ModelPair, int]) -> None:
        """Report the progress.

        Args:
            ended: number of completed triplets of each pair.
            n_needed: number of triplets that each pair needs.
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
            # A running search counts less than 1, however long it runs
            parts = (now - began for began in self._running[pair])
            running = sum(elapsed / (elapsed + self._costs[pair]) for elapsed in parts)
            done += self._costs[pair] * min(number, self._ended.get(pair, 0) + running)
        share = done / work if work else 1.0
        # Rounded, so that the number is whole if all pairs cost the same and none runs
        triplets = round(share * total, 6)
        note = "" if triplets == ended else f"{ended:,} of {total:,} triplets"
        self._reporter.progress("triplets", triplets, total, note)


def costs_of(
    pairs: Iterable[ModelPair], expected: Callable[[ModelPair], float | None]
) -> dict[ModelPair, float]:
    """Return the seconds for a triplet of each pair.

    The default for an unknown pair is the mean of pairs that share a model with it, else of all.
    """
    seconds_of = {pair: seconds for pair in pairs if (seconds := expected(pair))}
    of_model: defaultdict[str, list[float]] = defaultdict(list)
    for pair, seconds in seconds_of.items():
        for model in pair:
            of_model[model].append(seconds)
    costs = {}
    for pair in pairs:
        similar = [*of_model[pair[0]], *of_model[pair[1]]] or [*seconds_of.values()]
        costs[pair] = seconds_of.get(pair) or (fmean(similar) if similar else _DEFAULT_SECONDS)
    return costs
