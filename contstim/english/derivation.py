"""Derivation of one sentence by the grammar: a tree whose nodes keep category and features."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from contstim.english.lexicon import lexicon
from contstim.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nltk import Tree

    from contstim.english.lexicon import Entry

# The category that, right below the root, makes a sentence a question.
QUESTION = "Q"


class Symbol(NamedTuple):
    """A category and the features it must have; features are sorted by name.

    A named tuple and not a dataclass: half a million of them are hashed when the grammar is
    written out.
    """

    category: str
    features: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, category: str, **features: str) -> Symbol:
        """The symbol with these features, in whatever order they are given."""
        return cls(category, tuple(sorted(features.items())))

    def get(self, name: str) -> str | None:
        """The value of a feature, or None where the symbol leaves it open."""
        return dict(self.features).get(name)

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in self.features)
        return f"{self.category}[{inside}]" if inside else self.category


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
                words[position] = lexicon().article(words[position + 1])
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
