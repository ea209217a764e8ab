"""Texts and tables of a page, which the researcher edits, and what is still to be filled in."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from contstim.documents import read_text, shortened
from contstim.errors import InputError
from contstim.files import write_text
from contstim.sentence import Sentence
from contstim.tables import number, parsed, read_csv

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ("consent.md", "instructions.md", "debrief.md", "labels.csv", "examples.csv")
PRACTICE = "practice.csv"

_COLUMNS = {
    "labels.csv": ("name", "text"),
    "examples.csv": ("sentence_1", "sentence_2", "rating", "explanation"),
    PRACTICE: ("sentence_1", "sentence_2"),
}


def keep_texts(folder: Path, practice: Path | None, *, into: Path) -> dict[str, str]:
    """Write the texts that a folder lacks, and read all of them as they stand.

    Nothing is written before all that is there has been read.

    Args:
        folder: of an earlier export, or none.
        practice: a table to take its place; None: what is there.
        into: where texts are written that the folder lacks.

    Raises:
        InputError: a text cannot be read, or a table lacks a column or holds what it cannot.
    """
    defaults = resources.files("contstim.experiments.platforms.jspsych") / "defaults"
    there = [name for name in (*TEXTS, PRACTICE) if (folder / name).exists()]
    texts = {name: _read(folder / name, name) for name in there}
    lacking = {
        name: (defaults / name).read_text(encoding="utf-8") for name in TEXTS if name not in texts
    }
    if practice is not None and practice.resolve() != (folder / PRACTICE).resolve():
        lacking[PRACTICE] = _read(practice, PRACTICE)
    for name, text in lacking.items():
        write_text(into / name, text)
    texts |= lacking
    return {name: texts[name] for name in (*TEXTS, PRACTICE) if name in texts}


def _read(path: Path, name: str) -> str:
    if name in _COLUMNS:
        _check_table(path, name)
    text = read_text(path)
    if "\0" in text:
        raise InputError(f"{path} holds null characters: save it as a text in UTF-8.")
    return text


def _check_table(path: Path, name: str) -> None:
    table = read_csv(path, delimiters=",;", may_be_empty=name == "examples.csv")
    missing = [column for column in _COLUMNS[name] if column not in table]
    if missing:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing)}; it needs {', '.join(_COLUMNS[name])}."
        )
    for sentence in ("sentence_1", "sentence_2"):
        parsed(path, sentence, table.get(sentence, ()), Sentence.parse, "sentence")
    for row, rating in enumerate(table.get("rating", ()), start=1):
        if name == "examples.csv" and not _on_the_scale(rating):
            raise InputError(
                f"{path}, row {row}: {shortened(rating)} under rating is not an answer; "
                "give 1 (very confident in sentence_1) to 6 (very confident in sentence_2)."
            )
    if name == "labels.csv":
        _check_labels(path, table["name"])


def _on_the_scale(cell: str) -> bool:
    try:
        return number(cell, whole=True) in range(1, 7)
    except ValueError:
        return False


def _check_labels(path: Path, names: list[str]) -> None:
    defaults = resources.files("contstim.experiments.platforms.jspsych") / "defaults" / "labels.csv"
    with resources.as_file(defaults) as file:
        missing = set(read_csv(file)["name"]) - set(names)
    if missing:
        raise InputError(f"{path} lacks the labels {', '.join(sorted(missing))}.")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"{path} has the label {shortened(twice[0])} twice; leave one out.")


_BRACKETS = re.compile(r"\[[^\]\n]+\](?!\()")  # but no links
_EARLIER = ("[minutes]",)  # of texts that earlier versions wrote


def unfilled(folder: Path) -> dict[str, tuple[str, ...]]:
    """For each text of a page, the placeholders of our defaults that it still holds.

    Texts without any are left out, as are files that cannot be read.
    """
    found = {}
    for name in TEXTS:
        try:
            text = (folder / name).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            continue
        left = tuple(one for one in _placeholders() if one in text)
        if left:
            found[name] = left
    return found


def unfilled_warning(folder: Path) -> str:
    """What to say of them before people come; empty where all is filled in."""
    found = unfilled(folder)
    if not found:
        return ""
    listed = "; ".join(f"{name}: {', '.join(left)}" for name, left in found.items())
    return (
        f"the texts of {folder} still hold placeholders, which participants would read. Edit them "
        f"before anybody takes part. {listed}"
    )


@cache
def _placeholders() -> tuple[str, ...]:
    defaults = resources.files("contstim.experiments.platforms.jspsych") / "defaults"
    texts = [(defaults / name).read_text(encoding="utf-8") for name in TEXTS]
    found = [place for text in texts for place in _BRACKETS.findall(text)]
    return tuple(dict.fromkeys((*found, *_EARLIER)))
