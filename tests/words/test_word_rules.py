"""Rules for words, against words sorted by hand and against properties of any text."""

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
        ("ndez", Reason.ABBREVIATION),  # Hernández, cut at the accent
        *((word, Reason.CAPITALS) for word in ["OpenStax", "fMRI", "vi-Strauss"]),
    ],
)
def test_english_words_are_accepted_or_have_a_reason(word: str, reason: Reason | None) -> None:
    """Witness: a person read the words of a textbook."""
    assert ENGLISH.misspelled(word) is reason


@pytest.mark.parametrize(
    "word",
    [
        *"я и čtvrt vlk è 日本 一 ありがとう カフェ 한국어 שלום ג׳ירפה".split(),
        *("مرحبا", "می\N{ZERO WIDTH NON-JOINER}روم", "नमस्ते", "สวัสดี", "l'été", "col·lega", "Straße"),
    ],
)
def test_words_of_other_languages_are_accepted(word: str) -> None:
    """Witness: words of Russian, Czech, Italian, Japanese, … as dictionaries spell them."""
    assert ANY.misspelled(word) is None


def _parse_lines(*lines: str) -> list[Sentence]:
    return [Sentence.parse(line) for line in lines]


def test_case_and_use_separate_names_from_common_words() -> None:
    """Witness: sorted by hand."""
    text = _parse_lines(
        "The senate of Rome met in March",
        "Rome was old and the Senate was The house of Rome",
        "Those of Rome march where the senate was",
        "Marcus was there",
        "Smith saw https www com Rome pulse",
    )
    result = sort_words(text, english_rules())
    assert set(result.vocabulary.initial) == {"The", "Those"}
    inner = "senate of met in was old and the house march where there"
    assert set(result.vocabulary.inner) == set(inner.split())
    assert result.names == ("Rome", "Marcus")  # no sentence has them in lower case
    assert result.with_address == 1
    reasons = {(item.word, item.place): item.reason for item in result.dropped}
    names = (("Rome", "inner"), ("Rome", "initial"), ("Marcus", "initial"))
    misplaced = ((word, "inner") for word in ("Senate", "The", "March"))
    assert reasons == {
        **dict.fromkeys(names, Reason.NAME),
        **dict.fromkeys(misplaced, Reason.MISPLACED_CAPITAL),
    }
    vocabulary = sort_words(text, english_rules(names=True)).vocabulary
    assert {"Rome", "Those", "Marcus"} <= set(vocabulary.initial)
    assert "Rome" in vocabulary.inner
    assert "Senate" not in vocabulary.inner


def test_word_that_is_often_capitalised_inside_is_not_initial() -> None:
    """Witness: sorted by hand; `Journal` begins references, `Hence` begins sentences."""
    text = _parse_lines(
        "Journal of peace",
        "they read the Journal and another Journal",
        "this journal was old",
        "Hence they read it",
        "I read it and I was old",
        "They and I read it",
    )
    result = sort_words(text, replace(english_rules(), common=english_rules().common | {"hence"}))
    assert set(result.vocabulary.initial) == {"Hence", "I", "They"}
    assert "journal" in result.vocabulary.inner


def test_lists_and_frequencies_exclude_words() -> None:
    """Witness: sorted by hand."""
    text = _parse_lines(*["The dog saw the cat"] * 9, "The fucking ox-cart saw the cat")
    result = sort_words(text, replace(ENGLISH, excluded=frozenset({"ox"})))
    reasons = {item.word: item.reason for item in result.dropped}
    assert reasons == {"fucking": Reason.BLOCKED, "ox-cart": Reason.EXCLUDED}
    assert sort_words(text, replace(ENGLISH, blocked=frozenset())).counts() == {}
    assert result.counts() == {Reason.BLOCKED: 1, Reason.EXCLUDED: 1}
    rare_result = sort_words(text, english_rules(), min_count=2)
    assert {item.reason for item in rare_result.dropped} == {Reason.BLOCKED, Reason.RARE}
    # the: log10(21 of 57) + 9 = 8.57, cat: 8.29
    frequent_result = sort_words(text, replace(ENGLISH, zipf=(8.4, 9)))
    assert set(frequent_result.vocabulary.words) == {"The", "the"}


WORDS = st.text("abIUé-'’4яA.", min_size=1, max_size=4)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=6))
def test_every_word_is_accepted_or_dropped(lines: list[list[str]]) -> None:
    """Property of any text; accepted words are well spelled."""
    text = [Sentence(tuple(line)) for line in lines]
    try:
        result = sort_words(text, ENGLISH)
    except VocabularyError:
        return
    dropped = {(item.word, item.place) for item in result.dropped}
    accepted = {(word, "initial") for word in result.vocabulary.initial}
    accepted |= {(word, "inner") for word in result.vocabulary.inner}
    all_words = {(s.words[0], "initial") for s in text}
    all_words |= {(word, "inner") for s in text for word in s.words[1:]}
    assert dropped | accepted == all_words
    assert not dropped & accepted
    assert all(ENGLISH.misspelled(word) is None for word, _ in accepted)


def test_no_word_of_the_embedded_english_is_dropped(english: list[Sentence]) -> None:
    """Witness: a grammar of hand-written words."""
    result = sort_words(english, english_rules(names=True))
    assert [item.word for item in result.dropped] == []


def test_word_lists_have_one_word_per_line(tmp_path: Path) -> None:
    assert {"fuck", "cunt"} <= read_words(BLOCKED)
    path = tmp_path / "list.txt"
    path.write_text("# mine\nDog\n")
    assert read_words(path) == {"dog"}
    path.write_text("a dog\n")
    with pytest.raises(VocabularyError, match="'a dog' is not a single word"):
        read_words(path)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(VocabularyError, match="1 a single letter"):
        sort_words(_parse_lines("U"), ENGLISH)
    with pytest.raises(VocabularyError, match="All sentences of the text contain web addresses"):
        sort_words(_parse_lines("See https org"), ENGLISH)
    with pytest.raises(VocabularyError, match="min_count must be at least 1"):
        sort_words(_parse_lines("Dogs sleep"), ENGLISH, min_count=0)
    with pytest.raises(VocabularyError, match=r"`zipf` must be a range .* got 5 to 3"):
        replace(ENGLISH, zipf=(5, 3))
