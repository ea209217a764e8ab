"""Texts that a spreadsheet would run as a formula, escaped and back again.

A cell that begins with one of a few signs is a formula to Excel and LibreOffice, quoted or not. An
apostrophe in front makes it text. What already looks like that gets one more, so that
`unescape_formula` undoes `escape_formula` for every text.
"""

from __future__ import annotations

import re

from contstim.tables import FORMULA_SIGNS

_FORMULA = re.compile(f"'*[{re.escape(FORMULA_SIGNS)}]")


def escape_formula(text: str) -> str:
    """The text with an apostrophe in front, if a spreadsheet might take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unescape_formula(text: str) -> str:
    """The text without the apostrophe that `escape_formula` put there."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
