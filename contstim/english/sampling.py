"""Drawing sentences: a length first, then a derivation of exactly that length.

The probability that a symbol derives a given number of words is computed exactly, bottom up: the
grammar is not recursive. A derivation of a wanted length is then drawn without rejection, as from
any weighted context-free grammar whose lengths are known (Goldwurm, Palano & Santini 2001, *On the
circuit complexity of random generation problems for regular and context-free languages*).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contstim.english.grammar import START, Grammar, collector_paused, grammar
from contstim.english.words import indefinite_article
from contstim.errors import InputError
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nltk import Tree

    from contstim.english.lexicon import Entry, Symbol

SHORTEST, LONGEST = 3, 16
# Shares of sentence lengths, in percent: a mean of 8 words.
LENGTH_SHARES = {3: 1, 4: 4, 5: 9, 6: 13, 7: 16, 8: 17, 9: 14, 10: 10, 11: 7, 12: 4, 13: 2, 14: 1.5}
LENGTH_SHARES |= {15: 1, 16: 0.5}
# Give up after this many draws in a row that brought nothing new.
PATIENCE = 20_000
# Word classes that carry content: none of their words may occur twice in a sentence.
CONTENT = frozenset(
    {"N", "V", "ADJ", "ADV", "NAME", "MASSN", "CMP", "LOOK", "TIME", "DEST", "PADV", "GOING"}
)

# Words up to this length may come twice: most of them are prepositions inside time expressions.
SHORT_WORD = 3
DESCRIBING = frozenset({"ADJ", "CMP", "LOOK"})

# The category that, right below the root, makes a sentence a question.
QUESTION = "Q"

Lengths = tuple[float, ...]  # (LONGEST + 1,), probability of each number of words


@dataclass(frozen=True)
class Derivation:
    """A node of the tree: a phrase with children, or a word of the lexicon with its entry."""

    symbol: Symbol
    children: tuple[Derivation, ...] = ()
    entry: Entry | None = None

    @property
    def category(self) -> str:
        """The category of the node, such as "NP"."""
        return self.symbol.category

    def nodes(self) -> Iterator[Derivation]:
        """This node and all below it, each before its children, from left to right."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def entries(self) -> Iterator[Entry]:
        """The lexicon entries of the sentence, from left to right."""
        if self.entry is not None:
            yield self.entry
        for child in self.children:
            yield from child.entries()

    @functools.cached_property
    def sentence(self) -> Sentence:
        """The sentence as a reader sees it: "a" or "an" by sound, first letter large, end mark."""
        words = [word for entry in self.entries() for word in entry.words]
        # which article it is depends on the sound of the next word, which the rules cannot see
        for position, word in enumerate(words[:-1]):
            if word == "a":
                words[position] = indefinite_article(words[position + 1])
        # After the article is chosen, which may be the first word; the rest of a word keeps its
        # case
        words[0] = words[0][0].upper() + words[0][1:]
        question = any(child.category == QUESTION for child in self.children)
        return Sentence(tuple(words), "?" if question else ".")

    def tree(self) -> Tree:
        """The same as a tree of the Natural Language Toolkit, for drawing and searching."""
        from nltk import Tree

        if self.entry is not None:
            return Tree(str(self.symbol), list(self.entry.words))
        return Tree(str(self.symbol), [child.tree() for child in self.children])


@dataclass(frozen=True)
class Sampler:
    """Draws derivations from a grammar; keeps the tables that it has needed so far."""

    grammar: Grammar
    _lengths: dict[Symbol, Lengths] = field(default_factory=dict)
    _suffixes: dict[tuple[Symbol, ...], Lengths] = field(default_factory=dict)
    _options: dict[tuple[Symbol, int | None], Any] = field(default_factory=dict)

    def lengths(self, symbol: Symbol) -> Lengths:
        """The probability of each number of words below a symbol, up to the longest allowed."""
        if symbol not in self._lengths:
            counts = [0.0] * (LONGEST + 1)
            if symbol in self.grammar.words:
                entries = self.grammar.words[symbol]
                total = sum(entry.weight for entry in entries)
                for entry in entries:
                    # An entry may have several words ("last night")
                    counts[len(entry.words)] += entry.weight / total
            else:
                for children, probability in self.grammar.phrases[symbol].items():
                    for length, share in enumerate(self.suffix(children)):
                        counts[length] += probability * share
            self._lengths[symbol] = tuple(counts)
        return self._lengths[symbol]

    def suffix(self, children: tuple[Symbol, ...]) -> Lengths:
        """The probability of each number of words below a row of symbols."""
        if len(children) == 1:
            return self.lengths(children[0])
        if children not in self._suffixes:
            # Rules share their last children, so that each row of these is computed once
            first, rest = self.lengths(children[0]), self.suffix(children[1:])
            self._suffixes[children] = convolve(first, rest)
        return self._suffixes[children]

    def draw(
        self, rng: random.Random, words: int | None = None, symbol: Symbol = START
    ) -> Derivation:
        """A derivation of exactly this many words, which there must be; of any number for None."""
        if (symbol, words) not in self._options:
            self._options[symbol, words] = self._weighted(symbol, words)
        options, totals = self._options[symbol, words]
        # `random.choices` is slower for a single draw
        place = bisect.bisect(totals, rng.random() * totals[-1])
        chosen = options[min(place, len(options) - 1)]
        if symbol in self.grammar.words:
            return Derivation(symbol, (), chosen)
        both = zip(*chosen, strict=True)
        return Derivation(symbol, tuple(self.draw(rng, n, child) for child, n in both))

    def _weighted(self, symbol: Symbol, words: int | None) -> tuple[Sequence[Any], list[float]]:
        """What a symbol may become, and the running totals of the weights.

        A word becomes an entry. A phrase becomes children together with how the words are shared
        out among them: both at once, so that no draw ends where the words cannot be shared out.
        """
        if symbol in self.grammar.words:
            entries = [e for e in self.grammar.words[symbol] if words in (None, len(e.words))]
            return entries, list(itertools.accumulate(entry.weight for entry in entries))
        ways: list[tuple[tuple[Symbol, ...], tuple[int | None, ...]]] = []
        weights: list[float] = []
        for children, probability in self.grammar.phrases[symbol].items():
            if words is None:
                ways.append((children, (None,) * len(children)))
                weights.append(probability)
                continue
            for split, weight in self._splits(children, words):
                ways.append((children, split))
                weights.append(probability * weight)
        return ways, list(itertools.accumulate(weights))

    def _splits(
        self, children: tuple[Symbol, ...], words: int
    ) -> list[tuple[tuple[int, ...], float]]:
        """Every way to share out words among symbols, with its probability."""
        first = self.lengths(children[0])
        if len(children) == 1:
            return [((words,), first[words])] if first[words] else []
        if not self.suffix(children)[words]:
            return []
        return [
            ((n_first, *rest), first[n_first] * weight)
            # Every symbol derives a word at least: 1 to words - 1 leave some for the others
            for n_first in range(1, words)
            if first[n_first]
            for rest, weight in self._splits(children[1:], words - n_first)
        ]


