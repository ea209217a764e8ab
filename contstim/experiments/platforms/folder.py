"""Files of platforms: an export on disk, all or nothing, with its record; tables read."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.platform import Exported
from contstim.files.documents import read_json_object
from contstim.files.files import path_inside, write_text
from contstim.files.records import record_path, write_record
from contstim.files.tables import cells_by_name, read_csv, write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A new folder to write into, whose files move into the target when all are written.

    Until then nothing of the target is touched, and what fails leaves nothing behind, not even the
    folders made for it. Other files of the target stay as they are.

    Raises:
        InputError: the folder, or a file in it, cannot be written.
    """
    target = folder.resolve()
    missing = None
    try:
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(None, "it is not a folder")
        # The outermost folder that is made here goes away again if anything fails.
        outermost_first = (*reversed(target.parent.parents), target.parent)
        missing = next((path for path in outermost_first if not path.exists()), None)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Inside the target where there is one, so that moving stays within a file system.
        work = (target if target.is_dir() else target.parent) / f".{os.getpid()}.partial"
        try:
            work.mkdir()
            yield work
            if not target.exists():
                work.rename(target)
            else:
                for path in sorted(work.rglob("*")):  # a folder comes before what it holds
                    place = target / path.relative_to(work)
                    if path.is_dir():
                        place.mkdir(exist_ok=True)
                    else:
                        path.replace(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        missing = None
    except OSError as error:
        raise InputError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        if missing is not None:
            shutil.rmtree(missing, ignore_errors=True)


def refuse_others(folder: Path, *, ours: Collection[str] = ()) -> None:
    """Refuse a folder in which something might be replaced.

    Args:
        folder: new, empty, or of an earlier export.
        ours: names that it may hold.

    Raises:
        InputError: it is a file, or holds something else.
    """
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder.")
    if folder.is_dir() and not {path.name for path in folder.iterdir()} <= {*ours}:
        raise InputError(f"{folder} holds other files; name a new folder.")


class ExportFolder:
    """A folder that is filled, new or of an earlier export to a platform, whose files give way.

    Nothing is written before `finish`, and then all or nothing.

    Args:
        out: the folder.
        platform: its name.

    Raises:
        InputError: it is a file, or holds something that no export to this platform wrote.
    """

    def __init__(self, out: Path | str, platform: str) -> None:
        self.path = Path(out)
        self._platform = platform
        self._pending: dict[str, Callable[[Path], None]] = {}
        self._record = self.path / "export"  # that is, export.meta.json
        # A folder that holds anything must be an earlier export, whose record names its files.
        try:
            record = read_json_object(record_path(self._record))
            earlier_platform, files = record["platform"], [str(name) for name in record["files"]]
        except (OSError, ValueError, KeyError, TypeError):
            earlier_platform, files = platform, []
            refuse_others(self.path)
        if earlier_platform != platform:
            raise InputError(
                f"{self.path} holds an export to {earlier_platform}; name another folder."
            )
        # A record that somebody edited must not make us delete what lies elsewhere.
        inside = self.path.resolve()
        self._earlier = [
            name for name in files if (self.path / name).resolve().is_relative_to(inside)
        ]

    def rows(self, name: str, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
        """Write rows as a CSV file, every text quoted, missing cells empty."""
        rows = list(rows)
        table = {c: [row.get(c, "") for row in rows] for c in columns}
        self._add(name, partial(write_table, columns=table))

    def lists(self, lists: Sequence[Sequence[Mapping[str, object]]]) -> None:
        """Write lists.csv: which group of the trials each list of rows belongs to."""
        self.rows("lists.csv", [rows[0] for rows in lists], ("list_name", "group"))

    def text(self, name: str, text: str) -> None:
        """Write a text."""
        self._add(name, partial(write_text, text=text))

    def readme(self, text: str | None = None, **facts: object) -> None:
        """Write README.md, its `$names` filled in; by default our template for the platform."""
        form = template(f"{self._platform}.md") if text is None else text
        self.text("README.md", Template(form).substitute(facts))

    def finish(self, **facts: object) -> Exported:
        """Write everything and the record, and remove what an earlier export left.

        Args:
            facts: what the record tells, beside the platform.

        Raises:
            InputError: a file cannot be written.
        """
        with staged(self.path) as work:
            for name, write in self._pending.items():
                write(work / name)
            files = list(self._pending)
            write_record(work / self._record.name, platform=self._platform, files=files, **facts)
        # Files that only the earlier export had go last: until here nothing of it was lost.
        for name in self._earlier:
            if name not in self._pending:
                (self.path / name).unlink(missing_ok=True)
        readme = self.path / "README.md"
        return Exported(self.path, f"Everything is in {self.path}/; {readme} says what to do next.")

    def _add(self, name: str, write: Callable[[Path], None]) -> None:
        # While the export is put together, so before anything is written.
        if path_inside(self.path, name).exists() and name not in self._earlier:
            raise InputError(f"{self.path} holds a file {name} that no export wrote; move it away.")
        self._pending[name] = write


def template_path(name: str) -> AbstractContextManager[Path]:
    """A file that ships with this package, for as long as the context lasts."""
    return resources.as_file(resources.files(__package__) / "templates" / name)


def template(name: str) -> str:
    """The text of a file that ships with this package."""
    with template_path(name) as path:
        return path.read_text(encoding="utf-8")


def script(name: str, values: Mapping[str, object], literal: Callable[[Any], str]) -> str:
    """A program that ships with this package, with values in place of their names.

    Args:
        name: of the file.
        values: by the names that stand for them.
        literal: how the program's language writes a value.
    """
    text = template(name)
    for of_value, value in values.items():
        text = text.replace(of_value, literal(value))
    return text


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by the names of its columns, without spaces around cells.

    Raises:
        InputError: the file cannot be read or is not a table.
    """
    table = read_csv(path)
    return cells_by_name({name: [*map(str.strip, cells)] for name, cells in table.items()})
