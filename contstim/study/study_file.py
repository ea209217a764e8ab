"""Reading study files."""

from __future__ import annotations

import json
import re
from contextlib import chdir
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from contstim.errors import InputError
from contstim.files.documents import parse_toml, read_text
from contstim.files.files import is_file, path_inside, write_text
from contstim.models.loading import Loading
from contstim.models.specifications import (
    parse_model,
    parse_models,
    with_context,
    with_ending,
    without_ending,
)
from contstim.models.training.settings import NETWORKS, RecurrentKind, TrainingSettings
from contstim.options import Seed
from contstim.steps.step import adapter, in_words
from contstim.study.problems import Problems
from contstim.study.sections import SECTIONS, TextsSection, TrainingPlace, validated
from contstim.study.single_steps import read_steps, step_sections
from contstim.study.study import RESULTS, ModelTraining, NgramSettings, Study, StudyModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.experiments.platforms.platform import Exporter
    from contstim.study.toml_lines import Key

STUDY_FILE = "study.toml"
KINDS: dict[str, tuple[type[Any], TrainingSettings | None]] = {
    "ngram": (NgramSettings, None),
    **{kind: (type(network), training) for kind, (network, training) in NETWORKS.items()},
}
"""The kinds of models that a study can train, each with its settings and the usual training."""

_ENDINGS = ("rule", "transform", "context")
"""Keys of the table of a model that say how it scores."""


def read_study(path: Path | str) -> Study:
    """Read a study file and check all that can be checked before anything runs.

    Raises:
        InputError: the file cannot be read, or lists all its problems.
    """
    path = Path(path)
    if path.is_dir():
        path = path / STUDY_FILE
    if not is_file(path):
        raise InputError(
            f"There is no study file {path}. 'contstim new NAME' writes one to begin with."
        )
    text = read_text(path)
    try:
        tables = parse_toml(text, path)
    except InputError as error:
        raise InputError(f"{error}{_where_it_stands(text, str(error))}") from error
    problems = Problems(path, text)
    problems.refuse_null_characters(tables)
    problems.raise_any()  # before anything becomes a path
    # Whatever the file names is seen from its folder, links among it
    with chdir(path.parent):
        study = _study(path, tables, problems)
        if study is not None:
            from contstim.study.feasibility import check_study

            check_study(study, problems)
    problems.raise_any()
    assert study is not None, "Without a problem there is a study"
    return study


def new_study(folder: Path) -> Path:
    """Write a study file to begin with, which runs as it stands, into a folder without a study.

    Returns:
        The file.

    Raises:
        InputError: there is a study already, or the file cannot be written.
    """
    path = folder / STUDY_FILE
    if path.exists():
        raise InputError(f"{path} is there already; name another folder.")
    title = json.dumps(folder.resolve().name, ensure_ascii=False)
    text = resources.files("contstim.study").joinpath("new_study.toml").read_text("utf-8")
    write_text(path, text.replace('"TITLE"', title))
    return path


def _where_it_stands(text: str, message: str) -> str:
    """The line that a reader of TOML stumbled over, and what is often wrong with such a line."""
    number = re.search(r"at line (\d+)", message)
    lines = text.split("\n")
    if number is None or int(number[1]) > len(lines):
        return ""
    line = lines[int(number[1]) - 1].strip()
    return (
        f"\n  line {number[1]}: {line}\nTexts stand in straight quotes, "
        'as in words = "8"; numbers, true and false without. A key stands once in its section, '
        "and a section once in the file."
    )


def _study(path: Path, tables: Mapping[str, Any], problems: Problems) -> Study | None:
    names = ("title", "seed", "models", "loading", "export", *SECTIONS, *step_sections())
    problems.refuse_unknown((), tables, (*names, "questions"))
    title, seed = tables.get("title", ""), tables.get("seed", 0)
    if not isinstance(title, str):
        problems.add(("title",), f"{title!r} is not a text in quotes.")
    try:
        adapter(Seed).validate_python(seed, strict=True)
    except ValueError as error:  # pydantic's errors are such
        problems.add(("seed",), in_words(error.errors()[0]))  # type: ignore[attr-defined]
        seed = 0
    wrong = [name for name in names[2:] if not problems.has_table((name,), tables.get(name, {}))]
    if wrong:
        return None
    sections = {
        name: section
        for name, kind in SECTIONS.items()
        if name in tables
        and (section := validated(kind, tables[name], (name,), problems)) is not None
    }
    loading = validated(Loading, tables.get("loading", {}), ("loading",), problems)
    exports = _exports(tables.get("export", {}), problems)
    models = _models(tables.get("models", {}), seed if isinstance(seed, int) else 0, problems)
    texts = sections.pop("texts", None) or TextsSection()
    name, steps = str(title) or Path.cwd().name, read_steps(tables, problems)
    asked = _questions(tables.get("questions", []), problems)
    return Study(path, name, seed, texts, models, loading, sections, exports, steps, asked)


def _questions(rows: Any, problems: Problems) -> tuple[dict[str, str], ...]:
    """Questions to participants, each as the row of a table of them, which knows texts alone."""
    from contstim.experiments.responses.questionnaire import COLUMNS, FURTHER_COLUMN, questions_of

    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        problems.add(("questions",), "write [[questions]] and keys below it for each question.")
        return ()
    yes = {True: "yes", False: "no"}
    asked = tuple(
        {key: yes[v] if isinstance(v, bool) else str(v) for key, v in row.items()} for row in rows
    )
    for number, row in enumerate(asked, 1):
        known = (*COLUMNS, *filter(FURTHER_COLUMN.fullmatch, row))
        problems.refuse_unknown(("questions", str(number)), row, known)
    for at, column, problem in questions_of(asked)[1]:
        problems.add(("questions", str(at + 1), column), problem)
    return asked


