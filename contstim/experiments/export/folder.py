"""An export on disk: files, a README that says what to click, and a record."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files import write_text
from contstim.records import write_record
from contstim.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.experiments.export.lists import StimulusList


def start_folder(out: Path | str) -> Path:
    """A folder that may be filled: new, empty, or an earlier export.

    Raises:
        InputError: it holds something that no export wrote.
    """
    folder = Path(out)
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _RECORD).is_file():
        raise InputError(
            f"{folder} holds other files; name a new folder, so that nothing of them is replaced."
        )
    return folder


def write_rows(path: Path, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
    """Write rows as a CSV file, every text quoted, missing cells empty."""
    rows = list(rows)
    write_table(path, {name: [row.get(name, "") for row in rows] for name in columns})


def write_lists(
    folder: Path, lists: Sequence[StimulusList], columns: Sequence[str] = ("list", "group")
) -> None:
    """Write lists.csv: which group of the trials each list belongs to."""
    rows = [dict(zip(columns, (one.name, one.group), strict=True)) for one in lists]
    write_rows(folder / "lists.csv", rows, columns)


def template(name: str) -> str:
    """The text of a file that ships with this package."""
    home = resources.files("contstim.experiments.export") / "templates"
    return (home / name).read_text(encoding="utf-8")


def write_readme(folder: Path, name: str, **facts: object) -> None:
    """Write README.md from a template, its `$names` filled in."""
    write_text(folder / "README.md", Template(template(name)).substitute(facts))


def finish_folder(folder: Path, platform: str, **facts: object) -> None:
    """Write the record of an export: command, versions, seed and whatever else made it."""
    write_record(folder / "export", platform=platform, **facts)


_RECORD = "export.meta.json"
