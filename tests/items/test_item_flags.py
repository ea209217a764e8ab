"""Flags of stimuli: flagged and unflagged items; witnesses by hand."""

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
from contstim.words.tags import START, TaggedWord, TagTable
from contstim.words.vocabulary import REPEATABLE_ENGLISH
from contstim.words.word_rules import WordRules

RULES = replace(english_rules(names=True), blocked=frozenset({"blast"}))
ENGLISH = FlagSettings(RULES, REPEATABLE_ENGLISH)


def make_pair(number: int, first: str, second: str) -> Pair:
    sentence_1, sentence_2 = map(Sentence.parse, (first, second))
    return Pair(f"p{number}", "a", "b", sentence_1, sentence_2, 0, 1, 0.1, 0.9, 0.9, 0.1)


def make_triplet(number: int, *texts: str) -> Triplet:
    natural, first, second = map(Sentence.parse, texts)
    log_probs = (-1.0, -1.0, -1.0, -1.0, -1.0, -1.0)
    return Triplet(f"t{number}", "a", "b", natural, first, second, *log_probs, 1.0)


def flags_of_kind(flags: Iterable[Flag], kind: FlagKind) -> list[tuple[str, str]]:
    """Return the item and the first quotation of each flag of a kind."""
    return [
        (f.item_id, f.detail.partition("“")[2].partition("”")[0]) for f in flags if f.kind is kind
    ]


def test_words_are_flagged_once_per_item_and_for_one_reason() -> None:
    items = [
        make_pair(1, "We told Sarah, Sarah and (Sarah).", "Blast the ndez of 3 dogs."),
        make_pair(2, "The dog, he said, sleeps.", "Nothing is wrong here."),
        make_pair(3, "The dog sees the cat", "He went in in the rain"),
    ]
    flags = flag_items(items, ENGLISH).flags
    assert flags_of_kind(flags, FlagKind.BLOCKED) == [("p1", "Blast")]
    assert flags_of_kind(flags, FlagKind.DEBRIS) == [("p1", "ndez"), ("p1", "3")]
    assert flags_of_kind(flags, FlagKind.NAME) == [("p1", "Sarah")]
    assert flags_of_kind(flags, FlagKind.REPEATED) == [("p1", "sarah"), ("p3", "in")]
    assert [flag.item_id for flag in flags].count("p3") == 1
    assert {flag.item_id for flag in flags} == {"p1", "p3"}


def test_first_words_are_names_if_capitalised_inside_sentences() -> None:
    items = [make_pair(1, "Paris sleeps", "Dogs bark"), make_pair(2, "We saw Rome", "Rome waits")]
    assert flags_of_kind(flag_items(items, ENGLISH).flags, FlagKind.NAME) == [("p2", "Rome")]
    text = WordFrequencies({"Paris": 9, "dogs": 5, "Dogs": 2})
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, text)
    names = flags_of_kind(flag_items(items, settings).flags, FlagKind.NAME)
    assert names == [("p1", "Paris"), ("p2", "Rome")]


def test_names_are_not_flagged_if_nouns_are_capitalised() -> None:
    items = [make_pair(1, "Der Hund sieht die Katze", "Die Katze sieht den Hund")]
    result = flag_items(items, FlagSettings(WordRules()))
    assert flags_of_kind(result.flags, FlagKind.NAME) == []
    assert "not checked: 50% of the words" in result.explanations[FlagKind.NAME]


def test_rare_words_have_a_low_frequency_in_a_long_text() -> None:
    """Zipf of a word counted 4 times among 2,000,005: log10(5 / 2.000008) + 3 = 3.40."""
    items = [make_pair(1, "The zebra sleeps", "The dog sleeps")]
    text = WordFrequencies({"the": 2_000_000, "zebra": 4, "dog": 1}, "corpus.txt")
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, text, rare=3.3)
    result = flag_items(items, settings)
    details = [flag.detail for flag in result.flags if flag.kind is FlagKind.RARE]
    assert details == ["“sleeps” is rare (Zipf 2.7).", "“dog” is rare (Zipf 3.0)."]
    assert "corpus.txt" in result.explanations[FlagKind.RARE]
    short_text = WordFrequencies({"the": 900_000}, "a")
    result = flag_items(items, FlagSettings(ENGLISH.rules, frequencies=short_text))
    assert flags_of_kind(result.flags, FlagKind.RARE) == []
    assert "Even the rarest word has a Zipf frequency of 3.0" in result.explanations[FlagKind.RARE]


