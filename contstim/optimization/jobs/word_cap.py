"""A cap on how often a word stands in the sentences of a whole study, kept during the search.

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

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.optimization.jobs.assignment import Assignment
    from contstim.optimization.jobs.queues import Searches
    from contstim.sentence import Sentence
    from contstim.store.triplets import Result, Slot

    ModelPair = tuple[str, str]

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
        sizes = [len(some) for some in standing.values()]
        self._end = self._size * max(1, -(-max(sizes) // self._size) if min(sizes) else 1)

    def _count(self, result: Result) -> Counter[str]:
        """In how many sentences of a triplet each word that counts stands, in lower case."""
        # A triplet whose sentences are not all different is in no table.
        triplet = result.triplet
        if triplet is None or not triplet.distinct:
            return Counter()
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        each = ({word.lower() for word in sentence.words} for sentence in sentences)
        return Counter(word for words in each for word in words - self._uncapped)

    @property
    def wanted(self) -> int:
        """Number of triplets that each pair is to have at the end of the present round."""
        return min(self._end, self._per_pair)

    def excluded(self, slot: Slot) -> frozenset[str]:
        """The words that a search of the present round may not put in."""
        return self._used_up | self._searches.refused(slot)

    def no_room(self, natural: Sentence) -> str:
        """Why a natural sentence has no room in the present round; empty where it has."""
        words = [
            word
            for word in dict.fromkeys(map(str.lower, natural.words))
            if word not in self._uncapped and self._used[word] + _SENTENCES > self._cap
        ]
        return f"no room under the cap on words: {', '.join(words)}" if words else ""

    def decide(self, outcomes: Iterable[tuple[Slot, Result]]) -> bool:
        """Accept or refuse the triplets of the round; whether more follow.

        Args:
            outcomes: of all searches, those of earlier rounds among them.
        """
        new = [
            (slot, result)
            for slot, result in outcomes
            if result.state != "inadmissible" and (slot.pair, slot.slot) not in self._accepted
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
            excluded = self.excluded(slot) | over if over else frozenset()
            changed.append(replace(slot, result=result.id, refused=excluded))
            if over:
                refused = True
            else:
                self._used += words
        self._assignment.stand(changed)
        self._accepted |= {(slot.pair, slot.slot) for slot in changed if not slot.refused}
        self._used_up = frozenset(word for word, n in self._used.items() if n >= self._cap)
        return refused
