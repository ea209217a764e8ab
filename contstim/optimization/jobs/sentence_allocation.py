"""Natural sentences allotted to pairs of models, none to two pairs."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from contstim.sentence import Sentence


class SentenceAllocator:
    """Pairs of models take turns; at each turn a pair gets the first free sentence it can use.

    The pool is in an order that depends on the seed and on each sentence's text alone, not on the
    order in which sentences are given; a sentence given twice is in it once. A sentence that one
    pair cannot use, another may get. So what pairs get in fewer rounds are the beginnings of what
    they get in more.

    A study that goes on begins with the sentences that its pairs have. They stay where they are,
    and what is missing among them is drawn first:

        places      0      1      2
        a × b      old     --    old        place 1 is drawn by a × b,
        a × c                               then turns go on with place 0 of a × c

    Args:
        sentences: the pool.
        usable: for each pair, whether it can use a sentence.
        seed: decides the order of the pool.
        standing: the sentences that each pair has, by their places; none has any where it is empty.
        reserved: sentences that no pair may get.
        shown: sentences that pairs get only where there is no other.

    Attributes:
        pool: all sentences, in their order.
        assigned: the sentences of each pair so far.

    Raises:
        InputError: there is no sentence for a place that is missing before one that stands.
    """

    def __init__(
        self,
        sentences: Iterable[Sentence],
        usable: Sequence[Callable[[Sentence], bool]],
        *,
        seed: int,
        standing: Sequence[Mapping[int, Sentence]] = (),
        reserved: Collection[Sentence] = frozenset(),
        shown: Collection[Sentence] = frozenset(),
    ) -> None:
        def order(sentence: Sentence) -> tuple[bool, str]:
            # By hash and not by shuffling: more sentences leave the order of the others as it is.
            drawn = hashlib.sha256(f"{seed}\x1f{sentence.text}".encode()).hexdigest()
            return sentence in shown, drawn

        self.pool = sorted(dict.fromkeys(sentences), key=order)
        self.assigned: tuple[list[Sentence], ...] = tuple([] for _ in usable)
        self._usable = usable
        self._next = [0] * len(usable)  # where in the pool each pair goes on to look
        self._reserved = frozenset(reserved)
        taken = self._reserved.union(*(by_place.values() for by_place in standing))
        self._taken = [sentence in taken for sentence in self.pool]
        # Place by place, as if pairs took turns.
        missing = sorted(
            (place, pair)
            for pair, by_place in enumerate(standing)
            for place in range(max(by_place, default=-1) + 1)
            if place not in by_place
        )
        drawn = {key: sentence for key in missing if (sentence := self._draw(key[1]))}
        lacking = len(missing) - len(drawn)
        if lacking:
            raise InputError(
                f"Too few natural sentences: {counted(len(missing), 'sentence')} that pairs of "
                f"models had can be used no more, and for {lacking:,} of them there is no other. "
                f"Give at least {lacking:,} more."
            )
        for pair, by_place in enumerate(standing):
            self.assigned[pair].extend(
                by_place[place] if place in by_place else drawn[place, pair]
                for place in range(max(by_place, default=-1) + 1)
            )

    def supply(self, per_pair: int, names: Sequence[tuple[str, str]]) -> str:
        """Number of sentences needed, and number that the pair with the fewest can use, in words.

        Args:
            per_pair: how many each pair needs.
            names: each pair's models.
        """
        needed = per_pair * len(names)
        # A pair that can use as many as all pairs need never lacks any: no more are counted.
        pool = [sentence for sentence in self.pool if sentence not in self._reserved]
        usable = [sum(1 for _ in islice(filter(can_use, pool), needed)) for can_use in self._usable]
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

    def _draw(self, pair: int) -> Sentence | None:
        """The first free sentence that a pair can use, which is then taken; None if none is."""
        if not self.has_more(pair):
            return None
        index = self._next[pair]
        self._taken[index] = True
        return self.pool[index]

    def has_more(self, pair: int) -> bool:
        """True if there is a free sentence that a pair can use."""
        for index in range(self._next[pair], len(self.pool)):
            # What is passed over stays of no use to this pair: it is taken, or not usable.
            self._next[pair] = index
            if not self._taken[index] and self._usable[pair](self.pool[index]):
                return True
        self._next[pair] = len(self.pool)
        return False

    def assign_round(self, shorter_than: int | None = None) -> list[tuple[int, int, Sentence]]:
        """One more sentence to each pair for which there is one.

        Args:
            shorter_than: only to pairs that have fewer sentences; None for all.

        Returns:
            The pair, the place and the sentence of each; none if there is no sentence for any.
        """
        added = []
        for pair, sentences in enumerate(self.assigned):
            if shorter_than is not None and len(sentences) >= shorter_than:
                continue
            sentence = self._draw(pair)
            if sentence is not None:
                added.append((pair, len(sentences), sentence))
                sentences.append(sentence)
        return added

    def assign(self, per_pair: int, names: Sequence[tuple[str, str]]) -> None:
        """Go on until every pair has its sentences.

        Args:
            per_pair: how many.
            names: each pair's models, for the message.

        Raises:
            InputError: there are too few for some pair; says which, and how many more are needed.
        """
        while self.assign_round(shorter_than=per_pair):
            pass
        sizes = {name: len(some) for name, some in zip(names, self.assigned, strict=True)}
        short = {name: per_pair - n for name, n in sizes.items() if n < per_pair}
        if not short:
            return
        first, second = pair = next(iter(short))
        # Of all sentences, taken or not: how far the pool goes if more are wanted.
        usable = sum(any(can_use(s) for can_use in self._usable) for s in self.pool)
        elsewhere = len(self._reserved)
        are = "is" if elsewhere == 1 else "are"
        reserved = f", and {elsewhere:,} {are} kept for models that were left out" * bool(elsewhere)
        others = f", and {len(short) - 1:,} other pairs too few" if len(short) > 1 else ""
        raise InputError(
            f"Too few natural sentences: {len(names):,} pairs of models × {per_pair:,} sentences "
            f"are {len(names) * per_pair:,}, none used twice. Of the {len(self.pool):,} distinct "
            f"sentences given, {usable:,} have two words or more, all of them known to both models "
            f"of some pair where they stand{reserved}. {first} × {second} gets "
            f"{sizes[pair]:,}{others}. Give at least {sum(short.values()):,} more, or lower "
            f"--per-pair."
        )
