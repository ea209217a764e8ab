"""Results made anew against the archived ones: equal byte for byte, or different in what."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.checksums import checksum
from contstim.documents import parse_json, read_text
from contstim.errors import ContstimError
from contstim.study.handing_on.manifest import ARCHIVED_RESULTS, read_manifest
from contstim.study.study import RESULTS
from contstim.tables import TABLE_KINDS, read_table
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.study.study import Study

_TEXTS = (".txt", ".arpa")  # sentences, words and n-grams: lines as a table has rows
_OF_THE_RUN = frozenset(
    {
        *("date", "environment", "versions", "command", "size", "tokens_per_second"),
        *("seconds", "cpu_seconds", "wall_seconds", "training_seconds"),
    }
)
"""What records say of a run, and not of its result."""


class FileOutcome(StrEnum):
    """Outcome of comparing a result that was made anew with the archived one."""

    SAME = "the same bytes"
    SAME_RESULT = "the same but for dates, times and versions"
    DIFFERENT = "different"
    MISSING = "not made"
    UNREADABLE = "different, and the archived file is not there to say in what"


@dataclass(frozen=True)
class ComparedFile:
    """A result that was made anew, against the archived one.

    Attributes:
        name: in the folder of results.
        outcome: how they compare.
        difference: in what they differ, in words; empty where they do not.
        is_table: whether it is a table or a text, which must be the same.
    """

    name: str
    outcome: FileOutcome
    difference: str
    is_table: bool


@dataclass(frozen=True)
class ArchiveComparison:
    """All results of a study against the archived ones.

    Attributes:
        files: each archived result, in order of name.
    """

    files: tuple[ComparedFile, ...]

    @property
    def differing(self) -> tuple[ComparedFile, ...]:
        """Those that differ in more than dates, times and versions, or were not made."""
        same = (FileOutcome.SAME, FileOutcome.SAME_RESULT)
        return tuple(file for file in self.files if file.outcome not in same)

    @property
    def tables_differ(self) -> bool:
        """True if any table or text differs, or was not made."""
        return any(file.is_table for file in self.differing)

    def __str__(self) -> str:
        same = sum(file.outcome is FileOutcome.SAME for file in self.files)
        records = sum(file.outcome is FileOutcome.SAME_RESULT for file in self.files)
        text = f"{same:,} of {counted(len(self.files), 'archived result')} equal byte for byte"
        if records:
            text += f", {records:,} but for dates, times and versions"
        differing = len(self.differing)
        return f"{text}; {differing:,} differ." if differing else f"{text}."


def compare_with_archive(study: Study) -> ArchiveComparison | None:
    """Compare the results of a study with those of the archive that it was unpacked from.

    None where the study is not from an archive, or its file has changed since, so that results are
    to differ.

    Raises:
        InputError: the archive's list is damaged.
    """
    manifest = read_manifest(study.folder)
    if manifest is None or study.path.name != manifest.study:
        return None
    recorded = {file.name: file.sha256 for file in manifest.files}
    if checksum(study.path) != f"sha256:{recorded.get(manifest.study)}":
        return None
    return ArchiveComparison(
        tuple(
            _compared(file.name, f"sha256:{file.sha256}", study.folder)
            for file in sorted(manifest.results, key=lambda file: file.name)
        )
    )


def _compared(name: str, before: str, folder: Path) -> ComparedFile:
    new, old = folder / RESULTS / name, folder / ARCHIVED_RESULTS / name
    ending = Path(name).suffix
    is_table = ending in TABLE_KINDS or ending in _TEXTS
    if not new.is_file():
        return ComparedFile(name, FileOutcome.MISSING, "", is_table)
    if checksum(new) == before:
        return ComparedFile(name, FileOutcome.SAME, "", is_table)
    if not old.is_file():
        return ComparedFile(name, FileOutcome.UNREADABLE, "", is_table)
    try:
        if ending == ".json":
            difference = _of_records(old, new)
        elif ending in TABLE_KINDS:
            difference = _of_tables(old, new)
        elif ending in _TEXTS:
            difference = _of_lines(old, new)
        else:
            difference = "other bytes"
    except ContstimError as error:
        difference = str(error)
    outcome = FileOutcome.DIFFERENT if difference else FileOutcome.SAME_RESULT
    return ComparedFile(name, outcome, difference, is_table)


def _of_records(old: Path, new: Path) -> str:
    """The entries in which two records differ; empty where only what they say of the run does."""
    before, after = (parse_json(read_text(path), path) for path in (old, new))
    names = list(dict.fromkeys(_entries(before, after, "")))
    return f"in {_listed(names)}" if names else ""


def _entries(old: Any, new: Any, place: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys((*old, *new)):
            # A study that is done again reads the archived allotment, which the first one made
            if name not in _OF_THE_RUN and f"{ARCHIVED_RESULTS}/" not in name:
                inside = f"{place}.{name}" if place else name
                yield from _entries(old.get(name), new.get(name), inside)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for first, second in zip(old, new, strict=True):
            yield from _entries(first, second, place)
    # Files whose checksums stand in a record are compared themselves
    elif json.dumps(old) != json.dumps(new) and not (_is_checksum(old) and _is_checksum(new)):
        yield place


def _is_checksum(value: object) -> bool:
    return isinstance(value, str) and value.startswith("sha256:")


def _of_tables(old: Path, new: Path) -> str:
    """In what two tables differ: columns, rows, cells, and the largest difference of numbers."""
    before = read_table(old, may_be_empty=True)
    after = read_table(new, may_be_empty=True)
    if list(before) != list(after):
        gone, more = set(before) - set(after), set(after) - set(before)
        parts = [
            f"{what} {_listed(sorted(names))}"
            for what, names in (("without the columns", gone), ("with the columns", more))
            if names
        ]
        return "; ".join(parts) or "columns in another order"
    rows = [len(next(iter(table.values()), [])) for table in (before, after)]
    if rows[0] != rows[1]:
        return f"{counted(rows[1], 'row')} in place of {rows[0]:,}"
    notes = []
    for name in before:
        cells = list(zip(before[name], after[name], strict=True))
        numbers = [_both_numbers(*pair) for pair in cells]
        gaps = [abs(pair[0] - pair[1]) for pair in numbers if pair and pair[0] != pair[1]]
        texts = sum(
            pair is None and cell[0] != cell[1] for pair, cell in zip(numbers, cells, strict=True)
        )
        if gaps:
            notes.append(f"{name}: {counted(len(gaps), 'number')}, by {max(gaps):.3g} at most")
        if texts:
            notes.append(f"{name}: {counted(texts, 'text')}")
    # Equal cells that are written otherwise, such as 1 and 1.0
    return "; ".join(notes) or "the same cells, written otherwise"


def _both_numbers(old: object, new: object) -> tuple[float, float] | None:
    """Two cells as numbers; nan equals nan. None where either is a text."""
    try:
        first, second = float(str(old)), float(str(new))
    except ValueError:
        return None
    if math.isnan(first) and math.isnan(second):
        return 0.0, 0.0
    return first, second


def _of_lines(old: Path, new: Path) -> str:
    lines = zip_longest(read_text(old).split("\n"), read_text(new).split("\n"))
    places = [number for number, (first, second) in enumerate(lines, 1) if first != second]
    return f"{counted(len(places), 'line')}, the first of them line {places[0]:,}" if places else ""


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"
