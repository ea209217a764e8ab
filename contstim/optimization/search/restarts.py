"""Repeated searches from one natural sentence.

The result of a search depends on the random order of positions: with other seeds, results differ by
several nats. Therefore, the search is repeated with different seeds until several searches in a row
gain almost nothing. The best result is returned.

Searches share no state. Each search gives the same result as a single search with its seed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from contstim.errors import InputError
from contstim.models.costs import Cost
from contstim.options import Help, check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.models.base import Scorer
    from contstim.words.sentence import Sentence

ResultT = TypeVar("ResultT", bound="SearchResult")


@dataclass(frozen=True)
class SearchBudget:
    """Budget of searches from a natural sentence; the first search always finishes.

    Attributes:
        searches: maximum number of searches; None for no limit.
        seconds: time limit; None for no limit. Another search begins only if there is time for a
            search of the mean duration so far. With a limit, results depend on the machine.
        patience: number of searches in a row with a gain below `min_gain` after which the searches
            end; None for no limit.
        min_gain: threshold for the gain of a search, nats; see `patience`.
        passes: maximum number of sequences that networks process. Like `seconds`, it decides
            whether another search begins; None for no limit. If a model does not report passes
            (`Scorer.reports_passes`), there is only one search.

    Raises:
        InputError: if a number is out of range, if nothing limits the searches, or if a single
            search has a time limit.
    """

    searches: Annotated[int | None, Help("Number.", at_least=1)] = None
    seconds: Annotated[float | None, Help("Time limit.", above=0)] = None
    patience: Annotated[int | None, Help("Searches without gain.", at_least=1)] = 5
    min_gain: Annotated[float, Help("Nats.", at_least=0)] = 0.5
    passes: Annotated[int | None, Help("Through networks.", at_least=0)] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.searches == 1 and self.seconds is not None:
            raise InputError(
                "A single search always finishes: leave out `seconds`, or allow two searches."
            )
        # `passes` is not enough, because models without a network have no passes
        if self.searches is None and self.seconds is None and self.patience is None:
            raise InputError("Nothing ends the searches: set `searches`, `seconds` or `patience`.")

    @property
    def text(self) -> str:
        """Unique description of the budget."""
        if self.searches == 1:
            return "one"
        parts = ["any number" if self.searches is None else f"at most {self.searches}"]
        if self.patience is not None:
            parts.append(f"until {self.patience} in a row gain less than {self.min_gain:g} nats")
        if self.seconds is not None:
            parts.append(f"within {self.seconds:g} seconds")
        if self.passes is not None:
            parts.append(f"within {self.passes:,} sequences through networks")
        return ", ".join(parts)


SINGLE = SearchBudget(searches=1)
"""A single search without limits."""


ALL = "as many searches were made as were asked for"
DRY = "further searches gained too little"
SECONDS = "another search would not have ended in time"
PASSES = "another search would have taken too many passes through networks"
"""Reasons why the searches ended, as messages for the user."""


@dataclass(frozen=True)
class SearchSummary:
    """One of the searches from a natural sentence.

    Attributes:
        loss: loss of the result, nats; lower is better.
        gain: lowest loss of all earlier searches minus `loss`, nats. It is 0 if this difference is
            negative, and for the first search.
    """

    number: int
    seed: int
    loss: float
    gain: float
    visits: int
    costs: Mapping[str, Cost]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult:
    """Result of a search, or the best result of several searches.

    Attributes:
        costs: costs of all searches by model name.
        end_of_searches: reason why the searches ended.
        units: unit of each model's scores.
    """

    natural: Sentence
    recipe: str
    costs: Mapping[str, Cost]
    searches: tuple[SearchSummary, ...]
    models: tuple[str, ...]
    units: tuple[str, ...]
    budget: SearchBudget = SINGLE
    end_of_searches: str = ALL

    @property
    def n_unsuccessful(self) -> int:
        """Number of searches after the last search with a gain of at least `min_gain`."""
        return _count_unsuccessful(self.searches, self.budget)

    @property
    def facts(self) -> dict[str, Any]:
        """Result and costs as plain values for JSON."""
        return {
            "natural": self.natural.text,
            "recipe": self.recipe,
            "costs": {name: asdict(cost) for name, cost in self.costs.items()},
            "restarts": self.budget.text,
            "seconds": self.budget.seconds,
            "searches": [asdict(search) for search in self.searches],
            "end_of_searches": self.end_of_searches,
        }


def _count_unsuccessful(searches: Sequence[SearchSummary], budget: SearchBudget) -> int:
    later = searches[:0:-1]  # without the first search, in reverse order
    return len(list(takewhile(lambda s: s.gain < budget.min_gain, later)))


def best_of(
    search: Callable[[int], ResultT],
    models: Sequence[Scorer],
    seed: int,
    budget: SearchBudget,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> ResultT:
    """Repeat a search, and return the result with the lowest loss, with the costs of all searches.

    Of equally good results, the first is returned. `search` runs a search with a seed. `seed` is
    the seed of the first search; see `seed_of_search`. `on_restart` is called after each search
    that is followed by another search.
    """
    began = monotonic()
    reported = all(model.reports_passes for model in models)
    searches: list[SearchSummary] = []
    lowest = inf
    end = ""
    while not end:
        result = search(seed_of_search(seed, len(searches)))
        (summary,) = result.searches
        gain = max(0.0, lowest - summary.loss) if searches else 0.0
        if not searches or summary.loss < lowest:
            best, lowest = result, summary.loss
        searches.append(replace(summary, number=len(searches), gain=gain))

        # Expect that another search costs the mean of the earlier searches
        costs = {m.name: sum((s.costs[m.name] for s in searches), Cost()) for m in models}
        passes = sum(c.rows for c in costs.values()) if reported else inf
        with_another = (len(searches) + 1) / len(searches)
        if len(searches) == budget.searches:
            end = ALL
        elif _count_unsuccessful(searches, budget) == budget.patience:
            end = DRY
        elif budget.passes is not None and passes * with_another > budget.passes:
            end = PASSES
        elif budget.seconds is not None and (monotonic() - began) * with_another > budget.seconds:
            end = SECONDS
        elif on_restart is not None:
            on_restart(searches[-1])
    summaries = tuple(searches)
    return replace(best, costs=costs, searches=summaries, budget=budget, end_of_searches=end)


def seed_of_search(seed: int, number: int) -> int:
    """Return the seed of a search; `number` counts searches from 0. Search 0 uses `seed` itself."""
    return seed if number == 0 else int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
