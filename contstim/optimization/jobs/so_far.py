"""Tables of what searches for triplets have found so far, for who waits for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contstim.reporting.names import short_names
from contstim.reporting.report import Heading, Table
from contstim.reporting.stimuli_page import stimuli_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.reporting.report import Part
    from contstim.stimuli import Triplet
    from contstim.store.triplets import Result


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


def so_far(
    results: Mapping[tuple[str, str], Sequence[Result]],
    in_vain: Mapping[tuple[str, str], int],
    seconds: Mapping[tuple[str, str], MeanSeconds],
) -> Iterator[Part]:
    """Numbers and speed of the searches between every two models, and the first triplet of each.

    Args:
        results: of searches, by the two models.
        in_vain: how many of them found nothing new.
        seconds: that they took.
    """
    models = [*dict.fromkeys(model for pair in results for model in pair)]
    names = dict(zip(models, short_names(models), strict=True))
    rows: list[tuple[str | int, ...]] = []
    first: list[Triplet] = []
    for pair, searched in results.items():
        found = [r.triplet for r in searched if r.triplet is not None and not r.in_vain]
        failed = sum(result.state == "failed" for result in searched)
        one, two = (names[model] for model in pair)
        rows.append((one, two, len(found), in_vain[pair], failed, str(seconds[pair])))
        first += [replace(triplet, model_1=one, model_2=two) for triplet in found[:1]]
    numbers = ("triplets", "searched in vain", "failed", "seconds a search")
    yield Table(("model 1", "model 2", *numbers), rows, texts=2, is_wide=True)
    if first:
        yield Heading("First triplets")
    yield from (stimuli_table([triplet]) for triplet in first)
