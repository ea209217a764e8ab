from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import SentenceError
from contstim.words.sentence import Sentence, is_word, normalise_text, repeats

WORD = st.text(min_size=1, max_size=8).filter(is_word)
ENDS = (".", "!", "?", "…", "。", "।", "؟", "۔", "։", "።", '."', "!»", "! »", "。」", ".)’")
SENTENCES = st.builds(
    Sentence, st.lists(WORD, min_size=1, max_size=9).map(tuple), st.sampled_from(ENDS)
)


@given(SENTENCES)
def test_text_is_parsed_to_the_same_sentence(sentence: Sentence) -> None:
    """Round trip, for any words in any script."""
    assert Sentence.parse(sentence.text) == sentence


@pytest.mark.parametrize(
    ("text", "end", "displayed", "is_question"),
    [
        ("Is it so?", "?", "Is it so?", True),
        ("Run!", "!", "Run!", False),
        ("It is so", ".", "It is so", False),
        ("It is so etc..", ".", "It is so etc.", False),
        ("東京は大きい。", "。", "東京は大きい", False),
        ("राम घर गया।", "।", "राम घर गया", False),
        ("وہ گھر گیا۔", "۔", "وہ گھر گیا", False),
        ("هل ذهب الولد إلى البيت؟", "؟", "هل ذهب الولد إلى البيت؟", True),
        ("Ես տուն գնացի։", "։", "Ես տուն գնացի", False),
        ("ልጁ ወደ ቤት ሄደ።", "።", "ልጁ ወደ ቤት ሄደ", False),
        ("你去哪里？", "？", "你去哪里？", True),
        ("Πού πας;", ";", "Πού πας;", True),
        ('He said "yes."', '."', 'He said "yes"', False),
        ("He said “yes.”", ".”", "He said “yes”", False),
        ("「これは本です。」", "。」", "「これは本です」", False),
        ("Er sagt: „Ja.“", ".“", "Er sagt: „Ja“", False),
        ("Il dit : « Viens ! »", "! »", "Il dit : « Viens! »", False),
        ("She waited…", "…", "She waited…", False),
        ('"Are you coming?"', '?"', '"Are you coming?"', True),
        ("(He left.)", ".)", "(He left)", False),
        ("It is α;", ".", "It is α;", False),
    ],
)
def test_end_marks_of_all_scripts(text: str, end: str, displayed: str, is_question: bool) -> None:
    """By hand: Unicode's property Sentence_Terminal, and closing signs after the mark."""
    sentence = Sentence.parse(text)
    assert (sentence.end, sentence.displayed_text) == (end, displayed)
    assert sentence.is_question is is_question
    assert Sentence.parse(sentence.text) == Sentence(sentence.words, end) == sentence


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The ac\u00adtor", "The actor"),
        ("a\u200b book\ufeff", "a book"),
        ("cafe\u0301", "café"),
        ("year. \u200e", "year. "),
        ("\u2067שלום\u2069", "שלום"),
        ("می\u200cروم", "می\u200cروم"),
        ("क्\u200dष", "क्\u200dष"),
        ("\u200cمی\u200c \u200da1\u200d", "می a1"),
        ("a\u00a0b", "a\u00a0b"),
        ("don’t", "don’t"),
    ],
)
def test_texts_that_look_equal_are_equal(text: str, normal: str) -> None:
    """By hand; joiners remain only between letters, and no-break spaces separate words."""
    assert normalise_text(text) == normal
    assert Sentence.parse(text) == Sentence.parse(normal)
    assert Sentence((text.split()[0],)) == Sentence((normal.split()[0],))


@given(st.text())
def test_normalisation_is_idempotent(text: str) -> None:
    assert normalise_text(normalise_text(text)) == normalise_text(text)


INVALID_TEXTS: dict[str, list[Any]] = {
    # Tables can contain null or numbers instead of a sentence; `None.` would be wrong
    "is not a sentence": [None, 3, 2.5, True, ["A", "b"], {"a": 1}, b"A b."],
    "is not a word: a word must not be empty": ["One \0 two.", "One two\0.", "Half \ud800 pair."],
    "at least one word": ["", "   ", ".", " ? "],
}


@pytest.mark.parametrize(
    ("message", "text"), [(m, text) for m in INVALID_TEXTS for text in INVALID_TEXTS[m]]
)
def test_invalid_texts_are_refused(message: str, text: Any) -> None:
    with pytest.raises(SentenceError, match=message):
        Sentence.parse(text)


@given(st.text())
def test_parsing_is_idempotent_unless_refused(text: str) -> None:
    try:
        sentence = Sentence.parse(text)
    except SentenceError:
        return
    assert Sentence.parse(sentence.text) == sentence


@pytest.mark.parametrize(
    ("text", "words", "end"),
    [
        ("The cat sat", ("The", "cat", "sat"), "."),
        ("  The  cat\tsat . ", ("The", "cat", "sat"), "."),
        ("Did it?", ("Did", "it"), "?"),
        ("What?!", ("What?",), "!"),
        ("I live in the U.S.", ("I", "live", "in", "the", "U.S"), "."),
        ("No-one's 猫", ("No-one's", "猫"), "."),
    ],
)
def test_parsing_separates_words_and_end_mark(text: str, words: tuple[str, ...], end: str) -> None:
    assert Sentence.parse(text) == Sentence(words, end)


@pytest.mark.parametrize(
    ("words", "end"), [((), "."), (("a b",), "."), (("",), "."), (("a\0b",), "."), (("a",), ";")]
)
def test_invalid_words_and_end_marks_are_refused(words: tuple[str, ...], end: str) -> None:
    with pytest.raises(SentenceError):
        Sentence(words, end)


@given(SENTENCES, st.data())
def test_replace_changes_one_word(sentence: Sentence, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(sentence) - 1))
    changed = sentence.replace(position, "new")
    assert changed.words[position] == "new"
    assert changed.replace(position, sentence.words[position]) == sentence
    with pytest.raises(SentenceError, match=f"positions go from 0 to {len(sentence) - 1}"):
        sentence.replace(len(sentence), "new")


@pytest.mark.parametrize(
    ("words", "repeatable", "expected"),
    [("a b a", "", True), ("A b a", "", True), ("a b a", "a", False), ("a b c", "", False)],
)
def test_repeats_ignore_case(words: str, repeatable: str, expected: bool) -> None:
    assert repeats(words.split(), frozenset(repeatable.split())) is expected
