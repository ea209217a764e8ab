"""Default texts for participants: a folder for each language.

A line may begin with marks in braces, such as `{choice,slider}`. A mark names a property of a page.
The line appears only on pages with at least one of these properties.
"""

from __future__ import annotations

import csv
import re
from importlib import resources
from typing import TYPE_CHECKING, Annotated, TypeAlias

from contstim.errors import InputError
from contstim.items.scale import Scale
from contstim.options import Help

if TYPE_CHECKING:
    from collections.abc import Collection

LANGUAGES = ("en", "de", "fr", "es", "nl", "zh")
Language: TypeAlias = Annotated[
    str,
    Help(f"Language of sentences and texts: {', '.join(LANGUAGES)}. A region may follow: de-AT."),
]

_MARK = re.compile(
    r"\{((?:confidence|choice|slider|break|deadline|practice|check|lists|title|personal_code|no_code|,)+)\}"
)


def has_texts(language: str) -> bool:
    """Return whether there are texts in a language; a region (`AT` in `de-AT`) is ignored."""
    return _without_region(language) in LANGUAGES


def _without_region(language: str) -> str:
    return language.partition("-")[0].lower()


def text_of(name: str, language: str, marks: Collection[str] = ()) -> str:
    """Return a text: lines without a mark, and lines with one of `marks`.

    Raises:
        InputError: if there are no texts in the language.
    """
    if not has_texts(language):
        raise InputError(
            f"`language` must be one of {', '.join(LANGUAGES)} for {name}, got {language!r}. "
            "Set one of these, or write your own text in the folder of an exported page."
        )
    text = (resources.files(__package__) / _without_region(language) / name).read_text(
        encoding="utf-8"
    )
    lines = [(line, _MARK.match(line)) for line in text.splitlines(keepends=True)]
    return "".join(
        line[mark.end() if mark else 0 :]
        for line, mark in lines
        if mark is None or {*marks} & {*mark[1].split(",")}
    )


def labels(language: str, *marks: str) -> dict[str, str]:
    """Return short texts by name; see `text_of`."""
    _, *rows = csv.reader(text_of("labels.csv", language, marks).splitlines())
    return dict(rows)


BUTTONS = {
    Scale.CONFIDENCE: ("very_confident", "confident", "somewhat_confident"),
    Scale.CHOICE: ("choose",),
}
"""Scale → names of button labels, from the left button to the middle."""


def button_labels(scale: Scale, language: str) -> tuple[str, ...]:
    """Return the labels of a row of buttons from left to right."""
    words = labels(language, "lists", scale)
    if scale is Scale.CHOICE:
        return words["left"], words["right"]
    names = BUTTONS[scale]
    return tuple(
        words["on_side"].replace("{word}", words[name]).replace("{side}", words[side])
        for side, of_side in (("left", names), ("right", names[::-1]))
        for name in of_side
    )
