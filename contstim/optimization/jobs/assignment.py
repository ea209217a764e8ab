"""Natural sentences of pairs of models, none to two pairs: how they are drawn, and assignment.csv.

A study that has grown step by step has other sentences than one that had all its models from the
start. From the table it can be repeated elsewhere, with the same sentences for the same pairs.
"""

from __future__ import annotations

import hashlib
from itertools import chain, islice
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.tables import read_rows
from contstim.items.stimuli import CELL_READERS
from contstim.store.triplets import AssignedSentence, Slot
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.words.sentence import Sentence

    ModelPair = tuple[str, str]


class Assignment:
    """Pairs of models take turns; at each turn a pair gets the first free sentence it can use.

    The pool is in an order that depends on the seed and on each sentence's text alone, not on the
    order in which sentences are given; a sentence given twice is in it once. A sentence that one
    pair cannot use, another may get. So what pairs get in fewer rounds are the beginnings of what
    they get in more.

    A study that goes on begins with the sentences that its pairs have. They stay where they are,
    and what is missing among them is drawn first:

        slots       0      1      2
        a × b      old     --    old        slot 1 is drawn by a × b,
        a × c                               then turns go on with slot 0 of a × c

    Args:
        sentences: the pool.
        usable: for each pair, whether it can use a sentence.
        seed: decides the order of the pool.
        standing: what pairs have.
        reserved: sentences that no pair may get.
        shown: sentences that pairs get only where there is no other.
        save: told of slots that are drawn by `has`, and of what stands in slots.

    Attributes:
        pool: all sentences, in their order.
        slots: of each pair so far, in their order.

    Raises:
        InputError: there is no sentence for a slot that is missing before one that stands.
    """

    def __init__(
        self,
        sentences: Iterable[Sentence],
        usable: Mapping[ModelPair, Callable[[Sentence], bool]],
        *,
        seed: int,
        standing: Iterable[Slot] = (),
        reserved: Collection[Sentence] = frozenset(),
        shown: Collection[Sentence] = frozenset(),
        save: Callable[[Sequence[Slot]], None] = lambda _slots: None,
    ) -> None:
        def order(sentence: Sentence) -> tuple[bool, str]:
            # By hash and not by shuffling: more sentences leave the order of the others as it is.
            drawn = hashlib.sha256(f"{seed}\x1f{sentence.text}".encode()).hexdigest()
            return sentence in shown, drawn

        self.pool = sorted(dict.fromkeys(sentences), key=order)
        self.slots: dict[ModelPair, list[Slot]] = {pair: [] for pair in usable}
        self._usable, self.save = usable, save
        self._next = dict.fromkeys(usable, 0)  # where in the pool each pair goes on to look
        self._reserved, self._taken = frozenset(reserved), {*reserved}
        by_pair: dict[ModelPair, dict[int, Slot]] = {pair: {} for pair in usable}
        for slot in standing:
            by_pair[slot.pair][slot.slot] = slot
            self._taken.add(slot.sentence)
        # Slot by slot, as if pairs took turns.
        missing = sorted(
            (number, order_of_pair, pair)
            for order_of_pair, (pair, slots) in enumerate(by_pair.items())
            for number in range(max(slots, default=-1) + 1)
            if number not in slots
        )
        lacking = 0
        for number, _, pair in missing:
            sentence = self._draw(pair)
            if sentence is None:
                lacking += 1
            else:
                by_pair[pair][number] = Slot(*pair, number, sentence)
        if lacking:
            raise InputError(
                f"Too few natural sentences: {counted(len(missing), 'sentence')} that pairs of "
                f"models had can be used no more, and for {lacking:,} of them there is no other. "
                f"Give at least {lacking:,} more."
            )
        for pair, slots in by_pair.items():
            self.slots[pair] = [slots[number] for number in sorted(slots)]

    def supply(self, per_pair: int) -> str:
        """Number of sentences needed, and number that the pair with the fewest can use, in words.

        Args:
            per_pair: how many each pair needs.
        """
        needed = per_pair * len(self.slots)
        # A pair that can use as many as all pairs need never lacks any: no more are counted.
        pool = [sentence for sentence in self.pool if sentence not in self._reserved]
        usable = (list(islice(filter(can, pool), needed)) for can in self._usable.values())
        return (
            f"Natural sentences: {needed:,} are needed of {len(self.pool):,}, and every pair of "
            f"models can use {min(map(len, usable)):,} or more."
        )

    def _draw(self, pair: ModelPair) -> Sentence | None:
        """The first free sentence that a pair can use, which is then taken; None if none is."""
        if not self._has_more(pair):
            return None
        sentence = self.pool[self._next[pair]]
        self._taken.add(sentence)
        return sentence

    def _has_more(self, pair: ModelPair) -> bool:
        """True if there is a free sentence that a pair can use."""
        for index in range(self._next[pair], len(self.pool)):
            # What is passed over stays of no use to this pair: it is taken, or not usable.
            self._next[pair] = index
            if self.pool[index] not in self._taken and self._usable[pair](self.pool[index]):
                return True
        self._next[pair] = len(self.pool)
        return False

    def has(self, pair: ModelPair, number: int) -> bool:
        """True if a pair has a slot of a number, if need be after further rounds for all."""
        # Asked before each round: one in which this pair got nothing would only cost the others
        # sentences, and they may be wanted for models that are added later.
        while len(self.slots[pair]) <= number and self._has_more(pair):
            self.save(self.assign_round())
        return len(self.slots[pair]) > number

    def can_use(self, slot: Slot) -> bool:
        """True if the pair of a slot can use its sentence."""
        return self._usable[slot.pair](slot.sentence)

    def stand(self, slots: Sequence[Slot]) -> None:
        """Put what stands in slots now in the place of what stood there."""
        self.save(slots)
        for slot in slots:
            self.slots[slot.pair][slot.slot] = slot

    def assign_round(self, shorter_than: int | None = None) -> list[Slot]:
        """One more sentence to each pair for which there is one; those that are new.

        Args:
            shorter_than: only to pairs that have fewer sentences; None for all.
        """
        added = []
        for pair, slots in self.slots.items():
            if shorter_than is not None and len(slots) >= shorter_than:
                continue
            sentence = self._draw(pair)
            if sentence is not None:
                slots.append(Slot(*pair, len(slots), sentence))
                added.append(slots[-1])
        return added

    def assign(self, per_pair: int) -> None:
        """Go on until every pair has its sentences.

        Raises:
            InputError: there are too few for some pair; says which, and how many more are needed.
        """
        while self.assign_round(shorter_than=per_pair):
            pass
        short = {
            pair: per_pair - len(slots)
            for pair, slots in self.slots.items()
            if len(slots) < per_pair
        }
        if not short:
            return
        pair, lacks = next(iter(short.items()))
        raise InputError(
            f"Too few natural sentences: {len(self.slots) * per_pair:,} are needed, none used "
            f"twice, of words that both models of a pair know. Of {len(self.pool):,} given, "
            f"{len(self._reserved):,} are of models that were left out. {' × '.join(pair)} lacks "
            f"{lacks:,} of {per_pair:,}. Give at least {sum(short.values()):,} more, or lower "
            f"per_pair."
        )


