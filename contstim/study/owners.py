"""Owners of the paths of a study: each is written by one stage, or belongs to the study itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contstim.experiments.responses.questionnaire import questions_beside
from contstim.steps.targets import identity, store_paths, targets
from contstim.study.places import ARCHIVED, LOCK, PAGE, RESPONSES, STORE
from contstim.study.states import BEGUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.study.stage import StudyStage
    from contstim.study.study import Study
    from contstim.study.toml_lines import Key


@dataclass(frozen=True)
class Claim:
    """A path with its owner.

    Attributes:
        owner: such as `the stage 'pairs'`.
        path: a file, or a folder with everything in it.
        key: that names the path; of a path that no key names, the section of its owner.
    """

    owner: str
    path: Path
    key: Key = ()


def conflicts(study: Study, stages: Sequence[StudyStage]) -> Iterator[tuple[Claim, Claim]]:
    """Every claim on a path that has another owner, with the claim of that owner.

    Paths are compared without links, `..` and upper case. The current folder is the study's.
    """
    claimed: dict[Path, Claim] = {}
    inside: dict[Path, Claim] = {}  # folder → a claim on something in it
    # Stages of sections have fixed paths, so that the key of a single step is to be changed
    ordered = sorted(stages, key=lambda stage: stage.name in study.steps)
    for claim in (*_of_study(study), *(c for stage in ordered for c in _of_stage(study, stage))):
        path = identity(claim.path)
        around = (claimed[folder] for folder in (path, *path.parents) if folder in claimed)
        other = next(around, inside.get(path))
        if other is not None and other.owner != claim.owner:
            yield claim, other
        claimed.setdefault(path, claim)
        for folder in path.parents:
            inside.setdefault(folder, claim)


def section_of(study: Study, stage: StudyStage) -> Key:
    """Key of the section, or of the model, that a stage follows from."""
    kind, _, rest = stage.name.partition(" ")
    if kind == "model":
        return ("models", rest)
    own = stage.name in study.steps or kind == "export"
    return (kind, rest) if own and rest else (kind,)


def _of_study(study: Study) -> Iterator[Claim]:
    yield Claim("the study file", Path(study.path.name))
    yield Claim("the page of the study", PAGE)
    yield Claim("the lock of the study", LOCK)
    yield Claim("the record of begun stages", BEGUN)
    yield Claim("the archived results", ARCHIVED)
    yield from (Claim("the store of the study", path) for path in store_paths(STORE))


def _of_stage(study: Study, stage: StudyStage) -> Iterator[Claim]:
    owner, section = f"the stage {stage.name!r}", section_of(study, stage)
    for name, path in targets(stage.step):
        yield Claim(owner, path, (*section, name) if stage.name in study.steps else section)
    record, store = stage.step.record_path(), stage.step.store_path()
    if record is not None:
        yield Claim(owner, record, section)
    if store is not None and identity(store) != identity(STORE):
        yield from (Claim(owner, path, (*section, "store")) for path in store_paths(store))
    if RESPONSES in stage.writes:
        yield Claim(owner, questions_beside(RESPONSES), section)
