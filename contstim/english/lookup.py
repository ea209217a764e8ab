"""Finding words by their features, fast.

A feature of a symbol may leave a choice open ("produce|baked"). Words that *are* something (nouns,
names, places) need only be one of the alternatives; words that *apply to* something (verbs,
adjectives) must fit them all.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.english.derivation import Symbol
    from contstim.english.lexicon import Entry, Lexicon

# A value may leave a choice open: "dish|baked" is what cooks prepare.
OR = "|"
# The categories whose words apply to something.
PREDICATES = frozenset({"V", "ADJ", "CMP", "LOOK", "RP"})
# Features whose alternatives are never left open, because several words must agree on one.
SEPARATE = frozenset({"agr", "num", "mode", "at", "by"})


class Lookup:
    """An index of a lexicon; remembers every answer."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        # for each category, feature and value a number whose bit i says whether entry i has it:
        # several features at once are then one operation on whole numbers
        self._index: dict[tuple[str, str, str], int] = {}
        for category, entries in lexicon.entries.items():
            for i, entry in enumerate(entries):
                for name, values in entry.features.items():
                    for value in values:
                        key = (category, name, value)
                        self._index[key] = self._index.get(key, 0) | 1 << i
        self._entries: dict[Symbol, tuple[Entry, ...]] = {}
        self._combinations: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}

    @property
    def categories(self) -> set[str]:
        """The categories of the lexicon's words."""
        return set(self._lexicon.entries)

    def entries(self, symbol: Symbol) -> tuple[Entry, ...]:
        """The entries of the symbol's category that have all of its features."""
        if symbol not in self._entries:
            candidates = self._lexicon.entries.get(symbol.category, ())
            combine = operator.and_ if symbol.category in PREDICATES else operator.or_
            # Begin with all entries, bit i for entry i; each feature takes away those that lack it
            bits = (1 << len(candidates)) - 1
            for name, value in symbol.features:
                keys = ((symbol.category, name, choice) for choice in value.split(OR))
                bits &= functools.reduce(combine, (self._index.get(key, 0) for key in keys))
            self._entries[symbol] = tuple(candidates[i] for i in _positions(bits))
        return self._entries[symbol]

    def values(self, symbol: Symbol, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """The values that the entries of a symbol give to further features, without repeats."""
        rows: dict[tuple[str, ...], None] = {}
        for entry in self.entries(symbol):
            # An entry without one of the features gives an empty product: no row
            values = (_alternatives(entry, name) for name in names)
            rows.update(dict.fromkeys(itertools.product(*values)))
        return tuple(rows)

    def combinations(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """All values that features have together in some entry, whatever its category."""
        if names not in self._combinations:
            rows: dict[tuple[str, ...], None] = {}
            for entry in self._lexicon:
                values = (entry.features.get(name, ()) for name in names)
                rows.update(dict.fromkeys(itertools.product(*values)))
            self._combinations[names] = tuple(rows)
        return self._combinations[names]


def _alternatives(entry: Entry, name: str) -> tuple[str, ...]:
    """The values of a feature; alternatives stay together as one value where they may."""
    values = entry.features.get(name, ())
    return values if name in SEPARATE or not values else (OR.join(values),)


def _positions(bits: int) -> Iterator[int]:
    """The places of the ones in a number, from the lowest."""
    while bits:
        # Two's complement: a number and its negative share the lowest bit alone
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
