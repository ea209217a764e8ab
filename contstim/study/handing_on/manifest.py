"""List of an archive: every file with its size and checksum, and the files to supply."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

from contstim.errors import ContstimError, InputError
from contstim.files.documents import FORMAT, read_json_object, refuse_other_format
from contstim.files.files import checksum, decoding, path_inside
from contstim.files.tables import join_names
from contstim.study.study import ARCHIVED
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST, ENVIRONMENT = "archive.json", "environment.json"
ARCHIVED_RESULTS = ARCHIVED.as_posix()
"""Folder of the archived results, next to the study file."""


@dataclass(frozen=True)
class ArchivedFile:
    """A file of an archive.

    Attributes:
        name: its path, from the study file's folder.
        sha256: of its content, in hexadecimal digits.
        size: bytes.
    """

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """List of the files in an archive, and of the files left out.

    Attributes:
        title: title of the study.
        study: the name of the study file.
        date: when the archive was made, UTC.
        contstim: version that wrote the archive.
        files: all files of the archive except this list.
        results: the archived results, as files of the folder `results`.
        to_supply: inputs that were left out, with their paths.
        left_out: results that were left out.
        hub_models: loaded by name and not part of it: name, location, commit (`revision`; empty
            where it is not known), fingerprint (empty where no scores were made).
        as_it_is: what did not hold when the archive was made; empty if everything did.
        format: of the list.
    """

    title: str
    study: str
    date: str
    contstim: str
    files: tuple[ArchivedFile, ...]
    results: tuple[ArchivedFile, ...]
    to_supply: tuple[ArchivedFile, ...]
    left_out: tuple[ArchivedFile, ...]
    hub_models: tuple[dict[str, str], ...]
    as_it_is: tuple[str, ...]
    format: int = FORMAT

    @property
    def json(self) -> str:
        """The content of `archive.json`."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


def read_manifest(folder: Path) -> Manifest | None:
    """The list of the archive that was unpacked into a folder; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    from pydantic import TypeAdapter, ValidationError

    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content = read_json_object(path)
        refuse_other_format(path, content)
        manifest: Manifest = TypeAdapter(Manifest).validate_python(content)
        for file in (*manifest.files, *manifest.results, *manifest.to_supply):
            path_inside(folder, file.name)
    except (ContstimError, ValidationError) as error:
        raise InputError(
            f"{path} is not the list of an archive, or is damaged: unpack the archive again, or "
            f"remove the file. {error}"
        ) from error
    return manifest


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder of an archive that is a zip, for the time of a `with` statement.

    Raises:
        InputError: it is no zip, has a file twice or one outside its folder, or is damaged.
    """
    with TemporaryDirectory() as scratch:
        with decoding(path, "a zip of an archive"), ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            if twice := find_duplicates(names):
                raise InputError(f"{twice[0]} is in it twice")
            for name in names:
                path_inside(scratch, name)
            # An archive is one folder, named for the zip; macOS adds another folder
            roots = {name.partition("/")[0] for name in names} - {"__MACOSX"}
            if len(roots) > 1 and any(f"{root}/{MANIFEST}" in names for root in roots):
                raise InputError(
                    f"an archive is one folder, but it has {join_names(sorted(roots))}"
                )
            archive.extractall(scratch)
        (root,) = roots if len(roots) == 1 else ("",)
        inside = Path(scratch) / root
        yield inside if inside.is_dir() else Path(scratch)


def check_supplied(folder: Path) -> tuple[str, ...]:
    """Remarks on inputs of an unpacked archive that differ from those it was made of.

    Raises:
        InputError: inputs that the receiver is to supply are missing; names them all.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return ()
    missing = [file for file in manifest.to_supply if not (folder / file.name).is_file()]
    if missing:
        needed = "\n".join(
            f"  {file.name}: {file.size:,} bytes, sha256 {file.sha256}" for file in missing
        )
        raise InputError(
            f"This archive was made without files that the study reads. Put them into {folder}:\n"
            f"{needed}\nAsk the sender of the archive for their source."
        )
    # Only files that the study reads: its page and texts are written again
    ours = (ARCHIVED_RESULTS, PSYCH_DS, *TEXTS, manifest.study)
    inputs = [file for file in manifest.files if file.name.partition("/")[0] not in ours]
    remarks = []
    for file in (*manifest.to_supply, *inputs):
        path = folder / file.name
        if not path.is_file():
            remarks.append(f"{file.name} is missing.")
        elif checksum(path) != f"sha256:{file.sha256}":
            remarks.append(f"{file.name} is not the file that the archive was made with.")
    return tuple(remarks)


PSYCH_DS = "psych-ds"
TEXTS = (
    MANIFEST,
    "README.md",
    ENVIRONMENT,
    "constraints.txt",
    "datasheet.md",
    "datasheet.html",
    "methods.md",
    "preregistration.md",
    "index.html",
)
"""Names of files that archives add, which no input can have."""


def is_taken(path: Path) -> bool:
    """True if an archive has something else of this name."""
    return path.parts[0] in (*TEXTS, PSYCH_DS, ARCHIVED_RESULTS)
