import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
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
@example(initial=("Well",), inner=("[laugh]", "yes"), repeatable=())  # brackets of no heading
@given(initial=WORDS, inner=WORDS.filter(bool), repeatable=WORDS)
def test_saved_vocabulary_is_loaded_unchanged(
    tmp_path: Path, initial: tuple[str, ...], inner: tuple[str, ...], repeatable: tuple[str, ...]
) -> None:
    """Round trip, for any words in any script."""
    vocabulary = Vocabulary(initial, inner, frozenset(repeatable))
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt") == vocabulary


def test_words_of_a_plain_list_are_capitalised_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("dog\nTom\nélan\n", encoding="utf-8")
    vocabulary = Vocabulary.load(tmp_path / "vocab.txt")
    assert vocabulary.at(0) == ("Dog", "Tom", "Élan")
    assert vocabulary.at(3) == ("dog", "Tom", "élan")
    assert vocabulary.repeatable == frozenset()


def test_first_and_inner_words_are_counted_separately() -> None:
    """Witness: counted by hand."""
    texts = ("The dog sees the dog", "The dog sees a cat", "A cat sees")
    vocabulary = Vocabulary.from_sentences(map(Sentence.parse, texts), min_count=2)
    assert vocabulary.initial == ("The",)
    assert set(vocabulary.inner) == {"dog", "sees", "cat"}
    assert vocabulary.repeatable == frozenset({"the"})
    assert vocabulary.missing_words(Sentence.parse("The cat sees a dog")) == ("a",)
    assert vocabulary.missing_words(Sentence.parse("Dog sees dog")) == ("Dog",)


@given(st.lists(WORDS.filter(bool).map(Sentence), min_size=1), st.integers(1, 3))
def test_vocabulary_contains_exactly_the_frequent_words(
    sentences: list[Sentence], min_count: int
) -> None:
    """Witness: collections.Counter."""
    counts = Counter(w for s in sentences for w in s.words[1:])
    try:
        vocabulary = Vocabulary.from_sentences(sentences, min_count=min_count)
    except VocabularyError:
        return
    assert set(vocabulary.inner) == {w for w, n in counts.items() if n >= min_count}


@pytest.mark.parametrize(
    ("content", "message"),
    [("dog\ntwo words\n", "not a single word"), ("[initial]\n[inner]\n", "at least one word")],
)
def test_unusable_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "vocab.txt").write_text(content)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.load(tmp_path / "vocab.txt")


def test_empty_vocabularies_and_headings_are_refused() -> None:
    with pytest.raises(VocabularyError, match="must not be a heading"):
        Vocabulary(("[inner]",), ("yes",))
    sentences = [Sentence.parse("a b")]
    with pytest.raises(VocabularyError, match="at least 1"):
        Vocabulary.from_sentences(sentences, min_count=0)
    with pytest.raises(VocabularyError, match="occurs at least 9 times"):
        Vocabulary.from_sentences(sentences, min_count=9)
    vocabulary = Vocabulary(("The", "A"), ("dog", "zyx"), frozenset({"a"}))
    restricted, dropped = vocabulary.restrict(lambda ws: np.array([w != "zyx" for w in ws]))
    assert (restricted.inner, dropped) == (("dog",), ("zyx",))
    with pytest.raises(VocabularyError, match="None of the 4 words"):
        vocabulary.restrict(lambda ws: np.zeros(len(ws), bool))


def test_repeatable_words_are_read_from_a_list_or_a_vocabulary(tmp_path: Path) -> None:
    list_path, vocabulary_path = tmp_path / "plain.txt", tmp_path / "headed.txt"
    list_path.write_text("Of\nin\n")
    Vocabulary(("Yes",), ("dog",), frozenset({"of"})).save(vocabulary_path)
    assert read_repeatable(list_path) == {"of", "in"}
    assert read_repeatable(vocabulary_path) == {"of"}
    Vocabulary(("Yes",), ("dog",)).save(vocabulary_path)
    with pytest.raises(VocabularyError, match="no words under"):
        read_repeatable(vocabulary_path)
    list_path.write_text("of in\n")
    with pytest.raises(VocabularyError, match="'of in' is not a word"):
        read_repeatable(list_path)


SIGNS = ("<s>", "</S>", "<unk>", "[MASK]", "[cls]", "<|endoftext|>", "dog</s>", "</w>", "[unused7]")


@pytest.mark.parametrize("sign", [*SIGNS, "▁dog"])
def test_special_tokens_are_never_in_a_vocabulary(sign: str, tmp_path: Path) -> None:
    sentences = [Sentence((sign, "the", "dog", sign)), Sentence(("The", sign, "dog"))]
    assert set(Vocabulary.from_sentences(sentences).words) == {"The", "the", "dog"}
    for lists in (((sign,), ("dog",)), (("The",), ("dog", sign))):
        with pytest.raises(VocabularyError, match="cannot be part of a sentence"):
            Vocabulary(*lists)
    (tmp_path / "vocab.txt").write_text(f"dog\n{sign}\n")
    with pytest.raises(VocabularyError, match=re.escape(repr(special_sign(sign)))):
        Vocabulary.load(tmp_path / "vocab.txt")
