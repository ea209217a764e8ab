"""From rules with variables to a weighted context-free grammar without any.

Starting from the root, each rule is written out for every way of binding its variables. A variable
is bound by the left side first, then by the lexicon (so that only verbs that exist and objects that
they take are written out), then by the values that features of its name have anywhere. What leads
to no words is dropped. The rules are not recursive (a clause inside a clause has a category of its
own), so every symbol derives finitely many sentences, and their lengths can be counted exactly.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contstim.english.derivation import Symbol
from contstim.english.grammar import Pattern, Rule, rules
from contstim.english.lexicon import Entry, Lexicon, lexicon
from contstim.english.lookup import OR, Lookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Binding = dict[str, str]
START = Symbol("ROOT")


@dataclass(frozen=True, slots=True)
class Expansion:
    """One way to rewrite a symbol: its children, and its probability among the ways."""

    children: tuple[Symbol, ...]
    probability: float


@dataclass(frozen=True)
class Grammar:
    """The context-free grammar: expansions of every phrase, entries of every lexical symbol."""

    phrases: dict[Symbol, tuple[Expansion, ...]] = field(default_factory=dict)
    words: dict[Symbol, tuple[Entry, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A rule with its children in the order in which they bind variables."""

    rule: Rule
    lexical: tuple[Pattern, ...]  # words, heads first
    phrasal: tuple[Pattern, ...]


class Expander:
    """Writes rules out; remembers every symbol that it has met."""

    def __init__(self, all_rules: Iterable[Rule], words: Lexicon) -> None:
        self.lookup = Lookup(words)
        self.grammar = Grammar()
        self.mass: dict[Symbol, float] = {}
        rules_of: dict[str, list[Rule]] = {}
        for rule in all_rules:
            rules_of.setdefault(rule.left.category, []).append(rule)
        self._declared = {
            category: frozenset(name for rule in found for name, _ in rule.left.features)
            for category, found in rules_of.items()
        }
        self._rules = {
            category: [self._prepare(rule) for rule in found]
            for category, found in rules_of.items()
        }

    @property
    def categories(self) -> set[str]:
        """Every category that a rule or the lexicon has."""
        return {*self._declared, *self.lookup.categories}

    def _prepare(self, rule: Rule) -> _Ready:
        lexical = [pattern for pattern in rule.right if pattern.category not in self._declared]
        lexical.sort(key=lambda pattern: not pattern.is_head)
        phrasal = [pattern for pattern in rule.right if pattern.category in self._declared]
        return _Ready(rule, tuple(lexical), tuple(phrasal))

    def symbol(self, pattern: Pattern, binding: Binding) -> Symbol:
        """The symbol that a pattern names, without features that its category never looks at."""
        declared = self._declared.get(pattern.category)
        features = []
        for name, value in pattern.features:
            bound = binding.get(value) if value[0] == "?" else value
            if bound and (declared is None or name in declared):
                features.append((name, bound))
        return Symbol(pattern.category, tuple(features))

    def expand(self, symbol: Symbol) -> float:
        """Write a symbol out with everything below it; its mass is 0 if it derives nothing."""
        mass = self.mass.get(symbol)
        if mass is None:
            is_phrase = symbol.category in self._rules
            mass = self._phrase(symbol) if is_phrase else self._word(symbol)
            self.mass[symbol] = mass
        return mass

    def _word(self, symbol: Symbol) -> float:
        found = self.lookup.entries(symbol)
        if found:
            self.grammar.words[symbol] = found
        return sum(entry.weight for entry in found)

    def _phrase(self, symbol: Symbol) -> float:
        ways: dict[tuple[Symbol, ...], float] = {}
        mass = 0.0
        for ready in self._rules[symbol.category]:
            binding = unify(ready.rule.left, symbol)
            if binding is None:
                continue
            found = dict(self._ways(ready, binding))
            total, weight = sum(found.values()), ready.rule.weight
            mass += weight * total
            for children, share in found.items():
                ways[children] = ways.get(children, 0.0) + weight * share / total
        norm = sum(ways.values())
        if norm:
            self.grammar.phrases[symbol] = tuple(
                Expansion(children, weight / norm) for children, weight in ways.items()
            )
        return mass

    def _ways(self, ready: _Ready, binding: Binding) -> Iterator[tuple[tuple[Symbol, ...], float]]:
        """The children that a rule gives under a binding, with the mass of their heads."""
        right = ready.rule.right
        for bound in self._bindings(ready, binding):
            children, mass = [], 1.0
            for pattern in right:
                child = self.symbol(pattern, bound)
                child_mass = self.expand(child)
                if not child_mass:
                    break
                children.append(child)
                mass *= child_mass if pattern.is_head else 1.0
            else:
                yield tuple(children), mass

    def _bindings(self, ready: _Ready, binding: Binding) -> list[Binding]:
        """All bindings of the variables that the left side leaves free.

        A variable of the left side that the symbol says nothing about stays open.
        """
        absent = ready.rule.left.variables - binding.keys()
        found = [binding]
        for pattern in ready.lexical:
            found = [wider for one in found for wider in self._lexical(pattern, one, absent)]
        for pattern in ready.phrasal:
            found = [wider for one in found for wider in self._phrasal(pattern, one, absent)]
        return found

    def _lexical(
        self, pattern: Pattern, binding: Binding, absent: frozenset[str]
    ) -> Iterator[Binding]:
        """The bindings under which the lexicon has a word for a pattern."""
        symbol = self.symbol(pattern, binding)
        free = _free(pattern, binding, absent)
        for values in self.lookup.values(symbol, tuple(free.values())):
            yield binding | dict(zip(free, values, strict=True))

    def _phrasal(
        self, pattern: Pattern, binding: Binding, absent: frozenset[str]
    ) -> Iterator[Binding]:
        """The bindings of a phrase: all values that some word of the lexicon has together."""
        free = _free(pattern, binding, absent)
        if not free:
            yield binding
            return
        for values in self.lookup.combinations(tuple(free.values())):
            yield binding | dict(zip(free, values, strict=True))


def _free(pattern: Pattern, binding: Binding, absent: frozenset[str]) -> dict[str, str]:
    """The variables of a pattern that still need a value, with the features they stand for."""
    return {
        value: name
        for name, value in pattern.features
        if value[0] == "?" and value not in binding and value not in absent
    }


def unify(pattern: Pattern, symbol: Symbol) -> Binding | None:
    """Bind the variables of a rule's left side to a symbol, or None where they disagree.

    A feature that only one of the two mentions is no disagreement.
    """
    given = dict(symbol.features)
    binding: Binding = {}
    for name, value in pattern.features:
        actual = given.get(name)
        if actual is None:
            continue
        if value[0] == "?":
            if binding.setdefault(value, actual) != actual:
                return None
        elif value != actual and value not in actual.split(OR):
            return None
    return binding


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cyclic garbage collector away from work that makes a million lasting tuples.

    It would walk them again and again and find nothing: a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@functools.cache
def grammar() -> Grammar:
    """The grammar of the embedded English, written out (two seconds, once per process)."""
    expander = Expander(rules(), lexicon())
    with collector_paused():
        expander.expand(START)
    return expander.grammar
