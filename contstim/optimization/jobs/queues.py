"""Queues of tasks left to do, in an order for which few models have to be loaded."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from contstim.errors import WorkerError
from contstim.jobs.pool import TaskQueue
from contstim.optimization.jobs.results import SearchTime
from contstim.optimization.jobs.tasks import InspectionTask, ScoringTask, TripletTask
from contstim.store.triplets import JobState, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.assignment import Assignment
    from contstim.optimization.jobs.searches import Searches
    from contstim.optimization.jobs.word_cap import CapRounds
    from contstim.store.triplets import Result, Slot

    ModelPair = tuple[str, str]

_TaskT = TypeVar("_TaskT", bound="InspectionTask | ScoringTask")
_ATTEMPTS = 3


class EachOnce(TaskQueue[_TaskT], Generic[_TaskT]):
    """Tasks of models, each to be done once.

    Args:
        tasks: in the order in which they are taken, but that a worker prefers a model that it has.

    Attributes:
        results: (task, result) of each, as they came.

    Raises, as results come in:
        ModelError: a model cannot be loaded, or refuses a task.
    """

    def __init__(self, tasks: Iterable[_TaskT]) -> None:
        self._waiting = list(tasks)
        self._running = 0
        self.results: list[tuple[_TaskT, Any]] = []

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not self._waiting and not self._running

    def take(self, loaded: Sequence[str]) -> _TaskT | None:
        """See `TaskQueue.take`."""
        if not self._waiting:
            return None
        self._running += 1
        task = min(self._waiting, key=lambda waiting: waiting.model not in loaded)
        self._waiting.remove(task)
        return task

    def done(self, task: _TaskT, result: Any) -> None:
        """See `TaskQueue.done`."""
        self._running -= 1
        self.results.append((task, result))

    def failed(self, task: _TaskT, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: again after a worker's death, but not if a model refuses."""
        self._running -= 1
        if not isinstance(error, WorkerError) or attempt == _ATTEMPTS:
            raise error
        self._waiting.append(task)


class PairQueue:
    """The searches of one pair of models, by the slots of its sentences.

    Slots are taken in order, until as many as wanted have a triplet or failed; a sentence that
    turns out inadmissible makes room for the next. So which sentences are taken depends on nothing
    but their order.

    Args:
        pair: the models' names.
        wanted: how many triplets.
        has: whether there is a slot of a number.
        known: what became of the search of a slot; None where it is to be done. Asked once, when it
            is planned.

    Attributes:
        pair: the models' names.
        waiting: the slots whose searches are to be taken.
        running: how many searches have been taken and have not come back.
        settled: how many have ended, inadmissible sentences apart.
        missing: how many triplets are wanted for which there is no sentence.
    """

    def __init__(
        self,
        pair: ModelPair,
        wanted: int,
        has: Callable[[ModelPair, int], bool],
        known: Callable[[ModelPair, int], JobState | None],
    ) -> None:
        self.pair = pair
        self.waiting: deque[int] = deque()
        self.running = self.settled = self.missing = 0
        self._has, self._known = has, known
        self._length = 0  # slots that are planned so far, whatever became of them
        for _ in range(wanted):
            self._plan_one_more()

    def _plan_one_more(self) -> None:
        """Plan the next slot that is not inadmissible already."""
        while self._has(self.pair, self._length):
            slot, self._length = self._length, self._length + 1
            state = self._known(self.pair, slot)
            if state is None:
                self.waiting.append(slot)
            elif state is not JobState.INADMISSIBLE:
                self.settled += 1
            if state is not JobState.INADMISSIBLE:
                return
        self.missing += 1

    def settle(self, state: JobState) -> None:
        """Note the end of a search that was running."""
        self.running -= 1
        if state is JobState.INADMISSIBLE:
            self._plan_one_more()
        else:
            self.settled += 1


