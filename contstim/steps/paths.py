"""Paths that a step reads and writes: each written path has one owner, each input its content."""

from __future__ import annotations

import os
import unicodedata
import warnings
from collections import deque
from importlib import import_module
from itertools import combinations, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.files import is_device, is_file, is_folder
from contstim.files.records import record_path
from contstim.items.scores import read_pair_counts
from contstim.options import Aside, Writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.options import Help
    from contstim.steps.step import Step


def identity(path: Path | str) -> Path:
    """A path that is equal for all names of one file: without links, `..` and upper case.

    Case does not count on many file systems, and neither does the form of accented letters.
    """
    return Path(unicodedata.normalize("NFC", os.path.realpath(path)).casefold())


def store_paths(store: Path) -> tuple[Path, ...]:
    """The files of a store: the database, those next to it, and its record."""
    endings = ("", "-wal", "-shm", "-journal", ".times.json")
    return (*(Path(f"{store}{ending}") for ending in endings), record_path(store))


def targets(step: Step[Any]) -> Iterator[tuple[str, Path]]:
    """Every path that a step writes, with the name of its field; devices are left out."""
    for field, value in step.values():
        if isinstance(field.note, Writes) and value is not None:
            for ending in field.note.endings:
                yield field.name, Path(f"{value}{ending}")


def check_targets(step: Step[Any]) -> None:
    """Refuse outputs that are an input, another output, a record, or a file of the store.

    Raises:
        InputError: names both, and the path.
    """
    owners: dict[Path, str] = {}

    def claim(owner: str, path: Path) -> None:
        first_owner = owners.setdefault(identity(path), owner)
        if first_owner != owner:
            raise InputError(
                f"{owner} and {first_owner} must be different files, got {path} for both. Name "
                "another file."
            )

    for name, path in targets(step):
        try:
            is_device(path)
        except OSError as error:
            raise InputError(
                f"`{name}` must be a path that can be written, got {shortened(str(path))}: "
                f"{error.strerror}. Choose another name."
            ) from error
    record, store = step.record_path(), step.store_path()
    for path in () if store is None else store_paths(store):
        claim("the store", path)
    if record is not None:
        claim("the record of the output", record)
    for name, path in targets(step):
        if not is_device(path):
            if path.name.endswith(".meta.json"):
                raise InputError(
                    f"`{name}` must not end in .meta.json, which is for records, got {path}. Name "
                    "another file."
                )
            claim(f"`{name}`", path)
    for field, value in step.values():
        if not isinstance(field.note, Aside | Writes):
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, Path) and str(path) != "-":
                    _claim_input(owners, f"`{field.name}`", path)
    for path in step.reads():
        _claim_input(owners, "an input", path)


def _claim_input(owners: dict[Path, str], name: str, path: Path) -> None:
    # Two inputs may be one file
    if owner := owners.get(identity(path)):
        raise InputError(f"{owner} would overwrite {name}, {path}. Name another output.")


def check_writable(step: Step[Any]) -> None:
    """Refuse outputs whose folder is a file, or may not be written.

    Raises:
        InputError: names the field and the folder.
    """
    for name, path in targets(step):
        if not is_device(path):
            _check_folder(name, path)


def _check_folder(name: str, path: Path) -> None:
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise InputError(
            f"Cannot write {path}: {folder} is a file, not a folder. Name another `{name}`."
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f"Cannot write {path}: {folder} is not writable. Name another `{name}`.")


_LINES = 1_000  # of a text; a corpus may be large

_READERS = {
    "attention": "contstim.steps.design:read_attention",
    "minimal pair scores": "contstim.items.minimal_pair_scores:MinimalPairScores.from_file",
    "minimal pairs": "contstim.items.stimuli:read_controversial_minimal_pairs",
    "pair counts": "contstim.items.scores:read_pair_counts",
    "pairs": "contstim.items.stimuli:read_pairs",
    "practice": "contstim.experiments.platforms.jspsych.folder:check_practice",
    "questions": "contstim.experiments.responses.questionnaire:read_questions",
    "repeatable words": "contstim.words.vocabulary:read_repeatable",
    "scores": "contstim.items.scores:ScoreTable.from_file",
    "sentences": "contstim.items.stimuli:read_stimuli",
    "stimuli": "contstim.items.stimuli:read_stimulus_table",
    "tags": "contstim.english.words:tag_table",
    "token counts": "contstim.items.scores:read_token_counts",
    "trials": "contstim.items.stimuli:read_trials",
    "triplets": "contstim.items.stimuli:read_triplets",
    "vocabulary": "contstim.words.vocabulary:Vocabulary.load",
    "words": "contstim.words.word_rules:read_words",
}


def check_input(path: Path, note: Help, models: Sequence[str] = ()) -> None:
    """Check a file or folder that is read, as its field declares it.

    Args:
        path: the file or folder.
        note: declaration of the field.
        models: names of models that tables may be about.

    Raises:
        ContstimError: if it is missing, or holds something else.
    """
    if not is_file(path) and not (note.folder and is_folder(path)):
        name = shortened(str(path))
        problem = f"{name} is not a file" if os.path.lexists(path) else f"there is no file {name}"
        problem = f"{name} is a folder; name a file" if is_folder(path) else problem
        raise InputError(f"{problem}.")
    if note.content == "contrasts":
        from contstim.experiments.analysis.families import read_contrasts

        read_contrasts(path, models)
    elif note.content:
        check_content(path, note.content)
    if note.content == "pair counts":
        for pair in read_pair_counts(path).keys() - set(combinations(models, 2)):
            raise InputError(
                f"{path} has a number for {', '.join(pair)}, which are not two models of the study "
                f"in its order: {', '.join(models)}."
            )


def check_content(path: Path, content: str) -> None:
    """Check the content of a file, or of the beginning of a text.

    Args:
        path: a file, or of minimal pairs a folder.
        content: `text`, `reviews`, `responses`, `minimal pair data`, or a name of a table or list
            of words.

    Raises:
        InputError: if the file has another content.
    """
    from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
    from contstim.experiments.responses.table import read_responses
    from contstim.items.reviews import read_reviews
    from contstim.items.scale import Scale
    from contstim.words.corpus import read_lines

    if content == "text":
        deque(islice(read_lines(path), _LINES), maxlen=0)
    elif content == "reviews":
        read_reviews([path])
    elif content == "responses":
        # Any scale will do where no record names one
        scale = None if record_path(path).is_file() else Scale.CONFIDENCE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said by the step that reads them
            read_responses(path, scale=scale)
    elif content == "minimal pair data":
        read_minimal_pairs(pair_files(path))
    else:
        module, _, name = _READERS[content].partition(":")
        attrgetter(name)(import_module(module))(path)
