"""Steps that a study file names by their commands, such as `[mixed]` or `[evaluate.blimp]`.

Keys are the options of the command. A file that must be given and is not is the study's own file of
that name; models, seed, loading and store are those of the study.
"""

from __future__ import annotations

import json
import os
from dataclasses import MISSING
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import ContstimError, InputError
from contstim.files.documents import shortened
from contstim.files.files import is_file, is_folder, path_inside
from contstim.options import Aside, Help, Models, Writes
from contstim.steps import step_named, step_names
from contstim.steps.contents import check_content
from contstim.steps.fields import GivenModels, Text
from contstim.steps.step import Field, Step, adapter, fields_of, in_words
from contstim.steps.targets import check_targets
from contstim.study.places import PAIRS, SCORES, TRIAL_SCORES, TRIALS, StudyFiles
from contstim.study.sections import SECTIONS
from contstim.study.stage import StudyStage
from contstim.study.study import RESULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contstim.study.problems import Problems
    from contstim.study.study import Study
    from contstim.study.toml_lines import Key


def step_sections() -> dict[str, list[str]]:
    """First words of the commands whose steps may be named, each with the second words."""
    words: dict[str, list[str]] = {}
    for name in step_names():
        word, _, kind = name.partition(" ")
        if word not in ("export", *SECTIONS):
            words.setdefault(word, []).append(kind)
    return words


def read_steps(tables: Mapping[str, Any], problems: Problems) -> dict[str, dict[str, Any]]:
    """The options of each step that a study file names, by the words of its command."""
    steps, sections = {}, step_sections()
    for word in (each for each in tables if each in sections):
        kinds = sections[word]
        inner = {"": tables[word]} if kinds == [""] else tables[word]
        problems.refuse_unknown((word,), inner, kinds)
        for kind in (each for each in inner if each in kinds):
            name, key = f"{word} {kind}".rstrip(), (word, kind) if kind else (word,)
            step = step_named(name)
            if step is None or not isinstance(inner[kind], dict):
                problems.add(key, f"is no step with options: write [{'.'.join(key)}] and keys.")
            else:
                steps[name] = _values(step, inner[kind], key, problems)
    return steps


def _values(
    step: type[Step[Any]], given: Mapping[str, Any], key: Key, problems: Problems
) -> dict[str, Any]:
    from pydantic import ValidationError

    own = {field.name: field for field in fields_of(step)}
    problems.refuse_unknown(key, given, own)
    values = {}
    for name in given.keys() & own.keys():
        value = own[name].as_list(given[name])
        try:
            # JSON, whose strict rules are those of TOML: "10" is not a number, a list is a tuple
            text = json.dumps(value, default=str)
            values[name] = adapter(own[name].hint).validate_json(text, strict=True)
        except ValidationError as error:
            problems.add((*key, name), in_words(error.errors()[0]))
    return values


def step_files(study: Study) -> Iterator[tuple[Key, Path, Help]]:
    """Every file or folder that keys of single steps name, with its key and what it must be."""
    for name, values in study.steps.items():
        kind = step_named(name)
        for field in () if kind is None else fields_of(kind):
            value = values.get(field.name)
            if not isinstance(field.note, Aside | Writes):
                for path in value if isinstance(value, tuple) else (value,):
                    if isinstance(path, Path) or (path is not None and field.note.content):
                        yield (*name.split(" ", 1), field.name), Path(path), field.note


def check_steps(study: Study, problems: Problems) -> None:
    """Add what is wrong with single steps whose keys and types are right."""
    for name, values in study.steps.items():
        key = tuple(name.split(" ", 1))
        try:
            step = _step(name, values, StudyFiles(study))
            step.check()
            check_targets(step)
        except ContstimError as error:
            problems.add(key, str(error))
            continue
        for path in step.writes():
            if RESULTS not in path.parents or ".." in path.parts:
                problems.add(key, f"writes {path}: name a path in {RESULTS}/.")


