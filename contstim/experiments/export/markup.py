"""Texts as HTML that reads the same to a person and means nothing to a machine."""

from __future__ import annotations

_PLAIN = frozenset(" ,.;:?!'’")


def as_html(text: str) -> str:
    """A text of which only letters, digits and common punctuation stand as they are.

    All else that can be seen is a numeric character reference, which HTML and CommonMark show as
    the character and never take for structure (CommonMark 0.31, section 2.5). So nothing is left
    for HTML, Markdown, piped text (`${…}`), tags in double brackets, or a spreadsheet that looks
    for a formula.
    `html.unescape` gives the text back.
    """
    return "".join(
        letter
        if letter in _PLAIN or letter.isalnum() or not letter.isprintable()
        else f"&#{ord(letter)};"
        for letter in text
    )