def _exports(tables: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    from contstim.experiments.platforms.platform import platform_named, platforms

    exports = {}
    for name, values in tables.items():
        platform = platform_named(name)
        if platform is None or platform.exporter is None:
            known = [each.name for each in platforms() if each.exporter is not None]
            problems.refuse_unknown(("export",), [name], known)
        elif problems.has_table(("export", name), values):
            exports[name] = _export(platform.exporter, values, ("export", name), problems)
    return {name: settings for name, settings in exports.items() if settings is not None}


def _export(exporter: Exporter, values: Mapping[str, Any], key: Key, problems: Problems) -> Any:
    """Settings of an export, those that its platform does not leave open among them."""
    for name, fixed in exporter.fixed.items():
        if values.get(name, fixed) != fixed:
            problems.add((*key, name), f"must be {str(fixed)!r} for {key[-1]}: leave it out.")
    return validated(exporter.settings, {**values, **exporter.fixed}, key, problems)


def _models(tables: Mapping[str, Any], seed: int, problems: Problems) -> tuple[StudyModel, ...]:
    models: list[StudyModel] = []
    for name, value in tables.items():
        key = ("models", name)
        with problems.of(key):
            model = _model(name, value, tables, seed, problems)
            if model is not None:
                # Names and specifications, one by one, so that a message has its line
                (named,) = parse_models([model.text])
                if named.name != name:
                    problems.add(key, f"{name!r} is not a name for a model: leave out ':' and '/'.")
                else:
                    models.append(model)
    with problems.of(("models",)):
        parse_models([model.text for model in models])
    trained: dict[str, str] = {}
    for model in models:
        # Some file systems do not tell capitals from small letters
        if model.training is not None:
            place = _place(model.name, "").lower()
            other = trained.setdefault(place, model.name)
            if other != model.name:
                problems.add(
                    ("models", model.name),
                    f"{other!r} and {model.name!r} would be trained in one place: choose names "
                    "that differ in more than blanks, dashes and capitals.",
                )
    return tuple(models)


def _model(
    name: str, value: object, tables: Mapping[str, Any], seed: int, problems: Problems
) -> StudyModel | None:
    key = ("models", name)
    if isinstance(value, str):
        return StudyModel(name, value)
    if not isinstance(value, dict):
        problems.add(
            key,
            f'{value!r} is not a model: write a specification, such as "hf:gpt2", or '
            '{ train = "ngram", order = 2 }.',
        )
        return None
    value = dict(value)
    endings = {part: value.pop(part, "") for part in _ENDINGS}
    for part, text in endings.items():
        if not isinstance(text, str):
            problems.add((*key, part), f"{text!r} is not a text in quotes.")
            return None
    training = None
    if "model" in value:
        base = value.pop("model")
        problems.refuse_unknown(key, tables[name], ("model", "context"))
        if not isinstance(base, str):
            problems.add((*key, "model"), f'must be a text such as "hf:gpt2", got {base!r}.')
            return None
    elif "same" in value:
        other = value.pop("same")
        problems.refuse_unknown(key, value, ("same", *_ENDINGS))
        base = _specification_of(str(other), tables)
        if not base:
            problems.add((*key, "same"), f"must be another model of this study, got {other!r}.")
            return None
    else:
        kind = value.pop("train", None)
        if not isinstance(kind, str) or kind not in KINDS:
            known = f"must be one of {', '.join(KINDS)}, got {kind!r}."
            problems.add((*key, "train"), f'{known} Or name a model: {{ model = "hf:gpt2" }}.')
            return None
        base = _place(name, str(kind))
        training = _training(str(kind), value, seed, key, problems)
    specification = with_ending(base, endings["rule"], endings["transform"])
    if "context" in tables[name]:
        model = with_context(parse_model(specification, name), endings["context"])
        specification = model.specification
    return StudyModel(name, specification, training)


def _specification_of(name: str, tables: Mapping[str, Any]) -> str:
    """The specification of a model, without rule, transform and context; empty if unknown."""
    value = tables.get(name)
    if isinstance(value, dict) and "train" in value:
        return _place(name, str(value["train"]))
    text = value.get("model") if isinstance(value, dict) else value
    return without_ending(text) if isinstance(text, str) else ""


def _place(name: str, kind: str) -> str:
    """The specification of a model that the study trains, without rule and transform."""
    place = path_inside(RESULTS / "models", name.replace(" ", "-")).as_posix()
    if kind == "ngram":
        return f"kenlm:{place}.arpa"
    return f"{kind if kind in get_args(RecurrentKind) else 'hf'}:{place}"


def _training(
    kind: str, values: Mapping[str, Any], seed: int, key: Key, problems: Problems
) -> ModelTraining:
    network, usual = KINDS[kind]
    parts = [network, TrainingPlace] + ([] if usual is None else [TrainingSettings])
    names = {part: {each.name for each in fields(part)} - {"kind"} for part in parts}
    allowed = [name for own in names.values() for name in own]
    problems.refuse_unknown(key, values, ["train", *_ENDINGS, *allowed])
    given: dict[type[Any], dict[str, Any]] = {
        part: {name: value for name, value in values.items() if name in names[part]}
        for part in parts
    }
    if usual is not None:
        given[network]["kind"] = kind
        given[TrainingSettings] = {**vars(usual), "seed": seed, **given[TrainingSettings]}
    made = {part: validated(part, given[part], key, problems) for part in parts}
    return ModelTraining(made[network], made.get(TrainingSettings), made[TrainingPlace])
