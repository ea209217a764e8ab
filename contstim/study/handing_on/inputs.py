"""The user's files that a study reads, and their paths in an archive."""

from __future__ import annotations

import json
import os
import re
import tomllib
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.files.files import visible_files
from contstim.files.records import record_path
from contstim.files.tables import join_names
from contstim.models.catalog import with_neighbours
from contstim.study.handing_on.manifest import ARCHIVED_RESULTS, is_taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contstim.study.study import Study


INPUTS = Path("inputs")
"""Folder of an archive for files of other folders."""

# Texts in quotes, and comments, whose quotes are none
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*')
_BEFORE, _AFTER = r"(?:^|(?<=[:=]))", r"(?=$|[@+:?])"


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
    read = [
        *(path for stage in stages for path in stage.reads),
        *model_files,
    ]
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
