"""The content of review pages, without a browser, against values by hand."""

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


def render_page(stimuli: list[Any], **options: Any) -> str:
    return ReviewPage(stimuli, **options).html()


def build_item(stimulus: Any, **options: Any) -> dict[str, Any]:
    (content,) = ReviewPage([stimulus], title="x", **options).facts["items"]
    return dict(content)


def test_texts_are_never_markup() -> None:
    pair = replace(PAIR, trial_id=EVIL, model_1=EVIL, sentence_1=Sentence.parse(EVIL))
    page = render_page([pair], title=EVIL)
    assert read_html(page)[1] == read_html(render_page([PAIR], title="x"))[1]
    (data,) = re.findall('<[^>]* id="data"[^>]*>(.*?)</', page, re.DOTALL)
    (item,) = json.loads(data)["items"]
    assert item["sentences"][0] == Sentence.parse(EVIL).text
    assert item["id"] == EVIL


def test_page_has_no_addresses_and_forbids_connections() -> None:
    html = render_page([PAIR])
    assert not re.search(r"https?://|@import|url\(", html)
    policy = re.search(r'Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src &#39;none&#39;" in policy[1]


def test_triplets_have_log_probabilities_and_marked_changes() -> None:
    content = build_item(TRIPLET)
    assert content["log_probs"] == [["−10.00", "−20.00"], ["−15.00", "−19.00"], ["−9.00", "−inf"]]
    # more likely than the sentence that the model should reject: synthetic_1 and synthetic_2
    assert content["preferred"] == [[True, True], [False, True], [True, False]]
    assert list(content["changed"]) == [{}, {1: ""}, {0: "", 2: ""}]
    assert content["labels"] == [["natural", ""], ["synthetic", "hf:x/y"], ["synthetic", "b"]]
    assert content["controversiality"] == 15.0


def test_pairs_have_a_column_for_each_model_targeted_first() -> None:
    page = ReviewPage([PAIR], title="x", scores=SCORES)
    (content,) = page.facts["items"]
    assert [page.facts["models"][index] for index in content["columns"]] == ["a", "b", "c"]
    assert content["log_probs"] == [["−8.00", "−5.00", "−1.00"], ["−7.00", "−4.00", "−3.00"]]
    assert content["preferred"] == [[False, False, True], [True, True, False]]
    assert build_item(PAIR)["columns"] == []
    with pytest.raises(ScoreError, match=r"The scores lack 1 of 2 sentences: 'The end\.'"):
        build_item(replace(PAIR, sentence_2=Sentence.parse("The end")), scores=SCORES)


@pytest.mark.parametrize(("number", "rejects"), [(0, ["", "hf:x/y"]), (1, ["", "b"])])
def test_natural_synthetic_trials_name_rejecting_models(number: int, rejects: list[str]) -> None:
    trial = triplet_trials(TRIPLET, twins=True)[number]
    assert trial.condition is Condition.NATURAL_SYNTHETIC
    assert [model for _, model in build_item(trial)["labels"]] == rejects


def build_natural_trial(model_1: str, model_2: str) -> Trial:
    return Trial(
        *("t", 1, Condition.NATURAL_CONTROVERSIAL, model_1, model_2, NATURAL, SECOND),
        *(Kind.NATURAL, Kind.NATURAL, "p"),
    )


def test_natural_pairs_name_known_rejecting_models() -> None:
    """PAIR's ranks disagree. By SCORES, a and b prefer SECOND, c prefers NATURAL."""
    agreeing = replace(PAIR, rank_1_model_2=0.1)
    assert [model for _, model in build_item(PAIR)["labels"]] == ["a", "b"]
    assert [model for _, model in build_item(agreeing)["labels"]] == ["", ""]
    for model_2, rejects in (("b", ["", ""]), ("c", ["a", "c"])):
        trial = build_natural_trial("a", model_2)
        assert [model for _, model in build_item(trial, scores=SCORES)["labels"]] == rejects
        assert [model for _, model in build_item(trial)["labels"]] == ["", ""]


def test_controversiality_is_the_difference_of_preferences() -> None:
    """Models a and c prefer SECOND by 1 and -2 nats, which differ by 3 nats."""
    trial = build_natural_trial("a", "c")
    assert build_item(trial, scores=SCORES)["controversiality"] == 3
    assert build_item(trial)["controversiality"] is None


def test_fingerprint_depends_on_sentences_not_on_order() -> None:
    def fingerprint(*pairs: Pair) -> str:
        return ReviewPage(pairs, title="x").fingerprint

    second = replace(PAIR, trial_id="p-2")
    assert fingerprint(PAIR, second) == fingerprint(second, PAIR)
    changed = replace(second, sentence_2=Sentence.parse("A dog ran!"))
    assert len({fingerprint(PAIR), fingerprint(PAIR, second), fingerprint(PAIR, changed)}) == 3


def test_errors_for_unusable_items() -> None:
    with pytest.raises(InputError, match="no items to review"):
        render_page([])
    with pytest.raises(InputError, match="one table per page"):
        render_page([PAIR, TRIPLET])
    with pytest.raises(InputError, match="p-1 has no texts"):
        render_page([replace(PAIR, sentence_1=None, sentence_2=None)])
