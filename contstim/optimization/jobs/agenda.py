"""What is left to do, and what to do next so that few models have to be loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from contstim.errors import ModelError, WorkerError
from contstim.optimization.jobs.bench import Task
from contstim.optimization.jobs.study import seed_for
from contstim.optimization.jobs.tasks import Examine, Examined, Search
from contstim.optimization.search.verification import NEEDS_LOG_PROBABILITIES
from contstim.store.triplets import Outcome, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.dealing import Dealer
    from contstim.optimization.jobs.study import Study
    from contstim.store.triplets import Job

_ATTEMPTS = 3

TaskT = TypeVar("TaskT", bound=Task)


class Agenda(ABC, Generic[TaskT]):
    """Tasks for workers, and what becomes of them.

    Every task that is taken comes back once, by `done` or by `failed`.
    """

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing is left to take and nothing that was taken is still out."""

    @abstractmethod
    def take(self, loaded: Sequence[str]) -> TaskT | None:
        """The next task for a worker that has these models at hand; None for nothing now."""

    @abstractmethod
    def done(self, task: TaskT, result: Any) -> None:
        """A task has its result."""

    @abstractmethod
    def failed(self, task: TaskT, error: ContstimError, attempt: int) -> None:
        """A task failed, for the nth time; it may be taken again."""


class Examination(Agenda[Examine]):
    """Look at every model once.

    Raises, as answers come in:
        ModelError: two of the models are one and the same, one cannot be loaded, or its scores are
            not log-probabilities.
    """

    def __init__(self, models: Iterable[str]) -> None:
        self._waiting = [Examine(model) for model in reversed(tuple(models))]
        self._out = 0
        self.found: dict[str, Examined] = {}

    @property
    def finished(self) -> bool:
        """See `Agenda.finished`."""
        return not self._waiting and not self._out

    def take(self, loaded: Sequence[str]) -> Examine | None:
        """See `Agenda.take`; the first models come last, so that they are at hand afterwards."""
        del loaded
        if not self._waiting:
            return None
        self._out += 1
        return self._waiting.pop(0)

    def done(self, task: Examine, result: Examined) -> None:
        """See `Agenda.done`."""
        self._out -= 1
        result.convention.require_log_probability(task.model, NEEDS_LOG_PROBABILITIES)
        for name, other in self.found.items():
            if other.convention.fingerprint == result.convention.fingerprint:
                raise ModelError(
                    f"{task.model} and {name} are the same model: they can never disagree. Leave "
                    f"one of them out."
                )
        self.found[task.model] = result

    def failed(self, task: Examine, error: ContstimError, attempt: int) -> None:
        """See `Agenda.failed`: the death of a worker is borne, a model that does not load not."""
        self._out -= 1
        if not isinstance(error, WorkerError) or attempt == _ATTEMPTS:
            raise error
        self._waiting.append(task)


class PairAgenda:
    """The jobs of one pair of models.

    Natural sentences are taken in the order in which they were dealt, until as many as wanted have
    found their triplet or failed; one that turns out inadmissible makes room for the next. So which
    sentences are taken depends on nothing but the deal.
    """

    def __init__(
        self,
        pair: tuple[str, str],
        settled: Mapping[int, State],
        wanted: int,
        another: Callable[[int], bool],
    ) -> None:
        """Begin where settled jobs, by place, leave off.

        Args:
            pair: the models' names.
            settled: what became of jobs before.
            wanted: how many triplets.
            another: whether there is a sentence at a place.
        """
        self.pair = pair
        self.missing = 0  # sentences that the deck could not provide
        self.settled = sum(state is not State.INADMISSIBLE for state in settled.values())
        self.running = 0
        self.waiting: deque[int] = deque()
        self._another = another
        self._length = 0
        for _ in range(wanted):
            self._lengthen(settled)

    def _lengthen(self, settled: Mapping[int, State]) -> None:
        """Plan one job more, beyond all that turned out inadmissible."""
        while self._another(self._length):
            place, self._length = self._length, self._length + 1
            if place not in settled:
                self.waiting.append(place)
            if settled.get(place) is not State.INADMISSIBLE:
                return
        self.missing += 1

    def settle(self, state: State) -> None:
        """One job has come to its end."""
        self.running -= 1
        if state is State.INADMISSIBLE:
            self._lengthen({})
        else:
            self.settled += 1


