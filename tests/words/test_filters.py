"""Rules for sentences, against sentences judged by hand and against brute force."""

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
    ("rule", "accepted", "rejected"),
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
def test_rules_reject_only_unsuitable_sentences(
    rule: filters.SentenceRule, accepted: str, rejected: str
) -> None:
    """Witness: a person's judgement."""
    assert not rule.rejects(Sentence.parse(accepted))
    assert rule.rejects(Sentence.parse(rejected))


def test_distinct_sentences_are_kept_in_order_with_reasons() -> None:
    texts = ("A dog", "A cat saw", "A cat", "A dog!", "The zebra")
    reasons: Counter[str] = Counter()
    rules = (filters.word_count(2), filters.in_vocabulary(VOCABULARY))
    sentences = filters.filter_sentences(map(Sentence.parse, texts), rules, reasons)
    assert [sentence.bare for sentence in sentences] == ["A dog", "A cat"]
    assert reasons == {
        "it does not have exactly 2 words": 1,
        "it occurred before": 1,
        "a word is not in the vocabulary": 1,
    }


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(InputError, match="`words` must be a range with a minimum of at least 1"):
        filters.word_count(0)
    with pytest.raises(InputError, match="got 3 to 2"):
        filters.word_count(3, 2)
    with pytest.raises(InputError, match="`names` must be at least 0, got -1"):
        filters.few_names(NAMES, -1)


def make_rules(*, unlike: bool) -> list[filters.SentenceRule]:
    rules = [filters.word_count(2), filters.distinct_words(), filters.without(("cat",))]
    return [*rules, filters.unlike_earlier()] if unlike else rules


@given(
    texts=st.lists(st.lists(st.sampled_from("dog cat saw Dog".split()), min_size=1, max_size=4)),
    unlike=st.booleans(),
)
def test_costs_of_rules_equal_gains_of_filtering_without_them(
    texts: list[list[str]], *, unlike: bool
) -> None:
    """Witness: replace or remove each rule in turn, and filter all sentences again."""
    sentences = [Sentence(tuple(words)) for words in texts]
    rules = make_rules(unlike=unlike)
    list(filters.filter_sentences(sentences, rules))  # earlier sentences must not count
    costs = {
        (change, reason): gain
        for gain, reason, change in filters.costs_of_rules(iter(sentences), rules)
    }
    changes: list[tuple[str, int, filters.SentenceRule | None]] = [
        ("`words` 1-2", 0, filters.word_count(1, 2)),
        ("`words` 2-3", 0, filters.word_count(2, 3)),
    ]
    changes += [(rule.loosened_by, index, None) for index, rule in enumerate(rules) if index]
    expected = {}
    for name, index, new_rule in changes:
        changed_rules = make_rules(unlike=unlike)
        changed_rules[index : index + 1] = [] if new_rule is None else [new_rule]
        n_before = sum(1 for _ in filters.filter_sentences(sentences, make_rules(unlike=unlike)))
        gain = sum(1 for _ in filters.filter_sentences(sentences, changed_rules)) - n_before
        expected[name, rules[index].reason] = gain
    assert costs == expected


@given(st.lists(st.lists(st.sampled_from(["a", "A", "b", "c"]), min_size=1, max_size=3)))
def test_sentences_that_differ_by_one_word_are_rejected(lines: list[list[str]]) -> None:
    """Witness: each sentence compared word by word with every earlier accepted one."""
    rule, accepted = filters.unlike_earlier(), list[list[str]]()
    for words in lines:
        lowered = [word.lower() for word in words]
        is_similar = any(
            len(earlier) == len(lowered)
            and sum(a != b for a, b in zip(lowered, earlier, strict=True)) <= 1
            for earlier in accepted
        )
        assert rule.rejects(Sentence(tuple(words))) == is_similar
        if not is_similar:
            accepted.append(lowered)
