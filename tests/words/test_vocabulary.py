import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.errors import VocabularyError
from contstim.words.sentence import Sentence, is_word, special_sign
from contstim.words.vocabulary import Vocabulary, read_repeatable

HEADINGS = ("[initial]", "[inner]", "[repeatable]")
WORD = st.text(min_size=1, max_size=8).filter(
    lambda w: (
        is_word(w) and w not in HEADINGS and not w.startswith("\ufeff") and special_sign(w) is None
    )
)
WORDS = st.lists(WORD, max_size=9).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(initial=WORDS, inner=WORDS.filter(bool), repeatable=WORDS)
def test_file_reads_back_to_an_equal_vocabulary(
    tmp_path: Path, initial: tuple[str, ...], inner: tuple[str, ...], repeatable: tuple[str, ...]
) -> None:
    """Round trip, for any words in any script."""
    words = Vocabulary(initial, inner, frozenset(repeatable))
    words.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt") == words


def test_a_plain_list_stands_anywhere_and_starts_capitalised(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("dog\nTom\nélan\n", encoding="utf-8")
    words = Vocabulary.load(tmp_path / "vocab.txt")
    assert words.at(0) == ("Dog", "Tom", "Élan")
    assert words.at(3) == ("dog", "Tom", "élan")
    assert words.repeatable == frozenset()


def test_counts_by_where_words_stand() -> None:
    """Witness: counted by hand."""
    texts = ("The dog sees the dog", "The dog sees a cat", "A cat sees")
    words = Vocabulary.from_sentences(map(Sentence.parse, texts), min_count=2)
    assert words.initial == ("The",)
    assert set(words.inner) == {"dog", "sees", "cat"}
    assert words.repeatable == frozenset({"the"})
    assert words.missing_words(Sentence.parse("The cat sees a dog")) == ("a",)
    assert words.missing_words(Sentence.parse("Dog sees dog")) == ("Dog",)


@given(st.lists(WORDS.filter(bool).map(Sentence), min_size=1), st.integers(1, 3))
def test_vocabularies_know_just_frequent_words(sentences: list[Sentence], min_count: int) -> None:
    """Witness: collections.Counter."""
    inner = Counter(w for s in sentences for w in s.words[1:])
    try:
        words = Vocabulary.from_sentences(sentences, min_count=min_count)
    except VocabularyError:
        return
    assert set(words.inner) == {w for w, n in inner.items() if n >= min_count}


@pytest.mark.parametrize(
    ("content", "message"),
    [("dog\ntwo words\n", "not a single word"), ("[initial]\n[inner]\n", "at least one word")],
)
def test_unusable_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "vocab.txt").write_text(content)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.load(tmp_path / "vocab.txt")


def test_counts_and_restrictions_that_leave_nothing_are_refused() -> None:
    sentences = [Sentence.parse("a b")]
    with pytest.raises(VocabularyError, match="at least 1"):
        Vocabulary.from_sentences(sentences, min_count=0)
    with pytest.raises(VocabularyError, match="occurs at least 9 times"):
        Vocabulary.from_sentences(sentences, min_count=9)
    words = Vocabulary(("The", "A"), ("dog", "zyx"), frozenset({"a"}))
    kept, dropped = words.restrict(lambda ws: np.array([w != "zyx" for w in ws]))
    assert (kept.inner, dropped) == (("dog",), ("zyx",))
    with pytest.raises(VocabularyError, match="None of the 4 words"):
        words.restrict(lambda ws: np.zeros(len(ws), bool))


def test_words_in_brackets_are_words_but_headings_are_not(tmp_path: Path) -> None:
    words = Vocabulary(("Well",), ("[laugh]", "yes"))
    words.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt") == words
    with pytest.raises(VocabularyError, match="must not be a heading"):
        Vocabulary(("[inner]",), ("yes",))


def test_repeatable_words_come_from_a_plain_list_or_a_vocabulary_file(tmp_path: Path) -> None:
    plain, headed = tmp_path / "plain.txt", tmp_path / "headed.txt"
    plain.write_text("Of\nin\n")
    Vocabulary(("Yes",), ("dog",), frozenset({"of"})).save(headed)
    assert read_repeatable(plain) == {"of", "in"}
    assert read_repeatable(headed) == {"of"}
    Vocabulary(("Yes",), ("dog",)).save(headed)
    with pytest.raises(VocabularyError, match="no words under"):
        read_repeatable(headed)
    plain.write_text("of in\n")
    with pytest.raises(VocabularyError, match="'of in' is not a word"):
        read_repeatable(plain)


SIGNS = ("<s>", "</S>", "<unk>", "[MASK]", "[cls]", "<|endoftext|>", "dog</s>", "</w>", "[unused7]")


@pytest.mark.parametrize("sign", [*SIGNS, "▁dog"])
def test_signs_of_models_are_never_in_a_vocabulary(sign: str, tmp_path: Path) -> None:
    text = [Sentence((sign, "the", "dog", sign)), Sentence(("The", sign, "dog"))]
    assert set(Vocabulary.from_sentences(text).words) == {"The", "the", "dog"}
    for lists in (((sign,), ("dog",)), (("The",), ("dog", sign))):
        with pytest.raises(VocabularyError, match="cannot be part of a sentence"):
            Vocabulary(*lists)
    (tmp_path / "vocab.txt").write_text(f"dog\n{sign}\n")
    with pytest.raises(VocabularyError, match=re.escape(repr(special_sign(sign)))):
        Vocabulary.load(tmp_path / "vocab.txt")
