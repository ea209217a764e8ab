"""The exported experiment that a server hands out: what it asks, and the files of its folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from mimetypes import MimeTypes
from typing import TYPE_CHECKING

from pydantic import ValidationError

from contstim.documents import read_json_object
from contstim.errors import InputError
from contstim.experiments.platforms.jspsych.study import PageStudy, SaveTo

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STUDY_FILE = "study.json"
_START = "index.html"

# Python's own table, because a system's may know .js as something that browsers refuse to run; and
# what some versions of it lack.
_TYPES = MimeTypes()
for _ending, _type in {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".map": "application/json",
    ".md": "text/markdown",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}.items():
    _TYPES.add_type(_type, _ending)


@dataclass(frozen=True)
class CollectedStudy:
    """The part of an exported experiment that the server must know.

    Attributes:
        trials: group, in the order of their numbers → identifiers of its trials.
        code: what a participant hands in on completion; None: one for each participant, or none
            where there is a redirect.
        redirect: where the browser goes after completion, if anywhere.
        fingerprint: of all groups, trials and sentences.
        public: the content of study.json without the code and the redirect, which the server hands
            out itself, and only on completion.
    """

    trials: Mapping[str, frozenset[str]]
    code: str | None
    redirect: str | None
    fingerprint: str
    public: bytes


def read_study(folder: Path) -> CollectedStudy:
    """Read `study.json` of an exported folder.

    Raises:
        InputError: there is no such file, it is not a study, its page saves elsewhere, or a trial
            is in two groups.
    """
    path = folder / STUDY_FILE
    if not path.is_file():
        raise InputError(f"There is no {path}. Name a folder that `contstim export jspsych` wrote.")
    content = read_json_object(path)
    try:
        study = PageStudy.model_validate(content)
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"]))
        raise InputError(
            f"{path} is not the study of an exported experiment ({wrong}). Export it again with "
            "`contstim export jspsych`."
        ) from error
    if study.save.get("to") != SaveTo.SERVER:
        raise InputError(
            f"The page of {path} saves to {study.save.get('to')}, not to a server. Export it again "
            "with `contstim export jspsych --save server`."
        )
    names = [trial.trial_id for trials in study.groups.values() for trial in trials]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has a trial in two groups.")
    groups = sorted(study.groups.items(), key=lambda group: int(group[0]))
    # in an order that does not depend on the file's, for answers belong to it for good
    canonical = [
        [group, sorted([t.trial_id, [t.sentence_1, t.sentence_2]] for t in trials)]
        for group, trials in groups
    ]
    completion = study.completion or {}
    return CollectedStudy(
        {group: frozenset(trial.trial_id for trial in trials) for group, trials in groups},
        completion.get("code") or None,
        completion.get("redirect") or None,
        hashlib.sha256(json.dumps(canonical).encode()).hexdigest(),
        json.dumps({**content, "completion": None}).encode(),
    )


def find_page(folder: Path, path: str) -> Path | None:
    """The file that an address means; None where there is none, or none to be shown.

    Not shown are folders, names that begin with a dot, and whatever lies outside the folder once
    links are followed.

    Args:
        folder: resolved.
        path: decoded, relative to the server's root.
    """
    parts = (path.lstrip("/") or _START).split("/")
    if any(_forbidden(part) for part in parts):
        return None
    try:
        file = folder.joinpath(*parts).resolve()  # where links lead
        public = (
            file.is_relative_to(folder)
            and file.is_file()
            and not any(_forbidden(part) for part in file.relative_to(folder).parts)
        )
    except (OSError, ValueError, RuntimeError):  # too long a name; not a name; links in a circle
        return None
    return file if public else None


def is_study(file: Path, folder: Path) -> bool:
    """True if a file is a folder's study.json, whatever it is called: it may hold the code."""
    try:
        return file.samefile(folder / STUDY_FILE)
    except OSError:  # one is gone meanwhile
        return False


def media_type(file: Path) -> str:
    """Media type of a file, for browsers."""
    return _TYPES.guess_type(file.name)[0] or "application/octet-stream"


def _forbidden(part: str) -> bool:
    # On Windows a backslash divides folders, and a colon names a drive or a hidden stream
    return not part or part.startswith(".") or any(sign in part for sign in "\0\\:")
