"""The page of stimuli, against values by hand."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.quiver import Quiver

from contstim.errors import InputError
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Pair, Triplet
from contstim.reporting.canvas import agreement_map
from contstim.reporting.report import Picture, changed
from contstim.reporting.stimuli_page import arrows_figure, mark_changes, stimuli_report
from contstim.steps.review import flags_of
from contstim.words.sentence import Sentence

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
    expected = ("The", " ", changed("<b>", title="dog → <b>"), " ", "sat", ".")
    assert mark_changes(Sentence.parse("The <b> sat."), {1: "dog → <b>"}) == expected
    assert "".join(map(str, mark_changes(Sentence.parse("The dog sat?"), {}))) == "The dog sat?"


def test_changed_words_show_both_parts_of_speech() -> None:
    """Witness: by hand.

    The page also shows the share of flagged triplets and statistics of the set.
    """
    triplet = replace(TRIPLET, synthetic_2=Sentence.parse("The dogs sat."))
    html = stimuli_report("x", [triplet], flagged=flags_of([triplet])).html()
    tag = '<mark title="dog (noun, singular) → dogs (noun, plural)">dogs</mark>'
    assert tag in html
    assert "point at a word to see its old and new part of speech" in html
    assert "point at a word" not in stimuli_report("x", [triplet]).html()
    assert "1 of 1 item (100%) have flags" in html
    # The smaller drop is 5 nats: log p of "The dog sat." minus "The <b> sat." under <a>
    assert re.search(r"smaller drop in log-probability, nats</td><td[^>]*>5.00<", html)
    assert "of these, with another part of speech" in html


def test_preferred_sentences_have_bold_log_probabilities() -> None:
    """Witness: by hand. <a> rejects synthetic_1 (-15), b rejects synthetic_2 (-30)."""
    page = stimuli_report("A & B", [TRIPLET, PAIR], scores=SCORES).html()
    bold = re.findall(r'class="number"><strong>(-[\d.]+)<', page)
    assert bold == ["-10.00", "-20.00", "-19.00", "-9.00", "-3.00", "-4.00"]
    assert "The <mark>&lt;b&gt;</mark> sat." in page
    assert "<h1>A &amp; B</h1>" in page
    assert "<a>" not in page
    assert "http" not in page


def test_pairs_without_scores_show_ranks_and_no_map() -> None:
    page = stimuli_report("x", [PAIR])
    assert not any(isinstance(part, Picture) for part in page.parts)
    bold = re.findall(r'class="number"><strong>([\d.]+)<', page.html())
    assert bold == ["0.90", "0.80"]
    with pytest.raises(InputError, match="p-1 has no texts"):
        stimuli_report("x", [replace(PAIR, sentence_1=None, sentence_2=None)])
    with pytest.raises(InputError, match="no items to show"):
        stimuli_report("x", [])


def test_map_shows_how_often_two_models_agree() -> None:
    """Witness: by hand. Models a and b order two of three row pairs equally; c always ties."""
    scores = ScoreTable(
        tuple(map(Sentence.parse, ("One.", "Two.", "Three."))),
        ("a", "b", "c"),
        np.array([[-1.0, -1.0, -5.0], [-2.0, -3.0, -5.0], [-3.0, -2.0, -5.0]]),
    )
    cells = [text.get_text() for text in agreement_map(scores).axes[0].texts]
    assert cells == ["67", "50", "67", "50", "50", "50"]


def test_arrows_lead_from_natural_to_synthetic_sentences() -> None:
    """Witness: the log-probabilities of the triplet and of the other sentences."""
    (axes,) = arrows_figure([TRIPLET], SCORES).axes
    first, second = (a for a in axes.collections if isinstance(a, Quiver))
    arrow: Any
    for arrow, change in ((first, (-5.0, 1.0)), (second, (1.0, -10.0))):
        assert arrow.XY.tolist() == [[-10.0, -20.0]]
        assert (arrow.U.item(), arrow.V.item()) == change
    assert [np.asarray(line.get_xydata()).tolist() for line in axes.lines] == [
        SCORES.log_probs.tolist(),
        [[-10.0, -20.0]],
    ]
    labels = axes.get_xlabel(), axes.get_ylabel()
    assert labels == ("log p under <a> (nats)", "log p under b (nats)")
    other_triplets = [replace(TRIPLET, model_2=f"m{n}") for n in range(8)]
    assert len([axes for axes in arrows_figure(other_triplets).axes if axes.axison]) == 6
    page = stimuli_report("x", other_triplets)
    assert [part.name for part in page.parts if isinstance(part, Picture)] == ["log-probabilities"]
