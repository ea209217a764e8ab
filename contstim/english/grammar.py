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
from typing import Any

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
class GrammarRule:
    """A production with features; the weight is its share among the rules of one category."""

    left: Pattern
    right: tuple[Pattern, ...]
    weight: float


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
