"""Texts that a spreadsheet would run as a formula, made inert and back again.

A cell that begins with one of a few signs is a formula to Excel and LibreOffice, quoted or not. An
apostrophe in front makes it text. What already looks like that gets one more, so that `restored`
undoes `inert` for every text.
"""

from __future__ import annotations

import re

from contstim.tables import FORMULA_SIGNS

_FORMULA = re.compile(f"'*[{re.escape(FORMULA_SIGNS)}]")


def inert(text: str) -> str:
    """The text with an apostrophe in front, if a spreadsheet might take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def restored(text: str) -> str:
    """What `inert` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