def test_frequent_new_words_count_once_per_triplet() -> None:
    texts = ("The garden number {} grows", "The zinc number {} grows", "The garden number {} ends")
    triplets = [make_triplet(n, *(text.format(n) for text in texts)) for n in range(4)]
    settings = FlagSettings(ENGLISH.rules, ENGLISH.repeatable, often=3)
    flags = flag_items(triplets, settings).flags
    assert flags_of_kind(flags, FlagKind.FREQUENT) == [
        (f"t{n}", word) for n in range(4) for word in ("zinc", "ends")
    ]
    assert flags_of_kind(flag_items(triplets[:3], settings).flags, FlagKind.FREQUENT) == []
    trials = [trial for triplet in triplets[:3] for trial in triplet_trials(triplet, twins=True)]
    assert flags_of_kind(flag_items(trials, settings).flags, FlagKind.FREQUENT) == []


def test_shuffled_sentences_are_not_checked() -> None:
    natural, shuffled = map(Sentence.parse, ("We saw the big dog", "dog We big the saw"))
    kinds = (Kind.NATURAL, Kind.SHUFFLED)
    catch = Trial("c", 1, Condition.CATCH, "", "", natural, shuffled, *kinds, "")
    assert flag_items([catch], ENGLISH).flags == ()


def test_similar_items_are_quoted() -> None:
    items = [
        make_pair(1, "The dog sleeps", "We run home"),
        make_pair(2, "The cat sleeps!", "They all sing"),
        make_pair(3, "Nobody came here", "They all sing"),
    ]
    similar = [flag for flag in flag_items(items).flags if flag.kind is FlagKind.SIMILAR]
    assert [flag.detail for flag in similar] == [
        "A sentence that differs by one word is in p2: “The cat sleeps!”.",
        "A sentence that differs by one word is in p1: “The dog sleeps.”, and 1 more.",
        "The same sentence is in p2: “They all sing.”.",
    ]


@given(st.lists(st.tuples(*[st.text("ab", min_size=1, max_size=2)] * 3), min_size=2, max_size=8))
def test_similar_items_differ_by_at_most_one_word(words: list[tuple[str, ...]]) -> None:
    """Witness: every pair of items, compared word by word."""
    items = [
        make_pair(n, " ".join(item_words), " ".join("x" * (4 + n)))
        for n, item_words in enumerate(words)
    ]
    similar = {f.item_id for f in flag_items(items).flags if f.kind is FlagKind.SIMILAR}
    assert similar == {
        f"p{n}"
        for n, words_1 in enumerate(words)
        for m, words_2 in enumerate(words)
        if n != m and sum(a != b for a, b in zip(words_1, words_2, strict=True)) <= 1
    }


def test_trials_of_the_same_triplet_are_not_similar() -> None:
    triplet_1, triplet_2 = (
        make_triplet(n, "The dog sleeps", f"The dog {verb}", f"A dog {verb}")
        for n, verb in enumerate(("runs", "eats"))
    )
    trial_flags = flag_items(triplet_trials(triplet_1, twins=True)).flags
    assert flags_of_kind(trial_flags, FlagKind.SIMILAR) == []
    flags = flags_of_kind(flag_items([triplet_1, triplet_2]).flags, FlagKind.SIMILAR)
    assert {item_id for item_id, _ in flags} == {"t0", "t1"}


TAGGED = FlagSettings(tags=english_tags())


