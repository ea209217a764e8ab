"""Feasibility of a study: checks before a run, which take little time.

The checks find missing or damaged files, and numbers that contradict each other. For example, ten
triplets for each pair of models cannot be divided evenly among four groups. Weights of models are
not loaded. Each step checks its own options (`Step.check`).
"""

from __future__ import annotations

import os
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.texts import LANGUAGES, has_texts
from contstim.experiments.responses.admission import required_catch
from contstim.experiments.responses.questionnaire import questions_beside
from contstim.models.catalog import check_model
from contstim.models.specifications import parse_model
from contstim.options import Help, Reads, Writes
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign, read_attention
from contstim.steps.paths import check_input, check_targets, identity, store_paths, targets
from contstim.steps.platforms import ExportTrials
from contstim.steps.step import fields_of
from contstim.study.amounts import check_numbers
from contstim.study.study import ARCHIVED, BEGUN, LOCK, PAGE, RESULTS, STORE, embedded_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.study.problems import Key, Problems
    from contstim.study.study import Section, Study, StudyStage

_TEXT = Reads("A text.", content="text")
# Platforms whose exports cannot show a slider
_BUTTON_PLATFORMS = ("pcibex", "psychopy", "gorilla", "qualtrics")


def check_study(study: Study, sections: Sequence[Section], problems: Problems) -> None:
    """Add the problems of a study whose keys and types are valid.

    The current folder must be the study's folder.
    """
    _check_files(study, sections, problems)
    trained = {model.location for model in study.models if model.training is not None}
    for model in study.models:
        if model.location not in trained:
            with problems.of(("models", model.name)):
                check_model(parse_model(model.specification, model.name), study.loading)
    compared = [s for s in study.stages if s.step.name.startswith(("select", "triplets"))]
    if len(study.models) < 2 and compared and not problems.has_problem("models"):
        message = f"[{'.'.join(compared[0].key)}] compares models, but the study has "
        problems.add(("models",), f"{message}{len(study.models)}: name at least two.")
    check_numbers(study, problems)
    _check_between_sections(study, problems)
    if problems:
        return
    for stage in study.stages:
        with problems.of(stage.key):
            _check_stage(stage, study)
    if not problems:
        _check_owners(study, problems)


def _check_files(study: Study, sections: Sequence[Section], problems: Problems) -> None:
    texts: list[tuple[Key, str | None]]
    texts = [(("texts", name), getattr(study.texts, name)) for name in ("training", "natural")]
    texts += [(("models", model.name, "text"), model.own_text) for model in study.models]
    inputs: list[tuple[Key, Any, Help]] = []
    for key, text in texts:
        if text == "english":
            problems.add(key, "must be a file, or english:N, such as english:2000, got 'english'.")
        elif text and not embedded_text(text):
            inputs.append((key, Path(text), _TEXT))
    for section in sections:
        for field in fields_of(section.step):
            note, value = field.note, section.values.get(field.name)
            values = value if isinstance(value, tuple) else (value,)
            # A path that never makes a result stale is not an input. A folder is an exception: the
            # step reads files in it, such as the tables of a pilot study
            if note.makes_stale or note.folder:
                inputs += [((*section.key, field.name), value, note) for value in values]
    written = {path for stage in study.stages for path in stage.writes}
    for key, value, note in inputs:
        with problems.of(key):
            if note.content == "model names":
                if value not in (None, *study.names):
                    names = ", ".join(study.names)
                    raise InputError(f"must be a model of the study ({names}), got {value!r}.")
            elif isinstance(value, Path) or (value is not None and note.content):
                path = Path(value)
                if RESULTS not in path.parents:
                    check_input(path, note, study.names)
                elif written.isdisjoint((path, *path.parents)) and not os.path.lexists(path):
                    raise InputError(f"there is no file {str(path)!r}, and no stage writes it.")


