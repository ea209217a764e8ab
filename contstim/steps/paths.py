"""Checks of a step's paths: no path has two uses, outputs are writable, and inputs are valid."""

from __future__ import annotations

import os
import unicodedata
import warnings
from collections import deque
from itertools import combinations, islice
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import shortened
from contstim.files.files import is_device, is_file, is_folder
from contstim.files.records import record_path
from contstim.items.scores import read_pair_counts
from contstim.options import Writes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.options import Help
    from contstim.steps.step import Step


def identity(path: Path | str) -> Path:
    """Return one path for all names of the same file: without links, `..` and upper case.

    Many file systems ignore case. They also ignore whether an accented letter is stored as one
    character or as two. In the returned path, an accented letter is one character (NFC).
    """
    return Path(unicodedata.normalize("NFC", os.path.realpath(path)).casefold())


def store_paths(store: Path) -> tuple[Path, ...]:
    """Return the files of a store (database of scores): files of the database, and its record."""
    endings = ("", "-wal", "-shm", "-journal", ".times.json")
    return (*(Path(f"{store}{ending}") for ending in endings), record_path(store))


def targets(step: Step[Any]) -> Iterator[tuple[str, Path]]:
    """Yield each path that a step writes, with the name of its field."""
    for field, value in step.values():
        if isinstance(field.note, Writes) and value is not None:
            for ending in field.note.endings:
                yield field.name, Path(f"{value}{ending}")


def check_targets(step: Step[Any]) -> None:
    """Check that no output is also an input, another output, a record, or a file of the store.

    A record is a JSON file next to the main output. The store is the database of scores.

    Raises:
        InputError: if a path has two uses; the message names both uses and the path.
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
        if field.note.makes_stale:
            for path in value if isinstance(value, tuple) else (value,):
                if isinstance(path, Path) and str(path) != "-":
                    _claim_input(owners, f"`{field.name}`", path)
    for path in step.reads():
        _claim_input(owners, "an input", path)


def _claim_input(owners: dict[Path, str], name: str, path: Path) -> None:
    # An input is not added to `owners`, because two inputs may be the same file
    if owner := owners.get(identity(path)):
        raise InputError(f"{owner} would overwrite {name}, {path}. Name another output.")


def check_writable(step: Step[Any]) -> None:
    """Check that the folders of outputs are writable. Missing folders are made later.

    Raises:
        InputError: if a folder is a file or not writable; the message names field and folder.
    """
    for name, path in targets(step):
        folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
        if is_device(path) or (folder.is_dir() and os.access(folder, os.W_OK)):
            continue
        problem = "not writable" if folder.is_dir() else "a file, not a folder"
        raise InputError(f"Cannot write {path}: {folder} is {problem}. Name another `{name}`.")


_MAX_LINES = 1_000  # maximum number of checked lines, because a corpus may be large
_READERS = {
    "attention": "steps.design:read_attention",
    "minimal pair scores": "items.minimal_pair_scores:MinimalPairScores.from_file",
    "minimal pairs": "items.stimuli:read_controversial_minimal_pairs",
    "pair counts": "items.scores:read_pair_counts",
    "pairs": "items.stimuli:read_pairs",
    "practice": "experiments.platforms.jspsych.folder:check_practice",
    "questions": "experiments.responses.questionnaire:read_questions",
    "repeatable words": "words.vocabulary:read_repeatable",
    "scores": "items.scores:ScoreTable.from_file",
    "sentences": "items.stimuli:read_stimuli",
    "stimuli": "items.stimuli:read_stimulus_table",
    "tags": "english.words:tag_table",
    "token counts": "items.scores:read_token_counts",
    "trials": "items.stimuli:read_trials",
    "triplets": "items.stimuli:read_triplets",
    "vocabulary": "words.vocabulary:Vocabulary.load",
    "words": "words.word_rules:read_words",
}


def check_input(path: Path, note: Help, models: Sequence[str] = ()) -> None:
    """Check that an input exists and has the content that its field requires.

    A table of contrasts must compare `models`. A table of pair counts must name pairs of `models`.
    The two models of a pair must be in the order of `models`.

    Raises:
        ContstimError: if the input is missing, or has another content.
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
                f"{path} has a number for {', '.join(pair)}. Name two models of the study, in the "
                f"order of its models: {', '.join(models)}."
            )


def check_content(path: Path, content: str) -> None:
    """Check the content of a file; in a text, only the first 1,000 lines.

    Args:
        path: a file; for `minimal pair data`, also a folder.
        content: `text`, `reviews`, `responses`, `minimal pair data`, or a key of `_READERS`.

    Raises:
        InputError: if the file has another content.
    """
    from contstim.evaluation.minimal_pairs import pair_files, read_minimal_pairs
    from contstim.experiments.responses.table import read_responses
    from contstim.items.reviews import read_reviews
    from contstim.items.scale import Scale
    from contstim.words.corpus import read_lines

    if content == "text":
        deque(islice(read_lines(path), _MAX_LINES), maxlen=0)
    elif content == "reviews":
        read_reviews([path])
    elif content == "responses":
        # Without a record, the scale is unknown here. If all ratings are 1 or 2, `read_responses`
        # would raise an error, because they may be choices or ratings of confidence. If a scale is
        # passed, `read_responses` does not check the ratings
        scale = None if record_path(path).is_file() else Scale.CONFIDENCE
        with warnings.catch_warnings():
            # The step that reads the responses will print the warnings
            warnings.simplefilter("ignore", UserWarning)
            read_responses(path, scale=scale)
    elif content == "minimal pair data":
        read_minimal_pairs(pair_files(path))
    else:
        resolve_name(f"contstim.{_READERS[content]}")(path)
