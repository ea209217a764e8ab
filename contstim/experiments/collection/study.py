"""The experiment that a server hands out: groups and trials of an exported folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


STUDY_FILE = "study.json"


@dataclass(frozen=True)
class CollectedStudy:
    """The part of an exported experiment that the server must know.

    Attributes:
        title: what participants see.
        trials: group, in the order of their numbers → identifiers of its trials.
        code: what a participant hands in on completion; None: one for each participant, or none
            where there is a redirect.
        redirect: where the browser goes after completion, if anywhere.
        fingerprint: of all groups, trials and sentences.
        public: the content of study.json without the code and the redirect, which the server hands
            out itself, and only on completion.
    """

    title: str
    trials: Mapping[str, frozenset[str]]
    code: str | None
    redirect: str | None
    fingerprint: str
    public: bytes


def read_study(folder: Path) -> CollectedStudy:
    """Read `study.json` of an exported folder.

    Raises:
        InputError: there is no such file, it is not a study, its page saves elsewhere, a group
            is not numbered from 1, or a trial is in two groups.
    """
    path = folder / STUDY_FILE
    if not path.is_file():
        raise InputError(f"There is no {path}. Name a folder that `contstim export jspsych` wrote.")
    content = read_json_object(path)
    try:
        groups = {name: _trials(name, trials) for name, trials in content["groups"].items()}
        completion = content.get("completion") or {}
        backend = _text((content.get("save") or {}).get("to"))
        title, code, redirect = (
            _text(value)
            for value in (content.get("title"), completion.get("code"), completion.get("redirect"))
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is not the study of an exported experiment ({error!r}). Export it again with "
            "`contstim export jspsych`."
        ) from error
    if backend not in (None, "server"):
        raise InputError(
            f"The page of {path} saves to {backend}, not to a server. Export it again with "
            "`contstim export jspsych --save server`."
        )
    names = [name for trials in groups.values() for name in trials]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path} has no trials, or a trial in two groups.")
    numbered = sorted(groups, key=int)
    # in an order that does not depend on the file's, for answers belong to it for good
    canonical = json.dumps([[g, sorted(groups[g].items())] for g in numbered])
    return CollectedStudy(
        title or "An experiment",
        {group: frozenset(groups[group]) for group in numbered},
        code,
        redirect,
        hashlib.sha256(canonical.encode()).hexdigest(),
        json.dumps({**content, "completion": None}).encode(),
    )


def _trials(group: str, trials: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Identifiers of a group's trials, and what they show."""
    if not group.isdecimal() or group != str(int(group)) or int(group) < 1 or not trials:
        raise ValueError(f"group {group!r}")
    names = ("trial_id", "sentence_1", "sentence_2")
    texts = [[trial[name] for name in names] for trial in trials]
    if not all(isinstance(text, str) and text for trial in texts for text in trial):
        raise TypeError(f"a trial of group {group}")
    return {trial[0]: trial[1:] for trial in texts}


def _text(value: object) -> str | None:
    """A text; None where it is missing or empty."""
    if not (value is None or isinstance(value, str)):
        raise TypeError(value)
    return value or None
