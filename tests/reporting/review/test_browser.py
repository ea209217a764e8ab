"""The review page in a real browser (Chromium), opened from disk and without a network."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contstim.experiments.design.building import triplet_trials
from contstim.items import reviews
from contstim.items.item_flags import flag_items
from contstim.items.stimuli import Condition, Trial, Triplet
from contstim.reporting.review import ReviewPage
from contstim.words.sentence import Sentence
from tests.experiments.stimuli import new_trial

Visit = Callable[..., Any]
Open = Callable[..., Any]
EVIL = "</script> We <b>saw</b> <img/src=x/onerror=alert(1)> &amp; “it”"


def build_triplets(n: int) -> list[Triplet]:
    """Build triplets of words in random order, which need no grammar during collection."""
    rng = random.Random(2)
    words = "the old woman will read a long book before breakfast with two good friends".split()
    texts = [Sentence(tuple(rng.sample(words, 8))) for _ in range(3 * n)]
    models = (("kenlm:2.arpa", "GPT-2"), ("RNN", "LSTM"))
    log_probs = (-20.5, -20, -40, -19, -19, -40)
    return [
        Triplet(f"t{i}", *models[i % 2], natural, first, second, *log_probs, i)
        for i, (natural, first, second) in enumerate(
            zip(texts[::3], texts[1::3], texts[2::3], strict=True)
        )
    ]


TRIPLETS = build_triplets(6)
TRIPLETS[2] = replace(TRIPLETS[2], natural=Sentence.parse(EVIL))


@pytest.fixture(scope="module")
def window(chromium: Any) -> Iterator[tuple[Any, list[str]]]:
    """Share one window, because opening it takes long, and collect its errors."""
    problems: list[str] = []
    context = chromium.new_context(offline=True, accept_downloads=True)
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    yield page, problems
    context.close()


@pytest.fixture
def open_page(tmp_path: Path, window: tuple[Any, list[str]]) -> Iterator[Open]:
    """Open a page of stimuli from disk; errors and network requests fail the test."""
    shared_page, problems = window

    def write(stimuli: Any = TRIPLETS, *, page: Any = None, **options: Any) -> Any:
        path = tmp_path / "review.html"
        path.write_text(ReviewPage(stimuli, **options).html(), encoding="utf-8")
        page = page or shared_page
        page.goto(path.as_uri())
        wait_until_ready(page)
        return page

    yield write
    if shared_page.url != "about:blank":
        shared_page.emulate_media(media="null")
        shared_page.evaluate("localStorage.clear()")
        shared_page.goto("about:blank")
    assert problems == []


def wait_until_ready(page: Any) -> None:
    """Wait for the scripts, and for two frames: Chromium drops keys before the first one."""
    page.wait_for_selector("body[data-ready]")
    page.evaluate("new Promise(end => requestAnimationFrame(() => requestAnimationFrame(end)))")


def press(page: Any, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def download(page: Any, folder: Path) -> Path:
    with page.expect_download() as download_info:
        page.click("#download")
    path: Path = folder / download_info.value.suggested_filename
    download_info.value.save_as(path)
    return path


def decide(
    stimuli: Any, reviewer: str, decisions: dict[str, tuple[str, str]]
) -> list[reviews.ReviewedItem]:
    return [
        replace(item, decision=reviews.Decision(decision), reason=reason)
        for item in reviews.undecided_items(stimuli, reviewer)
        for decision, reason in [decisions.get(item.item_id, ("", ""))]
    ]


def list_shown_items(page: Any) -> list[str]:
    """Return identifiers of the items that pass the filters, in order."""
    cards = "[...document.querySelectorAll('.item')]"
    return list(page.evaluate(f"{cards}.map(card => review.data.items[card.dataset.place].id)"))


def test_keyboard_reviews_survive_reload_and_are_read(open_page: Open, tmp_path: Path) -> None:
    """Witness: the file written in Python with the same decisions, byte for byte."""
    page = open_page()
    press(page, "j a a r 1 r")
    page.keyboard.type('says "no", and 2 more')
    press(page, "Enter r Enter a u c r Escape")
    decisions = {
        "t0": ("keep", ""),
        "t1": ("keep", ""),
        "t2": ("reject", "ungrammatical"),
        "t3": ("reject", 'says "no", and 2 more'),
        "t4": ("reject", ""),
    }
    assert page.inner_text("#count") == "5 of 6 decided, 3 rejected"
    for _ in range(2):
        path = download(page, tmp_path)
        assert path.name == "review.csv"
        reviews.write_review(tmp_path / "python.csv", decide(TRIPLETS, "", decisions))
        assert path.read_bytes() == (tmp_path / "python.csv").read_bytes()
        review = reviews.read_reviews([path])
        review.require_items_of(TRIPLETS, "t.csv")
        assert review.rejected == {"t2", "t3", "t4"}
        page.reload()
        wait_until_ready(page)


def test_focus_is_visible_and_follows_the_keys(open_page: Open) -> None:
    page = open_page()
    style = "getComputedStyle(document.activeElement).outlineStyle"
    index = "document.activeElement.dataset.place"
    press(page, "j")
    assert page.evaluate(index) == "0"
    press(page, "j ArrowDown k")
    assert page.evaluate(index) == "1"
    assert page.evaluate(style) == "solid"
    assert page.get_attribute(".item.current", "aria-posinset") == "2"
    press(page, "r")
    assert page.evaluate(style) == "solid"
    assert page.evaluate("document.activeElement.tagName") == "INPUT"
    press(page, "Escape / Escape ?")
    assert page.locator("#help").is_visible()
    press(page, "a Enter")
    assert not page.locator("#help").is_visible()
    assert page.inner_text("#count").startswith("0 of")


def test_filters_search_and_order(open_page: Open) -> None:
    """Witness: the same filters in Python."""
    trials = [
        replace(trial, group=1 + i % 3)
        for t in TRIPLETS
        for i, trial in enumerate(triplet_trials(t, twins=True))
    ]
    trials.append(new_trial("catch", 2, "We met Ann", "Ann met We", Condition.CATCH))
    page = open_page(trials)

    def assert_filtered(is_selected: Callable[[Trial], bool], **choices: str) -> None:
        for name, choice in choices.items():
            page.select_option(f"#{name}", choice)
        assert sorted(list_shown_items(page)) == sorted(
            t.trial_id for t in trials if is_selected(t)
        ), choices
        for name in choices:
            page.select_option(f"#{name}", "")

    assert_filtered(lambda t: t.condition is Condition.CATCH, condition="catch")
    assert_filtered(lambda t: t.model_1 == "RNN", duel="RNN\nLSTM")
    assert_filtered(lambda t: t.group == 2, group="2")
    assert_filtered(lambda t: t.group == 2 and t.model_1 == "RNN", group="2", duel="RNN\nLSTM")
    assert_filtered(lambda t: 3 in map(len, (t.sentence_1, t.sentence_2)), length="3")
    flagged = flag_items(trials).by_item
    assert_filtered(lambda t: t.trial_id in flagged, flag="any")
    assert_filtered(lambda t: t.trial_id not in flagged, flag="none")
    page.fill("#search", "MET ann")
    assert list_shown_items(page) == ["catch"]
    page.fill("#search", "nowhere")
    assert list_shown_items(page) == []
    assert page.locator("#nothing").is_visible()
    page.fill("#search", "")
    page.select_option("#order", "flags")
    numbers = [len(flagged.get(name, ())) for name in list_shown_items(page)]
    assert numbers == sorted(numbers, reverse=True)


def test_markup_stays_text_and_items_are_ordered(open_page: Open) -> None:
    """Items without answers come last; without any answers, this order is not available."""
    page = open_page()
    text = page.inner_text(".item >> nth=2 >> .sentence >> nth=0")
    assert text == Sentence.parse(EVIL).text
    assert page.locator("img").count() == 0
    assert page.locator("#group").is_hidden()  # triplets have no group
    options = "[...document.querySelectorAll('#order option')].map(option => option.value)"
    assert "unsure" not in page.evaluate(options)
    page.select_option("#order", "most")
    assert list_shown_items(page) == [f"t{number}" for number in range(5, -1, -1)]
    answers: dict[str, tuple[str, float | None]] = {
        f"t{n}": (f"{n} people", certainty) for n, certainty in ((1, 0.9), (4, 0.6))
    }
    answers["t3"] = ("1 person <b>", None)
    page = open_page(answers=answers)
    page.select_option("#order", "unsure")
    assert list_shown_items(page) == ["t4", "t1", "t0", "t2", "t3", "t5"]
    facts = [str(fact) for fact in page.locator(".item .facts").all_inner_texts()]
    assert "4 people" in facts[0]
    assert "1 person <b>" in facts[4]
