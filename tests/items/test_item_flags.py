"""Flags of stimuli: what is noticed in which item, and what is not; witnesses by hand."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import english_rules, english_tags
from contstim.experiments.design.building import triplet_trials
from contstim.items.item_flags import Flag, FlagKind, FlagSettings, flag_items
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.words.frequencies import WordFrequencies
from contstim.words.sentence import Sentence
from contstim.words.tags import START, TaggedWord, TagPair, TagTable
from contstim.words.vocabulary import REPEATABLE_ENGLISH
from contstim.words.word_rules import WordRules

ENGLISH = FlagSettings(english_rules(names=True, blocked=frozenset({"blast"})), REPEATABLE_ENGLISH)


def pair(number: int, first: str, second: str) -> Pair:
    one, two = map(Sentence.parse, (first, second))
    return Pair(f"p{number}", "a", "b", one, two, 0, 1, 0.1, 0.9, 0.9, 0.1)


def triplet(number: int, *texts: str) -> Triplet:
    natural, first, second = map(Sentence.parse, texts)
    log_probs = (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0)
    return Triplet(f"t{number}", "a", "b", natural, first, second, *log_probs, 1.0)


def of_kind(flags: Iterable[Flag], kind: FlagKind) -> list[tuple[str, str]]:
    """Item, and what each detail quotes first: the word, the sentence, or another's sentence."""
    return [
        (f.item_id, f.detail.partition("“")[2].partition("”")[0]) for f in flags if f.kind is kind
    ]


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
    assert "not checked: 50% of the words" in flagged.explanations[FlagKind.NAME]


def test_rare_words_are_those_below_a_value_in_a_text_that_is_long_enough() -> None:
    """Zipf of a word counted 4 times among 2,000,005: log10(5 / 2.000008) + 3 = 3.40."""
    items = [pair(1, "The zebra sleeps", "The dog sleeps")]
    text = WordFrequencies({"the": 2_000_000, "zebra": 4, "dog": 1}, "corpus.txt")
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, text, rare=3.3)
    flagged = flag_items(items, settings)
    rare = [flag.detail for flag in flagged.flags if flag.kind is FlagKind.RARE]
    assert rare == ["“sleeps” is rare (Zipf 2.7).", "“dog” is rare (Zipf 3.0)."]
    assert "corpus.txt" in flagged.explanations[FlagKind.RARE]
    short = FlagSettings(ENGLISH.rules, frequencies=WordFrequencies({"the": 900_000}, "a"))
    flagged = flag_items(items, short)
    assert of_kind(flagged.flags, FlagKind.RARE) == []
    assert "Even the rarest word has a Zipf frequency of 3.0" in flagged.explanations[FlagKind.RARE]


def test_articles_may_repeat_but_not_in_a_row() -> None:
    items = [pair(1, "The dog sees the cat", "He went in in the rain")]
    repeated = [f.detail for f in flag_items(items, ENGLISH).flags if f.kind is FlagKind.REPEATED]
    assert repeated == ["“in” occurs twice in a row."]


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
        "A sentence that differs by one word is in p2: “The cat sleeps!”.",
        "A sentence that differs by one word is in p1: “The dog sleeps.”, and 1 more.",
        "The same sentence is in p2: “They all sing.”.",
    ]


@given(st.lists(st.tuples(*[st.text("ab", min_size=1, max_size=2)] * 3), min_size=2, max_size=8))
def test_similar_items_differ_by_at_most_a_word(words: list[tuple[str, ...]]) -> None:
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


TAGGED = FlagSettings(tags=english_tags())


@pytest.mark.parametrize(
    ("kind", "natural", "good", "bad"),
    [
        # One of two new words fits; of four, two; of six, three do not
        (
            FlagKind.SPEECH,
            "The old man sat on it.",
            "The old dog sat of it.",
            "The old of sat on it.",
        ),
        (
            FlagKind.SPEECH,
            "The old man slept on the big red chair.",
            "The old of slept very the small green chair.",
            "The old of slept very the small at table.",
        ),
        (FlagKind.SEQUENCE, "The dog has sat.", "The cat has met.", "The dog of sat."),
        (FlagKind.LENGTH, "We saw it.", "We saw a lot of birds.", "We saw a lot of horses."),
        (FlagKind.FREQUENCY, "People go.", "Men go.", "Gibbons go."),
    ],
)
def test_flags_compare_with_natural_ones(kind: FlagKind, natural: str, good: str, bad: str) -> None:
    """Witness: by hand; 12 characters more are not yet flagged, 13 are."""
    flags = flag_items([triplet(1, natural, good, bad)], TAGGED).flags
    assert [item_id for item_id, _ in of_kind(flags, kind)] == ["t1"]
    assert not of_kind(flag_items([triplet(1, natural, good, good)], TAGGED).flags, kind)
    # Neither is the natural sentence beside itself
    assert not of_kind(flag_items([triplet(1, natural, natural, natural)], TAGGED).flags, kind)


