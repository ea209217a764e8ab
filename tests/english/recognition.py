"""Whether the embedded grammar derives a sentence: a recogniser that shares nothing with sampling.

Top-down with memory: where can a symbol that begins at a word end? (Unger 1968; the grammar has no
recursion, so that this ends.) Symbols whose first words do not fit are not tried.
"""

import functools

from contstim.english import Symbol, lexicon
from contstim.english.grammar import START, grammar
from contstim.words.sentence import Sentence


@functools.cache
def _first(symbol: Symbol) -> frozenset[str]:
    """The words that a symbol can begin with."""
    rules = grammar()
    if symbol in rules.words:
        return frozenset(entry.words[0] for entry in rules.words[symbol])
    return frozenset().union(*(_first(children[0]) for children in rules.phrases[symbol]))


class _Reading:
    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.known: dict[tuple[Symbol, int], frozenset[int]] = {}

    def ends(self, symbol: Symbol, start: int) -> frozenset[int]:
        """Where the symbol can end if it begins at a word."""
        if start == len(self.words) or self.words[start] not in _first(symbol):
            return frozenset()
        key = symbol, start
        if key not in self.known:
            rules = grammar()
            if symbol in rules.words:
                lengths = {
                    len(entry.words)
                    for entry in rules.words[symbol]
                    if self.words[start : start + len(entry.words)] == entry.words
                }
                self.known[key] = frozenset(start + length for length in lengths)
            else:
                rows = (self._row(children, start) for children in rules.phrases[symbol])
                self.known[key] = frozenset().union(*rows)
        return self.known[key]

    def _row(self, symbols: tuple[Symbol, ...], start: int) -> frozenset[int]:
        places = frozenset({start})
        for symbol in symbols:
            places = frozenset().union(*(self.ends(symbol, place) for place in places))
            if not places:
                break
        return places


def derives(sentence: Sentence) -> bool:
    """Whether the grammar has a derivation of the sentence, whatever its end mark."""
    words = [word if word != "an" else "a" for word in sentence.words]
    first = words[0][0].lower() + words[0][1:]
    heads = {words[0], first} if words[0] != "I" else {"I"}
    known = lexicon().forms
    if not all(word in known for word in [*words[1:]]):
        return False
    return any(
        len(words) in _Reading((head, *words[1:])).ends(START, 0) for head in heads if head in known
    )
