"""The rules of the grammar: read from `rules.fcfg`, in the toolkit's feature-grammar notation.

A rule is a production over categories with features (Gazdar, Klein, Pullum & Sag 1985,
*Generalized Phrase Structure Grammar*): variables (`?n`) that occur twice must have one value. Two
things are added to that notation: a weight in brackets at the end of every alternative, and `+H` on
the children whose frequency says how often a value of a variable is chosen.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nltk.grammar import FeatureGrammar

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


@dataclass(frozen=True, slots=True)
class Rule:
    """A production with features; the weight is its share among the rules of one category."""

    left: Pattern
    right: tuple[Pattern, ...]
    weight: float


def _pattern(nonterminal: Any) -> Pattern:
    """A Pattern from the toolkit's feature structure."""
    values = {str(name): str(value) for name, value in nonterminal.items()}
    is_head = values.pop(HEAD, "False") == "True"
    category = values.pop("*type*")
    return Pattern(category, tuple(sorted(values.items())), is_head)


def rules_text() -> str:
    """The rules as they are written."""
    return resources.files("contstim.english").joinpath("rules.fcfg").read_text(encoding="utf-8")


def _expand_abbreviations(text: str) -> str:
    """The text with every "$name" written out; definitions are lines "$name = text"."""
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
    return "\n".join(lines)


def _productions(text: str) -> tuple[Any, list[Any]]:
    """The start symbol and the weighted productions, as the toolkit reads them."""
    from nltk.featstruct import SLASH, TYPE, FeatStructReader
    from nltk.grammar import FeatStructNonterminal, read_grammar

    reader = FeatStructReader((SLASH, TYPE), FeatStructNonterminal)
    plain = _expand_abbreviations(text)
    start, productions = read_grammar(plain, reader.read_partial, probabilistic=True)
    return start, productions


@functools.cache
def rules() -> tuple[Rule, ...]:
    """The rules of the grammar, in the order in which they are written."""
    return _rules(rules_text())


def further_rules(text: str) -> tuple[Rule, ...]:
    """Rules written elsewhere in the same notation; they may use the grammar's abbreviations.

    Raises:
        ValueError: a line is not a rule, or has something else than categories.
    """
    from nltk.grammar import FeatStructNonterminal

    given = "\n".join(line for line in rules_text().splitlines() if line.startswith("$"))
    for production in _productions(f"{given}\n{text}")[1]:
        for part in (production.lhs(), *production.rhs()):
            if not isinstance(part, FeatStructNonterminal):
                raise ValueError(f"{part!r} is not a category, such as N[num=sg]")
    return _rules(f"{given}\n{text}")


def _rules(text: str) -> tuple[Rule, ...]:
    return tuple(
        Rule(_pattern(p.lhs()), tuple(map(_pattern, p.rhs())), p.prob())
        for p in _productions(text)[1]
    )


def feature_grammar() -> FeatureGrammar:
    """The rules without their weights, for the toolkit's own unification and parsers.

    The words are not in it: its leaves are the categories of the lexicon.
    """
    from nltk.grammar import FeatureGrammar, Production

    start, productions = _productions(rules_text())
    return FeatureGrammar(start, [Production(p.lhs(), p.rhs()) for p in productions])
