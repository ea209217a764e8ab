"""The grammar: rules read from `rules.fcfg`, written out as a weighted context-free grammar.

A rule is a production over categories with features (Gazdar, Klein, Pullum & Sag 1985,
*Generalized Phrase Structure Grammar*), in the toolkit's notation of feature grammars: variables
(`?n`) that occur twice must have one value. Two things are added to that notation: a weight in
brackets at the end of every alternative, and `+H` on the children whose frequency says how often a
value of a variable is chosen.

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
import itertools
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from contstim.english.lexicon import OR, Entry, Lexicon, Symbol, lexicon

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Binding = dict[str, str]
START = Symbol("ROOT")
HEAD = "H"


@dataclass(frozen=True)
class Pattern:
    """One side of a rule: a category and, by feature name, a value or a variable ("?n")."""

    category: str
    features: tuple[tuple[str, str], ...]
    is_head: bool = False

    @functools.cached_property
    def variables(self) -> frozenset[str]:
        """The variables that occur in the pattern."""
        return frozenset(value for _, value in self.features if value.startswith("?"))

    def symbol(self, binding: Binding) -> Symbol:
        """The symbol that the pattern names; features of unbound variables stay open."""
        features = [
            (name, bound)
            for name, value in self.features
            if (bound := binding.get(value) if value[0] == "?" else value)
        ]
        return Symbol(self.category, tuple(features))


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """A production with features; the weight is its share among the rules of one category."""

    left: Pattern
    right: tuple[Pattern, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Expansion:
    """The right side of a rule, as it is written out.

    Attributes:
        weight: that of the rule.
        binding: the children in the order in which they bind variables. Words do before phrases,
            heads before other words, so that a combination that no word has is never tried further
            down.
        children: in the order of the sentence, without features that no rule for a child's
            category looks at: they would only multiply symbols that derive the same.
    """

    weight: float
    binding: tuple[Pattern, ...]
    children: tuple[Pattern, ...]


def rules_text() -> str:
    """The rules as they are written."""
    return resources.files("contstim.english").joinpath("rules.fcfg").read_text(encoding="utf-8")


@functools.cache
def rules() -> tuple[GrammarRule, ...]:
    """The rules of the grammar, in the order in which they are written."""
    return _rules(rules_text())


def further_rules(text: str) -> tuple[GrammarRule, ...]:
    """Rules written elsewhere in the same notation; they may use the grammar's abbreviations.

    Raises:
        ValueError: a line is not a rule, or has something else than categories.
    """
    from nltk.grammar import FeatStructNonterminal

    # Definitions without the rules, which would else be read a second time
    definitions = [line for line in rules_text().splitlines() if line.startswith("$")]
    text = "\n".join([*definitions, text])
    for production in productions(text):
        for part in (production.lhs(), *production.rhs()):
            if not isinstance(part, FeatStructNonterminal):
                raise ValueError(f"{part!r} is not a category, such as N[num=sg]")
    return _rules(text)


def _rules(text: str) -> tuple[GrammarRule, ...]:
    return tuple(
        GrammarRule(_pattern(p.lhs()), tuple(map(_pattern, p.rhs())), p.prob())
        for p in productions(text)
    )


def _pattern(nonterminal: Any) -> Pattern:
    """A Pattern from the toolkit's feature structure."""
    # The toolkit keeps the category as a feature named *type*, and writes +H as H=True
    values = {str(name): str(value) for name, value in nonterminal.items()}
    is_head = values.pop(HEAD, "False") == "True"
    category = values.pop("*type*")
    return Pattern(category, tuple(sorted(values.items())), is_head)


def productions(text: str) -> list[Any]:
    """The weighted productions of a text of rules, as the toolkit reads them."""
    from nltk.featstruct import SLASH, TYPE, FeatStructReader
    from nltk.grammar import FeatStructNonterminal, read_grammar

    # "$name = text" is ours, not the toolkit's: written out in all lines below its definition, so
    # that a definition may use earlier ones
    lines = []
    abbreviations: dict[str, str] = {}
    for line in text.splitlines():
        for name, meaning in abbreviations.items():
            line = line.replace(name, meaning)
        if line.startswith("$"):
            name, meaning = line.split(" = ", 1)
            abbreviations[name] = meaning
        else:
            lines.append(line)
    reader = FeatStructReader((SLASH, TYPE), FeatStructNonterminal)
    _, weighted = read_grammar("\n".join(lines), reader.read_partial, probabilistic=True)
    return list(weighted)


