"""Rules of sentences, against sentences judged by hand and against brute force."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_rules
from contstim.errors import InputError
from contstim.filters import (
    SentenceRule,
    costs_of_rules,
    distinct_words,
    few_names,
    filter_sentences,
    finite_verb,
    in_vocabulary,
    nltk_tagger,
    not_in,
    unlike_earlier,
    whole_sentence_rules,
    without,
    word_count,
)
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("The", "A"), ("dog", "saw", "the", "cat"), frozenset({"the"}))
NAMES = frozenset({"Rome", "Athens"})
RULES = english_rules(names=True)
STARTS, ENDS, BALANCED, CLEAN, CAPITALS, *_ = whole_sentence_rules(RULES, NAMES)


def _tag(words: object) -> list[str]:
    """A tagger that knows four words."""
    tags = {"sleeps": "VBZ", "sleeping": "VBG", "can": "MD", "sleep": "VB"}
    return [tags.get(word, "NN") for word in words]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("rule", "kept", "rejected"),
    [
        (word_count(3), "The dog saw", "The dog"),
        (word_count(2, 3), "The dog", "The dog saw it"),
        (distinct_words(frozenset({"the"})), "The dog saw the cat", "Dog saw dog"),
        (in_vocabulary(VOCABULARY), "A dog saw the cat", "Dog saw the cat"),
        (without(("new york", "cat")), "The new dog of york", "I love New  York"),
        (without(("cat",)), "The caterpillar", "The cat"),
        (not_in([Sentence.parse("The dog?")]), "The cat", "The dog"),
        (STARTS, "The dog sleeps", "and the dog sleeps"),
        (STARTS, "“Élan is all”", "“élan is all”"),
        (STARTS, "犬が 寝ている", "éclairs sell"),
        (ENDS, "The dog it slept on", "The pride of Athens and the"),
        (BALANCED, "He said “yes” (twice)", "He said yes (twice"),
        (BALANCED, 'A "dog" sleeps', 'A "dog sleeps'),
        (BALANCED, "Er sagte „ja“ und ging", "Er sagte „ja und ging"),
        (CLEAN, "The dog sleeps", "Mahowald Schenck et al"),
        (CLEAN, "The dog sleeps", "See https www org"),
        (CAPITALS, "When I saw Rome", "The Department of Health"),
        (few_names(NAMES, 1), "The dogs of Rome", "The dogs of Rome and Athens"),
        (few_names(NAMES, 0), "The dogs", "The dogs of Rome"),
        (finite_verb(_tag), "The dog sleeps", "A dog sleeping"),
        (finite_verb(_tag), "The dog can sleep", "To sleep"),
    ],
)
def test_rules_by_hand(rule: SentenceRule, kept: str, rejected: str) -> None:
    """Witness: a person's judgement."""
    assert not rule.rejects(Sentence.parse(kept))
    assert rule.rejects(Sentence.parse(rejected))


def test_keeps_distinct_sentences_in_order_and_counts_reasons() -> None:
    texts = ("A dog", "A cat saw", "A cat", "A dog!", "The zebra")
    left_out: Counter[str] = Counter()
    rules = (word_count(2), in_vocabulary(VOCABULARY))
    found = [s.bare for s in filter_sentences(map(Sentence.parse, texts), rules, left_out)]
    assert found == ["A dog", "A cat"]
    assert left_out == {
        "it does not have exactly 2 words": 1,
        "it occurred before": 1,
        "a word is not in the vocabulary": 1,
    }


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="`words` must go from 1 or more upwards"):
        word_count(0)
    with pytest.raises(InputError, match="not from 3 to 2"):
        word_count(3, 2)
    with pytest.raises(InputError, match="`names` must be 0 or more, not -1"):
        few_names(NAMES, -1)


def rules_now(*, unlike: bool) -> list[SentenceRule]:
    return [
        word_count(2),
        distinct_words(),
        without(("cat",)),
        *([unlike_earlier()] if unlike else []),
    ]


@given(
    texts=st.lists(st.lists(st.sampled_from("dog cat saw Dog".split()), min_size=1, max_size=4)),
    unlike=st.booleans(),
)
def test_gains_are_what_filtering_anew_gains(texts: list[list[str]], *, unlike: bool) -> None:
    """Witness: each rule replaced or left out in turn, and everything filtered once more."""
    sentences = [Sentence(tuple(words)) for words in texts]
    asked = rules_now(unlike=unlike)
    list(filter_sentences(sentences, asked))  # whatever was asked before does not count
    found = {(way, why): gain for gain, why, way in costs_of_rules(iter(sentences), asked)}
    ways: list[tuple[str, int, SentenceRule | None]] = [
        ("`words` 1-2", 0, word_count(1, 2)),
        ("`words` 2-3", 0, word_count(2, 3)),
    ]
    ways += [(rule.loosened_by, place, None) for place, rule in enumerate(asked) if place]
    expected = {}
    for name, place, instead in ways:
        rules = rules_now(unlike=unlike)
        rules[place : place + 1] = [] if instead is None else [instead]
        before = sum(1 for _ in filter_sentences(sentences, rules_now(unlike=unlike)))
        gain = sum(1 for _ in filter_sentences(sentences, rules)) - before
        expected[name, asked[place].reason] = gain
    assert found == expected


@given(st.lists(st.lists(st.sampled_from(["a", "A", "b", "c"]), min_size=1, max_size=3)))
def test_sentences_that_differ_by_a_word_against_brute_force(lines: list[list[str]]) -> None:
    """Witness: each sentence compared with every earlier one that passed, word by word."""
    rule, passed = unlike_earlier(), list[list[str]]()
    for words in lines:
        lower = [word.lower() for word in words]
        alike = any(
            len(other) == len(lower) and sum(a != b for a, b in zip(lower, other, strict=True)) <= 1
            for other in passed
        )
        assert rule.rejects(Sentence(tuple(words))) == alike
        if not alike:
            passed.append(lower)


def test_a_tagger_without_data_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("nltk.tag.pos_tag", missing)
    with pytest.raises(InputError, match=r"nltk\.downloader"):
        nltk_tagger()