@pytest.mark.parametrize(
    ("kind", "natural", "good", "bad"),
    [
        # One of two new words fits the tag, then two of four; three of six do not
        (FlagKind.SPEECH, "The man sat on it.", "The dog sat of it.", "The of sat on it."),
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
def test_flags_compare_with_the_natural_sentence(
    kind: FlagKind, natural: str, good: str, bad: str
) -> None:
    """Witness: by hand; 12 more characters are not flagged, 13 are."""
    # The natural sentence itself is not flagged
    synthetic = ((good, bad), (good, good), (natural, natural))
    items = [make_triplet(n, natural, *sentences) for n, sentences in enumerate(synthetic)]
    flags = [flags_of_kind(flag_items([item], TAGGED).flags, kind) for item in items]
    assert [[item_id for item_id, _ in item_flags] for item_flags in flags] == [["t0"], [], []]


def test_tag_pairs_20_times_rarer_than_by_chance_are_flagged() -> None:
    """Witness: counted by hand.

    Of 500 pairs 100 begin with A and 125 end in B: 25 are expected, 1 is observed.
    """
    pairs = {("A", "B"): 1, ("A", "C"): 99, ("C", "B"): 124, ("C", "C"): 176, (START, "C"): 100}
    table = TagTable("x", tuple(TaggedWord(t.lower(), t, 9) for t in "ABC"), pairs, {"A": "noun"})
    assert {name for _, name in table.odd_sequences(Sentence.parse("c a b"))} == {"noun before B"}
    assert table.odd_sequences(Sentence.parse("c c b c a c")) == set()
    assert not replace(table, pairs=pairs | {("A", "B"): 2}).odd_sequences(Sentence.parse("c a b"))


def test_tags_are_not_checked_if_the_table_lacks_most_words() -> None:
    texts = ("Der Hund schlief dort", "Der Hund schlief oft", "Der Hund schlief kaum")
    for settings in (FlagSettings(), TAGGED):
        result = flag_items([make_triplet(1, *texts)], settings)
        assert result.table is None
        for kind in (FlagKind.SPEECH, FlagKind.SEQUENCE, FlagKind.FREQUENCY):
            assert result.explanations[kind].startswith("Not checked")


def test_words_less_likely_than_in_natural_sentences_are_flagged() -> None:
    """Witness: by hand, the quantile 0.05 of the natural minima -1 and -3 is -2.9."""
    items = [
        make_triplet(1, "We saw dogs", "We saw cats", "We saw of"),
        make_triplet(2, "We met him", "We met her", "We met the"),
    ]
    minima = [-1.0, -2.8, -3.1, -3.0, -2.95, -3.05]
    sentences = [sentence for item in items for sentence in item.sentences]
    log_probs = [np.array([-0.5, -0.6, value]) for value in minima]
    judged = dict(zip(sentences, log_probs, strict=True))
    result = flag_items(items, FlagSettings(judged=judged))
    # In triplet 2, only -3.05 is below the minimum of the natural sentence
    assert flags_of_kind(result.flags, FlagKind.UNLIKELY) == [("t1", "of"), ("t2", "the")]
    assert flag_items(items).explanations[FlagKind.UNLIKELY].startswith("Not checked")


def test_items_on_which_models_agree_are_flagged() -> None:
    """Witness: by hand, for a triplet (1 nat suffices), a pair and a trial."""
    disagreeing = replace(
        make_triplet(1, "A b", "A c", "A d"),
        log_prob_synthetic_1_model_1=-3.0,
        log_prob_synthetic_2_model_2=-2.0,
    )
    agreeing = replace(disagreeing, triplet_id="t2", log_prob_synthetic_2_model_2=-1.9)
    agreeing_pair = replace(make_pair(3, "We ran", "They sat"), rank_1_model_2=0.1)
    pair = make_pair(4, "You came", "He left")
    stimuli: list[Pair | Triplet] = [disagreeing, agreeing, pair, agreeing_pair]
    assert flags_of_kind(flag_items(stimuli).flags, FlagKind.AGREEING) == [("t2", ""), ("p3", "")]
    in_sds = replace(agreeing, sd_1=100.0, sd_2=1.0, unit_1="a", unit_2="b")
    (flag,) = (f for f in flag_items([in_sds]).flags if f.kind is FlagKind.AGREEING)
    assert f"{min(in_sds.drops):.2f} standard deviations" in flag.detail
    sentences = (Sentence.parse("We ran"), Sentence.parse("They sat"))
    kinds = (Kind.NATURAL, Kind.NATURAL)
    trials = [
        Trial(f"c{n}", 1, Condition.NATURAL_CONTROVERSIAL, "a", model, *sentences, *kinds, "p")
        for n, model in enumerate("bc")
    ]
    scores = ScoreTable(sentences, ("a", "b", "c"), np.array([[-1.0, -5, -2], [-2.0, -3, -4]]))
    flags = flag_items(trials, FlagSettings(scores=scores)).flags
    assert flags_of_kind(flags, FlagKind.AGREEING) == [("c1", "")]
    assert flags_of_kind(flag_items(trials).flags, FlagKind.AGREEING) == []
