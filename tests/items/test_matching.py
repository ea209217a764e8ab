"""A synthetic sentence compared with its natural one, against figures by hand."""

from dataclasses import replace
from math import isclose, log10

import pytest

from contstim.english.words import english_tags
from contstim.items.item_flags import Flag, FlaggedItems, FlagKind
from contstim.items.matching import changes_of, figures_of, match
from contstim.items.stimuli import Triplet
from contstim.words.sentence import Sentence
from contstim.words.tags import TaggedWord, TagTable

NATURAL = Sentence.parse("Dogs chase old cats.")
COUNTS = [
    *(("dogs", "NN2", 6), ("chase", "VVB", 5), ("old", "AJ0", 9), ("cats", "NN2", 4)),
    *(("see", "VVB", 3), ("runs", "NN2", 1), ("runs", "VVZ", 19), ("walks", "VVZ", 20)),
    ("walks", "NN2", 1),
]
TABLE = TagTable("by hand", tuple(TaggedWord(*row) for row in COUNTS))


@pytest.mark.parametrize(
    ("synthetic", "changed", "misfits"),
    [
        ("Dogs chase old cats.", set(), set()),
        ("Dogs see old cats.", {1}, set()),
        ("Dogs chase old runs.", {3}, set()),  # a noun in 1 of 20: enough
        ("Dogs chase old walks.", {3}, {3}),  # a noun in 1 of 21: too few
        ("See chase walks cats.", {0, 2}, {0, 2}),
        ("Dogs xyzzy old cats.", {1}, {1}),  # not in the table
    ],
)
def test_misfits_rarely_have_the_tag(synthetic: str, changed: set[int], misfits: set[int]) -> None:
    """Witness: positions and shares counted by hand in a table of eight words."""
    result = match(NATURAL, Sentence.parse(synthetic), TABLE)
    assert ({*result.changed}, {*result.misfits}) == (changed, misfits)


def test_length_and_frequency_are_differences() -> None:
    """Witness: one of four words replaced, and the formula of the Zipf scale."""
    result = match(NATURAL, Sentence.parse("Dogs see old cats."), TABLE)
    assert result.characters == len("see") - len("chase")
    assert isclose(result.zipf, (log10(3 + 1) - log10(5 + 1)) / 4)


def test_english_words_of_another_part_of_speech_are_misfits() -> None:
    natural = Sentence.parse("The old man slept on the chair.")
    result = match(natural, Sentence.parse("The old dog slept of the chair."), english_tags())
    assert ({*result.changed}, {*result.misfits}) == ({2, 4}, {4})


def test_figures_of_triplets_are_means_and_shares() -> None:
    """Witness: two triplets, by hand; two of four synthetic sentences have a misfit."""
    see, walks = map(Sentence.parse, ("Dogs see old cats.", "Dogs chase old walks."))
    nats = (-10.0, -20.0, -16.0, -20.0, -10.0, -24.0, 10.0)
    triplet_1 = Triplet("t1", "a", "b", NATURAL, see, walks, *nats)
    triplet_2 = replace(
        triplet_1, triplet_id="t2", log_prob_synthetic_2_model_2=-28.0, controversiality=14.0
    )
    flagged_items = FlaggedItems((Flag("t2", FlagKind.NAME, ""),), {}, 2, TABLE)
    figures = figures_of([triplet_1, triplet_2], flagged_items.share, flagged_items.table, 4.5)
    assert list(figures.values())[:6] == [5.0, 12.0, 0.5, 0.5, 1.0, 0.5]
    assert "share with both drops of at least 4.5 nats" in figures
    # "see" for "chase", 2 characters fewer, and "walks" for "cats", 1 more
    assert figures["difference in characters, synthetic - natural"] == -0.5
    figures_without_table = figures_of([triplet_1], flagged_items.share, None)
    drops = ["smaller drop in log-probability, nats", "sum of both drops, nats"]
    assert list(figures_without_table)[:2] == drops
    assert len(figures_without_table) == 4


def test_changes_list_old_and_new_words_with_their_tags() -> None:
    """Witness: by hand; a word that is not in the table has no tag."""
    table = replace(TABLE, names={"NN2": "noun, plural"})
    see, unknown = map(Sentence.parse, ("Dogs see old cats.", "Dogs chase old xyzzy."))
    triplet = Triplet("t", "a", "b", NATURAL, see, unknown, *[0.0] * 7)
    assert changes_of([triplet], table) == {
        "t": ({}, {1: "chase (VVB) → see (VVB)"}, {3: "cats (noun, plural) → xyzzy (unknown)"})
    }
    assert changes_of([triplet], None) == {"t": ({}, {1: ""}, {3: ""})}
