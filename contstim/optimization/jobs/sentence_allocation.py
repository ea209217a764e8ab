"""Natural sentences allotted to pairs of models, none to two pairs."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.sentence import Sentence


class SentenceAllocator:
    """Pairs of models take turns; at each turn a pair gets the first free sentence it can use.

    The pool is in an order that depends on the seed and on each sentence's text alone, not on the
    order in which sentences are given; a sentence given twice is in it once. A sentence that one
    pair cannot use, another may get. So what pairs get in fewer rounds are the beginnings of what
    they get in more.

    Args:
        sentences: the pool.
        usable: for each pair, whether it can use a sentence.
        seed: decides the order of the pool.

    Attributes:
        pool: all sentences, in their order.
        assigned: the sentences of each pair so far.
    """

    def __init__(
        self,
        sentences: Iterable[Sentence],
        usable: Sequence[Callable[[Sentence], bool]],
        *,
        seed: int,
    ) -> None:
        def random_key(sentence: Sentence) -> str:
            # By hash and not by shuffling: more sentences leave the order of the others as it is.
            return hashlib.sha256(f"{seed}\x1f{sentence.text}".encode()).hexdigest()

        self.pool = sorted(dict.fromkeys(sentences), key=random_key)
        self.assigned: tuple[list[Sentence], ...] = tuple([] for _ in usable)
        self._usable = usable
        self._next = [0] * len(usable)  # where in the pool each pair goes on to look
        self._taken = [False] * len(self.pool)

    def supply(self, per_pair: int, names: Sequence[tuple[str, str]]) -> str:
        """How many sentences are needed, and how many the pair with the fewest can use, in words.

        Args:
            per_pair: how many each pair needs.
            names: each pair's models.
        """
        needed = per_pair * len(names)
        # A pair that can use as many as all pairs need never lacks any: no more are counted.
        usable = [
            sum(1 for _ in islice(filter(can_use, self.pool), needed)) for can_use in self._usable
        ]
        fewest = min(usable)
        first, second = names[usable.index(fewest)]
        supplied = (
            f"every pair can use {needed:,} or more"
            if fewest >= needed
            else f"{first} × {second} can use the fewest, {fewest:,}"
        )
        return (
            f"Natural sentences: {counted(len(names), 'pair')} of models × {per_pair:,} are "
            f"{needed:,}; of the {len(self.pool):,} given, {supplied}."
        )

    def assign_round(self) -> bool:
        """One more sentence to each pair for which there is one; False if there is none for any."""
        any_assigned = False
        for pair, sentences in enumerate(self.assigned):
            for index in range(self._next[pair], len(self.pool)):
                # What is passed over stays of no use to this pair: it is taken, or not usable.
                self._next[pair] = index + 1
                if not self._taken[index] and self._usable[pair](self.pool[index]):
                    self._taken[index] = any_assigned = True
                    sentences.append(self.pool[index])
                    break
        return any_assigned

    def assign(self, per_pair: int, names: Sequence[tuple[str, str]]) -> None:
        """Go on until every pair has its sentences.

        Args:
            per_pair: how many.
            names: each pair's models, for the message.

        Raises:
            InputError: there are too few for some pair; says which, and how many more are needed.
        """
        while min(map(len, self.assigned)) < per_pair and self.assign_round():
            pass
        sizes = {name: len(some) for name, some in zip(names, self.assigned, strict=True)}
        short = {name: per_pair - n for name, n in sizes.items() if n < per_pair}
        if not short:
            return
        first, second = pair = next(iter(short))
        # Of all sentences, taken or not: how far the pool goes if more are wanted.
        usable = sum(any(can_use(s) for can_use in self._usable) for s in self.pool)
        others = f", and {len(short) - 1:,} other pairs too few" if len(short) > 1 else ""
        raise InputError(
            f"Too few natural sentences: {len(names):,} pairs of models × {per_pair:,} sentences "
            f"are {len(names) * per_pair:,}, none used twice. Of the {len(self.pool):,} distinct "
            f"sentences given, {usable:,} have two words or more, all of them known to both models "
            f"of some pair where they stand. {first} × {second} gets {sizes[pair]:,}{others}. Give "
            f"at least {sum(short.values()):,} more, or lower --per-pair."
        )
