"""Owners of the paths of a study: each is written by one stage, or belongs to the study itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.experiments.responses.questionnaire import questions_beside
from contstim.options import Writes
from contstim.steps.paths import identity, store_paths, targets
from contstim.study.places import ARCHIVED, BEGUN, LOCK, PAGE, STORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contstim.study.study import Study
    from contstim.study.toml_lines import Key


@dataclass(frozen=True)
class Claim:
    """A path with its owner.

    Attributes:
        owner: such as `the stage 'design'`.
        path: a file, or a folder with everything in it.
        key: key that names the path.
    """

    owner: str
    path: Path
    key: Key = ()


def conflicts(study: Study) -> Iterator[tuple[Claim, Claim]]:
    """Yield each claim on a path that has another owner, with the claim of that owner.

    Paths are compared without links, `..` and upper case. The current folder is the study's.
    """
    claimed: dict[Path, Claim] = {}
    inside: dict[Path, Claim] = {}  # folder → a claim on something in it
    for claim in _claims(study):
        path = identity(claim.path)
        around = (claimed[folder] for folder in (path, *path.parents) if folder in claimed)
        first_claim = next(around, inside.get(path))
        if first_claim is not None and first_claim.owner != claim.owner:
            yield claim, first_claim
        claimed.setdefault(path, claim)
        for folder in path.parents:
            inside.setdefault(folder, claim)


def _claims(study: Study) -> Iterator[Claim]:
    """Yield the paths of the study itself, and the outputs of its stages."""
    yield Claim("the study file", Path(study.path.name))
    yield Claim("the page of the study", PAGE)
    yield Claim("the lock of the study", LOCK)
    yield Claim("the record of begun stages", BEGUN)
    yield Claim("the archived results", ARCHIVED)
    yield from (Claim("the store of the study", path) for path in store_paths(STORE))
    for stage in study.stages:
        owner, section = f"the stage {stage.name!r}", stage.key
        for name, path in targets(stage.step):
            yield Claim(owner, path, (*section, name))
        record, store = stage.step.record_path(), stage.step.store_path()
        if record is not None:
            yield Claim(owner, record, section)
        if store is not None and identity(store) != identity(STORE):
            yield from (Claim(owner, path, (*section, "store")) for path in store_paths(store))
        for field, value in stage.step.values():
            if isinstance(field.note, Writes) and field.note.kind == "responses":
                yield Claim(owner, questions_beside(value), section)
