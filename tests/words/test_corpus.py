import gzip
import io
from pathlib import Path

import pytest

from contstim.errors import CorpusError
from contstim.words.corpus import TextNotes, is_tokenised, read_lines, read_sentences
from contstim.words.sentence import Sentence


def test_sentences_are_streamed_in_order_without_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\ufeffThe cat\n\n  ...\nIs it über?\r\n", encoding="utf-8")
    assert list(read_sentences(path)) == [Sentence.parse("The cat"), Sentence.parse("Is it über?")]


def test_gzip_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("Ein Füßchen\n".encode()))
    assert [s.text for s in read_sentences(path)] == ["Ein Füßchen."]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b\nc d\n")))
    assert [s.text for s in read_sentences("-")] == ["a b.", "c d."]


def test_prose_is_split_into_sentences_without_punctuation() -> None:
    """Witness: by hand. Abbreviations are learnt from the text."""
    path = Path(__file__).parent / "prose.txt"
    assert [s.text for s in read_sentences(path, prose=True)][:3] == [
        "The harbour was quiet that morning.",
        "Nobody had seen the small well-known boat or its owner.",
        "Where had they gone?",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "contains no text"),
        (b"\n \n", "contains no text"),
        (b"...\n?\n", "only punctuation"),
        ("Grüße\n".encode("latin-1"), "line 1, byte 3"),
        (b"fine\n" + "Grüße\n".encode("latin-1"), "line 2, byte 3"),
        (b"fine\rfine\r" + "Grüße\r".encode("latin-1"), "line 3, byte 3"),
        (b"fine\nNo\0thing here\n", "line 2 contains a null character"),
        ("Cats purr.\n".encode("utf-16"), "not UTF-8|null character"),
        ("Cats purr.\n".encode("utf-16-le"), "line 1 contains a null character"),
    ],
)
def test_unusable_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        list(read_sentences(path))


def test_line_ends_of_all_systems_are_read(tmp_path: Path) -> None:
    """External witness: Python's universal newlines."""
    for end in (b"\n", b"\r\n", b"\r"):
        path = tmp_path / "text.txt"
        path.write_bytes(b"\xef\xbb\xbf" + end.join([b"Cats purr.", b"", b"Dogs bark."]))
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        assert list(read_lines(path)) == [line for line in lines if line]


def test_normalised_and_tokenised_lines_are_counted(tmp_path: Path) -> None:
    """By hand: a soft hyphen, a zero-width space, and a tokenised line."""
    path = tmp_path / "text.txt"
    text = "The ac\u00adtor.\n\u200b\nA dog , a cat .\nA dog, a cat.\nIt is über.\n"
    path.write_text(text, encoding="utf-8")
    notes = TextNotes()
    assert next(iter([*read_lines(path, notes)])) == "The actor."
    assert (notes.lines, notes.normalised, notes.tokenised) == (5, 2, 1)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("राम घर गया। वह सो गया।", ["राम घर गया।", "वह सो गया।"]),
        ("これは本です。あれは何？", ["これは本です。", "あれは何？"]),
        ('He left. "Go!" It was late…', ["He left.", "Go!", "It was late…"]),
        ("It was -5° in the U.S. army - a record.", ["It was -5° in the U.S. army a record."]),
    ],
)
def test_prose_is_split_at_all_end_marks(tmp_path: Path, text: str, sentences: list[str]) -> None:
    """Witness: by hand. Numbers and abbreviations remain."""
    path = tmp_path / "prose.txt"
    path.write_text(text, encoding="utf-8")
    assert [sentence.text for sentence in read_sentences(path, prose=True)] == sentences


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The dog , which barked , did n't run away .", True),
        ("`` We ca n't go , '' said the man .", True),
        ("He did n’t go", True),
        ("It -LRB- the dog -RRB- barks", True),
        ("a well @-@ known dog", True),
        ("東京 は 大きい 。", True),
        ("The dog, which barked, didn't run away.", False),
        ("Où vas-tu ?", False),
        ("Il dit : « Viens ! »", False),
        ("He paused . . . and left.", False),
        ("Rock 'n' roll is the boys' music.", False),
        ("राम घर गया ।", False),
    ],
)
def test_tokenised_lines_are_recognised(line: str, expected: bool) -> None:
    """By hand: conventions of the Penn Treebank and of WikiText, and ordinary typography."""
    assert is_tokenised(line) is expected


def test_a_few_tokenised_lines_raise_no_warning() -> None:
    for n_tokenised, n_plain, warns in ((1, 1, True), (1, 200, False), (0, 9, False)):
        notes = TextNotes()
        for line in ["A dog , a cat ."] * n_tokenised + ["A dog, a cat."] * n_plain:
            notes.normalise(line)
        assert notes.is_tokenised is bool([*notes.warnings("text")]) is warns
