from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from contstim.reporting.stimuli_page import mark_changes, write_report
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


def test_changed_words_are_marked_and_everything_is_escaped() -> None:
    """Witness: by hand."""
    natural, changed, asked = map(Sentence.parse, ("The dog sat.", "The <b> sat.", "The dog sat?"))
    assert mark_changes(changed, natural) == "The <mark>&lt;b&gt;</mark> sat."
    assert mark_changes(asked, natural) == "The dog sat?"


def test_each_model_has_the_sentence_it_prefers_to_its_rejected_one_in_bold(
    tmp_path: Path,
) -> None:
    """Witness: by hand. <a> rejects synthetic_1 (-15), b rejects synthetic_2 (-30)."""
    path = tmp_path / "report.html"
    write_report(path, title="A & B", triplets=[TRIPLET], pairs=[PAIR], scores=SCORES)
    page = path.read_text(encoding="utf-8")
    bold = re.findall(r'class="number preferred">(-[\d.]+)<', page)
    assert bold == ["-10.00", "-20.00", "-19.00", "-9.00", "-3.00", "-4.00"]
    assert "<h1>A &amp; B</h1>" in page
    assert "<a>" not in page
    assert "http" not in page


def test_the_map_shows_how_often_two_models_agree(tmp_path: Path) -> None:
    """Witness: by hand. Of the three pairs of rows, a and b order two alike; c ties them all."""
    scores = ScoreTable(
        tuple(map(Sentence.parse, ("One.", "Two.", "Three."))),
        ("a", "b", "c"),
        np.array([[-1.0, -1.0, -5.0], [-2.0, -3.0, -5.0], [-3.0, -2.0, -5.0]]),
    )
    path = tmp_path / "report.html"
    write_report(path, title="t", triplets=[], pairs=[], scores=scores)
    cells = re.findall(r"color: #\w+\">(\d+)<", path.read_text(encoding="utf-8"))
    assert cells == ["67", "50", "67", "50", "50", "50"]
