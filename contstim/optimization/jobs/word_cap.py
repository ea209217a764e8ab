"""A cap on how often a word stands in the sentences of a whole study, kept during the search.

    accepted triplets --- words that are used up ---> searches of a wave, without these words
           ^                                                   |
           |                 one after the other, in an order that depends on the plan alone
           |                                                   v
           +-------- no word above the cap ----------- each triplet of the wave
                                                               |
              a word above the cap: searched again, also without that word, with the next wave

A wave has some places of every pair of models. All its searches go by the triplets that were
accepted before it began, and are decided about when the last of them is there. So results depend
neither on which worker was faster nor on when a job was killed: all that a decision needs is in the
store. What is searched again is searched without at least one word more, or its natural sentence
has no room any more and is passed over, so that this comes to an end.

A natural sentence cannot be changed, and what is made of it keeps many of its words: it is passed
over where one of its words has no room for three sentences more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.store.triplets import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.sentence import Sentence
    from contstim.stimuli import Triplet
    from contstim.store.triplets import TripletStore

_TRIPLETS_PER_WAVE, _LEAST_PER_PAIR = 32, 4
_SENTENCES = 3  # of a triplet


@dataclass(frozen=True)
class WordCap:
    """In how many sentences of a study a word may stand.

    Attributes:
        sentences: at most, natural ones included; 3 or more.
        uncapped: words that do not count, in lower case.

    Raises:
        InputError: a cap below 3, so that no natural sentence would have room.
    """

    sentences: int
    uncapped: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.sentences < _SENTENCES:
            raise InputError(
                f"The cap on words must be 3 sentences or more, not {self.sentences}: a natural "
                f"sentence and the two made of it share words."
            )

    def count(self, sentences: Iterable[Sentence]) -> Counter[str]:
        """In how many of some sentences each word stands, in lower case."""
        words = Counter(word for s in sentences for word in {w.lower() for w in s.words})
        return Counter({word: n for word, n in words.items() if word not in self.uncapped})

    def no_room(self, used: Mapping[str, int], natural: Sentence) -> str:
        """Why a natural sentence has no room; empty where it has."""
        words = [
            word
            for word in dict.fromkeys(map(str.lower, natural.words))
            if word not in self.uncapped and used.get(word, 0) + _SENTENCES > self.sentences
        ]
        return f"no room under the cap on words: {', '.join(words)}" if words else ""

    def used_up(self, used: Mapping[str, int]) -> frozenset[str]:
        """The words that no further sentence may have."""
        return frozenset(word for word, n in used.items() if n >= self.sentences)


class Waves:
    """The waves of a study with a cap, from what its store holds.

    Args:
        cap: on words.
        pairs: of models, in the order of the plan.
        per_pair: triplets wanted for each.
        store: where triplets, and what was decided about them, are kept.
    """

    def __init__(
        self,
        cap: WordCap,
        pairs: Sequence[tuple[str, str]],
        per_pair: int,
        store: TripletStore,
    ) -> None:
        self._cap, self._pairs, self._per_pair, self._store = cap, pairs, per_pair, store
        # Enough searches at once for many workers, whatever their number is; and several of a
        # pair, so that a worker does not load other models after each.
        self._size = max(_LEAST_PER_PAIR, -(-_TRIPLETS_PER_WAVE // len(pairs)))
        self._begin()

    def _begin(self) -> None:
        decisions = self._store.decisions()
        # A new study has no wave yet.
        self._end = decisions.wave_end or self._size
        self._accepted, self._refused = decisions.accepted, decisions.refused
        self._used = Counter[str]()
        for key, triplet in self._store.triplets_by_place().items():
            if key in self._accepted:
                self._used += self._count(triplet)
        self._used_up = self._cap.used_up(self._used)

    def _count(self, triplet: Triplet) -> Counter[str]:
        # A triplet whose sentences are not all different is in no table.
        if not triplet.distinct:
            return Counter()
        return self._cap.count((triplet.natural, triplet.synthetic_1, triplet.synthetic_2))

    @property
    def wanted(self) -> int:
        """Number of triplets that each pair is to have at the end of the present wave."""
        return min(self._end, self._per_pair)

    def excluded(self, pair: tuple[str, str], place: int) -> frozenset[str]:
        """The words that a search of the present wave may not put in."""
        return self._used_up | self._refused.get((*pair, place), frozenset())

    def no_room(self, natural: Sentence) -> str:
        """Why a natural sentence has no room in the present wave; empty where it has."""
        return self._cap.no_room(self._used, natural)

    def decide(self) -> bool:
        """Accept or refuse the triplets of the wave, all of which are there; whether more follow.

        What is decided is stored in one transaction, so that a job that was killed meanwhile
        decides again, and the same.
        """
        triplets = self._store.triplets_by_place()
        # Models that were left out have none here: what was accepted of theirs counts, so that they
        # may come back, and the rest is decided about when they do.
        order = {pair: number for number, pair in enumerate(self._pairs)}
        new = [
            (job.model_1, job.model_2, job.place)
            for job in self._store.jobs()
            if job.state is not JobState.INADMISSIBLE
            and (job.model_1, job.model_2, job.place) not in self._accepted
            and (job.model_1, job.model_2) in order
        ]
        used, accepted, refused = Counter(self._used), [], {}
        for key in sorted(new, key=lambda key: (key[2], order[key[:2]])):
            # A failed search has no triplet, and no words.
            words = self._count(triplets[key]) if key in triplets else Counter[str]()
            over = {word for word, n in words.items() if used[word] + n > self._cap.sentences}
            if over:
                refused[key] = self._refused.get(key, frozenset()) | over | self._used_up
            else:
                accepted.append(key)
                used += words
        is_last = not refused and self._end >= self._per_pair
        end = self._end if refused or is_last else self._end + self._size
        self._store.decide(accepted, refused, end)
        self._begin()
        return not is_last
