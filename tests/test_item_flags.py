"""Flags of stimuli: what is noticed in which item, and what is not; witnesses by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_rules
from contstim.experiments.design.building import triplet_trials
from contstim.frequencies import WordFrequencies
from contstim.item_flags import Flag, FlagKind, FlagSettings, flag_items
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.vocabulary import REPEATABLE_ENGLISH
from contstim.word_rules import WordRules

ENGLISH = FlagSettings(english_rules(names=True, blocked=frozenset({"blast"})), REPEATABLE_ENGLISH)


def pair(number: int, first: str, second: str) -> Pair:
    one, two = map(Sentence.parse, (first, second))
    return Pair(f"p{number}", "a", "b", one, two, 0, 1, 0.1, 0.9, 0.9, 0.1)


def triplet(number: int, *texts: str) -> Triplet:
    natural, first, second = map(Sentence.parse, texts)
    log_probs = (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0)
    return Triplet(f"t{number}", "a", "b", natural, first, second, *log_probs, 1.0)


def of_kind(flags: Iterable[Flag], kind: FlagKind) -> list[tuple[str, str]]:
    return [(flag.item_id, flag.subject) for flag in flags if flag.kind is kind]


def test_words_are_flagged_once_an_item_and_for_one_reason() -> None:
    items = [
        pair(1, "We told Sarah, Sarah and (Sarah).", "Blast the ndez of 3 dogs."),
        pair(2, "The dog, he said, sleeps.", "Nothing is wrong here."),
    ]
    flags = flag_items(items, ENGLISH).flags
    assert of_kind(flags, FlagKind.BLOCKED) == [("p1", "Blast")]
    assert of_kind(flags, FlagKind.DEBRIS) == [("p1", "ndez"), ("p1", "3")]
    assert of_kind(flags, FlagKind.NAME) == [("p1", "Sarah")]
    assert of_kind(flags, FlagKind.REPEATED) == [("p1", "sarah")]
    assert {flag.item_id for flag in flags} == {"p1"}


def test_a_first_word_is_a_name_only_where_it_is_capitalised_inside_other_sentences() -> None:
    items = [pair(1, "Paris sleeps", "Dogs bark"), pair(2, "We saw Rome", "Rome waits")]
    assert of_kind(flag_items(items, ENGLISH).flags, FlagKind.NAME) == [("p2", "Rome")]
    text = WordFrequencies({"Paris": 9, "dogs": 5, "Dogs": 2})
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, text)
    names = of_kind(flag_items(items, settings).flags, FlagKind.NAME)
    assert names == [("p1", "Paris"), ("p2", "Rome")]


def test_where_nouns_are_capitalised_names_are_not_looked_for() -> None:
    items = [pair(1, "Der Hund sieht die Katze", "Die Katze sieht den Hund")]
    flagged = flag_items(items, FlagSettings(WordRules()))
    assert of_kind(flagged.flags, FlagKind.NAME) == []
    assert "not looked for: 50% of the words" in flagged.explanations[FlagKind.NAME]


def test_rare_words_are_those_below_a_value_in_a_text_that_is_long_enough() -> None:
    """Zipf of a word counted 4 times among 2,000,005: log10(5 / 2.000008) + 3 = 3.40."""
    items = [pair(1, "The zebra sleeps", "The dog sleeps")]
    text = WordFrequencies({"the": 2_000_000, "zebra": 4, "dog": 1})
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, text, "corpus.txt", rare=3.3)
    flagged = flag_items(items, settings)
    rare = [flag.detail for flag in flagged.flags if flag.kind is FlagKind.RARE]
    assert rare == ["“sleeps” is rare (Zipf 2.7).", "“dog” is rare (Zipf 3.0)."]
    assert "corpus.txt" in flagged.explanations[FlagKind.RARE]
    short = FlagSettings(ENGLISH.rules, text=" a", frequencies=WordFrequencies({"the": 900_000}))
    flagged = flag_items(items, short)
    assert of_kind(flagged.flags, FlagKind.RARE) == []
    assert "so short that even the rarest word has Zipf 3.0" in flagged.explanations[FlagKind.RARE]


def test_articles_may_repeat_but_not_in_a_row() -> None:
    items = [pair(1, "The dog sees the cat", "He went in in the rain")]
    repeated = [f.detail for f in flag_items(items, ENGLISH).flags if f.kind is FlagKind.REPEATED]
    assert repeated == ["“in” stands twice in a row."]


def test_words_of_many_items_count_once_a_triplet_and_only_where_they_were_changed() -> None:
    triplets = [
        triplet(
            n,
            f"The garden number {n} grows",
            f"The zinc number {n} grows",
            f"The garden number {n} ends",
        )
        for n in range(4)
    ]
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, often=3)
    flags = flag_items(triplets, settings).flags
    assert of_kind(flags, FlagKind.FREQUENT) == [
        (f"t{n}", word) for n in range(4) for word in ("zinc", "ends")
    ]
    assert of_kind(flag_items(triplets[:3], settings).flags, FlagKind.FREQUENT) == []
    trials = [trial for each in triplets[:3] for trial in triplet_trials(each, twins=True)]
    assert of_kind(flag_items(trials, settings).flags, FlagKind.FREQUENT) == []


def test_shuffled_sentences_are_not_looked_at() -> None:
    one, two = map(Sentence.parse, ("We saw the big dog", "dog We big the saw"))
    catch = Trial("c", 1, Condition.CATCH, "", "", one, two, Kind.NATURAL, Kind.SHUFFLED, "")
    assert flag_items([catch], ENGLISH).flags == ()


def test_similar_items_are_named_and_quoted() -> None:
    items = [
        pair(1, "The dog sleeps", "We run home"),
        pair(2, "The cat sleeps!", "They all sing"),
        pair(3, "Nobody came here", "They all sing"),
    ]
    similar = [flag for flag in flag_items(items).flags if flag.kind is FlagKind.SIMILAR]
    assert [flag.detail for flag in similar] == [
        "All but one word of a sentence stands in p2: “The cat sleeps!”.",
        "All but one word of a sentence stands in p1: “The dog sleeps.”, and 1 more.",
        "The same sentence stands in p2: “They all sing.”.",
    ]


@given(st.lists(st.tuples(*[st.text("ab", min_size=1, max_size=2)] * 3), min_size=2, max_size=8))
def test_similar_items_are_those_that_differ_by_at_most_a_word(
    words: list[tuple[str, ...]],
) -> None:
    """Witness: every pair of items, compared word by word."""
    items = [pair(n, " ".join(three), " ".join("x" * (4 + n))) for n, three in enumerate(words)]
    similar = {f.item_id for f in flag_items(items).flags if f.kind is FlagKind.SIMILAR}
    assert similar == {
        f"p{n}"
        for n, one in enumerate(words)
        for m, two in enumerate(words)
        if n != m and sum(a != b for a, b in zip(one, two, strict=True)) <= 1
    }


def test_trials_of_other_groups_and_of_the_same_triplet_are_not_similar() -> None:
    one, two = (
        triplet(n, "The dog sleeps", f"The dog {verb}", f"A dog {verb}")
        for n, verb in enumerate(("runs", "eats"))
    )
    assert of_kind(flag_items(triplet_trials(one, twins=True)).flags, FlagKind.SIMILAR) == []
    assert {i for i, _ in of_kind(flag_items([one, two]).flags, FlagKind.SIMILAR)} == {"t0", "t1"}


def test_every_kind_is_explained_even_of_no_items() -> None:
    for items in ([], [pair(1, "A b", "C d")]):
        explanations = flag_items(items).explanations
        assert list(explanations) == list(FlagKind)
        assert all(text.endswith(".") for text in explanations.values())


@pytest.mark.parametrize("often", [1, 2])
def test_in_other_languages_words_of_natural_sentences_are_not_counted(often: int) -> None:
    items = [pair(n, f"ein Haus {n}", f"das Haus {n}") for n in range(4)]
    flags = flag_items(items, FlagSettings(WordRules(), often=often)).flags
    assert of_kind(flags, FlagKind.FREQUENT) == []
