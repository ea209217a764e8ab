"""The expanded grammar against NLTK's unification and against tables of English forms."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from nltk.featstruct import TYPE, unify
from nltk.grammar import FeatStructNonterminal

from contstim.english import Derivation, Symbol, lexicon, sample_tree
from contstim.english.grammar import grammar, productions, rules, rules_text

PLURAL = {"you", "we", "they"}
PLURAL_ONLY = {"jeans", "shoes", "boots", "gloves", "socks", "pants", "sandals"}
PLURAL_ONLY |= {"hands", "teeth", "leaves", "dishes"}
UNCHANGED_PLURALS = {"sheep", "deer"}
SUBJECT_ROLES = {"subj", "thing", "animal", "indef", "quant", "relsubj", "short", "cue"}
SINGULAR_VERBS = {"is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't"}
PLURAL_VERBS = {"are", "were", "have", "do", "aren't", "weren't", "haven't", "don't"}
REFLEXIVES = {"I": "myself", "he": "himself", "she": "herself", "we": "ourselves"}
REFLEXIVES |= {"you": "yourself", "they": "themselves"}


def _structure(symbol: Symbol) -> FeatStructNonterminal:
    """Return the symbol for NLTK, without features that leave a choice open."""
    features: dict[Any, str] = {n: v for n, v in symbol.features if "|" not in v}
    return FeatStructNonterminal({TYPE: symbol.category, **features})


def _licenses(production: Any, node: Derivation) -> bool:
    """Return whether a production unifies with a node and its children, with shared variables."""
    variables: dict[Any, Any] = {}
    pairs = [(production.lhs(), node), *zip(production.rhs(), node.children, strict=True)]
    for pattern, part in pairs:
        pattern = FeatStructNonterminal({k: v for k, v in pattern.items() if k != "H"})
        open_features = {name for name, value in part.symbol.features if "|" in value}
        for name in open_features & set(pattern):
            del pattern[name]
        if unify(pattern, _structure(part.symbol), variables) is None:
            return False
    return True


def nodes(tree: Derivation) -> Iterator[Derivation]:
    yield tree
    for child in tree.children:
        yield from nodes(child)


def test_every_branching_is_licensed_by_unification() -> None:
    """External witness: the unification algorithm of the Natural Language Toolkit (NLTK)."""
    productions_by_shape: dict[tuple[str, ...], list[Any]] = {}
    for production in productions(rules_text()):
        shape = (production.lhs()[TYPE], *(right[TYPE] for right in production.rhs()))
        productions_by_shape.setdefault(shape, []).append(production)
    rng = random.Random(4)
    for _ in range(40):
        for node in nodes(sample_tree(rng)):
            if node.children:
                shape = (node.category, *(child.category for child in node.children))
                assert any(
                    _licenses(production, node) for production in productions_by_shape[shape]
                ), node


def test_words_have_the_features_of_their_nodes(derivations: list[Derivation]) -> None:
    """External witness: the rows of the lexicon, read value by value."""
    for derivation in derivations:
        for node in nodes(derivation):
            if node.entry is not None:
                assert node.entry.category == node.category
                for name, value in node.symbol.features:
                    assert set(value.split("|")) & set(node.entry.features[name])


def test_every_category_is_in_the_grammar() -> None:
    """External witness: the categories in the two data files."""
    categories = {left.category for left, _, _ in rules()} | set(lexicon().entries)
    assert {symbol.category for symbol, mass in grammar().mass.items() if mass} == categories


def test_probabilities_sum_to_one() -> None:
    """External witness: the definition of a probabilistic grammar."""
    for symbol, probabilities in grammar().phrases.items():
        assert sum(probabilities.values()) == pytest.approx(1), symbol


def _is_plural(subject: Derivation) -> bool | None:
    """Infer the number from the words; None if they do not show it."""
    entries = [e for child in subject.children if child.category != "REL" for e in child.entries()]
    head = entries[-1]
    if any(entry.category == "AND" for entry in entries):
        return True
    if head.category == "PRON":
        return None if head.form == "I" else head.form in PLURAL
    if head.category == "N":
        is_unchanged = head.lemma in UNCHANGED_PLURALS
        return None if is_unchanged else head.form != head.lemma or head.form in PLURAL_ONLY
    return False


def _agrees(plural: bool, word: str, present: bool) -> bool:
    if word in SINGULAR_VERBS | PLURAL_VERBS:
        return word in (PLURAL_VERBS if plural else SINGULAR_VERBS)
    has_s = word.endswith("s") and not word.endswith("ss")
    return not present or has_s != plural


def test_subjects_agree_with_their_verbs(derivations: list[Derivation]) -> None:
    """External witness: number and ending are inferred from the words, not from the features."""
    n_checked = 0
    for node in (node for derivation in derivations for node in nodes(derivation)):
        for subject, verb in zip(node.children, node.children[1:], strict=False):
            if dict(subject.symbol.features).get("role") in SUBJECT_ROLES and node.category != "Q":
                plural, finite_verb = _is_plural(subject), next(iter(verb.entries()))
                if finite_verb.category in ("FREQ", "MAYBE", "ADV"):
                    finite_verb = list(verb.entries())[1]
                present = finite_verb.category == "V" and finite_verb.features["form"] == ("pres",)
                if plural is not None:
                    assert _agrees(plural, finite_verb.words[0], present), node.tree()
                    n_checked += 1
    assert n_checked > 700


def test_reflexives_agree_with_their_subject() -> None:
    """External witness: the table of English reflexives."""
    rng = random.Random(6)
    n_found = 0
    for words in (4, 5, 6) * 1500:
        entries = list(sample_tree(rng, words=words).entries())
        subject, reflexives = entries[0].form, [e.form for e in entries if e.category == "REFL"]
        if reflexives and subject in REFLEXIVES:
            n_found += 1
            assert reflexives == [REFLEXIVES[subject]]
    assert n_found > 2


def test_been_and_be_follow_have_or_a_modal(derivations: list[Derivation]) -> None:
    """External witness: "been" follows a form of "have", "be" a modal or "to"."""
    have_forms, modals = {"has", "have", "had"}, {"will", "to", "can", "should", "won't"}
    for derivation in derivations:
        words = [word.lower() for word in derivation.sentence.words]
        assert "been" not in words or have_forms & {word.removesuffix("n't") for word in words}
        assert "be" not in words or words[words.index("be") - 1] in modals


@pytest.mark.parametrize("seed", range(3))
def test_nltk_tree_has_the_same_words(seed: int) -> None:
    """External witness: NLTK's own leaves of the tree."""
    derivation = sample_tree(random.Random(seed))
    leaves = [str(leaf) for leaf in derivation.tree().leaves()]
    words = [word.lower() for word in derivation.sentence.words]
    assert [w.lower() for w in leaves] == ["a" if word == "an" else word for word in words]
