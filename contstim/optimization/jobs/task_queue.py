"""Queue of the tasks left to do, in an order for which few models have to be loaded."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from contstim.errors import ModelError, WorkerError
from contstim.jobs.pool import TaskQueue
from contstim.optimization.jobs.plan import seed_for
from contstim.optimization.jobs.tasks import (
    InspectionTask,
    Judge,
    ModelProfile,
    ScoringTask,
    TripletTask,
)
from contstim.optimization.search.verification import NEEDS_LOG_PROBABILITIES
from contstim.store.triplets import JobState, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.plausibility import Floors
    from contstim.optimization.jobs.sentence_allocation import SentenceAllocator
    from contstim.sentence import Sentence
    from contstim.store.triplets import Job

_ATTEMPTS = 3


class ModelInspection(TaskQueue[InspectionTask]):
    """Every model, to be inspected once.

    Args:
        models: their specifications.
        sentences: the natural sentences of the study.

    Attributes:
        profiles: what has been told of each model, by its name.

    Raises, as results come in:
        ModelError: two of the models are one and the same, one cannot be loaded, or its scores are
            not log-probabilities.
    """

    def __init__(self, models: Iterable[str], sentences: tuple[Sentence, ...] = ()) -> None:
        # The first models come last, so that they are still loaded when searches begin.
        self._waiting = [InspectionTask(model, sentences) for model in reversed(tuple(models))]
        self._running = 0
        self.profiles: dict[str, ModelProfile] = {}

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not self._waiting and not self._running

    def take(self, loaded: Sequence[str]) -> InspectionTask | None:
        """See `TaskQueue.take`."""
        del loaded
        if not self._waiting:
            return None
        self._running += 1
        return self._waiting.pop(0)

    def done(self, task: InspectionTask, result: ModelProfile) -> None:
        """See `TaskQueue.done`."""
        self._running -= 1
        result.convention.require_log_probability(task.model, NEEDS_LOG_PROBABILITIES)
        for name, profile in self.profiles.items():
            if profile.convention.fingerprint == result.convention.fingerprint:
                raise ModelError(
                    f"{task.model} and {name} are the same model: they can never disagree. Leave "
                    f"one of them out."
                )
        self.profiles[task.model] = result

    def failed(self, task: InspectionTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: again after a worker's death, but not if a model cannot load."""
        self._running -= 1
        if not isinstance(error, WorkerError) or attempt == _ATTEMPTS:
            raise error
        self._waiting.append(task)


