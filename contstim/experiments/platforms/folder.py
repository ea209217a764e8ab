"""Export to a folder, and templates of exported files.

Either all files of an export are written or none. A record (export.meta.json) describes the
export.
"""

from __future__ import annotations

import io
import os
import shutil
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.platform import Exported
from contstim.files.documents import read_json_object
from contstim.files.files import path_inside, write_text
from contstim.files.records import record_path, write_record
from contstim.files.tables import write_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """Create a temporary folder, whose files move into the target when the `with` block ends.

    Until then, the target is not changed. After an error, all new files and folders are removed.
    Other files in the target are kept.

    Raises:
        InputError: if the folder or a file in it cannot be written.
    """
    target = folder.resolve()
    missing = None
    try:
        if target.exists() and not target.is_dir():
            raise NotADirectoryError(None, "it is not a folder")
        # The outermost folder that is created here; removed after an error
        outermost_first = (*reversed(target.parent.parents), target.parent)
        missing = next((path for path in outermost_first if not path.exists()), None)
        target.parent.mkdir(parents=True, exist_ok=True)
        # If the target exists, the temporary folder is inside it, so that files move within one
        # file system
        work = (target if target.is_dir() else target.parent) / f".{os.getpid()}.partial"
        try:
            work.mkdir()
            yield work
            if not target.exists():
                work.rename(target)
            else:
                for path in sorted(work.rglob("*")):  # folders come before their content
                    destination = target / path.relative_to(work)
                    if path.is_dir():
                        destination.mkdir(exist_ok=True)
                    else:
                        path.replace(destination)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        missing = None
    except OSError as error:
        raise InputError(f"Cannot write {folder}: {error.strerror or error}.") from error
    finally:
        if missing is not None:
            shutil.rmtree(missing, ignore_errors=True)


def refuse_others(folder: Path, *, ours: Collection[str] = ()) -> None:
    """Raise an error if a path is a file, or a folder that contains files not in `ours`."""
    if folder.is_file():
        raise InputError(f"{folder} is a file. Name a folder.")
    if folder.is_dir() and not {path.name for path in folder.iterdir()} <= {*ours}:
        raise InputError(f"{folder} contains other files. Name a new folder.")


class ExportFolder:
    """A folder for an export; files of an earlier export to the same platform are replaced.

    `finish` writes all files, or none if there is an error.

    Raises:
        InputError: if the path is a file, a folder with an export to another platform, or a folder
            that contains files but no export.
    """

    def __init__(self, out: Path | str, platform: str) -> None:
        self.path = Path(out)
        self._platform = platform
        self._texts: dict[str, str] = {}  # name of a file → its content
        self._record = self.path / "export"  # that is, export.meta.json
        # The record of an earlier export names its files; without such a record, the folder must be
        # empty
        try:
            record = read_json_object(record_path(self._record))
            earlier_platform, files = record["platform"], [str(name) for name in record["files"]]
        except (OSError, ValueError, KeyError, TypeError):
            earlier_platform, files = platform, []
            refuse_others(self.path)
        if earlier_platform != platform:
            raise InputError(
                f"{self.path} contains an export to {earlier_platform}. Name another folder."
            )
        # Ignore paths outside the folder: an edited record must not delete other files
        inside = self.path.resolve()
        self._earlier = [
            name for name in files if (self.path / name).resolve().is_relative_to(inside)
        ]

    def rows(self, name: str, rows: Iterable[Mapping[str, object]], columns: Sequence[str]) -> None:
        """Add a CSV file of rows. Texts are in quotation marks; missing cells are empty."""
        rows, text = list(rows), io.StringIO(newline="")
        write_csv(text, {c: [row.get(c, "") for row in rows] for c in columns})
        self.text(name, text.getvalue())

    def lists(self, lists: Sequence[Sequence[Mapping[str, object]]]) -> None:
        """Add lists.csv, with the group of each presentation list; see `stimulus_lists`."""
        self.rows("lists.csv", [rows[0] for rows in lists], ("list_name", "group"))

    def text(self, name: str, text: str) -> None:
        """Add a text file.

        Raises:
            InputError: if another program has written a file of this name.
        """
        if path_inside(self.path, name).exists() and name not in self._earlier:
            raise InputError(
                f"{self.path} contains a file {name} that no export wrote. Move it to another "
                "folder."
            )
        self._texts[name] = text

    def readme(self, text: str | None = None, **facts: object) -> None:
        """Add README.md: `text`, or by default the platform's template, filled with `facts`."""
        template_text = template(f"{self._platform}.md") if text is None else text
        self.text("README.md", Template(template_text).substitute(facts))

    def finish(self, **facts: object) -> Exported:
        """Write all files and the record, and remove other files of an earlier export.

        `facts` are entries of the record in addition to platform and files.

        Raises:
            InputError: if a file cannot be written.
        """
        with staging_folder(self.path) as work:
            for name, text in self._texts.items():
                write_text(work / name, text)
            files = list(self._texts)
            write_record(work / self._record.name, platform=self._platform, files=files, **facts)
        # Files of the earlier export are removed last, so that an error loses nothing
        for name in self._earlier:
            if name not in self._texts:
                (self.path / name).unlink(missing_ok=True)
        readme = self.path / "README.md"
        return Exported(
            self.path, f"The export is in {self.path}/; {readme} describes the next steps."
        )


def template(name: str) -> str:
    """Return the text of a file in the folder `templates`."""
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def script(name: str, values: Mapping[str, object], literal: Callable[[Any], str]) -> str:
    """Return a program: a template in which values replace placeholders.

    The keys of `values` are the placeholders.
    `literal` converts a value to a literal of the program's language.
    """
    text = template(name)
    for placeholder, value in values.items():
        text = text.replace(placeholder, literal(value))
    return text
