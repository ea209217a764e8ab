"""The grammar written out, against the toolkit's own unification and against plain tables."""

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
SAME_IN_PLURAL = {"sheep", "deer"}
SUBJECT_ROLES = {"subj", "thing", "animal", "indef", "quant", "relsubj", "short", "cue"}
SINGULAR_VERBS = {"is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't"}
PLURAL_VERBS = {"are", "were", "have", "do", "aren't", "weren't", "haven't", "don't"}
REFLEXIVES = {"I": "myself", "he": "himself", "she": "herself", "we": "ourselves"}
REFLEXIVES |= {"you": "yourself", "they": "themselves"}


def _structure(symbol: Symbol) -> FeatStructNonterminal:
    """The symbol for the toolkit; features that leave a choice open are left out."""
    features: dict[Any, str] = {n: v for n, v in symbol.features if "|" not in v}
    return FeatStructNonterminal({TYPE: symbol.category, **features})


def _licenses(production: Any, node: Derivation) -> bool:
    """Whether one production unifies with a node and its children, variables shared."""
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
    """Outside witness: the unification algorithm of the Natural Language Toolkit."""
    by_shape: dict[tuple[str, ...], list[Any]] = {}
    for production in productions(rules_text()):
        shape = (production.lhs()[TYPE], *(right[TYPE] for right in production.rhs()))
        by_shape.setdefault(shape, []).append(production)
    rng = random.Random(4)
    for _ in range(40):
        for node in nodes(sample_tree(rng)):
            if node.children:
                shape = (node.category, *(child.category for child in node.children))
                assert any(_licenses(production, node) for production in by_shape[shape]), node


def test_words_have_the_features_of_their_place(derivations: list[Derivation]) -> None:
    """Outside witness: the rows of the lexicon, read value by value."""
    for derivation in derivations:
        for node in nodes(derivation):
            if node.entry is not None:
                assert node.entry.category == node.category
                for name, value in node.symbol.features:
                    assert set(value.split("|")) & set(node.entry.features[name])


def test_every_category_is_reached() -> None:
    """Outside witness: the categories that the two data files mention."""
    written = {left.category for left, _, _ in rules()} | set(lexicon().entries)
    grown = grammar()
    assert {symbol.category for symbol in (*grown.phrases, *grown.words)} == written


def test_probabilities_sum_to_one() -> None:
    """Outside witness: the definition of a probabilistic grammar."""
    for symbol, ways in grammar().phrases.items():
        assert sum(ways.values()) == pytest.approx(1), symbol


def _is_plural(subject: Derivation) -> bool | None:
    """Number read off the words: None where the words do not tell."""
    entries = [e for child in subject.children if child.category != "REL" for e in child.entries()]
    head = entries[-1]
    if any(entry.category == "AND" for entry in entries):
        return True
    if head.category == "PRON":
        return None if head.form == "I" else head.form in PLURAL
    if head.category == "N":
        same = head.lemma in SAME_IN_PLURAL
        return None if same else head.form != head.lemma or head.form in PLURAL_ONLY
    return False


def _agrees(plural: bool, word: str, present: bool) -> bool:
    if word in SINGULAR_VERBS | PLURAL_VERBS:
        return word in (PLURAL_VERBS if plural else SINGULAR_VERBS)
    ends = word.endswith("s") and not word.endswith("ss")
    return not present or ends != plural


def test_subjects_agree_with_their_verbs(derivations: list[Derivation]) -> None:
    """Outside witness: number and ending read off the words, not off the features."""
    checked = 0
    for node in (node for derivation in derivations for node in nodes(derivation)):
        for subject, verb in zip(node.children, node.children[1:], strict=False):
            if dict(subject.symbol.features).get("role") in SUBJECT_ROLES and node.category != "Q":
                plural, finite = _is_plural(subject), next(iter(verb.entries()))
                if finite.category in ("FREQ", "MAYBE", "ADV"):
                    finite = list(verb.entries())[1]
                present = finite.category == "V" and finite.features["form"] == ("pres",)
                if plural is not None:
                    assert _agrees(plural, finite.words[0], present), node.tree()
                    checked += 1
    assert checked > 700


def test_reflexives_name_their_subject() -> None:
    """Outside witness: the table of English reflexives."""
    rng = random.Random(6)
    found = 0
    for words in (4, 5, 6) * 1500:
        entries = list(sample_tree(rng, words=words).entries())
        subject, reflexives = entries[0].form, [e.form for e in entries if e.category == "REFL"]
        if reflexives and subject in REFLEXIVES:
            found += 1
            assert reflexives == [REFLEXIVES[subject]]
    assert found > 2


def test_forms_of_to_be_stand_where_they_may(derivations: list[Derivation]) -> None:
    """Outside witness: "been" follows a form of "have", "be" a modal or "to"."""
    have, modal = {"has", "have", "had"}, {"will", "to", "can", "should", "won't"}
    for derivation in derivations:
        words = [word.lower() for word in derivation.sentence.words]
        assert "been" not in words or have & {word.removesuffix("n't") for word in words}
        assert "be" not in words or words[words.index("be") - 1] in modal


@pytest.mark.parametrize("seed", range(3))
def test_tree_of_the_toolkit_has_the_same_words(seed: int) -> None:
    """Outside witness: the toolkit's own reading of the leaves of a tree."""
    derivation = sample_tree(random.Random(seed))
    leaves = [str(leaf) for leaf in derivation.tree().leaves()]
    sentence = [word.lower() for word in derivation.sentence.words]
    assert [w.lower() for w in leaves] == ["a" if word == "an" else word for word in sentence]
