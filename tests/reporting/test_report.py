"""Reports, against parsers of HTML and Markdown, and templates with arbitrary values."""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from contstim.reporting.report import (
    Bullets,
    Details,
    Heading,
    Paragraph,
    Picture,
    Report,
    Span,
    Table,
    button,
    changed,
    code,
    emphasis,
    short_names,
    shortened,
    strong,
    with_code,
)
from contstim.reporting.templates import fill_template

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (900).to_bytes(4) + (300).to_bytes(4)
HOSTILE = st.text(st.sampled_from("a <>&\"'*`|$_[]{}%\\#"), min_size=1).map(str.strip)


class _PageParser(HTMLParser):
    """Collect the texts and tags of a page in their order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data)


def _build_report(text: str) -> Report:
    return Report(
        text,
        (
            Heading(text),
            Paragraph((text, code(text), strong(text)), note=True),
            Bullets([text, (emphasis(text), " ", button(text))]),
            Paragraph((Span(text, "a", text),)),
            Table((text, "number"), [(changed(text), 0.5), ("", 3)]),
            Details(text, [Paragraph(text)], is_open=True),
            Picture("figure", PNG, text),
        ),
        warning=text,
    )


@given(HOSTILE.filter(bool))
def test_texts_never_become_html_markup(text: str) -> None:
    """Witness: Python's HTML parser finds the same tags as in a page of harmless texts."""
    harmless, hostile = (_PageParser(_build_report(t).html()) for t in ("word", text))
    assert hostile.tags == harmless.tags
    assert [t == text for t in hostile.texts] == [t == "word" for t in harmless.texts]


@given(HOSTILE.filter(bool))
def test_texts_never_become_markdown_markup(text: str) -> None:
    """Witness: markdown-it, a CommonMark parser with GitHub's tables, shows all texts unchanged."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt("commonmark").enable("table")
    page = _PageParser(reader.render(_build_report(text).markdown()))
    harmless = _PageParser(reader.render(_build_report("word").markdown()))
    assert page.tags == harmless.tags
    assert [t == text for t in page.texts] == [t == "word" for t in harmless.texts]


def test_page_by_hand() -> None:
    report = Report(
        "Power",
        (
            Paragraph(("Without ", code("catch"), " trials.")),
            Table(("model", "accuracy", "note"), [("gpt2", 0.8125, "best")], notes=1),
        ),
    )
    assert report.markdown() == (
        "# Power\n\nWithout `catch` trials.\n\n"
        "| model | accuracy | note |\n| --- | ---: | --- |\n| gpt2 | 0.81 | best |\n"
    )
    assert "<p>Without <code>catch</code> trials.</p>" in report.html()
    assert '<tr><td>gpt2</td><td class="number">0.81</td><td>best</td></tr>' in report.html()


@pytest.mark.parametrize(
    ("message", "html"),
    [
        ("ask for `same_length`.", "ask for <code>same_length</code>."),
        ("`run` and `<plan>`", "<code>run</code> and <code>&lt;plan&gt;</code>"),
        ("a sentence with ` in it", "a sentence with ` in it"),
        ("``", "``"),
        ("", ""),
    ],
)
def test_names_in_messages_are_code(message: str, html: str) -> None:
    assert f"<p>{html}</p>" in Report("title", [Paragraph(with_code(message))]).html()


def test_error_for_rows_of_another_length() -> None:
    with pytest.raises(ValueError, match="A row has 1 cells, but the header has 2"):
        Table(("a", "b"), [("x",)])


@given(st.text(min_size=1))
def test_links_lead_to_files_next_to_the_page(path: str) -> None:
    """Witness: the URL parser of the standard library; a file name is never a scheme or host."""
    address = urlsplit(Span("file", "a", path).address)
    assert unquote(address.path) == f"./{path}"
    assert not any((address.scheme, address.netloc, address.query, address.fragment))


def test_common_parts_of_names_are_removed() -> None:
    assert short_names(["hf:runs/a/bert@chain", "hf:runs/gpt2"]) == ["bert@chain", "gpt2"]
    assert short_names(["hf:a/x/bert@chain", "hf:a/y/bert@chain", "hf:gpt2"]) == [
        *("x/bert@chain", "y/bert@chain", "hf:gpt2")
    ]
    assert short_names(["hf:gpt2+slor:dir/uni.arpa"]) == ["hf:gpt2+slor:dir/uni.arpa"]
    assert short_names(["kenlm:m.arpa", "m.arpa"]) == ["kenlm:m.arpa", "m.arpa"]


def test_long_names_keep_their_ends_and_are_numbered_if_equal() -> None:
    seeds = [f"hf:runs/seed{n}/bert-base-uncased-finetuned@pll-original" for n in (1, 2)]
    assert short_names([*seeds, "hf:runs/gpt2"]) == [
        "(1) …-finetuned@pll-original",
        "(2) …-finetuned@pll-original",
        "gpt2",
    ]
    assert short_names(["hf:runs/" + "x" * 30 + "@chain"]) == ["…" + "x" * 21 + "@chain"]


@given(st.lists(st.text("(12) …/x", min_size=24, max_size=34), max_size=8))
def test_shortened_names_are_equal_only_if_names_are(names: list[str]) -> None:
    short = shortened(names)
    assert all(len(name) <= 28 for name in short)
    assert len(set(short)) == len(set(names)) == len(set(zip(names, short, strict=True)))


_SIGNS = st.text(st.sampled_from("\\*`#|-+{}<&a "))


@given(value=_SIGNS.map(lambda text: f"x{text}x") | st.just("# heading\n\n- item\n| cell |"))
def test_template_values_are_plain_text(value: str) -> None:
    """Witness: the expected parts of the template, written by hand."""
    text = " ".join(value.split("\n")) if "\n\n" not in value else "# heading - item | cell |"
    report = fill_template("tests.reporting", "values.md.jinja", value=value)
    assert report == Report(
        text,
        [
            Paragraph(text),
            Paragraph((f"Before {text}, ", strong(text), ", ", code(text), ", and after.")),
            Bullets([text, f"{text} and 1,200"]),
            Table(["name", text, "note"], [[text, "0.5", (strong(text),)]] * 2, texts=1, notes=1),
        ],
    )


def test_missing_template_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        fill_template("tests.reporting", "values.md.jinja")
