"""Cells that a spreadsheet would run as a formula: escaped by a mark in front, and back again.

A cell that begins with one of a few signs is a formula to Excel and LibreOffice, quoted or not. A
mark in front makes it text: an apostrophe in tables that we read again, a no-break space where
people read the cell on a screen, who would see an apostrophe (and `Sentence.parse` reads past the
space). What already looks escaped gets one more mark, so that `unescape_formula` gives back every
text.
"""

from __future__ import annotations

import re

from contstim.tables import FORMULA_SIGNS

APOSTROPHE = "'"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def escape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """The text, with the mark in front if a spreadsheet might take it for a formula."""
    return f"{mark}{text}" if _is_formula(text, mark) else text


def unescape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """Text that `escape_formula` was given."""
    return text[1:] if text.startswith(mark) and _is_formula(text, mark) else text


def _is_formula(text: str, mark: str) -> bool:
    # Any number of marks: a text that begins with a mark and a sign gets one more, and loses one
    return re.match(f"{mark}*[{re.escape(FORMULA_SIGNS)}]", text) is not None
