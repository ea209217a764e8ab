"""An export on disk, all or nothing: files, a README that says what to click, a record."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from functools import partial
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.experiments.platforms.lists import StimulusList


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A new folder to write into, whose files move into the target when all are written.

    Until then nothing of the target is touched, and what fails leaves nothing behind, not even the
    folders made for it. Other files of the target stay as they are.

    Raises:
        InputError: the folder, or a file in it, cannot be written.
    """
    target = folder.resolve()
    made = None
    try:
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(None, "it is not a folder")
        made = _make_folder(target.parent)
        work = _work_folder(target)
        try:
            work.mkdir()
            yield work
            _move(work, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        made = None
    except OSError as error:
        raise InputError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def _work_folder(target: Path) -> Path:
    """Inside the target where there is one, so that moving stays within a file system."""
    place = target if target.is_dir() else target.parent
    return place / f".{os.getpid()}.partial"


def _make_folder(folder: Path) -> Path | None:
    """Make a folder; the outermost one that was missing, None where there was none."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[-1] if missing else None


def _move(work: Path, target: Path) -> None:
    if not target.exists():
        work.rename(target)
        return
    for path in sorted(work.rglob("*")):
        place = target / path.relative_to(work)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            path.replace(place)


class ExportFolder:
    """A folder that is filled, new or of an earlier export, whose files give way.

    Nothing is written before `finish`, and then all or nothing.

    Raises:
        InputError: it is a file, or holds something that no export wrote.
    """

    def __init__(self, out: Path | str) -> None:
        self.path = Path(out)
        self._pending: dict[str, Callable[[Path], None]] = {}
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
        table = {c: [row.get(c, "") for row in rows] for c in columns}
        self._add(name, partial(write_table, columns=table))

    def lists(self, lists: Sequence[StimulusList]) -> None:
        """Write lists.csv: which group of the trials each list belongs to."""
        rows = [{"list_name": one.name, "group": one.group} for one in lists]
        self.rows("lists.csv", rows, ("list_name", "group"))

    def text(self, name: str, text: str) -> None:
        """Write a text."""
        self._add(name, partial(write_text, text=text))

    def readme(self, name: str, **facts: object) -> None:
        """Write README.md from a template, its `$names` filled in."""
        self.text("README.md", Template(template(name)).substitute(facts))

    def finish(
        self, platform: str, *, check: Callable[[Path], object] | None = None, **facts: object
    ) -> Path:
        """Write everything and the record, and remove what an earlier export left.

        Args:
            platform: stands in the record, with the facts.
            check: looks at what is written before it takes its place; may raise.
            facts: what the record tells.

        Returns:
            The folder.

        Raises:
            InputError: a file cannot be written.
        """
        with staged(self.path) as work:
            for name, write in self._pending.items():
                write(work / name)
            files = list(self._pending)
            write_record(work / self._record.name, platform=platform, files=files, **facts)
            if check is not None:
                check(work)
        for name in self._earlier or ():
            if name not in self._pending:
                (self.path / name).unlink(missing_ok=True)
        return self.path

    def _add(self, name: str, write: Callable[[Path], None]) -> None:
        if (self.path / name).exists() and name not in (self._earlier or ()):
            raise InputError(
                f"{self.path} holds a file {name} that no export wrote; move it away or name "
                "another folder, so that it is not replaced."
            )
        self._pending[name] = write

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
    home = resources.files("contstim.experiments.platforms") / "templates"
    return (home / name).read_text(encoding="utf-8")
