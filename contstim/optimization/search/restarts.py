"""Searches from one natural sentence again and again, for as long as that pays.

A search takes the first better word at each position it comes to, and so runs into whatever
sentence the order of its positions leads to. Another order leads elsewhere: searches that differ
in nothing but their seeds end several nats apart. So the sentence is searched again with another
seed, and the best result is kept, until several searches in a row have gained next to nothing.

Searches share nothing. Each is what a single search with its seed is, and can be repeated alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from math import inf, isfinite
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from contstim.errors import InputError
from contstim.models.costs import Cost
from contstim.options import Help, check_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.models.base import LanguageModel
    from contstim.words.sentence import Sentence

ResultT = TypeVar("ResultT", bound="SearchResult")


@dataclass(frozen=True)
class SearchBudget:
    """Budget of searches from a natural sentence, in number and time; the first always finishes.

    Attributes:
        searches: how many there are at most; None for any number.
        seconds: in which the last one is to end. Another search begins only if it is expected to,
            should it take as long as those before on average. Results then depend on the machine.
        patience: so many searches in a row that each gained less than `min_gain` are the last;
            None to go on whatever they gain.
        min_gain: nats.
        passes: sequences through all networks, with which the last search is to end, expected as
            with seconds. A model that does not report its passes (`LanguageModel.reports_passes`)
            exceeds any number. None for any number.

    Raises:
        InputError: a number is out of range, nothing ends the searches, or there is a time limit
            for a single one.
    """

    searches: Annotated[int | None, Help("Number.", at_least=1)] = None
    seconds: float | None = None
    patience: Annotated[int | None, Help("Searches without gain.", at_least=1)] = 5
    min_gain: Annotated[float, Help("Nats.", at_least=0)] = 0.5
    passes: Annotated[int | None, Help("Through networks.", at_least=0)] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.seconds is not None and not (isfinite(self.seconds) and self.seconds > 0):
            raise InputError(f"seconds must be a number above 0, not {self.seconds:g}.")
        if self.searches == 1 and self.seconds is not None:
            raise InputError("A single search always finishes: ask for 2 or leave out the seconds.")
        # Passes do not end searches between models without a network.
        if self.searches is None and self.seconds is None and self.patience is None:
            raise InputError("Nothing ends the searches: give their number, seconds or a patience.")

    @property
    def text(self) -> str:
        """The budget in words; equal budgets have equal texts, and others have others."""
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
"""One search, whatever it costs."""


ALL = "as many searches were made as were asked for"
DRY = "further searches gained too little"
SECONDS = "another search would not have ended in time"
PASSES = "another search would have taken too many passes through networks"
"""Why no further search was made, as the user reads it."""


@dataclass(frozen=True)
class SearchSummary:
    """One of the searches from a natural sentence.

    Attributes:
        number: from 0.
        seed: with which a single search gives the same result.
        loss: of its result, nats; the lower the better.
        gain: by how much it lowered the lowest loss before it, nats; 0 for the first.
        visits: how many positions were visited.
        costs: what each model computed, by its name.
    """

    number: int
    seed: int
    loss: float
    gain: float
    visits: int
    costs: Mapping[str, Cost]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult:
    """Result of a search, or the best of several.

    Attributes:
        natural: where the search started.
        recipe: the recipe's name.
        costs: what each model computed in all searches, by its name.
        searches: all searches from the natural sentence, from which one sees whether they paid.
        budget: how often and how long there could be.
        end_of_searches: why there was no further one.
    """

    natural: Sentence
    recipe: str
    costs: Mapping[str, Cost]
    searches: tuple[SearchSummary, ...]
    budget: SearchBudget = SINGLE
    end_of_searches: str = ALL

    @property
    def in_vain(self) -> int:
        """Number of searches in a row, up to the last, that gained less than the least gain."""
        return _in_vain(self.searches, self.budget)

    @property
    def facts(self) -> dict[str, Any]:
        """What was found, and what it cost, as plain values for JSON."""
        return {
            "natural": self.natural.text,
            "recipe": self.recipe,
            "costs": {name: asdict(cost) for name, cost in self.costs.items()},
            "restarts": self.budget.text,
            "seconds": self.budget.seconds,
            "searches": [asdict(search) for search in self.searches],
            "end_of_searches": self.end_of_searches,
        }


def _in_vain(searches: Sequence[SearchSummary], budget: SearchBudget) -> int:
    later = searches[:0:-1]  # without the first, the last in front
    return len(list(takewhile(lambda s: s.gain < budget.min_gain, later)))


def best_of(
    search: Callable[[int], ResultT],
    models: Sequence[LanguageModel],
    seed: int,
    budget: SearchBudget,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> ResultT:
    """The result with the lowest loss, of equal ones the first; its costs are those of all.

    Args:
        search: a whole search with the seed that it is given.
        models: of the search.
        seed: of the first search, and from which those of the others are derived.
        budget: how often and how long.
        on_restart: told of each search that is followed by another.
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

        # Another search is expected to take the mean of those before.
        costs = {m.name: sum((s.costs[m.name] for s in searches), Cost()) for m in models}
        passes = sum(c.rows for c in costs.values()) if reported else inf
        with_another = (len(searches) + 1) / len(searches)
        if len(searches) == budget.searches:
            end = ALL
        elif _in_vain(searches, budget) == budget.patience:
            end = DRY
        elif budget.passes is not None and passes * with_another > budget.passes:
            end = PASSES
        elif budget.seconds is not None and (monotonic() - began) * with_another > budget.seconds:
            end = SECONDS
        elif on_restart is not None:
            on_restart(searches[-1])
    every = tuple(searches)
    return replace(best, costs=costs, searches=every, budget=budget, end_of_searches=end)


def seed_of_search(seed: int, number: int) -> int:
    """The seed of one of several searches, numbered from 0: the seed itself for the first."""
    return seed if number == 0 else int(np.random.SeedSequence((seed, number)).generate_state(1)[0])
