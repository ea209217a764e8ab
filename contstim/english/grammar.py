"""The grammar: rules read from `rules.fcfg`, expanded into a weighted context-free grammar.

A rule is a production over categories with features (Gazdar, Klein, Pullum & Sag 1985,
*Generalized Phrase Structure Grammar*). The notation is NLTK's notation of feature grammars:
a variable (`?n`) has the same value at each occurrence in a rule. There are two additions: a weight
in brackets at the end of every alternative, and `+H` on heads (the main parts of a rule). Heads
determine how often each value of a variable is chosen. For example, the head `N[+H, num=?n]` is a
singular or a plural noun. The values of `?n` are chosen in proportion to the total weight
(frequency) of all singular nouns and of all plural nouns.

Starting from the root, each rule is expanded for every binding of its variables to values:

1. The variables on the left side of the rule take the values of the expanded symbol.
2. Variables of words take the values that these words have in the lexicon. So a verb, for example,
   is combined only with objects that it can have.
3. The remaining variables take all values that features of the same name have in the lexicon.
   Expansions that derive no words are dropped.

The rules are not recursive: a clause inside a clause has a separate category. Therefore the
probability of each sentence length can be computed exactly.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import math
from dataclasses import dataclass, replace
from importlib import resources
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.english.lexicon import OR, Lexicon, Symbol, lexicon

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Binding = dict[str, str]  # variable → value
START = Symbol("ROOT")
HEAD = "H"


@dataclass(frozen=True)
class Pattern:
    """A part of a rule: a category and its features, each with a value or a variable ("?n")."""

    category: str
    features: tuple[tuple[str, str], ...]
    is_head: bool = False

    @functools.cached_property
    def variables(self) -> frozenset[str]:
        """Variables that occur in the pattern."""
        return frozenset(value for _, value in self.features if value.startswith("?"))

    def symbol(self, binding: Binding) -> Symbol:
        """Return the symbol of this pattern, without features whose variable has no value yet."""
        values = [(n, binding.get(v) if v[0] == "?" else v) for n, v in self.features]
        return Symbol(self.category, tuple((name, value) for name, value in values if value))


GrammarRule: TypeAlias = tuple[Pattern, tuple[Pattern, ...], float]
"""A production with features: left side, right side, share among the rules of one category."""
# A rule prepared for expansion: its weight, and its children in two orders.
#
# The first order is the order in which children bind variables. Heads that are words come first,
# then other words, then phrases. So combinations of values that no word has are excluded early. The
# second order is the order in the sentence. There, phrases have only the features that a rule for
# their category uses. Otherwise, symbols that differ only in unused features would be expanded
# separately, although they have the same derivations
_Expansion: TypeAlias = tuple[float, tuple[Pattern, ...], tuple[Pattern, ...]]


def rules_text() -> str:
    """Return the text of `rules.fcfg`."""
    return resources.files("contstim.english").joinpath("rules.fcfg").read_text(encoding="utf-8")


@functools.cache
def rules() -> tuple[GrammarRule, ...]:
    """Return the rules of the grammar."""
    return tuple(map(_rule_of, productions(rules_text())))


def further_rules(text: str) -> tuple[GrammarRule, ...]:
    """Read additional rules, which may use the abbreviations (`$name`) of the grammar.

    Raises:
        ValueError: if a line is not a rule, or a part of a rule is not a category.
    """
    from nltk.grammar import FeatStructNonterminal

    definitions = [line for line in rules_text().splitlines() if line.startswith("$")]
    new_productions = productions("\n".join([*definitions, text]))
    for production in new_productions:
        for part in (production.lhs(), *production.rhs()):
            if not isinstance(part, FeatStructNonterminal):
                raise ValueError(f"{part!r} is not a category, such as N[num=sg]")
    return tuple(map(_rule_of, new_productions))


def _rule_of(production: Any) -> GrammarRule:
    right = tuple(map(_convert, production.rhs()))
    return _convert(production.lhs()), right, production.prob()


def _convert(nonterminal: Any) -> Pattern:
    # NLTK stores the category as a feature named *type*, and +H as H=True
    values = {str(name): str(value) for name, value in nonterminal.items()}
    is_head = values.pop(HEAD, "False") == "True"
    return Pattern(values.pop("*type*"), tuple(sorted(values.items())), is_head)


def productions(text: str) -> list[Any]:
    """Parse a text of rules into NLTK's weighted productions."""
    from nltk.featstruct import SLASH, TYPE, FeatStructReader
    from nltk.grammar import FeatStructNonterminal, read_grammar

    # NLTK does not know definitions, "$name = text". Each definition is substituted in all lines
    # below it, so that a definition may use earlier definitions
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
    """A context-free grammar, expanded from rules on demand; caches every expanded symbol.

    Attributes:
        lexicon: entries of the symbols that are not phrases.
        phrases: expanded phrase → possible sequence of children → probability of the sequence.
        mass: expanded symbol → total weight of its derivations; 0 if there are none.
    """

    def __init__(self, all_rules: Sequence[GrammarRule], words: Lexicon) -> None:
        self.lexicon = words
        self.phrases: dict[Symbol, dict[tuple[Symbol, ...], float]] = {}
        self.mass: dict[Symbol, float] = {}
        # Category -> features on the left side of at least one of its rules
        self._declared: dict[str, set[str]] = {}
        for pattern, *_ in all_rules:
            self._declared.setdefault(pattern.category, set()).update(dict(pattern.features))
        # Category -> left sides and their rules
        self._rules: dict[str, list[tuple[Pattern, list[_Expansion]]]] = {}
        for pattern, alternatives in itertools.groupby(all_rules, key=itemgetter(0)):
            expansions = [self._expansion(right, weight) for _, right, weight in alternatives]
            self._rules.setdefault(pattern.category, []).append((pattern, expansions))

    def _expansion(self, right: tuple[Pattern, ...], weight: float) -> _Expansion:
        # Heads that are words first, then other words, then phrases
        order = sorted(right, key=lambda p: 2 if p.category in self._declared else not p.is_head)
        children = []
        for child in right:
            used = self._declared.get(child.category, dict(child.features))
            features = tuple(feature for feature in child.features if feature[0] in used)
            children.append(replace(child, features=features))
        return weight, tuple(order), tuple(children)

    @property
    def categories(self) -> set[str]:
        """All categories of the rules and of the lexicon."""
        return {*self._declared, *self.lexicon.entries}

    def expand(self, symbol: Symbol) -> float:
        """Expand a symbol and all symbols that it derives; return the mass of the symbol.

        The mass is 0 if the symbol derives nothing.
        """
        if symbol not in self.mass:
            if symbol.category in self._rules:
                self.mass[symbol] = self._expand_phrase(symbol)
            else:
                self.mass[symbol] = sum(entry.weight for entry in self.lexicon.fitting(symbol))
        return self.mass[symbol]

    def _expand_phrase(self, symbol: Symbol) -> float:
        weights: dict[tuple[Symbol, ...], float] = {}
        mass = 0.0
        features = dict(symbol.features)
        for pattern, alternatives in self._rules[symbol.category]:
            binding = unify(pattern, features)
            if binding is None:
                continue
            # Variables of the left side remain unbound if the symbol does not specify them
            absent = pattern.variables - binding.keys()
            for rule_weight, order, right in alternatives:
                # The weight of a rule is divided among its bindings, in proportion to the mass of
                # their heads
                masses = dict(self._expand_rule(order, right, binding, absent))
                total = sum(masses.values())
                mass += rule_weight * total
                for children, share in masses.items():
                    # If several rules or bindings have the same children, their shares add up
                    weights[children] = weights.get(children, 0.0) + rule_weight * share / total
        norm = sum(weights.values())
        if norm:
            self.phrases[symbol] = {children: weight / norm for children, weight in weights.items()}
        return mass

    def _expand_rule(
        self,
        order: tuple[Pattern, ...],
        right: tuple[Pattern, ...],
        binding: Binding,
        absent: frozenset[str],
    ) -> Iterator[tuple[tuple[Symbol, ...], float]]:
        """Extend a binding; for each extension, yield the children and a mass.

        The mass is the product of the masses of the heads. `order` and `right` are the children in
        two orders; see `_Expansion`. Variables in `absent` remain unbound.
        """
        bindings = [binding]
        for pattern in order:
            bindings = self._widen(bindings, pattern, absent)
            if not bindings:
                return
        for bound in bindings:
            children = tuple(pattern.symbol(bound) for pattern in right)
            if all(map(self.expand, children)):
                # Only the mass of heads counts. So a kind of subject is drawn often if the verbs
                # that allow it are frequent, but a rare adverb does not make a sentence rare
                masses = (self.mass[children[i]] for i, p in enumerate(right) if p.is_head)
                yield children, math.prod(masses)

    def _widen(
        self, bindings: list[Binding], pattern: Pattern, absent: frozenset[str]
    ) -> list[Binding]:
        """Extend bindings by the variables of another pattern.

        All bindings have the same variables. If the pattern is a word, its new variables take the
        values of the matching lexicon entries. If it is a phrase, they take all combinations of
        values in the lexicon. Combinations without a derivation are dropped when the phrase is
        expanded.
        """
        new_variables = pattern.variables - bindings[0].keys() - absent
        free = {value: name for name, value in pattern.features if value in new_variables}
        names = tuple(free.values())
        is_phrase = pattern.category in self._declared
        if is_phrase and not free:
            return bindings
        wider = []
        for binding in bindings:
            # Without free variables, a matching word gives one empty row, which keeps the binding
            rows = (
                self.lexicon.combinations(names)
                if is_phrase
                else self.lexicon.values(pattern.symbol(binding), names)
            )
            wider += [binding | dict(zip(free, values, strict=True)) for values in rows]
        return wider


def unify(pattern: Pattern, features: Mapping[str, str]) -> Binding | None:
    """Bind the variables of a rule's left side to a symbol's features; None if values differ."""
    binding: Binding = {}
    for name, value in pattern.features:
        actual = features.get(name)
        if actual is None:
            continue
        if value[0] == "?":
            if binding.setdefault(value, actual) != actual:
                return None
        # A symbol may have alternatives ("dish|baked"); a rule for one of the alternatives matches
        elif value != actual and value not in actual.split(OR):
            return None
    return binding


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector while a grammar is expanded.

    An expansion creates a million permanent tuples. The collector would scan these tuples, which
    takes a third of the time of the expansion, and would free no memory.
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
    """Return the expanded grammar of the embedded English (two seconds, once per process)."""
    expanded = Grammar(rules(), lexicon())
    with collector_paused():
        expanded.expand(START)
    return expanded
