"""A page of stimuli, against what is read from it by hand."""

from __future__ import annotations

import re

import numpy as np

from contstim.reporting.heat_map import agreement_map
from contstim.reporting.report import changed
from contstim.reporting.stimuli_page import mark_changes, stimuli_report
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Pair, Triplet

TRIPLET = Triplet(
    *("t-1", "<a>", "b"),
    Sentence.parse("The dog sat."),
    Sentence.parse("The <b> sat."),
    Sentence.parse("A dog ran."),
    *(-10.0, -20.0, -15.0, -19.0, -9.0, -30.0, 15.0),
)
FIRST, SECOND = map(Sentence.parse, ("Natural one.", "Natural two."))
PAIR = Pair("p-1", "<a>", "b", FIRST, SECOND, 0, 1, 0.1, 0.9, 0.8, 0.2)
SCORES = ScoreTable((FIRST, SECOND), ("<a>", "b"), np.array([[-8.0, -3.0], [-4.0, -7.0]]))


def test_changed_words_are_marked() -> None:
    """Witness: by hand."""
    sat = ("The", " ", changed("<b>"), " ", "sat", ".")
    natural, other, asked = map(Sentence.parse, ("The dog sat.", "The <b> sat.", "The dog sat?"))
    assert mark_changes(other, natural) == sat
    assert "".join(map(str, mark_changes(asked, natural))) == "The dog sat?"


def test_each_model_has_the_sentence_it_prefers_to_its_rejected_one_in_bold() -> None:
    """Witness: by hand. <a> rejects synthetic_1 (-15), b rejects synthetic_2 (-30)."""
    page = stimuli_report("A & B", triplets=[TRIPLET], pairs=[PAIR], scores=SCORES).html()
    bold = re.findall(r'class="number"><strong>(-[\d.]+)<', page)
    assert bold == ["-10.00", "-20.00", "-19.00", "-9.00", "-3.00", "-4.00"]
    assert "The <mark>&lt;b&gt;</mark> sat." in page
    assert "<h1>A &amp; B</h1>" in page
    assert "<a>" not in page
    assert "http" not in page


def test_the_map_shows_how_often_two_models_agree() -> None:
    """Witness: by hand. Of the three pairs of rows, a and b order two alike; c ties them all."""
    scores = ScoreTable(
        tuple(map(Sentence.parse, ("One.", "Two.", "Three."))),
        ("a", "b", "c"),
        np.array([[-1.0, -1.0, -5.0], [-2.0, -3.0, -5.0], [-3.0, -2.0, -5.0]]),
    )
    cells = [text.get_text() for text in agreement_map(scores).axes[0].texts]
    assert cells == ["67", "50", "67", "50", "50", "50"]
