"""What notebooks show of results."""

from __future__ import annotations

import re

import numpy as np

from contstim.reporting.report import Paragraph, Report
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Triplet

A, B, C = (Sentence.parse(text) for text in ("We read books", "We eat books", "They read <it>"))


def test_a_triplet_is_three_rows_with_its_changed_words_marked_and_escaped() -> None:
    triplet = Triplet("t", "a", "b", A, B, C, -1, -2, -3, -4, -5, -6, 0)
    page = triplet._repr_html_()
    assert re.findall(r"<mark>(.*?)</mark>", page) == ["eat", "They", "&lt;it&gt;"]
    assert re.findall(r"<td>(-\d\.00)</td>", page) == [f"-{n}.00" for n in range(1, 7)]
    assert "a rejects" in page


def test_sentences_of_other_lengths_have_no_marks() -> None:
    longer = Sentence.parse("We read many books")
    triplet = Triplet("t", "a", "b", A, longer, A, -1, -2, -3, -4, -5, -6, 0)
    assert "<mark>" not in triplet._repr_html_()


def test_scores_are_shown_as_pandas_shows_their_table() -> None:
    scores = ScoreTable((A, B), ("m",), np.array([[-1.0], [-2.0]]))
    assert scores._repr_html_() == scores.to_frame()._repr_html_()


def test_a_report_is_its_own_page_in_a_frame() -> None:
    """Witness: the page, escaped once, so that nothing of it ends the attribute."""
    shown = Report('A "title"', [Paragraph("x < y")])._repr_html_()
    assert re.fullmatch(r'<iframe title="[^"]*" srcdoc="[^"]*" style="[^"]*"></iframe>', shown)
    assert "x &amp;lt; y" in shown