class Grammar:
    """The context-free grammar of some rules; remembers every symbol that was written out.

    Attributes:
        lexicon: finds words by their features.
        phrases: of every phrase so far, the rows of children that it may have, and their
            probabilities.
        words: of every lexical symbol so far, its entries.
        mass: of every symbol met, the summed weights of all that it derives; 0 if nothing.
    """

    def __init__(self, all_rules: Iterable[GrammarRule], words: Lexicon) -> None:
        self.lexicon = words
        self.phrases: dict[Symbol, dict[tuple[Symbol, ...], float]] = {}
        self.words: dict[Symbol, tuple[Entry, ...]] = {}
        self.mass: dict[Symbol, float] = {}
        groups = [
            (left, list(alternatives))
            for left, alternatives in itertools.groupby(all_rules, key=lambda rule: rule.left)
        ]
        # the features that some rule for a category looks at
        self._declared: dict[str, set[str]] = {}
        for left, _ in groups:
            self._declared.setdefault(left.category, set()).update(dict(left.features))
        # rules that follow each other and have the same left side: it is unified once for all
        self._rules: dict[str, list[tuple[Pattern, list[Expansion]]]] = {}
        for left, alternatives in groups:
            expansions = [self._expansion(rule) for rule in alternatives]
            self._rules.setdefault(left.category, []).append((left, expansions))

    def _expansion(self, rule: GrammarRule) -> Expansion:
        words = [child for child in rule.right if child.category not in self._declared]
        phrases = [child for child in rule.right if child.category in self._declared]
        children = list(rule.right)
        for place, child in enumerate(children):
            if child in phrases:
                declared = self._declared[child.category]
                looked_at = tuple(f for f in child.features if f[0] in declared)
                children[place] = replace(child, features=looked_at)
        words.sort(key=lambda word: not word.is_head)
        return Expansion(rule.weight, (*words, *phrases), tuple(children))

    @property
    def categories(self) -> set[str]:
        """Every category that a rule or the lexicon has."""
        return {*self._declared, *self.lexicon.entries}

    def expand(self, symbol: Symbol) -> float:
        """Write a symbol out with everything below it; its mass is 0 if it derives nothing."""
        # Each symbol once: thousands of rules lead to the same noun phrases
        mass = self.mass.get(symbol)
        if mass is None:
            if symbol.category in self._rules:
                mass = self._expand_phrase(symbol)
            else:
                entries = self.lexicon.fitting(symbol)
                if entries:
                    self.words[symbol] = entries
                mass = sum(entry.weight for entry in entries)
            self.mass[symbol] = mass
        return mass

    def _expand_phrase(self, symbol: Symbol) -> float:
        weights: dict[tuple[Symbol, ...], float] = {}
        mass = 0.0
        features = dict(symbol.features)
        for left, alternatives in self._rules[symbol.category]:
            binding = unify(left, features)
            if binding is None:
                continue
            # a variable of the left side that the symbol says nothing about stays open
            absent = left.variables - binding.keys()
            for rule in alternatives:
                # the rule's weight is shared out among its bindings by the mass of their heads
                masses = dict(self._expand_rule(rule, binding, absent))
                total = sum(masses.values())
                mass += rule.weight * total
                for children, share in masses.items():
                    # Two rules, or two bindings of one, may give the same children: shares add up
                    weights[children] = weights.get(children, 0.0) + rule.weight * share / total
        norm = sum(weights.values())
        if norm:
            self.phrases[symbol] = {children: weight / norm for children, weight in weights.items()}
        return mass

    def _expand_rule(
        self, rule: Expansion, binding: Binding, absent: frozenset[str]
    ) -> Iterator[tuple[tuple[Symbol, ...], float]]:
        """The children that a rule gives under a binding, with the mass of their heads."""
        bindings = [binding]
        for pattern in rule.binding:
            bindings = self._widen(bindings, pattern, absent)
            if not bindings:
                return
        for bound in bindings:
            children, mass = [], 1.0
            for pattern in rule.children:
                child = pattern.symbol(bound)
                child_mass = self.expand(child)
                if not child_mass:
                    break
                children.append(child)
                # Only heads count: a frequent verb makes its class of subjects frequent, a rare
                # adverb does not make the sentence rare
                mass *= child_mass if pattern.is_head else 1.0
            else:
                yield tuple(children), mass

    def _widen(
        self, bindings: list[Binding], pattern: Pattern, absent: frozenset[str]
    ) -> list[Binding]:
        """Bindings, of the same variables, with values for those of one more pattern.

        Each in every possible way. A word's variables get the values that some word of the category
        has. A phrase's get all values that any word of the lexicon has together: which of them
        derive something turns out when the phrase is written out.
        """
        free = {
            value: name
            for name, value in pattern.features
            if value[0] == "?" and value not in bindings[0] and value not in absent
        }
        names = tuple(free.values())
        is_phrase = pattern.category in self._declared
        if is_phrase and not free:
            return bindings
        wider = []
        for binding in bindings:
            # No names give one row without values if there is a word, so that the binding stays
            rows = (
                self.lexicon.combinations(names)
                if is_phrase
                else self.lexicon.values(pattern.symbol(binding), names)
            )
            wider += [binding | dict(zip(free, values, strict=True)) for values in rows]
        return wider


def unify(pattern: Pattern, features: Mapping[str, str]) -> Binding | None:
    """Bind the variables of a rule's left side to a symbol's features; None where they disagree.

    A feature that only one of the two mentions is not a disagreement.
    """
    binding: Binding = {}
    for name, value in pattern.features:
        actual = features.get(name)
        if actual is None:
            continue
        if value[0] == "?":
            if binding.setdefault(value, actual) != actual:
                return None
        # A symbol may leave a choice open ("dish|baked"); a rule for one of these fits it
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
    written_out = Grammar(rules(), lexicon())
    with collector_paused():
        written_out.expand(START)
    return written_out
