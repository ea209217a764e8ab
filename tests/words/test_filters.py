"""Rules of sentences, against sentences judged by hand and against brute force."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_rules, english_tags
from contstim.errors import InputError
from contstim.words import filters
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("The", "A"), ("dog", "saw", "the", "cat"), frozenset({"the"}))
NAMES = frozenset({"Rome", "Athens"})
RULES = english_rules(names=True)
STARTS, ENDS, DOUBLED, BALANCED, CLEAN, CAPITALS, _, FINITE, WHOLE, _ = (
    filters.whole_sentence_rules(RULES, NAMES, tags=english_tags())
)


@pytest.mark.parametrize(
    ("rule", "kept", "rejected"),
    [
        (filters.word_count(3), "The dog saw", "The dog"),
        (filters.word_count(2, 3), "The dog", "The dog saw it"),
        (filters.distinct_words(frozenset({"the"})), "The dog saw the cat", "Dog saw dog"),
        (filters.in_vocabulary(VOCABULARY), "A dog saw the cat", "Dog saw the cat"),
        (filters.without(("new york", "cat")), "The new dog of york", "I love New  York"),
        (filters.without(("cat",)), "The caterpillar", "The cat"),
        (filters.not_in([Sentence.parse("The dog?")]), "The cat", "The dog"),
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
        (filters.few_names(NAMES, 1), "The dogs of Rome", "The dogs of Rome and Athens"),
        (filters.few_names(NAMES, 0), "The dogs", "The dogs of Rome"),
        (DOUBLED, "The dog saw the cat", "The dog saw the the cat"),
        (DOUBLED, "Dogs saw cats saw dogs", "Dogs dogs saw cats"),
        (FINITE, "The dog sleeps", "A dog sleeping on the old chair"),
        (FINITE, "The plumber isn't young", "The role of sleep in cognition"),
        (FINITE, "We've no cups", "The women's right to vote"),
        (FINITE, "The teacher asked about the exam", "Fast delivery and quick responses"),
        (FINITE, "Please bring me a cup of tea", "To capture this moment"),
        (FINITE, "Many farmers now make up a rural class", "Good player to have in the squad"),
        (WHOLE, "Is it here?", "Is it here"),
        (WHOLE, "Put the cup on the table", "Was told to put it there"),
        (WHOLE, "It looks like a cup", "Looks like a cup"),
        (WHOLE, "As the king said they had won", "As soon as you see the dog"),
        (WHOLE, "Why was the war so long?", "Why was the war so long"),
        (WHOLE, "What he said is old", "Which led to the war"),
        (WHOLE, "However the king was old", "Although the king was old"),
    ],
)
def test_rules_by_hand(rule: filters.SentenceRule, kept: str, rejected: str) -> None:
    """Witness: a person's judgement."""
    assert not rule.rejects(Sentence.parse(kept))
    assert rule.rejects(Sentence.parse(rejected))


def test_keeps_distinct_sentences_in_order_and_counts_reasons() -> None:
    texts = ("A dog", "A cat saw", "A cat", "A dog!", "The zebra")
    left_out: Counter[str] = Counter()
    rules = (filters.word_count(2), filters.in_vocabulary(VOCABULARY))
    found = [s.bare for s in filters.filter_sentences(map(Sentence.parse, texts), rules, left_out)]
    assert found == ["A dog", "A cat"]
    assert left_out == {
        "it does not have exactly 2 words": 1,
        "it occurred before": 1,
        "a word is not in the vocabulary": 1,
    }


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="`words` must be a range from at least 1"):
        filters.word_count(0)
    with pytest.raises(InputError, match="got 3 to 2"):
        filters.word_count(3, 2)
    with pytest.raises(InputError, match="`names` must be at least 0, got -1"):
        filters.few_names(NAMES, -1)


def rules_now(*, unlike: bool) -> list[filters.SentenceRule]:
    return [
        filters.word_count(2),
        filters.distinct_words(),
        filters.without(("cat",)),
        *([filters.unlike_earlier()] if unlike else []),
    ]


@given(
    texts=st.lists(st.lists(st.sampled_from("dog cat saw Dog".split()), min_size=1, max_size=4)),
    unlike=st.booleans(),
)
def test_gains_are_what_filtering_anew_gains(texts: list[list[str]], *, unlike: bool) -> None:
    """Witness: each rule replaced or left out in turn, and everything filtered once more."""
    sentences = [Sentence(tuple(words)) for words in texts]
    asked = rules_now(unlike=unlike)
    list(filters.filter_sentences(sentences, asked))  # whatever was asked before does not count
    found = {(way, why): gain for gain, why, way in filters.costs_of_rules(iter(sentences), asked)}
    ways: list[tuple[str, int, filters.SentenceRule | None]] = [
        ("`words` 1-2", 0, filters.word_count(1, 2)),
        ("`words` 2-3", 0, filters.word_count(2, 3)),
    ]
    ways += [(rule.loosened_by, place, None) for place, rule in enumerate(asked) if place]
    expected = {}
    for name, place, instead in ways:
        rules = rules_now(unlike=unlike)
        rules[place : place + 1] = [] if instead is None else [instead]
        before = sum(1 for _ in filters.filter_sentences(sentences, rules_now(unlike=unlike)))
        gain = sum(1 for _ in filters.filter_sentences(sentences, rules)) - before
        expected[name, asked[place].reason] = gain
    assert found == expected


@given(st.lists(st.lists(st.sampled_from(["a", "A", "b", "c"]), min_size=1, max_size=3)))
def test_sentences_that_differ_by_a_word_against_brute_force(lines: list[list[str]]) -> None:
    """Witness: each sentence compared with every earlier one that passed, word by word."""
    rule, passed = filters.unlike_earlier(), list[list[str]]()
    for words in lines:
        lower = [word.lower() for word in words]
        alike = any(
            len(other) == len(lower) and sum(a != b for a, b in zip(lower, other, strict=True)) <= 1
            for other in passed
        )
        assert rule.rejects(Sentence(tuple(words))) == alike
        if not alike:
            passed.append(lower)
