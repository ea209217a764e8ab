from __future__ import annotations

from collections import Counter

import pytest

from contstim.errors import InputError
from contstim.filters import (
    DistinctWords,
    InVocabulary,
    NotIn,
    SentenceRule,
    Without,
    WordCount,
    filter_sentences,
)
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary

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