class TripletAgenda(Agenda[Search]):
    """Search for every pair's triplets, and keep each outcome as it comes.

    Args:
        study: what is wanted.
        examined: what was found out about each model.
        dealer: has dealt each pair its sentences.
        settled: the jobs that came to an end before.
        keep: told of each outcome as it comes.
        progress: told how many jobs have come to an end, and how many are wanted.
    """

    def __init__(
        self,
        study: Study,
        examined: Mapping[str, Examined],
        dealer: Dealer,
        settled: Sequence[Job],
        keep: Callable[[Search, Outcome], None],
        progress: Callable[[int, int], None],
    ) -> None:
        self._study = study
        self._fingerprints = {n: found.convention.fingerprint for n, found in examined.items()}
        self._dealer = dealer
        self._keep, self._progress = keep, progress
        before: dict[tuple[str, str], dict[int, State]] = {pair: {} for pair in study.pairs}
        for job in settled:
            before[job.model_1, job.model_2][job.place] = job.state
        self.pairs = {
            pair: PairAgenda(pair, before[pair], study.per_pair, partial(self._has, hand))
            for hand, pair in enumerate(study.pairs)
        }
        self._hands = dict(zip(study.pairs, dealer.hands, strict=True))
        self._order = [self.pairs[pair] for pair in neighbours_share_a_model(study.models)]
        self._tell()

    def _has(self, hand: int, place: int) -> bool:
        while len(self._dealer.hands[hand]) <= place:
            if not self._dealer.deal():
                return False
        return True

    def _tell(self) -> None:
        missing = sum(pair.missing for pair in self._order)
        wanted = len(self._order) * self._study.per_pair - missing
        self._progress(sum(pair.settled for pair in self._order), wanted)

    @property
    def finished(self) -> bool:
        """See `Agenda.finished`."""
        return not any(pair.waiting or pair.running for pair in self._order)

    def take(self, loaded: Sequence[str]) -> Search | None:
        """See `Agenda.take`.

        Of the pairs for which fewest models must be loaded, one at which fewest workers are; of
        these the first in an order in which consecutive pairs share a model.
        """
        open_pairs = [pair for pair in self._order if pair.waiting]
        if not open_pairs:
            return None
        pair = min(open_pairs, key=lambda p: (len({*p.pair} - {*loaded}), p.running))
        pair.running += 1
        return self._search(pair.pair, pair.waiting.popleft())

    def _search(self, pair: tuple[str, str], place: int) -> Search:
        natural = self._hands[pair][place]
        fingerprints = (self._fingerprints[pair[0]], self._fingerprints[pair[1]])
        seed = seed_for(self._study.seed, fingerprints, natural.text)
        return Search(pair, fingerprints, place, natural, seed, self._study.recipe)

    def done(self, task: Search, result: Outcome) -> None:
        """See `Agenda.done`."""
        self._keep(task, result)
        self.pairs[task.models].settle(result.state)
        self._tell()

    def failed(self, task: Search, error: ContstimError, attempt: int) -> None:
        """See `Agenda.failed`: the third time is kept as the job's outcome."""
        if attempt == _ATTEMPTS:
            self.done(task, Outcome(State.FAILED, str(error)))
        else:
            pair = self.pairs[task.models]
            pair.running -= 1
            pair.waiting.appendleft(task.place)


def neighbours_share_a_model(models: Sequence[str]) -> list[tuple[str, str]]:
    """All unordered pairs, in an order in which each shares a model with the one before.

    With two models in memory, every pair after the first then costs one load, which is the least
    possible.
    """
    rows: list[list[tuple[str, str]]] = [[] for _ in models]
    for (i, first), (_, second) in combinations(enumerate(models), 2):
        rows[i].append((first, second))
    return [pair for i, row in enumerate(rows) for pair in (reversed(row) if i % 2 else row)]
