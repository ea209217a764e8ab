"""Searches of a study: a task for each slot of its pairs, and results that are kept of them."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from contstim.optimization.jobs.tasks import Judge, TripletTask, describe_words
from contstim.store.triplets import JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.optimization.jobs.floors import Floors
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.store.triplets import Outcome, Result, Slot, TripletStore
    from contstim.vocabulary import Vocabulary

    ModelPair = tuple[str, str]


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

    def task(self, slot: Slot, capped: frozenset[str] = frozenset()) -> TripletTask:
        """The search of a slot, without words that a cap keeps out."""
        first, second = slot.pair
        # No floor for a length at which the model can score no sentence: the search will say so.
        least = {m: floors.get(len(slot.sentence), -inf) for m, floors in self._floors.items()}
        judge = None
        if self._further is not None:
            name = self._further.specification
            floor = least[name] if self._judge is None else self._judge[1]
            judge = Judge(name, self._fingerprint(name), floor)
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
            return replace(
                rejected, state=JobState.INADMISSIBLE, reason=slot.rejected, triplet=None
            )
        result = self._of_same_search(slot)
        if result is None or slot.refused or not self._counts(result):
            return None
        excluded = frozenset(map(str.lower, self.question.exclude))
        if not result.excluded <= excluded:
            return None
        passed_over = result.state is JobState.INADMISSIBLE
        return result if passed_over or not result.holds(excluded) else None

    def refused(self, slot: Slot) -> frozenset[str]:
        """The words that were too many under the cap in the result of a slot."""
        return frozenset() if self._of_same_search(slot) is None else slot.refused

    def _of_same_search(self, slot: Slot) -> Result | None:
        result = self._results.get(slot.result)
        if result is None or result.base != self.task(slot).searched.base:
            return None
        return result

    def find(self, task: TripletTask) -> Result | None:
        """The kept result of a search; None where there is none."""
        result = self._store.find(task.searched.key)
        return None if result is None or not self._counts(result) else self._remember(result)

    def _counts(self, result: Result) -> bool:
        return result.state is not JobState.FAILED or not self._retry_failed

    def keep(self, task: TripletTask, outcome: Outcome) -> Result:
        """Keep the outcome of a search."""
        return self._remember(self._store.keep(task.searched, outcome))

    def _remember(self, result: Result) -> Result:
        self._results[result.id] = result
        return result
