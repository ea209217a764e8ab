"""Texts in the cells of a spreadsheet."""

from __future__ import annotations

from contstim.tables import FORMULA_SIGNS

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def guarded(text: str) -> str:
    """The text, after a no-break space where a spreadsheet would take it for a formula.

    The space is not seen, and `Sentence.parse` reads past it.
    """
    return NO_BREAK_SPACE + text if text.startswith(tuple(FORMULA_SIGNS)) else text
