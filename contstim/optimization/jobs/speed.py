"""Duration of the search for a triplet, estimated from a few seconds of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ContstimError
from contstim.optimization.jobs.tasks import SEEDS
from contstim.optimization.search.constraints import Capitals
from contstim.optimization.search.proposers import Proposer
from contstim.optimization.search.recipes import DEFAULT, recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective, ScoredSentence
    from contstim.optimization.search.screening import SearchState
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary

# Of sentences of eight words between n-gram models (benchmarks/plan.py). Longer sentences have more
# positions to visit.
_VISITS_A_WORD = {DEFAULT.name: 13.0}
_VISITS_A_WORD_OF_OTHERS = 2.5
_SEARCHES = 9.0  # until five in a row gain next to nothing


class _Enough(Exception):  # noqa: N818
    """The time is up."""


@dataclass(frozen=True)
class SearchSpeed:
    """The speed of the searches between two models on this machine.

    Attributes:
        seconds: for a triplet, both its directions, as often as each is searched.
        triplets: how many were found, or searched in vain, in the time of the measurement.
        visits: positions that were visited in that time.
        elapsed: that time, seconds.
    """

    seconds: float
    triplets: int
    visits: int
    elapsed: float

    @property
    def guessed(self) -> bool:
        """True if no triplet was finished, so that the length of a search is the usual one."""
        return not self.triplets


@dataclass(eq=False)
class _TimedProposer(Proposer):
    """A proposer that counts its visits, and stops a search when the time is up.

    Attributes:
        proposer: does the work.
        deadline: when the time is up.
        visits: of each search, in order.
        passes: sequences through networks in each search.
    """

    proposer: Proposer
    deadline: float
    visits: list[int] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)

    def start(self, evaluator: Evaluator, rng: np.random.Generator) -> SearchState:
        """See `Proposer.start`."""
        self.visits.append(0)
        self.passes.append(0)
        return self.proposer.start(evaluator, rng)

    def propose(
        self, position: Position, objective: Objective, evaluator: Evaluator, state: SearchState
    ) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        # The very first visit is always made: something must have been measured
        if sum(self.visits) and perf_counter() >= self.deadline:
            raise _Enough
        better = self.proposer.propose(position, objective, evaluator, state)
        self.visits[-1] += 1
        self.passes[-1] = evaluator.cost.rows
        return better


def search_speed(
    models: tuple[LanguageModel, LanguageModel],
    vocabulary: Vocabulary,
    naturals: Sequence[Sentence],
    plan: SynthesisPlan,
    *,
    seconds: float,
) -> SearchSpeed:
    """Search for triplets for a few seconds, as a study would, and stop in the midst of it.

    Where no triplet is finished in time, the time of a visit counts, and how many visits a search
    usually takes.

    Args:
        models: the two.
        vocabulary: the words that searches between them may use.
        naturals: natural sentences, at least one.
        plan: recipe, seed, limits and restarts.
        seconds: for how long; at least one position is visited.

    Raises:
        ContstimError: no natural sentence can be searched from; the last reason.
    """
    recipe = recipe_named(plan.recipe).between(models)
    budget = plan.restarts or recipe.restarts
    began = perf_counter()
    timed = _TimedProposer(recipe.proposer, began + seconds)
    recipe = replace(recipe, proposer=timed)
    finished: list[float] = []
    error: ContstimError | None = None
    start = began
    words = 0
    for natural in naturals:
        start, words = perf_counter(), len(natural)
        if finished and start >= timed.deadline:
            break
        constraints = plan.limits.constraints(natural, every_fix=False)
        if plan.capitals:
            constraints = (*constraints, Capitals.of(vocabulary))
        try:
            synthesize_triplet(
                *models,
                natural,
                vocabulary,
                recipe=recipe,
                constraints=constraints,
                seed=plan.seed,
                seeds=SEEDS,
                restarts=budget,
            )
        except _Enough:
            break
        except ContstimError as problem:
            error = problem  # of this sentence, which a study would pass over
            continue
        finished.append(perf_counter() - start)
    end = perf_counter()
    if not timed.visits:
        raise error or ContstimError("There is no natural sentence to search from.")
    visits = sum(timed.visits)
    if finished:
        mean = sum(finished) / len(finished)
        # A search that was cut counts where it took longer than those that were not
        if end - start > mean:
            mean = (sum(finished) + end - start) / (len(finished) + 1)
        return SearchSpeed(mean, len(finished), visits, end - began)

    # Searches that ended, and a usual one, since short ones are the first to end
    usual = max(_VISITS_A_WORD.get(plan.recipe, _VISITS_A_WORD_OF_OTHERS) * words, timed.visits[-1])
    lengths = [*timed.visits[:-1], usual]
    visits_a_search = sum(lengths) / len(lengths)
    a_visit = (end - began) / max(visits, 1)
    searches = min(budget.searches or np.inf, _SEARCHES if budget.patience else np.inf)
    if budget.passes is not None:
        reported = all(model.reports_passes for model in models)
        passes = visits_a_search * sum(timed.passes) / max(visits, 1) if reported else np.inf
        searches = min(searches, budget.passes / passes if passes else np.inf)
    if budget.seconds is not None:
        searches = min(searches, budget.seconds / (visits_a_search * a_visit))
    # Both directions; the first search of each always finishes
    seconds_each = 2 * max(searches, 1.0) * visits_a_search * a_visit
    return SearchSpeed(seconds_each, 0, visits, end - began)
