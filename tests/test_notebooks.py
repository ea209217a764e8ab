"""What notebooks show of results."""

import re

import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet
from contstim.reporting.report import Paragraph, Report
from contstim.words.sentence import Sentence

A, B, C = (Sentence.parse(text) for text in ("We read books", "We eat books", "They read <it>"))


def test_a_triplet_is_three_rows_with_its_changed_words_marked_and_escaped() -> None:
    triplet = Triplet("t", "a", "b", A, B, C, -1, -2, -3, -4, -5, -6, 0)
    page = triplet._repr_html_()
    assert re.findall(r"<mark>(.*?)</mark>", page) == ["eat", "They", "&lt;it&gt;"]
    assert re.findall(r"<td>(-\d\.00)</td>", page) == [f"-{n}.00" for n in range(1, 7)]
    assert "a rejects" in page


def test_a_pair_is_two_rows_with_ranks_and_escaped() -> None:
    page = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.5, 0.75, 1.0)._repr_html_()
    assert re.findall(r"<td>([\d.]+)</td>", page) == ["0.25", "0.50", "0.75", "1.00"]
    assert "They read &lt;it&gt;" in page
    assert "rank under &lt;b&gt;" in page
    # <b> prefers the second sentence as well: neither is said to reject one
    assert "rejects" not in page
    disagree = Pair("p", "a", "<b>", A, C, 0, 1, 0.25, 0.75, 0.75, 0.25)._repr_html_()
    assert "a rejects" in disagree


def test_scores_are_shown_as_pandas_shows_their_table() -> None:
    scores = ScoreTable((A, B), ("m",), np.array([[-1.0], [-2.0]]))
    assert scores._repr_html_() == scores.to_frame()._repr_html_()


def test_figures_and_progress_are_seen_in_a_running_notebook() -> None:
    """Witness: a kernel of Jupyter, and the kinds of output that it sends to the page.

    Without widgets, which not every notebook has, and with them.
    """
    pytest.importorskip("ipywidgets")
    show_bars = "with contstim.ProgressBars() as bars:\n    bars.progress('scores', 1, 2)"
    cells = [
        "import contstim, sys, numpy as np\n"
        "from contstim.testing import ToyModel\n"
        "sentences = [contstim.Sentence.parse(t) for t in ('We read', 'They read books')]\n"
        "scores = contstim.score_sentences([ToyModel()], sentences)",
        f"sys.modules['ipywidgets'] = None\n{show_bars}",
        f"del sys.modules['ipywidgets']\n{show_bars}",
        "table = contstim.ScoreTable(scores.sentences, ('a', 'b'), np.tile(scores.log_probs, 2))\n"
        "first, *_ = contstim.plot.ranks(table)\n"
        "first.set_title('changed');",
    ]
    book = new_notebook(cells=[new_code_cell(cell) for cell in cells])  # type: ignore[no-untyped-call]
    NotebookClient(book, kernel_name="python3", timeout=120).execute()
    _, plain, bars, figure = (
        [kind for o in c.outputs for kind in o.get("data", ())] for c in book.cells
    )
    assert "application/vnd.jupyter.widget-view+json" not in plain
    assert "application/vnd.jupyter.widget-view+json" in bars
    assert "image/png" in figure


def test_a_report_is_its_own_page_in_a_frame() -> None:
    """Witness: the page, escaped once, so that nothing of it ends the attribute."""
    shown = Report('A "title"', [Paragraph("x < y")])._repr_html_()
    assert re.fullmatch(r'<iframe title="[^"]*" srcdoc="[^"]*" style="[^"]*"></iframe>', shown)
    assert "x &amp;lt; y" in shown
