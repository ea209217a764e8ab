"""What stands in the page of a review, without a browser; witnesses by hand."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError, ScoreError
from contstim.experiments.design.building import triplet_trials
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import Condition, Kind, Pair, Trial, Triplet
from contstim.reporting.review import ReviewPage
from contstim.testing.platform import read_html
from contstim.words.sentence import Sentence

EVIL = "</script><script>alert(1)</script> <b>bold</b> <!-- &amp; --> \u2028 end"
NATURAL, FIRST, SECOND = map(Sentence.parse, ("The dog sat.", "The <b> sat.", "A dog ran."))
TRIPLET = Triplet(
    *("t-1", "hf:x/y", "b", NATURAL, FIRST, SECOND),
    *(-10.0, -20.0, -15.0, -19.0, -9.0, -math.inf, 15.0),
)
PAIR = Pair("p-1", "a", "b", NATURAL, SECOND, 0, 1, 0.1, 0.9, 0.8, 0.2)
SCORES = ScoreTable(
    (NATURAL, FIRST, SECOND),
    ("c", "b", "a"),
    np.array([[-1.0, -5, -8], [-2, -6, -7], [-3, -4, -7]]),
)


def page_of(stimuli: list[Any], **more: Any) -> str:
    return ReviewPage(stimuli, **more).html()


def item(stimulus: Any, **more: Any) -> dict[str, Any]:
    (content,) = ReviewPage([stimulus], title="x", **more).facts["items"]
    return dict(content)


def test_no_text_is_taken_for_markup() -> None:
    pair = replace(PAIR, trial_id=EVIL, model_1=EVIL, sentence_1=Sentence.parse(EVIL))
    page = page_of([pair], title=EVIL)
    assert read_html(page)[1] == read_html(page_of([PAIR], title="x"))[1]
    (data,) = re.findall('<[^>]* id="data"[^>]*>(.*?)</', page, re.DOTALL)
    (read,) = json.loads(data)["items"]
    assert read["sentences"][0] == Sentence.parse(EVIL).text
    assert read["id"] == EVIL


def test_the_page_names_no_address_and_forbids_every_one() -> None:
    html = page_of([PAIR])
    assert not re.search(r"https?://|@import|url\(", html)
    policy = re.search(r'Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src &#39;none&#39;" in policy[1]


def test_triplets_hold_the_numbers_of_their_models_and_mark_what_changed() -> None:
    content = item(TRIPLET)
    assert content["log_probs"] == [["−10.00", "−20.00"], ["−15.00", "−19.00"], ["−9.00", "−inf"]]
    # likelier than the sentence that each is to reject: synthetic_1 and synthetic_2
    assert content["preferred"] == [[True, True], [False, True], [True, False]]
    assert list(content["changed"]) == [{}, {1: ""}, {0: "", 2: ""}]
    assert content["labels"] == [["natural", ""], ["synthetic", "hf:x/y"], ["synthetic", "b"]]
    assert content["controversiality"] == 15.0


def test_pairs_have_a_column_for_each_scored_model_their_own_first() -> None:
    page = ReviewPage([PAIR], title="x", scores=SCORES)
    (content,) = page.facts["items"]
    assert [page.facts["models"][place] for place in content["columns"]] == ["a", "b", "c"]
    assert content["log_probs"] == [["−8.00", "−5.00", "−1.00"], ["−7.00", "−4.00", "−3.00"]]
    assert content["preferred"] == [[False, False, True], [True, True, False]]
    assert item(PAIR)["columns"] == []
    with pytest.raises(ScoreError, match=r"The scores lack 1 of 2 sentences: 'The end\.'"):
        item(replace(PAIR, sentence_2=Sentence.parse("The end")), scores=SCORES)


@pytest.mark.parametrize(("number", "rejects"), [(0, ["", "hf:x/y"]), (1, ["", "b"])])
def test_natural_synthetic_trials_name_rejecting_models(number: int, rejects: list[str]) -> None:
    trial = triplet_trials(TRIPLET, twins=True)[number]
    assert trial.condition is Condition.NATURAL_SYNTHETIC
    assert [model for _, model in item(trial)["labels"]] == rejects


def natural_trial(model_1: str, model_2: str) -> Trial:
    return Trial(
        *("t", 1, Condition.NATURAL_CONTROVERSIAL, model_1, model_2, NATURAL, SECOND),
        *(Kind.NATURAL, Kind.NATURAL, "p"),
    )


def test_a_natural_pair_names_models_that_reject_where_they_are_known_to() -> None:
    """PAIR's ranks disagree; of the scores a and b prefer SECOND both, c prefers NATURAL."""
    agreeing = replace(PAIR, rank_1_model_2=0.1)
    assert [model for _, model in item(PAIR)["labels"]] == ["a", "b"]
    assert [model for _, model in item(agreeing)["labels"]] == ["", ""]
    for other, rejects in (("b", ["", ""]), ("c", ["a", "c"])):
        trial = natural_trial("a", other)
        assert [model for _, model in item(trial, scores=SCORES)["labels"]] == rejects
        assert [model for _, model in item(trial)["labels"]] == ["", ""]


def test_trials_are_as_controversial_as_preferences_lie_apart() -> None:
    """a: -7 - -8 = 1; b: -4 - -5 = 1; so of a and c, whose difference is -2, 3 nats."""
    trial = natural_trial("a", "c")
    assert item(trial, scores=SCORES)["controversiality"] == 3
    assert item(trial)["controversiality"] is None


def test_the_fingerprint_is_that_of_the_sentences_whatever_their_order() -> None:
    def fingerprint(*pairs: Pair) -> str:
        return ReviewPage(pairs, title="x").fingerprint

    other = replace(PAIR, trial_id="p-2")
    assert fingerprint(PAIR, other) == fingerprint(other, PAIR)
    changed = replace(other, sentence_2=Sentence.parse("A dog ran!"))
    assert len({fingerprint(PAIR), fingerprint(PAIR, other), fingerprint(PAIR, changed)}) == 3


def test_nothing_several_kinds_and_pairs_without_texts_are_refused() -> None:
    with pytest.raises(InputError, match="no items to review"):
        page_of([])
    with pytest.raises(InputError, match="one table per page"):
        page_of([PAIR, TRIPLET])
    with pytest.raises(InputError, match="p-1 has no texts"):
        page_of([replace(PAIR, sentence_1=None, sentence_2=None)])
