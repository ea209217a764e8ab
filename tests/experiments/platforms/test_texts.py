"""Texts in every language, and sentences that remain texts in HTML, Markdown, CSV and PsychoPy."""

import csv
import html
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from contstim.errors import InputError, SentenceError
from contstim.experiments.platforms.jspsych.folder import TEXTS as FILES
from contstim.experiments.platforms.jspsych.folder import export_jspsych, keep_texts
from contstim.experiments.platforms.jspsych.study import PageSettings
from contstim.experiments.platforms.lists import as_html
from contstim.experiments.platforms.pcibex import export_pcibex
from contstim.experiments.platforms.psychopy import escape_problem, psychopy_cell
from contstim.experiments.platforms.texts import LANGUAGES, labels, text_of
from contstim.experiments.responses.table import NO_BREAK_SPACE, escape_formula
from contstim.items.scale import Scale
from contstim.testing.platform import HOSTILE, read_html
from contstim.testing.platform import TRIALS as CONTRACT_TRIALS
from contstim.words.sentence import Sentence
from tests.examples import examples

TEXTS = st.one_of(
    st.text(min_size=1, max_size=60),
    st.lists(st.sampled_from("<>&\"'=+-@[]()${}*_#`~|\\/.,;:1aN ABé中"), max_size=20).map("".join),
)


def parse_displayed_text(text: str) -> str:
    try:
        return Sentence.parse(text).displayed_text
    except SentenceError:
        assume(False)
        raise


@given(TEXTS)
@example(HOSTILE[2])
@settings(max_examples=examples(80))
def test_html_parser_reads_back_the_text(text: str) -> None:
    text = parse_displayed_text(text)
    assert read_html(as_html(text)) == (text, [])
    assert html.unescape(as_html(text)) == text
    assert not set(as_html(text)) & set("<>=+@[]{}$*_`~|\\")
    assert not as_html(text).startswith(("-", "－"))


ITEMS = ("1. In a list", "- a list", "12) is twelve", "<http://x.example/>")


@pytest.mark.parametrize("text", [*HOSTILE, *ITEMS])
def test_commonmark_parser_reads_back_the_text(text: str) -> None:
    """Witness: markdown-it, which renders one paragraph without other elements."""
    rendered = MarkdownIt("commonmark").render(as_html(parse_displayed_text(text)))
    assert read_html(rendered) == (parse_displayed_text(text) + "\n", ["p"])


@given(TEXTS)
@settings(max_examples=examples(80))
def test_escaped_cell_is_no_formula_and_reads_as_sentence(text: str) -> None:
    assert escape_formula(parse_displayed_text(text), NO_BREAK_SPACE)[0] not in "=+-@\t\r"
    assert Sentence.parse(escape_formula(text, NO_BREAK_SPACE)) == Sentence.parse(text)


def read_as_psychopy(path: Path) -> list[object]:
    """Return one column of a conditions file as PsychoPy's documentation and code read it.

    pandas reads the file; a number (comma or point) becomes a number, a text in square brackets is
    evaluated, a backslash with n is a line break, and a missing cell is None.
    """
    values: list[object] = []
    for cell in pd.read_csv(path, encoding="utf-8-sig")["sentence"]:
        if not isinstance(cell, str):
            values.append(cell)
            continue
        try:
            values.append(float(cell.replace(",", ".")))
        except ValueError:
            text = cell.replace("\\n", "\n")
            bracketed = text.startswith("[") and text.endswith("]")
            values.append(("evaluated", text) if bracketed else text)
    return values


