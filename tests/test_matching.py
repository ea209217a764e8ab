"""A synthetic sentence beside its natural one, against figures worked out by hand."""

from math import isclose, log10

import pytest

from contstim.english.tags import english_tags
from contstim.matching import match
from contstim.sentence import Sentence
from contstim.tags import TaggedWord, TagTable

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
        ("Dogs chase old runs.", {3}, set()),  # a noun in 1 of 20, just enough
        ("Dogs chase old walks.", {3}, {3}),  # a noun in 1 of 21, too few
        ("See chase walks cats.", {0, 2}, {0, 2}),
        ("Dogs xyzzy old cats.", {1}, set()),  # no word of the table
    ],
)
def test_misfits_are_new_words_that_hardly_ever_have_the_tag(
    synthetic: str, changed: set[int], misfits: set[int]
) -> None:
    """Witness: positions and shares counted by hand in a table of eight words."""
    found = match(NATURAL, Sentence.parse(synthetic), TABLE)
    assert ({*found.changed}, {*found.misfits}) == (changed, misfits)


def test_length_and_frequency_are_the_differences_from_the_natural_sentence() -> None:
    """Witness: one word of four replaced, the formula of the Zipf scale written out."""
    found = match(NATURAL, Sentence.parse("Dogs see old cats."), TABLE)
    assert found.characters == len("see") - len("chase")
    assert isclose(found.zipf, (log10(3 + 1) - log10(5 + 1)) / 4)


def test_english_words_of_another_part_of_speech_are_misfits() -> None:
    natural = Sentence.parse("The old man slept on the chair.")
    found = match(natural, Sentence.parse("The old dog slept of the chair."), english_tags())
    assert ({*found.changed}, {*found.misfits}) == ({2, 4}, {4})
