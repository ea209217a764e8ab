"""What PsychoPy makes of the cells of a conditions file, and how a text stays a text.

Facts from the source of PsychoPy (`psychopy/data/utils.py`, `importConditions`) and of PsychoJS
(`TrialHandler.importConditions`, `util.turnSquareBracketsIntoArrays`; it reads CSV with SheetJS),
which disagree, so that a cell must pass both:

* a cell in square brackets is evaluated as Python; in a browser brackets anywhere make a list (in
  Excel files round brackets are evaluated too);
* a cell that is a number once its commas are points becomes one; in a browser so does a date;
* what pandas takes for missing (NA, None, null, …) becomes None, true and false truth values;
* a backslash and an n become a new line;
* in a browser what begins with = is a formula.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.experiments.platforms.cells import NO_BREAK_SPACE, guarded

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = frozenset("#n/a #na <na> n/a na null none true false".split())
_ROUND = re.compile(r"\(.*\)", re.DOTALL)
_LIST = re.compile(r"\[.*\]", re.DOTALL)
_DATE_WORD = re.compile(
    r"jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|"
    r"oct(ober)?|nov(ember)?|dec(ember)?|[ap]m",
    re.IGNORECASE,
)


def psychopy_cell(text: str) -> str:
    """The text as a cell that PsychoPy and PsychoJS both show as it is.

    A no-break space before it, which is not seen, quotes what begins like a formula, stands in
    round brackets, or is a word for missing or true.

    Raises:
        InputError: no quoting helps (`unquotable`).
    """
    problem = unquotable(text)
    if problem:
        raise InputError(f"PsychoPy would not show {_short(text)} as it is: {problem}.")
    if text.lower() in _WORDS or _ROUND.fullmatch(text):
        return NO_BREAK_SPACE + text
    return guarded(text)


def unquotable(text: str) -> str:
    """Why no quoting makes PsychoPy show a text as it is; empty where one does, or none is needed.

    Square brackets, a number, a date, a backslash before an n.
    """
    if _LIST.search(text):
        return "it evaluates what stands in square brackets"
    if "\\n" in text:
        return "it takes a backslash and an n for a new line"
    if _is_number(text):
        return "it takes the text for a number"
    if not any(letter.isalpha() for letter in _DATE_WORD.sub("", text)):
        return "it may take the text for a number or a date"
    return ""


def _is_number(text: str) -> bool:
    def reads(kind: Callable[[str], float]) -> bool:
        try:
            kind(text.replace(",", "."))
        except ValueError:
            return False
        return True

    return reads(float) or reads(lambda digits: int(digits, 0))  # 0x1F is one in a browser


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
