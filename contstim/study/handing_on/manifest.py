"""Content of an archive: lists of its files and of missing files, and the inputs of its study."""

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
from contstim.study.study import ARCHIVED, move_paths, path_pattern
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contstim.study.study import Study

MANIFEST, ENVIRONMENT = "archive.json", "environment.json"
INPUTS = Path("inputs")
"""Folder of an archive for inputs from outside the study's folder."""

# Strings of a TOML file, and comments. A comment matches as a whole, so that a quotation mark in a
# comment does not begin a string
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*')


@dataclass(frozen=True)
class ArchivedFile:
    """A file of an archive.

    Attributes:
        name: path relative to the folder of the study file.
        sha256: checksum in hexadecimal digits.
        size: bytes.
    """

    name: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """List of the files in an archive, and of excluded files.

    Attributes:
        study: name of the study file.
        date: date of the archive, UTC.
        contstim: version of contstim that wrote the archive.
        files: all files of the archive except this list.
        results: all results, including excluded ones. Names are relative to the folder `results`.
        to_supply: excluded inputs, which the receiver must supply.
        left_out: excluded results.
        hub_models: models from the Hugging Face hub, which are not in the archive. For each model:
            `name`, `location`, `revision` (commit; empty if unknown), `fingerprint` (empty without
            scores).
        as_it_is: a sentence for each stage that was not up to date, and a sentence for each file
            that was changed by hand.
        format: format version of the list.
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
    """Return the manifest of an archive that was unpacked into a folder; None without a manifest.

    Raises:
        InputError: if the manifest is damaged.
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
            f"{path} is not the list of an archive, or is damaged. Unpack the archive again, or "
            f"remove the file. {error}"
        ) from error
    return manifest


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Unpack a zip of an archive to a temporary folder, for a `with` statement.

    Raises:
        InputError: if the file is not a zip or is damaged. Also if the zip contains a file twice, a
            path that leads out of the temporary folder, or an archive next to another folder.
    """
    with TemporaryDirectory() as scratch:
        with decoding(path, "a zip of an archive"), ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            if twice := find_duplicates(names):
                raise InputError(f"the zip contains {twice[0]} twice")
            for name in names:
                path_inside(scratch, name)
            # An archive is one folder with the name of the zip; macOS adds the folder `__MACOSX`
            roots = {name.partition("/")[0] for name in names} - {"__MACOSX"}
            if len(roots) > 1 and any(f"{root}/{MANIFEST}" in names for root in roots):
                raise InputError(f"an archive is one folder, not {join_names(sorted(roots))}")
            archive.extractall(scratch)
        (root,) = roots if len(roots) == 1 else ("",)
        inside = Path(scratch) / root
        yield inside if inside.is_dir() else Path(scratch)


def check_supplied(folder: Path) -> tuple[str, ...]:
    """Compare the inputs of an unpacked archive with the original inputs.

    Returns:
        A sentence for each input that differs from the original, or is missing.

    Raises:
        InputError: if inputs that the receiver must supply are missing; the message names all
            missing inputs.
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
            f"This archive does not include some files that the study reads. Copy them to {folder}:"
            f"\n{needed}\nAsk the sender of the archive for these files."
        )
    # Compare only inputs, because a run of the study may change other files
    ours = (ARCHIVED.name, PSYCH_DS, *TEXTS, manifest.study)
    inputs = [file for file in manifest.files if file.name.partition("/")[0] not in ours]
    remarks = []
    for file in (*manifest.to_supply, *inputs):
        path = folder / file.name
        if not path.is_file():
            remarks.append(f"{file.name} is missing.")
        elif checksum(path) != f"sha256:{file.sha256}":
            remarks.append(f"{file.name} differs from the file with which the archive was made.")
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
"""Names of files that contstim adds to an archive.

If an input of the study has one of these names, the archive has this input in the folder `inputs`.
"""


