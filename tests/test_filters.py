from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.filters import (
    DistinctWords,
    InVocabulary,
    NotIn,
    SentenceRule,
    Without,
    WordCount,
    filter_sentences,
    gains_of_loosening,
)
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary
from contstim.whole_sentences import UnlikeEarlier

VOCABULARY = Vocabulary(("The", "A"), ("dog", "saw", "the", "cat"), frozenset({"the"}))


@pytest.mark.parametrize(
    ("rule", "kept", "rejected"),
    [
        (WordCount(3), "The dog saw", "The dog"),
        (DistinctWords(frozenset({"the"})), "The dog saw the cat", "Dog saw dog"),
        (InVocabulary(VOCABULARY), "A dog saw the cat", "Dog saw the cat"),
        (Without(("new york", "cat")), "The new dog of york", "I love New  York"),
        (Without(("cat",)), "The caterpillar", "The cat"),
        (NotIn([Sentence.parse("The dog?")]), "The cat", "The dog"),
    ],
)
def test_rules_by_hand(rule: SentenceRule, kept: str, rejected: str) -> None:
    assert not rule.rejects(Sentence.parse(kept))
    assert rule.rejects(Sentence.parse(rejected))


def test_keeps_distinct_sentences_in_order_and_counts_reasons() -> None:
    texts = ("A dog", "A cat saw", "A cat", "A dog!", "The zebra")
    left_out: Counter[str] = Counter()
    rules = (WordCount(2), InVocabulary(VOCABULARY))
    found = [s.bare for s in filter_sentences(map(Sentence.parse, texts), rules, left_out)]
    assert found == ["A dog", "A cat"]
    assert left_out == {
        "it does not have exactly 2 words": 1,
        "it occurred before": 1,
        "a word is not in the vocabulary": 1,
    }


def test_no_words_are_refused() -> None:
    with pytest.raises(InputError, match="1 word or more"):
        WordCount(0)


def rules_now(*, unlike: bool) -> list[SentenceRule]:
    return [
        WordCount(2),
        DistinctWords(),
        Without(("cat",)),
        *([UnlikeEarlier()] if unlike else []),
    ]


@given(
    texts=st.lists(st.lists(st.sampled_from("dog cat saw Dog".split()), min_size=1, max_size=4)),
    unlike=st.booleans(),
)
def test_gains_are_what_filtering_anew_gains(texts: list[list[str]], *, unlike: bool) -> None:
    """Witness: each rule replaced or left out in turn, and everything filtered once more."""
    sentences = [Sentence(tuple(words)) for words in texts]
    loosenings: list[tuple[int, SentenceRule | None]] = [
        (0, WordCount(2, 3)),
        (0, WordCount(1, 2)),
        *((place, None) for place in range(1, 4 if unlike else 3)),
    ]
    expected = []
    for place, instead in loosenings:
        rules = rules_now(unlike=unlike)
        rules[place : place + 1] = [] if instead is None else [instead]
        before = sum(1 for _ in filter_sentences(sentences, rules_now(unlike=unlike)))
        expected.append(sum(1 for _ in filter_sentences(sentences, rules)) - before)
    asked = rules_now(unlike=unlike)
    list(filter_sentences(sentences, asked))  # whatever was asked before does not count
    assert gains_of_loosening(iter(sentences), asked, loosenings) == expected
