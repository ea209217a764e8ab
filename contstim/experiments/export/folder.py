"""An export on disk: files, a README that says what to click, and a record."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from contstim.documents import read_json_object
from contstim.errors import InputError
from contstim.files import write_text
from contstim.records import record_path, write_record
from contstim.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.experiments.export.lists import StimulusList


class ExportFolder:
    """A folder that is filled, new or of an earlier export, whose files give way.

    Raises:
        InputError: it is a file, or holds something that no export wrote.
    """

    def __init__(self, out: Path | str) -> None:
        self.path = Path(out)
        self._written: list[str] = []
        self._record = self.path / "export"
        if self.path.is_file():
            raise InputError(f"{self.path} is a file; name a folder.")
        self._earlier = self._read_record()
        if self._earlier is None and self.path.is_dir() and any(self.path.iterdir()):
            raise InputError(
                f"{self.path} holds other files; name a new folder, so that nothing of them is "
                "replaced."
            )

    def rows(self, name: str, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
        """Write rows as a CSV file, every text quoted, missing cells empty."""
        rows = list(rows)
        write_table(self._file(name), {c: [row.get(c, "") for row in rows] for c in columns})

    def lists(self, lists: Sequence[StimulusList]) -> None:
        """Write lists.csv: which group of the trials each list belongs to."""
        rows = [{"list_name": one.name, "group": one.group} for one in lists]
        self.rows("lists.csv", rows, ("list_name", "group"))

    def text(self, name: str, text: str) -> None:
        """Write a text."""
        write_text(self._file(name), text)

    def readme(self, name: str, **facts: object) -> None:
        """Write README.md from a template, its `$names` filled in."""
        self.text("README.md", Template(template(name)).substitute(facts))

    def finish(self, platform: str, **facts: object) -> Path:
        """Remove what an earlier export left, and write the record; gives the folder."""
        for name in self._earlier or ():
            if name not in self._written:
                (self.path / name).unlink(missing_ok=True)
        write_record(self._record, platform=platform, files=self._written, **facts)
        return self.path

    def _file(self, name: str) -> Path:
        self._written.append(name)
        return self.path / name

    def _read_record(self) -> list[str] | None:
        """The files of an earlier export that are inside the folder; nothing without a record."""
        try:
            found = read_json_object(record_path(self._record))
            files = [str(name) for name in found["files"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        inside = self.path.resolve()
        return [name for name in files if (self.path / name).resolve().is_relative_to(inside)]


def template(name: str) -> str:
    """The text of a file that ships with this package."""
    home = resources.files("contstim.experiments.export") / "templates"
    return (home / name).read_text(encoding="utf-8")