def check_input(path: Path, note: Help, key: Key, problems: Problems, remedy: str = "") -> None:
    """Add what is wrong with a file or folder that is read, as its field declares it."""
    if RESULTS in path.parents:
        return  # what the study itself writes will be there
    name = shortened(str(path))
    if not is_file(path) and not (note.folder and is_folder(path)):
        what = f"{name} is not a file" if os.path.lexists(path) else f"there is no file {name}"
        what = f"{name} is a folder; name a file" if is_folder(path) else what
        problems.add(key, f"{what}. {remedy}".rstrip())
    elif note.content:
        with problems.of(key):
            check_content(path, note.content)


def stages_of_steps(files: StudyFiles) -> list[StudyStage]:
    """The stage of each single step that a study file names."""
    stages = []
    for name, values in files.study.steps.items():
        step = _step(name, values, files)
        about = (getdoc(step) or "").partition("\n")[0].rstrip(".")
        about = f"{about[:1].lower()}{about[1:]}"
        stages.append(StudyStage(name, about, step, files.loaded_by(step)))
    return stages


def _step(name: str, values: Mapping[str, Any], files: StudyFiles) -> Step[Any]:
    """The step with its options, and with what the study gives it.

    Raises:
        InputError: something is missing, or options do not go together.
    """
    kind = step_named(name)
    assert kind is not None, "A step that there is not is refused when a study is read"
    own = {field.name: field for field in fields_of(kind)}
    given = {**_from_study(name, own, values, files), **values}
    named = {model.name: model.text for model in files.study.models}
    for each in own.values():
        if isinstance(each.note, Models) and (chosen := given.get(each.name)):
            texts = tuple(named.get(text, text) for text in each.as_list(chosen))
            given[each.name] = texts if each.is_list else named.get(chosen, chosen)
    output = next(each.name for each in own.values() if isinstance(each.note, Writes))
    needed = (each.name for each in own.values() if each.default is MISSING or each.name == output)
    lacking = [name for name in needed if name not in given]
    if lacking:
        raise InputError(f"needs {', '.join(lacking)}: the study has none, so name it here.")
    return kind.of(given)


def _from_study(
    name: str, own: Mapping[str, Field], values: Mapping[str, Any], files: StudyFiles
) -> dict[str, Any]:
    """Values of fields that the study has: files that must be given, models, seed and so on."""
    sections = files.study.sections
    trials = TRIALS if "design" in sections else None
    needed = {
        "text": files.training_text,
        "frequencies": files.training_text,
        "vocabulary": files.vocabulary,
        "sentences": files.natural,
        "pairs": PAIRS if "pairs" in sections else None,
        "triplets": files.triplets,
        "trials": trials,
        "responses": files.responses,
        "scores": trials and TRIAL_SCORES if "trials" in own else files.natural and SCORES,
    }
    must = {each.name for each in own.values() if each.default is MISSING}
    usual: dict[str, Any] = {key: needed[key] for key in must & needed.keys()} | files.given
    if usual.get("responses") and "responses" not in values:
        usual["scale"] = getattr(sections["responses"], "scale", None)
    text = values.get("text", usual.get("text"))
    if text is not None:
        usual["prose"] = files.prose(text)
        if usual["prose"] and own["text"].hint == Text and "prose" not in own:
            raise InputError(f"reads a sentence a line, and {text} is running prose.")
    for each in own.values():
        if isinstance(each.note, Writes) and each.note.is_folder:
            usual[each.name] = path_inside(RESULTS, name.replace(" ", "-"))
        elif isinstance(each.note, Writes) and each.note.formats and each.name == "out":
            usual[each.name] = path_inside(RESULTS, f"{name.replace(' ', '-')}.csv")
        # Scores in place of models are given instead
        if each.hint == GivenModels and not values.get("scores"):
            usual[each.name] = files.specifications
    return {key: value for key, value in usual.items() if key in own and value is not None}