def convolve(left: Lengths, right: Lengths) -> Lengths:
    """The distribution of the sum of two lengths, cut off at the longest allowed."""
    total = [0.0] * (LONGEST + 1)  # total[n] = sum over i of left[i] * right[n - i]
    for i, p in enumerate(left):
        if p:
            for j, q in enumerate(right[: LONGEST + 1 - i]):
                total[i + j] += p * q
    return tuple(total)


@functools.cache
def sampler() -> Sampler:
    """The sampler of the embedded English, the same for all who draw: it keeps tables only."""
    return Sampler(grammar())


def is_sensible(derivation: Derivation) -> bool:
    """True if no content word occurs twice, no word follows itself, and at most one describes.

    What a context-free rule cannot see: two places of a sentence far from each other. Long words
    count wherever they stand ("works at work"); so do words of one family ("husband", "wife").
    Nobody writes an old book: words of two categories that clash do not meet.
    """
    entries = tuple(derivation.entries())
    words = [word for entry in entries for word in entry.words]
    if any(word == following for word, following in itertools.pairwise(words)):
        return False
    content = [entry for entry in entries if entry.category in CONTENT]
    # "same" names a family of words, such as husband and wife; else a word is its own family
    families = [entry.features.get("same", (entry.lemma,))[0] for entry in content]
    long = [w for e in content for w in {*e.words, *e.lemma.split()} if len(w) > SHORT_WORD]
    clashes = [(e.category, *e.features["clash"]) for e in content if "clash" in e.features]
    described = sum(entry.category in DESCRIBING for entry in content)
    once = all(len(set(some)) == len(some) for some in (families, long))
    return described < 2 and len(set(clashes)) < 2 and once


def sample_tree(rng: random.Random, words: int | None = None) -> Derivation:
    """One random derivation; `.sentence` is its sentence.

    Raises:
        InputError: no sentence has that many words.
    """
    if words is None:
        # The length is drawn once, before any rejection, so that short sentences, which are
        # rejected less, do not become more frequent
        (words,) = rng.choices(tuple(LENGTH_SHARES), tuple(LENGTH_SHARES.values()))
    if not SHORTEST <= words <= LONGEST:
        raise InputError(
            f"The embedded English has no sentence of {words} words: "
            f"ask for {SHORTEST} to {LONGEST}, or leave the number of words open."
        )
    # Rejected whole: to draw a part anew would change how likely sentences are
    while True:
        derivation = sampler().draw(rng, words)
        if is_sensible(derivation):
            return derivation


def generate(n: int, *, seed: int, words: int | None = None) -> list[Sentence]:
    """Distinct sentences of everyday English, the same ones for the same seed.

    The first sentences of a longer list are those of a shorter one.

    Args:
        n: how many; at least 1.
        seed: any integer.
        words: the exact number of words of every sentence; without it 3 to 16, 8 on average.

    Raises:
        InputError: n is below 1, no sentence has that many words, or there are not n of them.
    """
    if n < 1:
        raise InputError(f"Asked for {n} sentences; ask for at least 1.")
    rng = random.Random(seed)
    # A dictionary for a set that keeps the order of the draws
    sentences: dict[Sentence, None] = {}
    repeats = 0  # draws in a row that brought nothing new
    with collector_paused():
        while len(sentences) < n:
            sentence = sample_tree(rng, words).sentence
            repeats = repeats + 1 if sentence in sentences else 0
            if repeats == PATIENCE:
                raise InputError(
                    f"Found only {len(sentences)} distinct sentences of {words} words, not {n}: "
                    "ask for fewer, or leave the number of words open."
                )
            sentences[sentence] = None
    return list(sentences)
