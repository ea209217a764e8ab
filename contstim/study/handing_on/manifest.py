"""Content of an archive: the list of its files, the files to supply, and the study's inputs."""

from __future__ import annotations

import json
import os
import re
import tomllib
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import ZipFile

from contstim.errors import ContstimError, InputError
from contstim.files.documents import FORMAT, read_json_object, refuse_other_format
from contstim.files.files import checksum, decoding, path_inside, visible_files
from contstim.files.records import record_path
from contstim.files.tables import join_names
from contstim.models.catalog import with_neighbours
from contstim.study.study import ARCHIVED
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contstim.study.study import Study

MANIFEST, ENVIRONMENT = "archive.json", "environment.json"
ARCHIVED_RESULTS = ARCHIVED.as_posix()
"""Folder of the archived results, next to the study file."""

INPUTS = Path("inputs")
"""Folder of an archive for files of other folders."""

# Texts in quotes, and comments, whose quotes are none
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*')
_BEFORE, _AFTER = r"(?:^|(?<=[:=]))", r"(?=$|[@+:?])"


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


def study_inputs(study: Study, text: str) -> tuple[str, dict[str, Path]]:
    """The files that stages read and none writes, and the study file that names them.

    Files of the study's folder keep their places. Others get one in the folder `inputs`, and the
    study file is changed accordingly. The current folder is the study's.

    Args:
        study: as `read_study` reads it.
        text: of its file.

    Returns:
        The study file, which names every file where it is in the archive; and where each file is
        now, by its name in the archive.

    Raises:
        InputError: a file of another folder cannot be named otherwise, or another name would
            change the order of the models, in which pairs of them are searched.
    """
    archived_paths: dict[Path, Path] = {}
    for path in _paths(study):
        archived = path
        if path.is_absolute() or ".." in path.parts or is_taken(path):
            normalized = Path(os.path.normpath(Path.cwd() / path))  # of "..", too
            numbered = (INPUTS / f"{normalized.stem}-{n}{normalized.suffix}" for n in count(2))
            names = chain([INPUTS / normalized.name], numbered)
            archived = next(name for name in names if name not in archived_paths.values())
        archived_paths[path] = archived
    moved = {
        path.as_posix(): archived.as_posix()
        for path, archived in archived_paths.items()
        if path != archived
    }
    specifications = [model.specification for model in study.models]
    renamed = [_renamed(specification, moved) for specification in specifications]
    if sorted(specifications, key=lambda text: renamed[specifications.index(text)]) != sorted(
        specifications
    ):
        raise InputError(
            "Models of other folders have another order in an archive, and the pairs of models "
            "would be searched in another order, too. Put the models into the study's folder, name "
            "them so in the study file, and run it again."
        )
    files = [_files(path, archived) for path, archived in archived_paths.items()]
    return _rewritten(text, moved), {name: file for part in files for name, file in part.items()}


def _paths(study: Study) -> list[Path]:
    stages = study.stages
    written = {path for stage in stages for path in stage.writes}
    # Of the archive that the study came in; the next one has its own
    written.add(Path(ARCHIVED_RESULTS))
    model_files = [file for model in study.models if model.training is None for file in model.files]
    read = [*(path for stage in stages for path in stage.reads), *model_files]
    return [path for path in dict.fromkeys(read) if written.isdisjoint((path, *path.parents))]


def _files(path: Path, archived: Path) -> dict[str, Path]:
    """Return the files of a path and the files that contstim wrote next to them."""
    if path.is_dir():
        return {
            (archived / file.relative_to(path)).as_posix(): file for file in visible_files(path)
        }
    beside = (file for file in (*with_neighbours([path]), record_path(path)) if file.is_file())
    ends = {str(file).removeprefix(str(path)): file for file in (path, *beside)}
    return {f"{archived.as_posix()}{end}": file for end, file in ends.items()}


def _rewritten(text: str, moved: Mapping[str, str]) -> str:
    """A study file with other places of some files."""
    # Files next to a model's file move with it, and have no name in the study file
    beside = {str(path) for name in moved for path in [*with_neighbours([Path(name)])][1:]}
    unnamed = set(moved) - beside

    def replaced(match: re.Match[str]) -> str:
        piece = match[0]
        if piece.startswith("#"):
            return piece
        value: str = tomllib.loads(f"value = {piece}")["value"]
        new = _renamed(value, moved)
        if new == value:
            return piece
        unnamed.difference_update(path for path in moved if re.search(_path_pattern(path), value))
        return json.dumps(new, ensure_ascii=False)

    changed = _STRING.sub(replaced, text)
    if unnamed:
        raise InputError(
            f"{join_names(sorted(unnamed))}: not in the study's folder, and the study file names "
            "it in a way that an archive cannot change. Put it into the folder of the study file."
        )
    return changed


def _renamed(value: str, moved: Mapping[str, str]) -> str:
    for path, archived in moved.items():
        value = re.sub(_path_pattern(path), archived.replace("\\", r"\\"), value)
    return value


def _path_pattern(path: str) -> str:
    """Pattern that finds a path in a value: alone, or in the specification of a model."""
    return f"{_BEFORE}{re.escape(path)}{_AFTER}"


def left_out_names(files: Iterable[str], without: Iterable[str]) -> frozenset[str]:
    """The files that a user leaves out: those of these names, or in folders of these names.

    Raises:
        InputError: a name is not that of a file or a folder of the archive.
    """
    names = list(files)
    out: set[str] = set()
    for text in without:
        name_without = Path(text).as_posix()
        matching = [
            name for name in names if name == name_without or name.startswith(f"{name_without}/")
        ]
        if not matching:
            raise InputError(
                f"--without {text}: there is no such file in the archive. Give its name as the "
                "study file has it, or as archive.json would."
            )
        out.update(matching)
    return frozenset(out)
