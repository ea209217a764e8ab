"""Rules of whole sentences, against sentences judged by hand and against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_rules
from contstim.errors import InputError
from contstim.filters import SentenceRule
from contstim.sentence import Sentence
from contstim.whole_sentences import (
    Balanced,
    CapitalsOfNames,
    CleanWords,
    EndsLikeASentence,
    FewNames,
    HasFiniteVerb,
    StartsLikeASentence,
    UnlikeEarlier,
    nltk_tagger,
)

NAMES = frozenset({"Rome", "Athens"})
RULES = english_rules(names=True)


def _tag(words: object) -> list[str]:
    """A tagger that knows four words."""
    tags = {"sleeps": "VBZ", "sleeping": "VBG", "can": "MD", "sleep": "VB"}
    return [tags.get(word, "NN") for word in words]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("rule", "whole", "debris"),
    [
        (StartsLikeASentence(), "The dog sleeps", "and the dog sleeps"),
        (StartsLikeASentence(), "“Élan is all”", "“élan is all”"),
        (StartsLikeASentence(), "犬が 寝ている", "éclairs sell"),
        (EndsLikeASentence(RULES), "The dog it slept on", "The pride of Athens and the"),
        (Balanced(), "He said “yes” (twice)", "He said yes (twice"),
        (Balanced(), 'A "dog" sleeps', 'A "dog sleeps'),
        (Balanced(), "Er sagte „ja“ und ging", "Er sagte „ja und ging"),
        (CleanWords(RULES), "The dog sleeps", "Mahowald Schenck et al"),
        (CleanWords(RULES), "The dog sleeps", "See https www org"),
        (CapitalsOfNames(RULES, NAMES), "When I saw Rome", "The Department of Health"),
        (FewNames(NAMES, 1), "The dogs of Rome", "The dogs of Rome and Athens"),
        (FewNames(NAMES, 0), "The dogs", "The dogs of Rome"),
        (HasFiniteVerb(_tag), "The dog sleeps", "A dog sleeping"),
        (HasFiniteVerb(_tag), "The dog can sleep", "To sleep"),
    ],
)
def test_rules_by_hand(rule: SentenceRule, whole: str, debris: str) -> None:
    """Witness: a person's judgement."""
    assert not rule.rejects(Sentence.parse(whole))
    assert rule.rejects(Sentence.parse(debris))


@given(st.lists(st.lists(st.sampled_from(["a", "A", "b", "c"]), min_size=1, max_size=3)))
def test_sentences_that_differ_by_a_word_against_brute_force(lines: list[list[str]]) -> None:
    """Witness: each sentence compared with every earlier one that passed, word by word."""
    rule, passed = UnlikeEarlier(), list[list[str]]()
    for words in lines:
        lower = [word.lower() for word in words]
        alike = any(
            len(other) == len(lower) and sum(a != b for a, b in zip(lower, other, strict=True)) <= 1
            for other in passed
        )
        assert rule.rejects(Sentence(tuple(words))) == alike
        if not alike:
            passed.append(lower)


def test_fewer_than_no_names_are_refused() -> None:
    with pytest.raises(InputError, match="0 names or more"):
        FewNames(NAMES, -1)


def test_a_tagger_without_data_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("nltk.tag.pos_tag", missing)
    with pytest.raises(InputError, match=r"nltk\.downloader"):
        nltk_tagger()
