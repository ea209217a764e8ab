"""Rules of words, against words sorted by hand and against properties of any text."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.english.words import BLOCKED, english_rules
from contstim.errors import VocabularyError
from contstim.words.sentence import Sentence
from contstim.words.word_rules import Reason, WordRules, read_words, sort_words

ENGLISH = english_rules()
ANY = WordRules()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        *((word, None) for word in "dog I a A I'm well-known naïve O'Neill McDonald".split()),
        *((word, None) for word in "MacArthur she Wu rhythm Parisians".split()),
        ("<unk>", Reason.SIGN),
        ("4th", Reason.DIGIT),
        ("x²", Reason.DIGIT),
        ("a.m.", Reason.CHARACTER),
        ("and/or", Reason.CHARACTER),
        ("'tis", Reason.CHARACTER),
        ("pаssed", Reason.SCRIPTS),  # a Cyrillic letter
        ("https", Reason.ADDRESS),
        ("www.bbc.co.uk", Reason.ADDRESS),
        *((word, Reason.SINGLE_LETTER) for word in ["U", "S", "s", "i", "é"]),
        *((word, Reason.ABBREVIATION) for word in "al et th pp vs USA Jr nih".split()),
        ("ndez", Reason.ABBREVIATION),  # of Hernández, cut at the accent
        *((word, Reason.CAPITALS) for word in ["OpenStax", "fMRI", "vi-Strauss"]),
    ],
)
def test_english_words_sorted_by_hand(word: str, reason: Reason | None) -> None:
    """Witness: read by a person in the words of a textbook."""
    assert ENGLISH.misspelled(word) is reason


@pytest.mark.parametrize(
    "word",
    [
        *"я и čtvrt vlk è 日本 一 ありがとう カフェ 한국어 שלום ג׳ירפה".split(),
        *("مرحبا", "می\N{ZERO WIDTH NON-JOINER}روم", "नमस्ते", "สวัสดี", "l'été", "col·lega", "Straße"),
    ],
)
def test_words_of_other_languages_are_words(word: str) -> None:
    """Witness: words of Russian, Czech, Italian, Japanese, … as dictionaries spell them."""
    assert ANY.misspelled(word) is None


def _text(*lines: str) -> list[Sentence]:
    return [Sentence.parse(line) for line in lines]


def test_case_and_use_tell_names_from_common_words() -> None:
    """Witness: sorted by hand."""
    text = _text(
        "The senate of Rome met in March",
        "Rome was old and the Senate was The house of Rome",
        "Those of Rome march where the senate was",
        "Marcus was there",
        "Smith saw https www com Rome pulse",
    )
    words = sort_words(text, english_rules())
    assert set(words.vocabulary.initial) == {"The", "Those"}
    inner = "senate of met in was old and the house march where there"
    assert set(words.vocabulary.inner) == set(inner.split())
    assert words.names == ("Rome", "Marcus")  # which no sentence has in small letters
    assert words.with_address == 1
    reasons = {(each.word, each.place): each.reason for each in words.dropped}
    assert reasons == {
        ("Rome", "inner"): Reason.NAME,
        ("Rome", "initial"): Reason.NAME,
        ("Marcus", "initial"): Reason.NAME,
        ("Senate", "inner"): Reason.MISPLACED_CAPITAL,
        ("The", "inner"): Reason.MISPLACED_CAPITAL,
        ("March", "inner"): Reason.MISPLACED_CAPITAL,
    }
    kept = sort_words(text, english_rules(names=True)).vocabulary
    assert {"Rome", "Those", "Marcus"} <= set(kept.initial)
    assert "Rome" in kept.inner
    assert "Senate" not in kept.inner


def test_a_word_that_is_mostly_capitalised_inside_starts_no_sentence() -> None:
    """Witness: sorted by hand; `Journal` begins references, `Hence` sentences."""
    text = _text(
        "Journal of peace",
        "they read the Journal and another Journal",
        "this journal was old",
        "Hence they read it",
        "I read it and I was old",
        "They and I read it",
    )
    words = sort_words(text, replace(english_rules(), common=english_rules().common | {"hence"}))
    assert set(words.vocabulary.initial) == {"Hence", "I", "They"}
    assert "journal" in words.vocabulary.inner


def test_lists_and_frequencies_leave_words_out() -> None:
    """Witness: sorted by hand."""
    text = _text(*["The dog saw the cat"] * 9, "The fucking ox-cart saw the cat")
    words = sort_words(text, english_rules(excluded=frozenset({"ox"})))
    reasons = {each.word: each.reason for each in words.dropped}
    assert reasons == {"fucking": Reason.BLOCKED, "ox-cart": Reason.EXCLUDED}
    assert sort_words(text, english_rules(blocked=frozenset())).counts() == {}
    assert words.counts() == {Reason.BLOCKED: 1, Reason.EXCLUDED: 1}
    rare = sort_words(text, english_rules(), min_count=2)
    assert {each.reason for each in rare.dropped} == {Reason.BLOCKED, Reason.RARE}
    # the: log10(21 of 57) + 9 = 8.57, cat: 8.29
    frequent = sort_words(text, english_rules(zipf=(8.4, 9)))
    assert set(frequent.vocabulary.words) == {"The", "the"}


@given(
    st.lists(
        st.lists(st.text("abIUé-'’4яA.", min_size=1, max_size=4), min_size=1, max_size=4),
        max_size=6,
    )
)
def test_every_word_is_kept_or_dropped_with_a_reason(lines: list[list[str]]) -> None:
    """Property: of any text; and what stays is well spelled."""
    text = [Sentence(tuple(words)) for words in lines]
    try:
        words = sort_words(text, ENGLISH)
    except VocabularyError:
        return
    dropped = {(each.word, each.place) for each in words.dropped}
    stayed = {(word, "initial") for word in words.vocabulary.initial}
    stayed |= {(word, "inner") for word in words.vocabulary.inner}
    written = {(s.words[0], "initial") for s in text}
    written |= {(word, "inner") for s in text for word in s.words[1:]}
    assert dropped | stayed == written
    assert not dropped & stayed
    assert all(ENGLISH.misspelled(word) is None for word, _ in stayed)


def test_the_embedded_english_holds_nothing_to_leave_out(english: list[Sentence]) -> None:
    """Witness: a grammar of hand-written words."""
    words = sort_words(english, english_rules(names=True))
    assert [each.word for each in words.dropped] == []


def test_lists_are_words_one_a_line(tmp_path: Path) -> None:
    assert {"fuck", "cunt"} <= read_words(BLOCKED)
    path = tmp_path / "list.txt"
    path.write_text("# mine\nDog\n")
    assert read_words(path) == {"dog"}
    path.write_text("a dog\n")
    with pytest.raises(VocabularyError, match="'a dog' is not a single word"):
        read_words(path)


def test_impossible_demands_are_named() -> None:
    with pytest.raises(VocabularyError, match="1 a single letter"):
        sort_words(_text("U"), ENGLISH)
    with pytest.raises(VocabularyError, match="All sentences of the text contain web addresses"):
        sort_words(_text("See https org"), ENGLISH)
    with pytest.raises(VocabularyError, match="min_count must be at least 1"):
        sort_words(_text("Dogs sleep"), ENGLISH, min_count=0)
    with pytest.raises(VocabularyError, match=r"`zipf` must be a range .* got 5 to 3"):
        english_rules(zipf=(5, 3))