class NaturalScores(TaskQueue[ScoringTask]):
    """Scores of natural sentences under models, a few hundred sentences a task.

    Attributes:
        scores: of each model, by its name: log-probabilities of sentences, nats.

    Raises, as results come in:
        ModelError: a model cannot score.
    """

    _SENTENCES_PER_TASK = 200

    def __init__(self, sentences: Mapping[str, Sequence[Sentence]]) -> None:
        """Begin with nothing scored.

        Args:
            sentences: for each model, by its specification.
        """
        self.scores: dict[str, dict[Sentence, float]] = {model: {} for model in sentences}
        size = self._SENTENCES_PER_TASK
        self._waiting = [
            ScoringTask(model, tuple(some[start : start + size]))
            for model, some in sentences.items()
            for start in range(0, len(some), size)
        ]
        self._running = 0

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not self._waiting and not self._running

    def take(self, loaded: Sequence[str]) -> ScoringTask | None:
        """See `TaskQueue.take`: of a model that is loaded, if there is one."""
        if not self._waiting:
            return None
        self._running += 1
        task = min(self._waiting, key=lambda waiting: waiting.model not in loaded)
        self._waiting.remove(task)
        return task

    def done(self, task: ScoringTask, result: Mapping[Sentence, float]) -> None:
        """See `TaskQueue.done`."""
        self._running -= 1
        self.scores[task.model].update(result)

    def failed(self, task: ScoringTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: again after a worker's death, but not if a model cannot score."""
        self._running -= 1
        if not isinstance(error, WorkerError) or attempt == _ATTEMPTS:
            raise error
        self._waiting.append(task)


class PairQueue:
    """The searches of one pair of models, by their places among the sentences assigned to it.

    Places are taken in order, until as many as wanted have a triplet or failed; a sentence that
    turns out inadmissible makes room for the next. So which sentences are taken depends on nothing
    but their order.

    Attributes:
        pair: the models' names.
        waiting: the places whose searches are to be taken.
        running: how many searches have been taken and have not come back.
        settled: how many have ended, inadmissible sentences apart.
        missing: how many triplets are wanted for which there is no sentence.
    """

    def __init__(
        self,
        pair: tuple[str, str],
        settled: Mapping[int, JobState],
        wanted: int,
        has_sentence: Callable[[int], bool],
        admit: Callable[[int], bool],
    ) -> None:
        """Begin where settled jobs, by place, leave off.

        Args:
            pair: the models' names.
            settled: what became of jobs before.
            wanted: how many triplets.
            has_sentence: whether there is a sentence at a place.
            admit: whether a place's sentence may be searched; asked once, when it is planned.
        """
        self.pair = pair
        self.missing = 0
        # The next sentence stands in for an inadmissible one, which settles nothing.
        self.settled = sum(state is not JobState.INADMISSIBLE for state in settled.values())
        self.running = 0
        self.waiting: deque[int] = deque()
        self._has_sentence, self._admit = has_sentence, admit
        self._length = 0  # places that are planned so far, whatever became of them
        for _ in range(wanted):
            self._plan_one_more(settled)

    def _plan_one_more(self, settled: Mapping[int, JobState]) -> None:
        """Plan the next place that is not inadmissible already."""
        while self._has_sentence(self._length):
            place, self._length = self._length, self._length + 1
            if place not in settled and not self._admit(place):
                continue
            if place not in settled:
                self.waiting.append(place)
            if settled.get(place) is not JobState.INADMISSIBLE:
                return
        self.missing += 1

    def settle(self, state: JobState) -> None:
        """Note the end of a search that was running."""
        self.running -= 1
        if state is JobState.INADMISSIBLE:
            # Jobs of earlier runs are planned already: the next place has no outcome yet.
            self._plan_one_more({})
        else:
            self.settled += 1


class TripletQueue(TaskQueue[TripletTask]):
    """The searches for every pair's triplets; each outcome is saved as it comes.

    Args:
        plan: what is wanted.
        profiles: what has been told of each model.
        allocator: has assigned each pair its sentences.
        settled: the jobs that came to an end before.
        save: told of each outcome as it comes.
        progress: told how many jobs have come to an end, and how many are wanted.
        floors: of plausibility.
        unsuitable: why a natural sentence is not to be searched, before any model sees it; empty
            where it is.
        wanted: triplets for each pair by now; None for as many as the plan wants.
        excluded: words, in lower case, that the search of a pair and place may not put in either.
        save_assigned: told of sentences that the allocator assigns further, as it says of a round.
        together: whether workers gain by searching between the same models at the same time.

    Attributes:
        pairs: each pair's searches.
    """

    def __init__(
        self,
        plan: SynthesisPlan,
        profiles: Mapping[str, ModelProfile],
        allocator: SentenceAllocator,
        settled: Sequence[Job],
        save: Callable[[TripletTask, Outcome], None],
        progress: Callable[[int, int], None],
        *,
        floors: Floors | None = None,
        unsuitable: Callable[[Sentence], str] = lambda _sentence: "",
        wanted: int | None = None,
        excluded: Callable[[tuple[str, str], int], frozenset[str]] = lambda _pair, _place: (
            frozenset()
        ),
        save_assigned: Callable[[Sequence[tuple[int, int, Sentence]]], None] = lambda _added: None,
        together: bool = False,
    ) -> None:
        self._together = together
        self._floors, self._unsuitable, self._excluded = floors or {}, unsuitable, excluded
        self._plan, self._profiles, self._allocator = plan, profiles, allocator
        self._save, self._progress, self._save_assigned = save, progress, save_assigned
        states: dict[tuple[str, str], dict[int, JobState]] = {pair: {} for pair in plan.pairs}
        for job in settled:
            # A store also has jobs of models that were left out.
            if (job.model_1, job.model_2) in states:
                states[job.model_1, job.model_2][job.place] = job.state
        # The allocator's own lists, which further rounds lengthen.
        self._assigned = dict(zip(plan.pairs, allocator.assigned, strict=True))
        self.pairs = {
            pair: PairQueue(
                pair,
                states[pair],
                plan.per_pair if wanted is None else wanted,
                partial(self._has_sentence, number),
                partial(self._admit, pair),
            )
            for number, pair in enumerate(plan.pairs)
        }
        self._order = [self.pairs[pair] for pair in pairs_sharing_models(plan.models)]
        self._report_progress()

    def _has_sentence(self, pair: int, place: int) -> bool:
        """True if a pair has a sentence at a place, if need be after further rounds for all."""
        assigned = self._allocator.assigned[pair]
        # Asked before each round: one in which this pair got nothing would only cost the others
        # sentences, and they may be wanted for models that are added later.
        while len(assigned) <= place and self._allocator.has_more(pair):
            self._save_assigned(self._allocator.assign_round())
        return len(assigned) > place

    def _admit(self, pair: tuple[str, str], place: int) -> bool:
        """True if a natural sentence may be searched; if not, that is saved as its outcome."""
        reason = self._unsuitable(self._assigned[pair][place])
        if reason:
            self._save(self._task(pair, place), Outcome(JobState.INADMISSIBLE, reason))
        return not reason

    def _report_progress(self) -> None:
        missing = sum(pair.missing for pair in self._order)
        wanted = len(self._order) * self._plan.per_pair - missing
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
        return self._task(chosen.pair, chosen.waiting.popleft())

    def _task(self, pair: tuple[str, str], place: int) -> TripletTask:
        plan, natural = self._plan, self._assigned[pair][place]
        first, second = (self._profiles[model].convention.fingerprint for model in pair)
        # No floor for a length at which the model can score no sentence: the search will say so.
        floors = {
            model: self._floors[model].get(len(natural), -float("inf"))
            for model in plan.plausible.judges(pair)
        }
        judge = None
        if plan.judge is not None:
            floor = floors[plan.judge] if plan.fluency is None else plan.fluency[1]
            judge = Judge(plan.judge, self._profiles[plan.judge].convention.fingerprint, floor)
        return TripletTask(
            models=pair,
            fingerprints=(first, second),
            place=place,
            natural=natural,
            seed=seed_for(plan.seed, (first, second), natural.text),
            recipe=plan.recipe,
            limits=replace(plan.limits, exclude=plan.limits.exclude | self._excluded(pair, place)),
            capitals=plan.capitals,
            judge=judge,
            # The floor of a model that judges all sentences is the judge's, a part of the search.
            # Of models that judge what they accept, that of the natural sentence is all, judge of
            # fluency or not: what they accept is no less likely.
            floors=None
            if plan.plausible.model or not floors
            else (floors[pair[0]], floors[pair[1]]),
            restarts=plan.restarts,
        )

    def done(self, task: TripletTask, result: Outcome) -> None:
        """See `TaskQueue.done`."""
        # Saved before it counts: what was reported survives the end of this process.
        self._save(task, result)
        self.pairs[task.models].settle(result.state)
        self._report_progress()

    def failed(self, task: TripletTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: the third time is saved as the job's outcome."""
        if attempt == _ATTEMPTS:
            self.done(task, Outcome(JobState.FAILED, str(error)))
        else:
            pair = self.pairs[task.models]
            pair.running -= 1
            # In front, so that places are still taken in order.
            pair.waiting.appendleft(task.place)


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
