"""Sample sentences: first a length, then a derivation of exactly that length.

The probability that a symbol derives n words is computed exactly from its children, because the
grammar is not recursive. With these probabilities, a derivation of a given length is drawn without
rejection (Goldwurm, Palano & Santini 2001, *On the circuit complexity of random generation problems
for regular and context-free languages*).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.english.grammar import START, Grammar, collector_paused, grammar
from contstim.english.words import indefinite_article
from contstim.errors import InputError
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nltk import Tree

    from contstim.english.lexicon import Entry, Symbol

SHORTEST, LONGEST = 3, 16
# Number of words → share of sentences, in per cent. The mean is 8 words.
LENGTH_SHARES = dict(enumerate((1, 4, 9, 13, 16, 17, 14, 10, 7, 4, 2, 1.5, 1, 0.5), SHORTEST))
# Maximum number of consecutive draws without a new sentence.
PATIENCE = 20_000
# Categories of content words. A content word must not occur twice in a sentence.
CONTENT = frozenset("N V ADJ ADV NAME MASSN CMP LOOK TIME DEST PADV GOING".split())

# Words with at most this number of letters may occur twice in a sentence if one occurrence is a
# part of a longer entry. For example, `bus` and `bus stop` may occur together.
SHORT_WORD = 3
# Categories of words that describe a person or thing; a sentence has at most one such word.
DESCRIBING = frozenset({"ADJ", "CMP", "LOOK"})

# If a child of the root has this category, the sentence is a question.
QUESTION = "Q"

Lengths = tuple[float, ...]  # (LONGEST + 1,), probability of each number of words


@dataclass(frozen=True)
class Derivation:
    """A node of a derivation tree: a phrase with children, or a word with its lexicon entry."""

    symbol: Symbol
    children: tuple[Derivation, ...] = ()
    entry: Entry | None = None

    @property
    def category(self) -> str:
        """Category, such as "NP"."""
        return self.symbol.category

    def entries(self) -> Iterator[Entry]:
        """Yield the lexicon entries below this node, from left to right."""
        if self.entry is not None:
            yield self.entry
        for child in self.children:
            yield from child.entries()

    @functools.cached_property
    def sentence(self) -> Sentence:
        """The sentence with an initial capital, an end mark, and "an" before vowel sounds."""
        words = [word for entry in self.entries() for word in entry.words]
        # The rules always derive "a"
        for position, word in enumerate(words[:-1]):
            if word == "a":
                words[position] = indefinite_article(words[position + 1])
        # Not `capitalize`, which changes the case of the other letters
        words[0] = words[0][0].upper() + words[0][1:]
        question = any(child.category == QUESTION for child in self.children)
        return Sentence(tuple(words), "?" if question else ".")

    def tree(self) -> Tree:
        """Return the derivation as a tree of NLTK."""
        from nltk import Tree

        if self.entry is not None:
            return Tree(str(self.symbol), list(self.entry.words))
        return Tree(str(self.symbol), [child.tree() for child in self.children])


@dataclass(frozen=True)
class Sampler:
    """A sampler of derivations from a grammar; caches distributions of lengths."""

    grammar: Grammar
    _lengths: dict[Symbol, Lengths] = field(default_factory=dict)
    _suffixes: dict[tuple[Symbol, ...], Lengths] = field(default_factory=dict)
    _options: dict[tuple[Symbol, int | None], Any] = field(default_factory=dict)

    def lengths(self, symbol: Symbol) -> Lengths:
        """Return the probability of each number of words that a symbol derives, up to `LONGEST`."""
        if symbol not in self._lengths:
            counts = [0.0] * (LONGEST + 1)
            if symbol in self.grammar.phrases:
                for children, probability in self.grammar.phrases[symbol].items():
                    for length, share in enumerate(self.suffix(children)):
                        counts[length] += probability * share
            else:
                for entry in self.grammar.lexicon.fitting(symbol):
                    counts[len(entry.words)] += entry.weight / self.grammar.mass[symbol]
            self._lengths[symbol] = tuple(counts)
        return self._lengths[symbol]

    def suffix(self, children: tuple[Symbol, ...]) -> Lengths:
        """Return the probability of each number of words that a sequence of symbols derives."""
        if len(children) == 1:
            return self.lengths(children[0])
        if children not in self._suffixes:
            # Cached, because many rules have the same last children
            sums = np.convolve(self.lengths(children[0]), self.suffix(children[1:]))
            self._suffixes[children] = tuple(sums[: LONGEST + 1].tolist())
        return self._suffixes[children]

    def draw(
        self, rng: random.Random, words: int | None = None, symbol: Symbol = START
    ) -> Derivation:
        """Draw a derivation of exactly `words` words, or of any length if `words` is None.

        A derivation of this length must exist.
        """
        if (symbol, words) not in self._options:
            self._options[symbol, words] = self._weighted_options(symbol, words)
        options, totals = self._options[symbol, words]
        # `random.choices` is slower for a single draw
        index = bisect.bisect(totals, rng.random() * totals[-1])
        chosen = options[min(index, len(options) - 1)]
        if symbol in self.grammar.phrases:
            pairs = zip(*chosen, strict=True)
            return Derivation(symbol, tuple(self.draw(rng, n, child) for child, n in pairs))
        return Derivation(symbol, (), chosen)

    def _weighted_options(
        self, symbol: Symbol, words: int | None
    ) -> tuple[Sequence[Any], list[float]]:
        """Return the possible expansions of a symbol and their cumulative weights.

        An expansion of a lexical symbol is an entry. An expansion of a phrase is a pair: the
        children, and the number of words of each child. The numbers add up to `words`. If `words`
        is None, the numbers are None.
        """
        if symbol not in self.grammar.phrases:
            fitting = self.grammar.lexicon.fitting(symbol)
            entries = [entry for entry in fitting if words in (None, len(entry.words))]
            return entries, list(itertools.accumulate(entry.weight for entry in entries))
        weighted = [
            ((children, split), probability * weight)
            for children, probability in self.grammar.phrases[symbol].items()
            for split, weight in self._splits(children, words)
        ]
        totals = list(itertools.accumulate(weight for _, weight in weighted))
        return [expansion for expansion, _ in weighted], totals

    def _splits(
        self, children: tuple[Symbol, ...], words: int | None
    ) -> list[tuple[tuple[int | None, ...], float]]:
        """Return each possible division of `words` among the children, with its probability."""
        if words is None:
            return [((None,) * len(children), 1.0)]
        first = self.lengths(children[0])
        if len(children) == 1:
            return [((words,), first[words])] if first[words] else []
        if not self.suffix(children)[words]:
            return []
        return [
            ((n_first, *later_lengths), first[n_first] * weight)
            # Every symbol derives at least one word
            for n_first in range(1, words)
            if first[n_first]
            for later_lengths, weight in self._splits(children[1:], words - n_first)
        ]


@functools.cache
def sampler() -> Sampler:
    """Return the sampler of the embedded English, with tables that all callers share."""
    return Sampler(grammar())


def is_sensible(derivation: Derivation) -> bool:
    """Return True if a sentence satisfies constraints that the rules cannot express.

    * Each content word occurs at most once. Other forms and parts of speech of the word count too
      ("works at work"). Short words in longer entries are an exception (`SHORT_WORD`).
    * No two words of one family ("husband", "wife") occur together.
    * No word follows itself.
    * At most one word is a describing word (`DESCRIBING`).
    * No two words clash, such as "writes" and "old" in "writes an old book".
    """
    entries = tuple(derivation.entries())
    words = [word for entry in entries for word in entry.words]
    if any(word == following for word, following in itertools.pairwise(words)):
        return False
    content = [entry for entry in entries if entry.category in CONTENT]
    # The feature "same" names a family of words, by default the lemma
    families = [entry.features.get("same", (entry.lemma,))[0] for entry in content]
    long = [w for e in content for w in {*e.words, *e.lemma.split()} if len(w) > SHORT_WORD]
    clashes = [(e.category, *e.features["clash"]) for e in content if "clash" in e.features]
    described = sum(entry.category in DESCRIBING for entry in content)
    once = all(len(set(group)) == len(group) for group in (families, long))
    return described < 2 and len(set(clashes)) < 2 and once


def sample_tree(rng: random.Random, words: int | None = None) -> Derivation:
    """Sample one derivation, whose attribute `sentence` is the sentence.

    The number of words is by default drawn from `LENGTH_SHARES`.

    Raises:
        InputError: if no sentence has this number of words.
    """
    if words is None:
        # Draw the length before the loop. Short sentences are rejected less often, and would
        # otherwise become too frequent
        (words,) = rng.choices(tuple(LENGTH_SHARES), tuple(LENGTH_SHARES.values()))
    if not SHORTEST <= words <= LONGEST:
        raise InputError(
            f"`words` must be from {SHORTEST} to {LONGEST} for the embedded English, got "
            f"{words}. Use a number in this range, or leave `words` out."
        )
    # Reject the whole derivation, because drawing a part again would change the probabilities
    while True:
        derivation = sampler().draw(rng, words)
        if is_sensible(derivation):
            return derivation


def generate(n: int, *, seed: int, words: int | None = None) -> list[Sentence]:
    """Generate n distinct sentences of everyday English.

    The sentences depend only on the seed and `words`: a larger n adds sentences at the end.

    Args:
        n: number of sentences.
        seed: any integer.
        words: number of words of every sentence; by default 3 to 16, 8 on average.

    Raises:
        InputError: if n is below 1, if no sentence has the length `words`, or if fewer than n such
            sentences exist.
    """
    if n < 1:
        raise InputError(f"The number of sentences must be at least 1, got {n}.")
    rng = random.Random(seed)
    sentences: dict[Sentence, None] = {}  # in the order of the draws
    repeats = 0  # consecutive draws without a new sentence
    with collector_paused():
        while len(sentences) < n:
            sentence = sample_tree(rng, words).sentence
            repeats = repeats + 1 if sentence in sentences else 0
            if repeats == PATIENCE:
                raise InputError(
                    f"There are only {len(sentences)} distinct sentences of {words} words, "
                    f"but {n} were requested. Request fewer, or leave out the number of words."
                )
            sentences[sentence] = None
    return list(sentences)
