"""Natural sentences dealt to pairs of models, none to two pairs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contstim.sentence import Sentence


class Dealer:
    """Deals sentences like cards: the pairs take turns, each takes the first that suits it.

    The deck is in an order that depends on the seed and on each sentence's text alone, not on the
    order in which sentences are given; a sentence given twice is in it once. What a sentence does
    not suit, another pair may take. So the hands of a shorter game are the beginnings of the hands
    of a longer one.

    Args:
        sentences: the deck.
        suits: for each pair, whether it can use a sentence.
        seed: decides the order of the deck.
    """

    def __init__(
        self,
        sentences: Iterable[Sentence],
        suits: Sequence[Callable[[Sentence], bool]],
        *,
        seed: int,
    ) -> None:
        def drawn(sentence: Sentence) -> str:
            return hashlib.sha256(f"{seed}\x1f{sentence.text}".encode()).hexdigest()

        self.deck = sorted(dict.fromkeys(sentences), key=drawn)
        self.hands: tuple[list[Sentence], ...] = tuple([] for _ in suits)
        self._suits = suits
        self._next = [0] * len(suits)
        self._taken = [False] * len(self.deck)

    def deal(self) -> bool:
        """One more sentence to each pair for which there is one; False if there is none for any."""
        sizes = [len(hand) for hand in self.hands]
        for pair, hand in enumerate(self.hands):
            card = self._draw(pair)
            if card is not None:
                hand.append(card)
        return sizes != [len(hand) for hand in self.hands]

    def _draw(self, pair: int) -> Sentence | None:
        for index in range(self._next[pair], len(self.deck)):
            if not self._taken[index] and self._suits[pair](self.deck[index]):
                self._taken[index] = True
                self._next[pair] = index + 1
                return self.deck[index]
        self._next[pair] = len(self.deck)
        return None

    def deal_all(self, per_pair: int, names: Sequence[tuple[str, str]]) -> None:
        """Deal until every pair has its sentences.

        Raises:
            InputError: there are too few for some pair; says which, and how many more are needed.
        """
        while min(len(hand) for hand in self.hands) < per_pair and self.deal():
            pass
        got = {name: len(hand) for name, hand in zip(names, self.hands, strict=True)}
        short = {name: per_pair - n for name, n in got.items() if n < per_pair}
        if not short:
            return
        first, second = pair = next(iter(short))
        usable = sum(any(suits(s) for suits in self._suits) for s in self.deck)
        others = f", and {len(short) - 1:,} other pairs too few" if len(short) > 1 else ""
        raise InputError(
            f"Too few natural sentences: {len(names):,} pairs of models × {per_pair:,} sentences "
            f"are {len(names) * per_pair:,}, none used twice. Of the {len(self.deck):,} distinct "
            f"sentences given, {usable:,} have two words or more, all of them known to both models "
            f"of some pair where they stand. {first} × {second} gets {got[pair]:,}{others}. Give "
            f"at least {sum(short.values()):,} more, or lower --per-pair."
        )
