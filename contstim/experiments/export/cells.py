"""Texts in the cells of a spreadsheet."""

from __future__ import annotations

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def guarded(text: str) -> str:
    """The text, after a no-break space where a spreadsheet would take it for a formula.

    What a spreadsheet calculates begins with `=`, `+`, `-`, `@`, a tab or a carriage return (OWASP,
    *CSV Injection*). The space is not seen, and `Sentence.parse` reads past it.
    """
    return NO_BREAK_SPACE + text if text.startswith((*_FORMULA, "\t", "\r", "\n")) else text
