"""Read study files, and write a first study file."""

from __future__ import annotations

import json
import os
import re
from contextlib import chdir
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.documents import parse_toml, read_text
from contstim.files.files import is_file, is_folder, path_inside, write_text
from contstim.models.loading import Loading
from contstim.models.specifications import (
    parse_model,
    parse_models,
    with_context,
    with_ending,
    without_ending,
)
from contstim.models.training.settings import NETWORKS, trained_specification
from contstim.options import Seed
from contstim.reporting.report import make_environment, short_names
from contstim.steps import step_named, step_names
from contstim.steps.step import adapter, fields_of, in_words
from contstim.study.feasibility import check_study
from contstim.study.problems import Problems
from contstim.study.stages import with_stages
from contstim.study.study import (
    RESULTS,
    TRAINING,
    Section,
    Study,
    StudyModel,
    TextsSection,
    embedded_text,
    move_paths,
    text_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.models.specifications import Specification
    from contstim.study.problems import Key

STUDY_FILE = "study.toml"
KINDS = ("ngram", *NETWORKS)
"""Kinds of models that a study can train, each by `contstim train KIND`."""

# Keys before the first section, and sections that are not commands
_VALUES, _TABLES = ("title", "seed", "judge"), ("texts", "models", "loading")
# Keys in a model's table that determine how the model scores sentences
_ENDINGS = ("rule", "transform", "context")


def read_study(path: Path | str) -> Study:
    """Read a study file, and check everything that can be checked before a run.

    Raises:
        InputError: if the file cannot be read, or has problems; the message lists all problems.
    """
    path = Path(path)
    if path.is_dir():
        path = path / STUDY_FILE
    if not is_file(path):
        raise InputError(
            f"There is no study file {path}. To write a first one, run 'contstim new NAME'."
        )
    text = read_text(path)
    try:
        tables = parse_toml(text, path)
    except InputError as error:
        raise InputError(f"{error}{_bad_line(text, str(error))}") from error
    problems = Problems(path, text)
    problems.refuse_null_characters(tables)
    problems.raise_any()  # before texts become paths, which cannot contain null characters
    # Paths in the file are relative to its folder
    with chdir(path.parent):
        study = _study(path, tables, problems)
    problems.raise_any()
    return study


def new_study(
    folder: Path,
    models: Sequence[str] = (),
    judges: Sequence[str] = (),
    natural: Path | None = None,
) -> Path:
    """Write a study file that can be run without changes, and return its path.

    Args:
        folder: folder of the study.
        models: specifications of models; by default two n-gram models that the study trains.
        judges: specifications of judges, which are models that choose sensible sentences; by
            default an n-gram model that the study trains.
        natural: text of the natural sentences; the vocabulary consists of the words of this text.
            By default, contstim generates sentences (the embedded English).

    Raises:
        InputError: if the folder has a study file, or the file cannot be written.
        ModelError: if a specification is invalid, or two models have the same name.
    """
    path = folder / STUDY_FILE
    if path.exists():
        raise InputError(f"{path} exists already. Name another folder.")
    if len(models) == 1:
        raise InputError("model must name at least 2 models, got 1.")
    options = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    template = make_environment("contstim.study", **options).get_template("new_study.toml.jinja")
    text = template.render(
        quoted=partial(json.dumps, ensure_ascii=False),
        title=folder.resolve().name,
        models=_named_models(parse_models(models), folder),
        judges=[
            judge.text.removesuffix(judge.specification) + _relocated(judge, folder)
            for judge in parse_models(judges)
        ],
        natural=None if natural is None else os.path.relpath(natural, folder),
    )
    write_text(path, text)
    return path


def _relocated(model: Specification, folder: Path) -> str:
    """Return a model's specification, in which paths are relative to the study's folder."""
    parts = (part for part in (model.location, model.argument) if is_file(part) or is_folder(part))
    return move_paths(model.specification, {part: os.path.relpath(part, folder) for part in parts})


def _named_models(models: Sequence[Specification], folder: Path) -> dict[str, str]:
    """Return short name → specification of each model."""
    specifications: dict[str, str] = {}
    for name, model in zip(short_names([m.name for m in models]), models, strict=True):
        name = re.sub(r"[^\w.-]+", "-", name).strip("-")
        numbered = (f"{name}-{i}" for i in count(2))
        name = next(n for n in chain([name], numbered) if n not in specifications)
        specifications[name] = _relocated(model, folder)
    return specifications


def _bad_line(text: str, message: str) -> str:
    number = re.search(r"at line (\d+)", message)
    lines = text.split("\n")
    if number is None or int(number[1]) > len(lines):
        return ""
    line = lines[int(number[1]) - 1].strip()
    return (
        f'\n  line {number[1]}: {line}\nWrite texts in straight quotes, as in words = "8", and '
        "numbers, true and false without quotes. Write a key once in its section, and a section "
        "once in the file."
    )


def _study(path: Path, tables: Mapping[str, Any], problems: Problems) -> Study:
    commands = {tuple(name.replace("-", "_").split()): name for name in step_names()}
    names = (*_VALUES, *_TABLES, "questions", *dict.fromkeys(key[0] for key in commands))
    problems.refuse_unknown((), tables, names)
    title = _checked_value(tables.get("title", ""), str, ("title",), problems)
    seed = _checked_value(tables.get("seed", 0), Seed, ("seed",), problems) or 0
    inner = {name: tables.get(name, {}) for name in _TABLES}
    are_tables = [problems.has_table((name,), table) for name, table in inner.items()]
    if not all(are_tables):
        problems.raise_any()
    texts = TextsSection(**_read_values(TextsSection, inner["texts"], ("texts",), problems))
    loading = Loading(**_read_values(Loading, inner["loading"], ("loading",), problems))
    models = _models(inner["models"], texts, seed, problems)
    questions = _questions(tables.get("questions", []), problems)
    judges: tuple[str, ...] = ()
    with problems.of(("judge",)):
        judges = _judges(tables.get("judge", []), {model.name: model.text for model in models})
    study = Study(path, title or Path.cwd().name, seed, texts, models, loading, questions, judges)
    sections = _read_sections(tables, commands, problems)
    study = with_stages(study, sections, problems)
    check_study(study, sections, problems)
    return study


def _questions(rows: Any, problems: Problems) -> tuple[dict[str, str], ...]:
    from contstim.experiments.responses.questionnaire import COLUMNS, FURTHER_COLUMN, questions_of

    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        problems.add(("questions",), "write [[questions]] and keys below it for each question.")
        return ()
    yes = {True: "yes", False: "no"}
    questions = tuple(
        {key: yes[v] if isinstance(v, bool) else str(v) for key, v in row.items()} for row in rows
    )
    for number, row in enumerate(questions, 1):
        known_columns = (*COLUMNS, *filter(FURTHER_COLUMN.fullmatch, row))
        problems.refuse_unknown(("questions", str(number)), row, known_columns)
    for at, column, problem in questions_of(questions)[1]:
        problems.add(("questions", str(at + 1), column), problem)
    return questions


def _read_sections(
    tables: Mapping[str, Any], commands: Mapping[Key, str], problems: Problems
) -> list[Section]:
    keyed_tables: list[tuple[Key, Any]] = []
    for word, table in tables.items():
        second = [key[1] for key in commands if len(key) == 2 and key[0] == word]
        if (word,) in commands:
            keyed_tables.append(((word,), table))
        elif second and problems.has_table((word,), table):
            problems.refuse_unknown((word,), table, second)
            keyed_tables += [((word, name), table[name]) for name in table if name in second]
    sections = []
    for key, table in keyed_tables:
        name = commands[key]
        step = step_named(name)
        rows = table if isinstance(table, list) and table else [table]
        if step is None or not all(isinstance(row, dict) for row in rows):
            name = ".".join(key)
            problems.add(key, f"is not a section with options: write [{name}] and keys below it.")
            continue
        for number, row in enumerate(rows, start=1):
            suffix = () if row is table else (str(number),)
            values = _read_values(step, row, (*key, *suffix), problems)
            sections.append(Section(" ".join((name, *suffix)), (*key, *suffix), step, values))
    return sections


def _read_values(
    kind: type[Any],
    table: Mapping[str, Any],
    key: Key,
    problems: Problems,
    further: Iterable[str] = (),
) -> dict[str, Any]:
    """Return key → value of a table, without invalid values.

    The table may also have the keys `further`, which the result does not contain.
    """
    fields = {field.name: field for field in fields_of(kind)}
    problems.refuse_unknown(key, table, (*fields, *further))
    values = {}
    for name in (n for n in table if n in fields and n not in {*further}):
        listed = fields[name].as_list(table[name])
        value = _checked_value(listed, fields[name].hint, (*key, name), problems)
        if value is not None:
            values[name] = value
    return values


def _checked_value(value: object, hint: Any, key: Key, problems: Problems) -> Any:
    """Return a value of the type `hint`; add a problem and return None for an invalid value."""
    from pydantic import ValidationError

    try:
        # Validate as JSON, because pydantic's strict rules for JSON suit TOML. These rules accept a
        # list as a tuple, but not the text "10" as a number
        return adapter(hint).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as error:
        problems.add(key, in_words(error.errors()[0]))
        return None


def _models(
    tables: Mapping[str, Any], texts: TextsSection, seed: int, problems: Problems
) -> tuple[StudyModel, ...]:
    models: list[StudyModel] = []
    for name, value in tables.items():
        with problems.of(("models", name)):
            model = _model(name, value, tables, problems)
            # Parse models one by one, so that an error is reported with its line
            (parsed,) = parse_models([model.text])
            if parsed.name != name:
                raise InputError(f"{name!r} is not a name for a model: remove ':' and '/'.")
            models.append(_with_training(model, value, texts, seed, problems))
    with problems.of(("models",)):
        parse_models([model.text for model in models])
    paths: dict[str, str] = {}
    for model in models:
        # Some file systems ignore case
        if model.training is not None:
            first_name = paths.setdefault(_base_specification(model.name, "").lower(), model.name)
            if first_name != model.name:
                problems.add(
                    ("models", model.name),
                    f"{first_name!r} and {model.name!r} would be trained in the same folder: "
                    "choose names that differ in more than spaces, dashes and capitals.",
                )
    return tuple(models)


def _judges(value: Any, texts_of: Mapping[str, str]) -> tuple[str, ...]:
    """Return the specifications of judges, which are models that choose sensible sentences.

    The value names models of the study (keys of `texts_of`), or specifies other models.

    Raises:
        InputError: if a judge is neither a text nor a table with `model` and, optionally,
            `context`.
        ModelError: if a specification is invalid, or `context` is set for a model that
            reads no context.
    """
    judges = []
    for judge in value if isinstance(value, list) else [value]:
        table: Any = {"model": judge} if isinstance(judge, str) else judge
        is_table = isinstance(table, dict) and {"model"} <= table.keys() <= {"model", "context"}
        if not is_table or not all(isinstance(text, str) for text in table.values()):
            raise InputError(
                f"{value!r} is not a model, or a list of models: write texts in quotes, or "
                '{ model = "hf:gpt2", context = "It says:" }.'
            )
        text = texts_of.get(table["model"], table["model"])
        is_plain = "context" not in table
        judges.append(text if is_plain else with_context(parse_model(text), table["context"]).text)
    parse_models(judges)
    return tuple(judges)


def _model(name: str, value: object, tables: Mapping[str, Any], problems: Problems) -> StudyModel:
    """Return a model, without the step that trains it.

    Raises:
        InputError: if `value` is neither a specification nor a table of a model.
    """
    if isinstance(value, str):
        return StudyModel(name, value)
    if not isinstance(value, dict):
        raise InputError(
            f'{value!r} is not a model: write a specification, such as "hf:gpt2", or '
            '{ train = "ngram", order = 2 }.'
        )
    for part in ("model", "same", "train", "text", *_ENDINGS):
        if not isinstance(value.get(part, ""), str):
            raise InputError(f"`{part}`: {value[part]!r} is not a text in quotes.")
    rule, transform, context = (value.get(part, "") for part in _ENDINGS)
    if "model" in value:
        base = value["model"]
        problems.refuse_unknown(("models", name), value, ("model", "context"))
    elif "same" in value:
        base = _specification_of(value["same"], tables)
        problems.refuse_unknown(("models", name), value, ("same", *_ENDINGS))
        if not base:
            raise InputError(f"`same` must be another model of this study, got {value['same']!r}.")
    else:
        kind = value.get("train")
        if kind not in KINDS:
            raise InputError(
                f"`train` must be one of {', '.join(KINDS)}, got {kind!r}. Or name a model: "
                '{ model = "hf:gpt2" }.'
            )
        base = _base_specification(name, kind)
    specification = with_ending(base, rule, transform)
    if "context" in value:
        specification = with_context(parse_model(specification, name), context).specification
    return StudyModel(name, specification)


def _with_training(
    model: StudyModel, table: Any, texts: TextsSection, seed: int, problems: Problems
) -> StudyModel:
    """If `table` has the key `train`, add the step that trains the model; return the model.

    The other keys of `table` are options of this step.
    """
    if not isinstance(table, dict) or "train" not in table:
        return model
    key, own_text = ("models", model.name), table.get("text")
    step = step_named(f"train {table['train']}")
    assert step is not None
    text = text_path(own_text, model.embedded_text) or texts.training_text
    if text is None:
        problems.add(key, "has no training text: set `training` in [texts].")
    options = {name: value for name, value in table.items() if name not in ("out", "prose")}
    values = _read_values(step, options, key, problems, ("train", "text", *_ENDINGS))
    embedded = embedded_text(texts.training if own_text is None else own_text)
    derived = {"seed": seed, "text": text or TRAINING, "out": Path(model.location)}
    derived["prose"] = texts.prose and not embedded
    training: Any = step.of(derived | values)
    return replace(model, training=training, own_text=own_text)


def _specification_of(name: str, tables: Mapping[str, Any]) -> str:
    """Return a model's specification without rule, transform and context; empty if unknown."""
    value = tables.get(name)
    if isinstance(value, dict) and "train" in value:
        return _base_specification(name, str(value["train"]))
    text = value.get("model") if isinstance(value, dict) else value
    return without_ending(text) if isinstance(text, str) else ""


def _base_specification(name: str, kind: str) -> str:
    """Return the specification of a model that the study trains, without rule and transform."""
    path = path_inside(RESULTS / "models", name.replace(" ", "-")).as_posix()
    return trained_specification(kind, path)
