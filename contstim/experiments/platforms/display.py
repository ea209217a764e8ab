"""Display of a trial to people: two sentences and six buttons, as text and as HTML."""

from __future__ import annotations

import re

QUESTION = (
    "Which of these two sentences are you more likely to come across in the world, spoken or "
    "written?"
)
BUTTONS = (
    "very confident: left",
    "confident: left",
    "somewhat confident: left",
    "somewhat confident: right",
    "confident: right",
    "very confident: right",
)
"""From left (1) to right (6)."""

BUTTON_LIST = "\n".join(f"   {n}. {label}" for n, label in enumerate(BUTTONS, start=1))
"""Markdown, indented so that it stands inside an item of another list."""


_MEANS_SOMETHING = re.compile(
    r"[&<>=@*_#`~|\\^$+\[\]{}]"  # HTML, Markdown, piped text, double brackets
    r"|^[-\d＝＋－＠]"  # lists, and what spreadsheets take for formulas
)


def as_html(text: str) -> str:
    """The text with each character that means anything as a numeric character reference.

    HTML and CommonMark show such a reference as the character and never take it for structure
    (CommonMark 0.31, section 2.5). So nothing is left for HTML, Markdown, piped text (`${…}`), tags
    in double brackets, or a spreadsheet that looks for a formula. `html.unescape` gives the text
    back.

    Args:
        text: what is displayed, so on one line.
    """
    return _MEANS_SOMETHING.sub(lambda match: f"&#{ord(match[0])};", text)