def test_tags_that_follow_one_another_20_times_more_seldom_than_by_chance_are_odd() -> None:
    """Witness: counted by hand. Of 500 pairs 100 begin with A, 125 end in B; 25 are due, 1 is."""
    counts = {("A", "B"): 1, ("A", "C"): 99, ("C", "B"): 124, ("C", "C"): 176, (START, "C"): 100}
    pairs = tuple(TagPair(*both, n) for both, n in counts.items())
    table = TagTable("x", tuple(TaggedWord(t.lower(), t, 9) for t in "ABC"), pairs, {"A": "noun"})
    assert {name for _, name in table.odd_sequences(Sentence.parse("c a b"))} == {"noun before B"}
    assert table.odd_sequences(Sentence.parse("c c b c a c")) == set()
    more = replace(pairs[0], count=2)
    assert not replace(table, pairs=(more, *pairs[1:])).odd_sequences(Sentence.parse("c a b"))


def test_without_a_table_that_lists_half_of_the_words_tags_are_not_looked_at() -> None:
    items = [triplet(1, "Der Hund schlief dort", "Der Hund schlief oft", "Der Hund schlief kaum")]
    for settings in (FlagSettings(), TAGGED):
        flagged = flag_items(items, settings)
        assert flagged.table is None
        for kind in (FlagKind.SPEECH, FlagKind.SEQUENCE, FlagKind.FREQUENCY):
            assert flagged.explanations[kind].startswith("Not checked")


def test_words_that_a_judge_finds_less_likely_than_natural_ones_worst_are_flagged() -> None:
    """Witness: of -1 and -3, the natural sentences' least, the quantile .05 is -2.9 by hand."""
    items = [
        triplet(1, "We saw dogs", "We saw cats", "We saw of"),
        triplet(2, "We met him", "We met her", "We met the"),
    ]
    worst = [-1.0, -2.8, -3.1, -3.0, -2.95, -3.05]
    every = [sentence for each in items for sentence in each.sentences]
    judged = {s: np.array([-0.5, -0.6, value]) for s, value in zip(every, worst, strict=True)}
    flagged = flag_items(items, FlagSettings(judged=judged))
    # That of triplet 2 is no worse than its own natural sentence's, but for -3.05
    assert of_kind(flagged.flags, FlagKind.UNLIKELY) == [("t1", "of"), ("t2", "the")]
    assert flag_items(items).explanations[FlagKind.UNLIKELY].startswith("Not checked")


def test_items_on_which_models_agree_are_flagged() -> None:
    """Witness: by hand, of a triplet (1 nat suffices), a pair and a trial."""
    apart = replace(
        triplet(1, "A b", "A c", "A d"),
        log_prob_synthetic_1_model_1=-3.0,
        log_prob_synthetic_2_model_2=-2.0,
    )
    near = replace(apart, triplet_id="t2", log_prob_synthetic_2_model_2=-1.9)
    same = replace(pair(3, "We ran", "They sat"), rank_1_model_2=0.1)
    stimuli: list[Pair | Triplet] = [apart, near, pair(4, "You came", "He left"), same]
    assert of_kind(flag_items(stimuli).flags, FlagKind.AGREEING) == [("t2", ""), ("p3", "")]
    shown = (Sentence.parse("We ran"), Sentence.parse("They sat"))
    kinds = (Kind.NATURAL, Kind.NATURAL)
    trials = [
        Trial(f"c{n}", 1, Condition.NATURAL_CONTROVERSIAL, "a", model, *shown, *kinds, "p")
        for n, model in enumerate("bc")
    ]
    scores = ScoreTable(shown, ("a", "b", "c"), np.array([[-1.0, -5, -2], [-2.0, -3, -4]]))
    flags = flag_items(trials, FlagSettings(scores=scores)).flags
    assert of_kind(flags, FlagKind.AGREEING) == [("c1", "")]
    assert of_kind(flag_items(trials).flags, FlagKind.AGREEING) == []
