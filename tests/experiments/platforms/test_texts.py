"""Texts in every language, and that stay texts: HTML, Markdown, spreadsheets, PsychoPy."""

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


def shown(text: str) -> str:
    try:
        return Sentence.parse(text).displayed_text
    except SentenceError:
        assume(False)
        raise


@given(TEXTS)
@example(HOSTILE[2])
@settings(max_examples=examples(80))
def test_html_reads_as_the_text_and_opens_no_tag(text: str) -> None:
    """Python's HTML parser reads it back."""
    text = shown(text)
    assert read_html(as_html(text)) == (text, [])
    assert html.unescape(as_html(text)) == text
    assert not set(as_html(text)) & set("<>=+@[]{}$*_`~|\\")
    assert not as_html(text).startswith(("-", "－"))


ITEMS = ("1. In a list", "- a list", "12) is twelve", "<http://x.example/>")


@pytest.mark.parametrize("text", [*HOSTILE, *ITEMS])
def test_markdown_reads_as_the_text_too(text: str) -> None:
    """markdown-it, a CommonMark parser: one paragraph without anything in it."""
    rendered = MarkdownIt("commonmark").render(as_html(shown(text)))
    assert read_html(rendered) == (shown(text) + "\n", ["p"])


@given(TEXTS)
@settings(max_examples=examples(80))
def test_an_escaped_cell_begins_no_formula_and_reads_as_the_sentence(text: str) -> None:
    assert escape_formula(shown(text), NO_BREAK_SPACE)[0] not in "=+-@\t\r"
    assert Sentence.parse(escape_formula(text, NO_BREAK_SPACE)) == Sentence.parse(text)


def psychopy_reads(path: Path) -> list[object]:
    """What PsychoPy's documented and coded rules make of one column of a conditions file.

    pandas reads; a text that is a number (comma or point) becomes one; text in square brackets is
    evaluated; a backslash and an n is a new line; missing is None.
    """
    read: list[object] = []
    for cell in pd.read_csv(path, encoding="utf-8-sig")["sentence"]:
        if not isinstance(cell, str):
            read.append(cell)
            continue
        try:
            read.append(float(cell.replace(",", ".")))
        except ValueError:
            text = cell.replace("\\n", "\n")
            bracketed = text.startswith("[") and text.endswith("]")
            read.append(("evaluated", text) if bracketed else text)
    return read


@given(st.lists(TEXTS, min_size=1, max_size=4))
@example(["NA", "null", "=A1", "(a, 2)"])
@example(["1,5", "nan", "Infinity", "[1]"])
@example(["fALSE"])
@settings(max_examples=examples(30))
def test_psychopy_shows_what_is_not_refused(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    kept = []
    for text in map(shown, texts):
        assume("\0" not in text)
        if not escape_problem(text):
            kept.append((text, psychopy_cell(text)))
    assume(kept)
    path = tmp_path_factory.mktemp("cells") / "conditions.csv"
    pd.DataFrame({"n": range(len(kept)), "sentence": [cell for _, cell in kept]}).to_csv(
        path, index=False, encoding="utf-8", quoting=1
    )
    read = psychopy_reads(path)
    assert [str(cell).removeprefix(NO_BREAK_SPACE) for cell in read] == [t for t, _ in kept]


@pytest.mark.parametrize(
    ("text", "why"),
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
def test_what_psychopy_or_psychojs_evaluate_is_refused_by_name(text: str, why: str) -> None:
    assert why in escape_problem(text)


@pytest.mark.parametrize(("name", "content"), [("practice.csv", "a,b\n1,2\n"), ("labels.csv", "")])
def test_texts_are_read_before_any_is_written(tmp_path: Path, name: str, content: str) -> None:
    folder, practice = tmp_path / "page", tmp_path / "practice.csv"
    folder.mkdir()
    bad = practice if name == "practice.csv" else folder / name
    bad.write_text(content)
    there = sorted(folder.iterdir())
    with pytest.raises(InputError, match=name):
        keep_texts(
            folder, PageSettings(practice=practice if practice.exists() else None), into=folder
        )
    assert sorted(folder.iterdir()) == there


MARKS = ("break", "deadline", "practice", "check", "lists", "title")


@pytest.mark.parametrize("language", LANGUAGES[1:])
@pytest.mark.parametrize("scale", Scale)
def test_each_language_has_the_texts_of_english(language: str, scale: Scale) -> None:
    """Witness: the English texts. Names of labels, numbers to fill in, answers of examples."""
    ours, theirs = (labels(each, scale, *MARKS) for each in ("en", language))
    assert list(ours) == list(theirs)
    for name in FILES:
        english, text = (text_of(name, each, (scale, *MARKS)) for each in ("en", language))
        assert text != english
        assert set(re.findall(r"{\w+}", english)) == set(re.findall(r"{\w+}", text))
        assert english.count("\n#") == text.count("\n#")
        if name.endswith("csv"):
            rows, other = (list(csv.DictReader(each.splitlines())) for each in (english, text))
            assert [row.get("rating") for row in rows] == [row.get("rating") for row in other]


def test_pages_and_lists_speak_the_language(tmp_path: Path) -> None:
    """Witness: the German question. A variety of a language has the texts of the language."""
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


def test_a_language_without_texts_needs_those_of_the_researcher(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one of en, de, fr.* for consent.md, got 'pt-BR'"):
        export_jspsych(CONTRACT_TRIALS, tmp_path, PageSettings(language="pt-BR"))
    assert not list(tmp_path.iterdir())
    for name in FILES:
        (tmp_path / name).write_text(text_of(name, "en", (Scale.CONFIDENCE,)))
    export_jspsych(CONTRACT_TRIALS, tmp_path, PageSettings(language="pt-BR"))
    page = (tmp_path / "index.html").read_text()
    assert 'lang="pt-BR"' in page
    assert "<title>Comparing sentences</title>" in page