class TripletQueue(TaskQueue[TripletTask]):
    """The searches for every pair's triplets; each outcome is kept as it comes.

    Args:
        searches: of the study.
        assignment: the slots of each pair; may go on with further rounds.
        progress: told how many searches have come to an end, and how many are wanted.
        rounds: of a cap on words; None where there is none, so that results stand as they come.
        together: whether workers gain by searching between the same models at the same time.

    Attributes:
        pairs: each pair's searches.
        results: what is known of the slots of each pair, in the order of the study.
        time: how long the searches took that came to an end.
    """

    def __init__(
        self,
        searches: Searches,
        assignment: Assignment,
        progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
        rounds: CapRounds | None = None,
        *,
        together: bool = False,
    ) -> None:
        self._searches, self._assignment, self._progress = searches, assignment, progress
        self._rounds, self._together = rounds, together
        self._slots = assignment.slots  # which further rounds lengthen
        self._wanted = searches.question.per_pair
        wanted = self._wanted if rounds is None else rounds.wanted
        self.time = SearchTime()
        self.results: dict[ModelPair, dict[int, Result]] = {p: {} for p in self._slots}
        self.pairs = {
            pair: PairQueue(pair, wanted, assignment.has, self._known) for pair in self._slots
        }
        models = list(dict.fromkeys(model for pair in self._slots for model in pair))
        self._order = [self.pairs[pair] for pair in pairs_sharing_models(models)]
        self._report_progress()

    def _known(self, pair: ModelPair, number: int) -> JobState | None:
        """What became of the search of a slot; that it is unsuitable is kept as its outcome."""
        slot = self._slots[pair][number]
        result = self._searches.standing(slot)
        if result is None:
            task = self._task(slot)
            result = self._searches.find(task)
            reason = "" if result is not None else self._unsuitable(slot)
            if reason:
                result = self._searches.keep(task, Outcome(JobState.INADMISSIBLE, reason))
            if result is None:
                return None
            self._stand(slot, result)
        self.results[pair][number] = result
        return result.state

    def _unsuitable(self, slot: Slot) -> str:
        """Reason for which a natural sentence is not to be searched; empty where it is."""
        excluded = frozenset(map(str.lower, self._searches.question.exclude))
        words = [word for word in slot.sentence.words if word.lower() in excluded]
        if words:
            return f"holds an excluded word: {', '.join(words)}"
        if not self._assignment.can_use(slot):
            return "not among the natural sentences any more, or of words that are not known"
        return "" if self._rounds is None else self._rounds.no_room(slot.sentence)

    def _stand(self, slot: Slot, result: Result) -> None:
        # Under a cap a triplet stands when it has been decided about.
        if self._rounds is None or result.state is JobState.INADMISSIBLE:
            self._assignment.stand([replace(slot, result=result.id, refused=frozenset())])

    def _task(self, slot: Slot) -> TripletTask:
        rounds = self._rounds
        return self._searches.task(slot, frozenset() if rounds is None else rounds.excluded(slot))

    @property
    def found(self) -> dict[ModelPair, list[Result]]:
        """Results of each pair, slot by slot."""
        return {
            pair: [result for _, result in sorted(known.items())]
            for pair, known in self.results.items()
        }

    @property
    def outcomes(self) -> Iterator[tuple[Slot, Result]]:
        """Slots whose searches have come to an end, and the results."""
        for pair, known in self.results.items():
            for number, result in known.items():
                yield self._slots[pair][number], result

    def _report_progress(self) -> None:
        missing = sum(pair.missing for pair in self._order)
        wanted = len(self._order) * self._wanted - missing
        self._progress(sum(pair.settled for pair in self._order), wanted)

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not any(pair.waiting or pair.running for pair in self._order)

    def take(self, loaded: Sequence[str]) -> TripletTask | None:
        """See `TaskQueue.take`.

        Of the pairs for which fewest models must be loaded, one at which fewest workers are, or
        most if they are to be together; of these the first in an order in which consecutive pairs
        share a model.
        """
        # Of equals, `min` takes the first.
        open_pairs = [pair for pair in self._order if pair.waiting]
        if not open_pairs:
            return None
        sign = -1 if self._together else 1
        chosen = min(open_pairs, key=lambda p: (len({*p.pair} - {*loaded}), sign * p.running))
        chosen.running += 1
        return self._task(self._slots[chosen.pair][chosen.waiting.popleft()])

    def done(self, task: TripletTask, result: Outcome) -> None:
        """See `TaskQueue.done`."""
        # Kept before it counts: what was reported survives the end of this process.
        kept = self._searches.keep(task, result)
        self.time += SearchTime(result.wall_seconds, result.network_seconds)
        self._stand(self._slots[task.models][task.slot], kept)
        self.results[task.models][task.slot] = kept
        self.pairs[task.models].settle(result.state)
        self._report_progress()

    def failed(self, task: TripletTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: the third time is kept as the outcome."""
        if attempt == _ATTEMPTS:
            self.done(task, Outcome(JobState.FAILED, str(error)))
        else:
            pair = self.pairs[task.models]
            pair.running -= 1
            # In front, so that slots are still taken in order.
            pair.waiting.appendleft(task.slot)


def pairs_sharing_models(models: Sequence[str]) -> list[tuple[str, str]]:
    """All unordered pairs, in an order in which each shares a model with the one before.

    With two models in memory, every pair after the first then costs one load, which is the least
    possible: of a, b, c, d the order is ab, ac, ad, bd, bc, cd.
    """
    # Row i has the pairs whose first model is i. Every other row runs backwards: it begins with
    # the second model at which the row before ended.
    rows: list[list[tuple[str, str]]] = [[] for _ in models]
    for (i, first), (_, second) in combinations(enumerate(models), 2):
        rows[i].append((first, second))
    return [pair for i, row in enumerate(rows) for pair in (reversed(row) if i % 2 else row)]