@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["NA", "null", "=A1", "(a, 2)"])
@example(["1,5", "nan", "Infinity", "[1]"])
@example(["fALSE"])
@settings(max_examples=examples(30))
def test_psychopy_displays_accepted_sentences(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    accepted = []
    for text in map(parse_displayed_text, texts):
        assume("\0" not in text)
        if not escape_problem(text):
            accepted.append((text, psychopy_cell(text)))
    assume(accepted)
    path = tmp_path_factory.mktemp("cells") / "conditions.csv"
    pd.DataFrame({"n": range(len(accepted)), "sentence": [cell for _, cell in accepted]}).to_csv(
        path, index=False, encoding="utf-8", quoting=1
    )
    values = read_as_psychopy(path)
    assert [str(cell).removeprefix(NO_BREAK_SPACE) for cell in values] == [t for t, _ in accepted]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1, 2]", "square brackets"),
        ("a [b] c", "square brackets"),
        ("1,5", "a number"),
        ("nan", "a number"),
        ("1984", "a number"),
        ("0x1F", "a number"),
        ("5 May 2020", "a number or a date"),
        ("10/11/12", "a number or a date"),
        ("May", "a number or a date"),
        ("a\\nb", "line break"),
    ],
)
def test_escape_problem_names_the_reason(text: str, reason: str) -> None:
    assert reason in escape_problem(text)


@pytest.mark.parametrize(("name", "content"), [("practice.csv", "a,b\n1,2\n"), ("labels.csv", "")])
def test_invalid_texts_leave_the_folder_unchanged(tmp_path: Path, name: str, content: str) -> None:
    folder, practice = tmp_path / "page", tmp_path / "practice.csv"
    folder.mkdir()
    invalid_file = practice if name == "practice.csv" else folder / name
    invalid_file.write_text(content)
    files_before = sorted(folder.iterdir())
    with pytest.raises(InputError, match=name):
        keep_texts(
            folder, PageSettings(practice=practice if practice.exists() else None), into=folder
        )
    assert sorted(folder.iterdir()) == files_before


MARKS = ("break", "deadline", "practice", "check", "lists", "title")


@pytest.mark.parametrize("language", LANGUAGES[1:])
@pytest.mark.parametrize("scale", Scale)
def test_each_language_has_the_texts_of_english(language: str, scale: Scale) -> None:
    """Witness: names of labels, numbers to fill in, and ratings of the examples in English."""
    english_labels, translated_labels = (labels(code, scale, *MARKS) for code in ("en", language))
    assert list(english_labels) == list(translated_labels)
    for name in FILES:
        english, text = (text_of(name, code, (scale, *MARKS)) for code in ("en", language))
        assert text != english
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", text))
        assert english.count("\n#") == text.count("\n#")
        if name.endswith("csv"):
            rows, foreign = (list(csv.DictReader(table.splitlines())) for table in (english, text))
            assert [row.get("rating") for row in rows] == [row.get("rating") for row in foreign]


def test_pages_and_lists_are_translated(tmp_path: Path) -> None:
    """Witness: the German question. A regional variety uses the texts of its language."""
    export_jspsych(CONTRACT_TRIALS, tmp_path / "page", PageSettings(language="de-AT"))
    export_pcibex(CONTRACT_TRIALS, tmp_path / "lists", language="de-AT")
    assert "gesprochen oder geschrieben?" in (tmp_path / "page" / "labels.csv").read_text("utf-8")
    assert "<title>Sätze vergleichen</title>" in (tmp_path / "page" / "index.html").read_text(
        "utf-8"
    )
    script = (tmp_path / "lists" / "main.js").read_text("utf-8")
    assert "gesprochen oder geschrieben?" in script
    assert '"sehr sicher: links"' in script
    assert "Begin" not in script.replace("Beginnen", "")


def test_other_languages_need_own_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of en, de, fr.* for consent.md, got 'pt-BR'"):
        export_jspsych(CONTRACT_TRIALS, tmp_path, PageSettings(language="pt-BR"))
    assert not list(tmp_path.iterdir())
    for name in FILES:
        (tmp_path / name).write_text(text_of(name, "en", (Scale.CONFIDENCE,)))
    export_jspsych(CONTRACT_TRIALS, tmp_path, PageSettings(language="pt-BR"))
    page = (tmp_path / "index.html").read_text()
    assert 'lang="pt-BR"' in page
    assert "<title>Comparing sentences</title>" in page