def _check_stage(stage: StudyStage, study: Study) -> None:
    stage.step.check()
    check_targets(stage.step)
    for path in stage.step.writes():
        if RESULTS not in path.parents or ".." in path.parts:
            raise InputError(f"writes {path}: name a path in {RESULTS}/.")
    written = {path.as_posix() for writer in study.stages for path in writer.writes}
    written |= {model.location for model in study.models}  # checked by `check_study`
    for text in stage.step.specifications():
        model = parse_model(text, text)
        if written.isdisjoint((model.location, relpath(model.location))):
            check_model(model, study.loading)


def _check_between_sections(study: Study, problems: Problems) -> None:
    design, analysis = study.step(MakeDesign), study.step(AnalyzeResponses)
    for stage in study.stages:
        if not isinstance(stage.step, ExportTrials):
            continue
        settings, platform = stage.step.settings, stage.key[1]
        language = getattr(settings, "language", LANGUAGES[0])
        if not has_texts(language) and not [*stage.step.out.rglob("labels.csv")]:
            problems.add(
                (*stage.key, "language"),
                f"must be one of {', '.join(LANGUAGES)}, got {language!r}. For another language, "
                "export in one of these languages, replace the exported texts, and then set the "
                "language.",
            )
        deadline = getattr(settings, "deadline", 0)
        if deadline and analysis is not None and not analysis.exclusions.max_missing:
            problems.add(
                ("analyze", "max_missing"),
                f"must be above 0, because [export.{platform}] has a deadline ({deadline:g} s), "
                "and 0 excludes every participant who misses an answer: set the share of answers "
                "that may be missing, such as max_missing = 0.1.",
            )
        if design is not None and not design.scale.buttons and platform in _BUTTON_PLATFORMS:
            problems.add(
                stage.key,
                'shows buttons, but [design] has scale = "slider": remove this section or the '
                "scale. [export.jspsych] and [export.jatos] show a slider.",
            )
    if design is not None and analysis is not None and analysis.exclusions.min_catch is not None:
        with problems.of(("analyze", "min_catch")):
            number, table = design.catch_per_group, design.attention
            if table and table.is_file() and not problems.has_problem("design", "attention"):
                number += len(read_attention(table))
            required_catch(number, analysis.exclusions.min_catch)


def _check_owners(study: Study, problems: Problems) -> None:
    """Check that each path has one owner: the study itself, or the stage that writes the path.

    Two paths of the same file count as one path: links and `..` are resolved, and upper case is
    ignored. The current folder must be the study's folder.
    """
    claims: list[tuple[str, Path, Key]] = [  # owner, its path, and the key that names the path
        ("the study file", Path(study.path.name), ()),
        ("the page of the study", PAGE, ()),
        ("the lock of the study", LOCK, ()),
        ("the folder of begun stages", BEGUN, ()),
        ("the archived results", ARCHIVED, ()),
        *(("the store of the study", path, ()) for path in store_paths(STORE)),
    ]
    for stage in study.stages:
        owner, section = f"the stage {stage.name!r}", stage.key
        claims += [(owner, path, (*section, name)) for name, path in targets(stage.step)]
        record, store = stage.step.record_path(), stage.step.store_path()
        if record is not None:
            claims.append((owner, record, section))
        if store is not None and identity(store) != identity(STORE):
            claims += [(owner, path, (*section, "store")) for path in store_paths(store)]
        claims += [
            (owner, questions_beside(value), section)
            for field, value in stage.step.values()
            if isinstance(field.note, Writes) and field.note.kind == "responses"
        ]
    owners: dict[Path, str] = {}
    inside: dict[Path, str] = {}  # folder → owner of the first path in this folder
    for owner, path, key in claims:
        real = identity(path)
        around = (owners[folder] for folder in (real, *real.parents) if folder in owners)
        first = next(around, inside.get(real, owner))
        if first != owner:
            problems.add(
                key, f"{owner} would write {path}, which belongs to {first}: name another path."
            )
        owners.setdefault(real, owner)
        for folder in real.parents:
            inside.setdefault(folder, owner)
