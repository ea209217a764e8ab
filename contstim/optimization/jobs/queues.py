"""Searches of a study, what is kept of them, and which comes next, with few models to be loaded.

A cap on how often a word stands in the sentences of the whole study is kept during the search:

    accepted triplets --- words that are used up ---> searches of a round, without these words
           ^                                                   |
           |                 one after the other, in an order that depends on the study alone
           |                                                   v
           +-------- no word above the cap ----------- each triplet of the round
                                                               |
              a word above the cap: searched again, also without that word, with the next round

A round has some slots of every pair of models. All its searches go by the triplets that were
accepted before it began, and are decided about when the last of them is there. So results depend
neither on which worker was faster nor on when a job was killed: all that a decision needs is in the
store. What is searched again is searched without at least one word more, or its natural sentence
has no room any more and is passed over, so that this comes to an end.

A natural sentence cannot be changed, and what is made of it keeps many of its words: it is passed
over where one of its words has no room for three sentences more.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import replace
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

from contstim.english.tags import tag_table
from contstim.jobs.pool import TaskQueue
from contstim.optimization.jobs.progress import SearchProgress
from contstim.optimization.jobs.so_far import MeanSeconds, so_far
from contstim.optimization.jobs.tasks import TripletTask, describe_words, digest
from contstim.reporter import SILENT
from contstim.store.triplets import Outcome, Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.assignment import Assignment
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.so_far import TripletsSoFar
    from contstim.optimization.jobs.tasks import Floors, ModelProfile
    from contstim.reporter import Reporter
    from contstim.reporting.report import Part
    from contstim.store.triplets import Slot, TripletStore
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

    ModelPair = tuple[str, str]


_ATTEMPTS = 3

_GONE = "not among the natural sentences, or of unknown words, now or in an earlier run"
_IN_VAIN = 3  # searches in vain, at most, for each triplet that a pair of models is to have


class Searches:
    """The searches of a study, and what its store knows of them.

    A result stands in a slot if it is of the same search, found without the words that the study
    excludes: also if fewer were excluded when it was found, but it holds none of them.

    Args:
        question: of the study; `SearchQuestion.resolved`.
        profiles: what has been told of each model.
        words: that searches between the models of each pair may use.
        floors: of plausibility.
        store: where results are kept.
        retry_failed: searches that failed are done again.

    Attributes:
        wall_seconds: that searches of this run took, all workers together.
        network_seconds: within networks; the rest is the work of everything around them.
    """

    def __init__(
        self,
        question: SearchQuestion,
        profiles: Mapping[str, ModelProfile],
        words: Mapping[ModelPair, Vocabulary],
        floors: Floors,
        store: TripletStore,
        *,
        retry_failed: bool = False,
    ) -> None:
        self.question = question
        self._profiles, self._floors, self._store = profiles, floors, store
        self._words = {pair: describe_words(vocabulary) for pair, vocabulary in words.items()}
        self._judge, self._further = question.judge, question.further
        self._results = store.results(question.seed)
        self._retry_failed = retry_failed
        self.wall_seconds = self.network_seconds = 0.0

    def task(self, slot: Slot, capped: frozenset[str] = frozenset()) -> TripletTask:
        """The search of a slot, without words that a cap keeps out."""
        first, second = slot.pair
        # No floor for a length at which the model can score no sentence: the search will say so.
        least = {m: floors.get(len(slot.sentence), -inf) for m, floors in self._floors.items()}
        judge = None
        if self._further is not None:
            name = self._further.specification
            floor = least[name] if self._judge is None else self._judge[1]
            judge = (name, self._fingerprint(name), floor)
        # The floor of a model that judges all sentences is the judge's, a part of the search. Of
        # models that judge what they accept, that of the natural sentence is all, judge of fluency
        # or not: what they accept is no less likely.
        by_pair = first in least and second in least and (judge is None or self._judge is not None)
        return TripletTask(
            question=self.question,
            models=slot.pair,
            fingerprints=(self._fingerprint(first), self._fingerprint(second)),
            slot=slot.slot,
            natural=slot.sentence,
            words=self._words[slot.pair],
            judge=judge,
            floors=(least[first], least[second]) if by_pair else None,
            capped=capped,
        )

    def _fingerprint(self, model: str) -> str:
        return self._profiles[model].convention.fingerprint

    def standing(self, slot: Slot) -> Result | None:
        """The result that stands in a slot; None where none does."""
        if slot.rejected:
            rejected = self._results[slot.result]
            return replace(rejected, state="inadmissible", reason=slot.rejected, triplet=None)
        result, excluded = self._of_same_search(slot), self.question.excluded
        if result is None or slot.refused or not self._counts(result):
            return None
        if not result.excluded <= excluded:
            return None
        passed_over = result.state == "inadmissible"
        return result if passed_over or not result.holds(excluded) else None

    def refused(self, slot: Slot) -> frozenset[str]:
        """The words that were too many under the cap in the result of a slot."""
        return frozenset() if self._of_same_search(slot) is None else slot.refused

    def expected_seconds(self, pair: ModelPair) -> float | None:
        """Measured seconds for a triplet of a pair; None where none was measured."""
        return self._store.times.get(search_key(self.question, *pair)).a_unit

    def _of_same_search(self, slot: Slot) -> Result | None:
        result = self._results.get(slot.result)
        return result if result and result.base == self.task(slot).base else None

    def find(self, task: TripletTask) -> Result | None:
        """The kept result of a search; None where there is none."""
        result = self._store.find(task.key)
        if result is None or not self._counts(result):
            return None
        self._results[result.id] = result
        return result

    def _counts(self, result: Result) -> bool:
        return result.state != "failed" or not self._retry_failed

    def keep(self, task: TripletTask, outcome: Outcome) -> Result:
        """Keep the outcome of a search."""
        self.wall_seconds += outcome.wall_seconds
        self.network_seconds += outcome.network_seconds
        costs = [cost for trail in outcome.trails for cost in trail["costs"].values()]
        rows = sum(rows for rows, _, _ in costs)
        if outcome.wall_seconds:
            is_triplet = outcome.triplet is not None and outcome.triplet.distinct
            seconds, key = outcome.wall_seconds, search_key(self.question, *task.models)
            self._store.times.add(key, units=is_triplet, seconds=seconds, rows=rows)
        result = Result(
            id=0,
            base=task.base,
            excluded=self.question.excluded,
            model_1=task.models[0],
            model_2=task.models[1],
            natural=task.natural.text,
            state=outcome.state,
            reason=outcome.reason,
            triplet=outcome.triplet,
            rows=rows,
            tokens=sum(tokens for _, tokens, _ in costs),
            searches=sum(len(trail["searches"]) for trail in outcome.trails),
        )
        result = self._store.keep(task.key, result, outcome.trails)
        self._results[result.id] = result
        return result


def search_key(question: SearchQuestion, model_1: str, model_2: str) -> str:
    """Name, among measured times, of searches for triplets between two models.

    Args:
        question: what is searched; `SearchQuestion.resolved`.
        model_1: specification of a model.
        model_2: that of the other one; their order does not matter.
    """
    settings = digest([json.dumps(question.key, sort_keys=True)])[:12]
    return f"search {settings} {' '.join(sorted((model_1, model_2)))}"


class TripletQueue(TaskQueue[TripletTask]):
    """The searches for every pair's triplets; each outcome is kept as it comes.

    Slots of a pair are taken in order, until as many as wanted have a triplet or failed; a sentence
    that turns out inadmissible, or is searched in vain, makes room for the next. So which sentences
    are taken depends on nothing but their order. Where words allow hardly anything, three for each
    triplet that is wanted make room after a search in vain, and no more: such searches take
    longest.

    Args:
        searches: of the study.
        assignment: the slots of each pair; may go on with further rounds.
        reporter: told how many searches have come to an end, and how many are wanted.
        rounds: of a cap on words; None where there is none, so that results stand as they come.
        together: whether workers gain by searching between the same models at the same time.
        table: written now and then with what is found; None for no table.

    Attributes:
        results: what is known of the slots of each pair, in the order of the study.
        missing: how many triplets of each pair are wanted for which there is no sentence, or
            for which too many searches were in vain.
    """

    def __init__(
        self,
        searches: Searches,
        assignment: Assignment,
        reporter: Reporter = SILENT,
        rounds: CapRounds | None = None,
        *,
        together: bool = False,
        table: TripletsSoFar | None = None,
    ) -> None:
        self._searches, self._assignment, self._reporter = searches, assignment, reporter
        self._rounds, self._together, self._table = rounds, together, table
        self._progress = SearchProgress(reporter, searches.expected_seconds)
        self._slots = assignment.slots  # which further rounds lengthen
        self.results: dict[ModelPair, dict[int, Result]] = {p: {} for p in self._slots}
        # Of each pair: slots to be taken, and how many were planned, whatever became of them, or
        # are with workers
        self._waiting: dict[ModelPair, deque[int]] = {p: deque() for p in self._slots}
        self._planned: Counter[ModelPair] = Counter()
        self._running: Counter[ModelPair] = Counter()
        self.missing: Counter[ModelPair] = Counter()
        self._in_vain: Counter[ModelPair] = Counter()
        self._seconds = {pair: MeanSeconds() for pair in self._slots}
        for pair in self._slots:
            for _ in range(searches.question.per_pair if rounds is None else rounds.wanted):
                self._plan_one_more(pair)
        models = list(dict.fromkeys(model for pair in self._slots for model in pair))
        self._order = pairs_sharing_models(models)
        self._report()

    def _plan_one_more(self, pair: ModelPair) -> None:
        """Plan the next slot that is not known to leave its triplet to another."""
        while self._assignment.has(pair, self._planned[pair]):
            number = self._planned[pair]
            self._planned[pair] += 1
            result = self._known(pair, number)
            if result is None:
                self._waiting[pair].append(number)
                return
            if not self._leaves_room(pair, result):
                return
        self.missing[pair] += 1

    def _leaves_room(self, pair: ModelPair, result: Result) -> bool:
        """True if the next sentence is to have the triplet that this one does not; asked once."""
        if result.in_vain:
            self._in_vain[pair] += 1
            if self._in_vain[pair] > _IN_VAIN * self._searches.question.per_pair:
                self.missing[pair] += 1
                return False
        return result.in_vain or result.state == "inadmissible"

    def _known(self, pair: ModelPair, number: int) -> Result | None:
        """The result of the search of a slot; that it is unsuitable is kept as its outcome."""
        slot = self._slots[pair][number]
        standing = result = self._searches.standing(slot)
        if result is None:
            task = self._task(slot)
            result = self._searches.find(task)
            reason = "" if result is not None else self._unsuitable(slot)
            if reason:
                result = self._searches.keep(task, Outcome("inadmissible", reason))
            if result is None:
                return None
        if result.state != "inadmissible" and not self._assignment.can_use(slot):
            # What was found from a sentence that is gone since: for good, as another has its place
            gone = replace(slot, result=result.id, rejected=_GONE, refused=frozenset())
            self._assignment.stand([gone])
            result = replace(result, state="inadmissible", reason=_GONE, triplet=None)
        elif standing is None:
            self._stand(slot, result)
        self.results[pair][number] = result
        return result

    def _unsuitable(self, slot: Slot) -> str:
        """Reason for which a natural sentence is not to be searched; empty where it is."""
        excluded = self._searches.question.excluded
        words = [word for word in slot.sentence.words if word.lower() in excluded]
        if words:
            return f"holds an excluded word: {', '.join(words)}"
        if not self._assignment.can_use(slot):
            return _GONE
        return "" if self._rounds is None else self._rounds.no_room(slot.sentence)

    def _stand(self, slot: Slot, result: Result) -> None:
        # Under a cap a triplet stands when it has been decided about.
        if self._rounds is None or result.state == "inadmissible":
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

    def _report(self) -> None:
        """Report the progress, and what is found so far."""
        ended, wanted = {}, {}
        for pair, results in self.results.items():
            wanted[pair] = self._searches.question.per_pair - self.missing[pair]
            counts = (r.state != "inadmissible" and not r.in_vain for r in results.values())
            ended[pair] = sum(counts)
        self._progress.report(ended, wanted)
        if self._table is not None:
            self._table.write(self.found)
        self._reporter.show(self._so_far)

    def tick(self) -> None:
        """See `TaskQueue.tick`."""
        self._progress.tick()

    def _searched(self, pair: ModelPair) -> list[Result]:
        """Results of a pair's searches, slot by slot."""
        known = sorted(self.results[pair].items())
        return [result for _, result in known if result.state != "inadmissible"]

    def _so_far(self) -> Iterator[Part]:
        return so_far({p: self._searched(p) for p in self._slots}, self._in_vain, self._seconds)

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not any(self._waiting.values()) and not self._running.total()

    def take(self, loaded: Sequence[str]) -> TripletTask | None:
        """See `TaskQueue.take`.

        Each pair has a first search before any has a second one, so that whoever waits soon sees
        items of all. Of these pairs, or of all, those for which fewest models must be loaded; of
        these one at which fewest workers are, or most if they are to be together; of these the
        first in an order in which consecutive pairs share a model.
        """
        waiting = [pair for pair in self._order if self._waiting[pair]]
        if not waiting:
            return None
        new = [pair for pair in waiting if not self._running[pair] and not self._searched(pair)]
        sign = -1 if self._together else 1
        # Of equals, `min` takes the first.
        pair = min(new or waiting, key=lambda p: (len({*p} - {*loaded}), sign * self._running[p]))
        self._running[pair] += 1
        self._progress.begin(pair)
        return self._task(self._slots[pair][self._waiting[pair].popleft()])

    def done(self, task: TripletTask, result: Outcome) -> None:
        """See `TaskQueue.done`."""
        # Kept before it counts: what was reported survives the end of this process.
        pair, kept = task.models, self._searches.keep(task, result)
        self._stand(self._slots[pair][task.slot], kept)
        self.results[pair][task.slot] = kept
        self._running[pair] -= 1
        self._progress.end(pair)
        if result.state != "failed":  # how long it took is not known
            self._seconds[pair].add(result.wall_seconds)
        if self._leaves_room(pair, kept):
            self._plan_one_more(pair)
        self._report()

    def failed(self, task: TripletTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`: the third time is kept as the outcome."""
        if attempt == _ATTEMPTS:
            self.done(task, Outcome("failed", str(error)))
            return
        self._running[task.models] -= 1
        self._progress.end(task.models)
        # In front, so that slots are still taken in order.
        self._waiting[task.models].appendleft(task.slot)


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


_TRIPLETS_PER_ROUND, _LEAST_PER_PAIR = 32, 4
_SENTENCES = 3  # of a triplet


class CapRounds:
    """Rounds of a study with a cap: some slots of every pair at a time.

    Args:
        cap: in how many sentences of the study, natural ones included, a word may stand.
        searches: of the study.
        assignment: the slots of each pair.
    """

    def __init__(self, cap: int, searches: Searches, assignment: Assignment) -> None:
        self._cap, self._searches = cap, searches
        self._per_pair = searches.question.per_pair
        self._uncapped = frozenset(map(str.lower, searches.question.uncapped))
        self._table = tag_table(searches.question.tags)
        self._assignment, slots = assignment, assignment.slots
        self._order = {pair: number for number, pair in enumerate(slots)}
        # Enough searches at once for many workers, whatever their number is; and several of a
        # pair, so that a worker does not load other models after each.
        self._size = max(_LEAST_PER_PAIR, -(-_TRIPLETS_PER_ROUND // len(slots)))
        self._used = Counter[str]()
        self._used_up = frozenset[str]()  # words that no further sentence may have
        self._accepted: set[tuple[ModelPair, int]] = set()
        standing = {
            pair: [
                (slot, result)
                for slot in of_pair
                if (result := searches.standing(slot)) and result.state != "inadmissible"
            ]
            for pair, of_pair in slots.items()
        }
        self._decide([each for some in standing.values() for each in some])
        # A study that goes on does so with the round in which it was, and one that has a new pair
        # with the first.
        sizes = [sum(not r.in_vain for _, r in some) for some in standing.values()]
        self._end = self._size * max(1, -(-max(sizes) // self._size) if min(sizes) else 1)

    def _count(self, result: Result) -> Counter[str]:
        """In how many sentences of a triplet each lemma of words that count stands."""
        # A triplet whose sentences are not all different is in no table.
        triplet = result.triplet
        if triplet is None or result.in_vain:
            return Counter()
        return Counter(word for each in triplet.sentences for word in self._lemmas(each))

    def _lemmas(self, sentence: Sentence) -> dict[str, None]:
        """The lemmas of words that count, in order, each once."""
        words = (word for word in map(str.lower, sentence.words) if word not in self._uncapped)
        return dict.fromkeys(map(self._table.lemma, words))

    def _forms(self, lemmas: Iterable[str]) -> frozenset[str]:
        """All words that count with one of these lemmas."""
        return frozenset().union(*map(self._table.forms, lemmas)) - self._uncapped

    @property
    def wanted(self) -> int:
        """Number of triplets that each pair is to have at the end of the present round."""
        return min(self._end, self._per_pair)

    def excluded(self, slot: Slot) -> frozenset[str]:
        """The words that a search of the present round may not put in."""
        return self._used_up | self._searches.refused(slot)

    def no_room(self, natural: Sentence) -> str:
        """Why a natural sentence has no room in the present round; empty where it has."""
        words = [w for w in self._lemmas(natural) if self._used[w] + _SENTENCES > self._cap]
        return f"no room under the cap on words: {', '.join(words)}" if words else ""

    def decide(self, results: Mapping[ModelPair, Mapping[int, Result]]) -> bool:
        """Accept or refuse the triplets of the round; whether more follow.

        Args:
            results: of all slots, those of earlier rounds among them; see `TripletQueue`.
        """
        new = [
            (self._assignment.slots[pair][number], result)
            for pair, known in results.items()
            for number, result in known.items()
            if result.state != "inadmissible" and (pair, number) not in self._accepted
        ]
        refused = self._decide(new)
        is_last = not refused and self._end >= self._per_pair
        if not refused and not is_last:
            self._end += self._size
        return not is_last

    def _decide(self, new: Iterable[tuple[Slot, Result]]) -> bool:
        """Accept or refuse triplets, slot by slot; True if one was refused.

        What is decided is stored in one transaction, so that a job that was killed meanwhile
        decides again, and the same.
        """
        changed, refused = [], False
        for slot, result in sorted(new, key=lambda each: (each[0].slot, self._order[each[0].pair])):
            # A failed search has no triplet, and no words.
            words = self._count(result)
            over = {w for w, n in words.items() if self._used[w] + n > self._cap}
            excluded = self.excluded(slot) | self._forms(over) if over else frozenset()
            changed.append(replace(slot, result=result.id, refused=excluded))
            if over:
                refused = True
            else:
                self._used += words
        self._assignment.stand(changed)
        self._accepted |= {(slot.pair, slot.slot) for slot in changed if not slot.refused}
        self._used_up = self._forms(word for word, n in self._used.items() if n >= self._cap)
        return refused
