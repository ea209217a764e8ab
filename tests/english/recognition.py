"""A recogniser of the embedded grammar, written independently of sampling.

Top-down with memory (Unger 1968): it computes where a symbol that begins at a word can end. The
grammar has no recursion, so the computation ends. Symbols whose first words do not fit are skipped.
"""

import functools

from contstim.english import Symbol, lexicon
from contstim.english.grammar import START, grammar
from contstim.words.sentence import Sentence


@functools.cache
def _first_words(symbol: Symbol) -> frozenset[str]:
    """Return the words that a symbol can begin with."""
    rules = grammar()
    if symbol in rules.phrases:
        return frozenset().union(*(_first_words(children[0]) for children in rules.phrases[symbol]))
    return frozenset(entry.words[0] for entry in rules.lexicon.fitting(symbol))


class _Recogniser:
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.ends_by_start: dict[tuple[Symbol, int], frozenset[int]] = {}

    def ends(self, symbol: Symbol, start: int) -> frozenset[int]:
        """Return where the symbol can end if it begins at `start`."""
        if start == len(self.words) or self.words[start] not in _first_words(symbol):
            return frozenset()
        key = symbol, start
        if key not in self.ends_by_start:
            rules = grammar()
            if symbol not in rules.phrases:
                lengths = {
                    len(entry.words)
                    for entry in rules.lexicon.fitting(symbol)
                    if self.words[start : start + len(entry.words)] == entry.words
                }
                self.ends_by_start[key] = frozenset(start + length for length in lengths)
            else:
                rows = (self._ends_of_row(children, start) for children in rules.phrases[symbol])
                self.ends_by_start[key] = frozenset().union(*rows)
        return self.ends_by_start[key]

    def _ends_of_row(self, symbols: tuple[Symbol, ...], start: int) -> frozenset[int]:
        positions = frozenset({start})
        for symbol in symbols:
            positions = frozenset().union(*(self.ends(symbol, position) for position in positions))
            if not positions:
                break
        return positions


def derives(sentence: Sentence) -> bool:
    """Return whether the grammar derives the sentence with any end mark."""
    words = [word if word != "an" else "a" for word in sentence.words]
    lowered = words[0][0].lower() + words[0][1:]
    heads = {words[0], lowered} if words[0] != "I" else {"I"}
    forms = lexicon().forms
    if not all(word in forms for word in [*words[1:]]):
        return False
    return any(
        len(words) in _Recogniser((head, *words[1:])).ends(START, 0)
        for head in heads
        if head in forms
    )
