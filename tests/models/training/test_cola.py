"""Labelled sentences: CoLA's files as published, tables, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.models.training.acceptability import LabelledSentence, read_annotations, read_cola
from contstim.sentence import Sentence

COLA = 'a1\t1\t\tThe dog barked.\na1\t0\t*\tDog the barked\nb2\t1\t\tHe said "no", and left!\n'


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_published_files_have_four_columns_and_no_header(tmp_path: Path) -> None:
    """Quotation marks are no markup there."""
    found = read_cola(write(tmp_path / "cola.tsv", COLA))
    assert [(one.acceptable, one.text) for one in found] == [
        (True, "The dog barked."),
        (False, "Dog the barked."),
        (True, 'He said "no", and left!'),
    ]
    assert found[0].plain == Sentence.parse("The dog barked.")
    assert str(found[1]) == "0\tDog the barked."


def test_tables_are_read_by_their_header(tmp_path: Path) -> None:
    csv = ',sentence_source,label,label_notes,sentence\n0,x,1,,"Yes, it does."\n1,x,0,*,It do.\n'
    tabs = "sentence\tlabel\nYes, it does.\t1\nIt do.\t0\n"
    expected = [
        LabelledSentence(("Yes,", "it", "does"), "."),
        LabelledSentence(("It", "do"), ".", False),
    ]
    assert read_cola(write(tmp_path / "cola.csv", csv)) == expected
    assert read_cola(write(tmp_path / "cola.tsv", tabs)) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\t1\tThe dog barked.\n", r"line 1: 3 columns between tabs; expected 4: source"),
        ("a.tsv", "a\t2\t\tThe dog barked.\n", "row 1: the label '2' is neither 0 nor 1"),
        ("a.tsv", "a\t1\t\tThe dog barked.\n", "needs acceptable sentences"),
        ("a.tsv", "a\t1\t\t.\n", "row 1: A sentence needs at least one word"),
        ("a.tsv", "", "is empty"),
        ("a.csv", "sentence\nIt do.\n", "lacks the column label"),
        ("a.csv", "label,text\n1,It does.\n", "lacks the column sentence"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_cola(write(tmp_path / name, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*none.tsv"):
        read_cola(tmp_path / "none.tsv")


def test_annotations_are_columns_of_ones_and_zeros(tmp_path: Path) -> None:
    text = (
        "Source\tDomain\tAcceptability\tSentence\tBinding\tN, Adj\n"
        "x\tIn\t1\tShe saw herself.\t1\t0\nx\tIn\t0\tShe saw himself.\t1\t1\n"
    )
    found = read_annotations(write(tmp_path / "a.tsv", text))
    assert found.features == {"Binding": (True, True), "N, Adj": (False, True)}
    assert [one.acceptable for one in found.sentences] == [True, False]
    with pytest.raises(InputError, match="has no feature"):
        read_annotations(write(tmp_path / "b.tsv", "label\tsentence\n1\tIt is.\n0\tIt be.\n"))
    with pytest.raises(InputError, match="row 2: '2' under X is neither 0 nor 1"):
        read_annotations(write(tmp_path / "c.tsv", "label\tsentence\tX\n1\tIt is.\t1\n0\tIt.\t2\n"))