def models_in_order(models: Collection[str], rows: Sequence[AssignedSentence]) -> list[str]:
    """Models in the order that decides pairs, their sentences and seeds, however they are given.

    Those of rows come first, in the order in which these name them; others in the alphabet's.
    """
    old = [model for model in _named(rows) if model in models]
    return [*old, *sorted({*models} - {*old})]


def _named(rows: Iterable[AssignedSentence]) -> Iterable[str]:
    return dict.fromkeys(chain.from_iterable((row.model_1, row.model_2) for row in rows))


def read_assignment(path: Path | str) -> tuple[AssignedSentence, ...]:
    """Read assignment.csv; further columns are ignored.

    Raises:
        InputError: the file cannot be read, lacks a column, has no rows, or holds a value of
            another type; a row does not name two models, a slot is negative or given twice to a
            pair, or a sentence stands in two rows.
    """
    rows = read_rows(path, AssignedSentence, CELL_READERS)
    seen: dict[object, int] = {}
    for number, row in enumerate(rows):
        pair = frozenset((row.model_1, row.model_2))
        if "" in pair or len(pair) < 2 or row.slot < 0:
            raise InputError(
                f"{path}, row {number}: model_1 and model_2 must name two models, and slot be 0 or "
                f"more, not {row.model_1!r}, {row.model_2!r} and {row.slot}."
            )
        for what, key in (
            (f"slot {row.slot} of {row.model_1} × {row.model_2}", (pair, row.slot)),
            (f"the sentence {shortened(row.sentence.text)}", row.sentence),
        ):
            before = seen.setdefault(key, number)
            if before != number:
                raise InputError(f"{path} has {what} in rows {before} and {number}.")
    return rows


def slots_to_begin_with(
    rows: Iterable[AssignedSentence],
    sentences: Collection[Sentence],
    usable: Mapping[ModelPair, Callable[[Sentence], bool]],
) -> list[Slot]:
    """The slots of a new study, without gaps, by the table of another one.

    Args:
        rows: of the table; other models' are left out.
        sentences: of the study.
        usable: for each pair of the study, whether it can use a sentence.

    Raises:
        InputError: the table is of other models, or has a sentence that is not among the study's,
            or that its pair cannot use.
    """
    pairs = {frozenset(pair): pair for pair in usable}
    slots: dict[ModelPair, list[Slot]] = {}
    rows = sorted(rows, key=lambda row: row.slot)
    for row in rows:
        pair = pairs.get(frozenset((row.model_1, row.model_2)))
        if pair is None:
            continue
        if row.sentence not in sentences or not usable[pair](row.sentence):
            why = (
                "has a word that one of them does not know, or that the vocabulary lacks"
                if row.sentence in sentences
                else "is not among the natural sentences"
            )
            raise InputError(
                f"The assignment gives {pair[0]} × {pair[1]} the sentence "
                f"{row.sentence.text!r}, which {why}. Give the natural sentences and the "
                f"vocabulary of the study that the assignment is of."
            )
        own = slots.setdefault(pair, [])
        own.append(Slot(*pair, len(own), row.sentence))
    if rows and not slots:
        raise InputError(
            f"The assignment is of other models ({', '.join(_named(rows))}): name models as it "
            f"does."
        )
    return [slot for own in slots.values() for slot in own]