def study_inputs(study: Study, text: str) -> tuple[str, dict[str, Path]]:
    """Return the text of a study file for an archive, and the inputs of the study.

    Inputs are files that a stage reads and that no stage writes. In the archive, inputs from the
    study's folder keep their paths. Inputs from outside are in the folder `inputs`, and the study
    file gets their new paths. The current folder must be the study's folder.

    Returns:
        The text of the study file, with the paths in the archive. Then the inputs, as a dictionary
        (name in the archive → current path).

    Raises:
        InputError: if the study file names an input in a form that cannot be changed, or if new
            paths would change the order of the models. Results of searches depend on this order.
    """
    archived_paths: dict[Path, Path] = {}
    for path in _paths(study):
        archived = path
        is_taken = path.parts[0] in (*TEXTS, PSYCH_DS, ARCHIVED.name)
        if is_taken or path.is_absolute() or ".." in path.parts:
            normalized = Path(os.path.normpath(Path.cwd() / path))
            numbered = (INPUTS / f"{normalized.stem}-{n}{normalized.suffix}" for n in count(2))
            names = chain([INPUTS / normalized.name], numbered)
            archived = next(name for name in names if name not in archived_paths.values())
        archived_paths[path] = archived
    moved = {
        path.as_posix(): archived.as_posix()
        for path, archived in archived_paths.items()
        if path != archived
    }
    specifications = sorted(model.specification for model in study.models)
    renamed = [move_paths(specification, moved) for specification in specifications]
    if renamed != sorted(renamed):
        raise InputError(
            "Models from outside the study's folder would have another order in an archive, and "
            "the pairs of models would be searched in another order. Move the models into the "
            "study's folder, change their paths in the study file, and run the study again."
        )
    files = [_files(path, archived) for path, archived in archived_paths.items()]
    return _rewritten(text, moved), {name: file for part in files for name, file in part.items()}


def _paths(study: Study) -> list[Path]:
    stages = study.stages
    # If the study comes from an archive, the archived results are not inputs
    written = {ARCHIVED, *(path for stage in stages for path in stage.writes)}
    model_files = [file for model in study.models if model.training is None for file in model.files]
    read = [*(path for stage in stages for path in stage.reads), *model_files]
    return [path for path in dict.fromkeys(read) if written.isdisjoint((path, *path.parents))]


def _files(path: Path, archived: Path) -> dict[str, Path]:
    """Return an input and the files that contstim wrote next to it: name in the archive → file."""
    if path.is_dir():
        return {
            (archived / file.relative_to(path)).as_posix(): file for file in visible_files(path)
        }
    beside = (file for file in (*with_neighbours([path]), record_path(path)) if file.is_file())
    ends = {str(file).removeprefix(str(path)): file for file in (path, *beside)}
    return {f"{archived.as_posix()}{end}": file for end, file in ends.items()}


def _rewritten(text: str, moved: Mapping[str, str]) -> str:
    # The archive also moves files next to a model's file, such as word counts. The study file need
    # not name these files
    beside = {str(path) for name in moved for path in [*with_neighbours([Path(name)])][1:]}
    unnamed = set(moved) - beside

    def replaced(match: re.Match[str]) -> str:
        piece = match[0]
        if piece.startswith("#"):
            return piece
        value: str = tomllib.loads(f"value = {piece}")["value"]
        new = move_paths(value, moved)
        if new == value:
            return piece
        unnamed.difference_update(path for path in moved if re.search(path_pattern(path), value))
        return json.dumps(new, ensure_ascii=False)

    changed = _STRING.sub(replaced, text)
    if unnamed:
        raise InputError(
            f"{join_names(sorted(unnamed))} is not in the study's folder, and the study file names "
            "it in a form that an archive cannot change. Move it to the folder of the study file."
        )
    return changed


def left_out_names(files: Iterable[str], without: Iterable[str]) -> frozenset[str]:
    """Return the names of the files to exclude; `without` names files or folders.

    Raises:
        InputError: if the archive has no file or folder with such a name.
    """
    names = list(files)
    excluded: set[str] = set()
    for text in without:
        beginning = f"{Path(text).as_posix()}/"
        matching = {name for name in names if f"{name}/".startswith(beginning)}
        if not matching:
            raise InputError(
                f"--without {text}: there is no such file in the archive. Use the name in the "
                "study file, or the name that archive.json would contain."
            )
        excluded |= matching
    return frozenset(excluded)
