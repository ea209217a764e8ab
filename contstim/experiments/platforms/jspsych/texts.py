"""Texts and tables of a page, which the researcher edits, and what is still to be filled in."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING

from contstim.documents import read_text, shortened
from contstim.errors import InputError
from contstim.files import write_text
from contstim.scale import Scale
from contstim.sentence import Sentence
from contstim.tables import parsed, read_csv, whole_number

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ("consent.md", "instructions.md", "debrief.md", "labels.csv", "examples.csv")
PRACTICE = "practice.csv"

_DEFAULTS = resources.files("contstim.experiments.platforms.jspsych") / "defaults"
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
    there = [name for name in (*TEXTS, PRACTICE) if (folder / name).exists()]
    texts = {name: _read(folder / name, name) for name in there}
    lacking = {
        name: (_DEFAULTS / name).read_text(encoding="utf-8") for name in TEXTS if name not in texts
    }
    # A table that is in its place already is not copied onto itself.
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
    # A page may go without examples, but neither without labels nor with empty practice.
    table = read_csv(path, delimiters=",;", may_be_empty=name == "examples.csv")
    missing = [column for column in _COLUMNS[name] if column not in table]
    if missing:
        raise InputError(
            f"{path} lacks the columns {', '.join(missing)}; it needs {', '.join(_COLUMNS[name])}."
        )
    # Labels have no sentences, so that nothing is parsed there.
    for sentence in ("sentence_1", "sentence_2"):
        parsed(path, sentence, table.get(sentence, ()), Sentence.parse, "sentence")
    if name == "examples.csv":
        parsed(path, "rating", table["rating"], _answer, f"answer; give {Scale.CONFIDENCE.meaning}")
    if name == "labels.csv":
        with resources.as_file(_DEFAULTS / name) as file:
            needed = read_csv(file)["name"]
        if missing := sorted({*needed} - {*table["name"]}):
            raise InputError(f"{path} lacks the labels {', '.join(missing)}. Add a row for each.")
        if len(set(table["name"])) < len(table["name"]):
            twice = Counter(table["name"]).most_common(1)[0][0]
            raise InputError(f"{path} has the label {shortened(twice)} twice; leave one out.")


def _answer(cell: str) -> int:
    return Scale.CONFIDENCE.answers.index(whole_number(cell))  # a ValueError where it is none


# Square brackets, but not those of a link, which an address in round brackets follows.
_BRACKETS = re.compile(r"\[[^\]\n]+\](?!\()")


def unfilled_warning(folder: Path) -> str:
    """Warning, before people come, of placeholders of our texts; empty where all are filled in."""
    # Brackets that the researcher writes are the researcher's own; only those of our texts count.
    defaults = "".join((_DEFAULTS / name).read_text(encoding="utf-8") for name in TEXTS)
    left = []
    for name in TEXTS:
        with suppress(OSError, UnicodeDecodeError):
            text = (folder / name).read_text(encoding="utf-8-sig")
            found = [each for each in dict.fromkeys(_BRACKETS.findall(defaults)) if each in text]
            left += [f"{name}: {', '.join(found)}"] if found else []
    if not left:
        return ""
    return (
        f"the texts of {folder} still hold placeholders, which participants would read. Edit them "
        f"before anybody takes part. {'; '.join(left)}"
    )
