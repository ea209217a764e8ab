"""Psych-DS 1.5: write a data set of an experiment, and check any data set.

The data set contains stimuli, responses, answers to questions, and scores. Every column is
described in words, as a PropertyValue of schema.org.

The rules and error codes of `check_psych_ds` are those of the Psych-DS schema 1.5.1
(psych-ds/psych-DS on GitHub, `schema_model/versions`). The file `.psychds-ignore` lists files to
ignore. The rules of the schema use this name; a text in the schema uses the name `.psychdsignore`.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError, VerificationError
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import check_trial_ids
from contstim.experiments.platforms.platform import Exported, Exporter, Platform
from contstim.experiments.responses import questionnaire
from contstim.experiments.responses.table import (
    NO_BREAK_SPACE,
    anonymise,
    cells_of,
    escape_formula,
    origin_of,
    read_responses,
    response_columns,
)
from contstim.files.documents import parse_json_object
from contstim.files.tables import join_names
from contstim.items.scale import Scale
from contstim.items.scores import ScoreTable
from contstim.options import AnswerScale, Help
from contstim.reporting.report import Paragraph, Report
from contstim.wording import find_duplicates, quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.responses.table import Response, ResponseOrigin
    from contstim.items.stimuli import Trial

_VARIABLES: dict[str, dict[str, Any]] = json.loads(template("variables.json"))


def variable(name: str, *, model: bool = False, scale: Scale = Scale.CONFIDENCE) -> dict[str, Any]:
    """Return the PropertyValue of a column.

    If `model` is true, `name` is the name of a model, and the column contains this model's scores.
    `scale` determines the description of ratings.
    """
    if model:
        about = f"Log-probability of the sentence under the model {name}."
        values = {"description": about, "unitText": "nats"}
    else:
        values = _VARIABLES[f"rating, {scale}" if name == "rating" else name]
    return {"@type": "PropertyValue", "name": name, **values}


def export_psych_ds(
    trials: Sequence[Trial],
    out: Path | str,
    *,
    responses: Annotated[Path | None, Help("The responses of participants.")] = None,
    scores: Annotated[Path | None, Help("Scores of the sentences.")] = None,
    questions: Annotated[
        Path | None,
        Help(
            "The table of questions. The answers are read from the file next to the responses; "
            "free texts are not exported."
        ),
    ] = None,
    scale: AnswerScale = None,
    name: Annotated[str, Help("The name of the data set.")] = "contstim",
    description: Annotated[str, Help("Description in one sentence.")] = "",
    authors: Annotated[tuple[str, ...], Help("Authors of the data set.", flag="--author")] = (),
    licence: Annotated[str, Help("Name or web address of the licence.")] = "",
    keep_names: Annotated[bool, Help("Keep the participants' names; default: numbers.")] = False,
    simulated: Annotated[
        bool, Help("Allow artificial participants, and mention them in the title.")
    ] = False,
) -> Exported:
    """Write a Psych-DS 1.5 data set, and check it.

    The data set contains the stimuli. It also contains responses and scores if you name their
    files. Every column has a description. Numbers replace participants' names, unless you keep the
    names. `contstim check psych-ds` prints the errors and warnings of a data set. If the data set
    breaks a rule, the exit status is 1.

    Example: `contstim export psych-ds --trials trials.csv --responses responses.csv --name
    "Controversial pairs" --author "Ada Lovelace" --out dataset`

    Raises:
        InputError: if a table cannot be read; if responses are simulated and `simulated` is not
            set; if `simulated` is set and no responses are simulated; if there are questions
            without responses; if scores have no sentence; if a model has the name of another
            column; if `name` has no letter or digit; if a response belongs to no trial; if
            `check_trial_ids` refuses the trials; or if the folder contains other files.
        VerificationError: if the data set breaks a rule (`check_psych_ds`).
    """
    # A file name of Psych-DS has parts `keyword-value`; a value may have only letters and digits
    study = re.sub(r"[^A-Za-z0-9]", "", name)
    if not study:
        raise InputError(f"`name` must contain a letter or a digit, got {name!r}.")
    check_trial_ids(trials)
    response_rows = () if responses is None else read_responses(responses, trials, scale=scale)
    origin = _check_origin(trials, response_rows, simulated=simulated)
    folder = ExportFolder(out, "psych-ds")
    # A name may be an ID that identifies a person on a platform
    exported_rows = response_rows if keep_names else anonymise(response_rows)
    participants = ([row.participant for row in rows] for rows in (response_rows, exported_rows))
    pseudonyms = dict(zip(*participants, strict=True))
    question_rows, answers = _questions_and_answers(questions, responses)
    score_table = None if scores is None else ScoreTable.from_file(scores)
    tables = {
        "answers": [
            cells_of(replace(answer, participant=pseudonyms[answer.participant]), NO_BREAK_SPACE)
            for answer in answers
            if answer.participant in pseudonyms
        ],
        "stimuli": [cells_of(trial, NO_BREAK_SPACE) for trial in trials],
        "responses": [cells_of(row, NO_BREAK_SPACE) for row in exported_rows],
        "scores": [] if score_table is None else _score_rows(score_table),
    }
    columns = {table_name: list(rows[0]) for table_name, rows in tables.items() if rows}
    if response_rows:  # the times at which answers were received are private
        columns["responses"] = [n for n in response_columns(exported_rows) if n != "received"]
    for table_name, names in columns.items():
        path = f"data/study-{study}_description-{table_name}_data.csv"
        folder.rows(path, tables[table_name], names)
    models = score_table.models if score_table else ()
    answer_scale = response_rows[0].scale if response_rows else Scale.CONFIDENCE
    variables = [
        variable(column, model=column in models, scale=answer_scale)
        for column in dict.fromkeys(column for names in columns.values() for column in names)
    ]
    for described in variables:
        if described["name"] == "question":
            described["valueReference"] = [f"{q.name}: {q.question}" for q in question_rows]
    metadata = _metadata(name, description, authors, licence, origin)
    metadata["variableMeasured"] = variables
    folder.text("dataset_description.json", json.dumps(metadata, indent=2, ensure_ascii=False))
    folder.readme(
        head=Report(metadata["name"], [Paragraph(metadata["description"])]).markdown().strip(),
        tables="\n".join(f"* {n}: {quantity(len(tables[n]), 'row')}" for n in columns),
    )
    folder.text("CHANGES.md", "# Changes\n\nFirst version.\n")
    folder.text(".psychds-ignore", "export.meta.json\n")
    exported = folder.finish(keep_names=keep_names, simulated_participants=origin.simulated)
    errors, _ = check_psych_ds(exported.path)  # also checks other files in the folder
    if errors:
        raise VerificationError("This is not a Psych-DS data set:\n" + "\n".join(errors))
    return replace(exported, message=f"{exported.path} follows the rules of Psych-DS 1.5.")


def _metadata(
    name: str, description: str, authors: Sequence[str], licence: str, origin: ResponseOrigin
) -> dict[str, Any]:
    description = description or "Pairs of sentences on which language models disagree."
    # Catalogues of data sets display the name, so the name mentions artificial participants
    if origin.simulated:
        kinds = "people and artificial" if origin.people else "artificial"
        name, description = f"{name} ({kinds} participants)", f"{origin.warning} {description}"
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": name,
        "description": description,
        "schemaVersion": "Psych-DS 1.5.1",
        **({"author": [{"@type": "Person", "name": n} for n in authors]} if authors else {}),
        **({"license": licence} if licence else {}),
    }


def _questions_and_answers(
    questions: Path | None, responses: Path | None
) -> tuple[list[questionnaire.Question], list[questionnaire.QuestionAnswer]]:
    """Read questions and answers, but no free texts, because these may identify people."""
    if questions is None:
        return [], []
    if responses is None:
        raise InputError("`questions` needs `responses`. Set both, or neither.")
    question_rows = [q for q in questionnaire.read_questions(questions) if q.kind != "text"]
    names = {question.name for question in question_rows}
    answers = questionnaire.read_answers(questionnaire.questions_beside(responses))
    return question_rows, [answer for answer in answers if answer.question in names]


def _check_origin(
    trials: Sequence[Trial], responses: Sequence[Response], *, simulated: bool
) -> ResponseOrigin:
    """Count people and artificial participants.

    Raises:
        InputError: if a response belongs to no trial, or `simulated` is wrong.
    """
    trial_ids = {trial.trial_id for trial in trials}
    stray = sorted({response.trial_id for response in responses} - trial_ids)
    if stray:
        raise InputError(
            "The responses name trials that are not in the table of trials: "
            f"{join_names(stray, 5)}."
        )
    origin = origin_of(responses)
    if origin.warning and not simulated:
        raise InputError(
            f"{origin.warning} A public data set must state this. Set `simulated`, so that the "
            "title states it and every answer is marked, or export only the answers of people."
        )
    if simulated and not origin.warning:
        raise InputError(
            "`simulated` is for answers of artificial participants, but there are no such answers. "
            "Remove `simulated`."
        )
    return origin


def _score_rows(scores: ScoreTable) -> list[dict[str, Any]]:
    if not scores.sentences:
        raise InputError("The scores have no sentences. Give a table with a column `sentence`.")
    if clash := sorted({"rating", *_VARIABLES} & {*scores.models}):
        raise InputError(
            f"{', '.join(clash)} must not be the name of a model: another column has this "
            "name. Rename the model."
        )
    texts = [escape_formula(sentence.text, NO_BREAK_SPACE) for sentence in scores.sentences]
    return [
        {"sentence": text, **dict(zip(scores.models, row, strict=True))}
        for text, row in zip(texts, scores.log_probs.tolist(), strict=True)
    ]


# A file name has the form keyword-value_keyword-value_data.csv
_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.(csv|tsv)")
_KEYWORDS = frozenset(
    "study site subject session task condition trial stimulus description".split()
)
_MAIN = "dataset_description.json"
_REQUIRED = ("name", "description", "variableMeasured")
_RECOMMENDED = ("author", "license")
_SCHEMA_ORG = re.compile(r"https?://schema\.org/?")


def check_psych_ds(folder: Path | str) -> tuple[list[str], list[str]]:
    """Return the rules that a data set breaks, and the recommendations that it ignores.

    Broken rules are errors, ignored recommendations are warnings. Each text begins with the name of
    the rule in the Psych-DS schema. The file, column or key follows.

    Raises:
        InputError: if there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.")
    errors: list[str] = []
    if not (root / _MAIN).is_file():
        return [f"MISSING_DATASET_DESCRIPTION: {_MAIN}"], []
    main = _read_json(root / _MAIN, root, errors)
    if errors:
        return errors, []
    if not (root / "data").is_dir():
        return ["MISSING_DATA_DIRECTORY: data/"], []
    warnings = [
        f"MISSING_{name}_DOC: {name}.md"
        for name in ("README", "CHANGES")
        if not any((root / f"{name}{kind}").is_file() for kind in (".md", ".txt"))
    ]
    used: set[str] = set()
    described: dict[str, None] = {}
    tables = 0
    for path in sorted((root / "data").rglob("*.[ct]sv")):
        relative_path = path.relative_to(root).as_posix()
        if not _NAME.fullmatch(path.name):
            errors.append(f"FILENAME_KEYWORD_FORMATTING_ERROR: {relative_path}")
            continue
        tables += 1
        # In a valid name, the last part is `data` and all others are `keyword-value`
        keywords = (part.split("-")[0] for part in path.stem.split("_")[:-1])
        warnings += (
            f"FILENAME_UNOFFICIAL_KEYWORD_WARNING: {relative_path}: {keyword}"
            for keyword in keywords
            if keyword not in _KEYWORDS
        )
        variables = _check_metadata(path, root, main, errors, warnings)
        described.update(dict.fromkeys(variables))
        header = _read_table(path, relative_path, errors)
        absent = (column for column in header if column not in variables)
        errors += (
            f"CSV_COLUMN_MISSING_FROM_METADATA: {relative_path}: {column}" for column in absent
        )
        used.update(header)
    if not tables:
        errors.append("MISSING_DATAFILE: data/")
    unused = (name for name in described if name not in used)
    errors += (f"VARIABLE_MISSING_FROM_CSV_COLUMNS: {name}" for name in unused)
    return errors, warnings


def _check_metadata(
    path: Path, root: Path, main: dict[str, Any], errors: list[str], warnings: list[str]
) -> list[str]:
    about, metadata = path.relative_to(root).as_posix(), dict(main)
    # JSON files (sidecars) describe the tables in their folder. These files are read from the
    # outermost folder to the table's own file; later values replace earlier values.
    inside = [folder for folder in reversed(path.parents) if root in folder.parents]
    sidecars = [folder / "file_metadata.json" for folder in inside]
    for sidecar in (*sidecars, path.with_suffix(".json")):
        metadata |= _read_json(sidecar, root, errors)
    if not _SCHEMA_ORG.fullmatch(str(metadata.get("@context", ""))):
        errors.append(f"JSON_KEY_REQUIRED: {about}: @context of schema.org")
    kind = metadata.get("@type", metadata.get("type"))
    if kind is None:
        errors.append(f"MISSING_DATASET_TYPE: {about}")
    elif not re.fullmatch(r"(https?://schema\.org/)?Dataset", str(kind)):
        errors.append(f"INCORRECT_DATASET_TYPE: {about}: {kind}")
    errors += (f"JSON_KEY_REQUIRED: {about}: {k}" for k in _REQUIRED if not metadata.get(k))
    recommended = (key for key in _RECOMMENDED if not metadata.get(key))
    warnings += (f"JSON_KEY_RECOMMENDED: {about}: {key}" for key in recommended)
    # Variables are strings, or objects with a `name`; a single variable needs no list
    stated = metadata.get("variableMeasured", [])
    return [
        str(variable.get("name", "")) if isinstance(variable, dict) else str(variable)
        for variable in (stated if isinstance(stated, list) else [stated])
    ]


def _read_table(path: Path, about: str, errors: list[str]) -> list[str]:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter=delimiter, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        errors.append(f"CSV_FORMATTING_ERROR: {about}: {error}")
        return []
    if not rows or not any(rows[0]):
        errors.append(f"CSV_HEADER_MISSING: {about}")
        return []
    header, *cells = rows
    errors += (f"CSV_HEADER_REPEATED: {about}: {name}" for name in find_duplicates(header))
    # Identifiers of rows can be compared only if every row is as long as the header
    if any(len(row) != len(header) for row in cells):
        errors.append(f"CSV_HEADER_LENGTH_MISMATCH: {about}")
    elif "row_id" in header:
        values = [row[header.index("row_id")] for row in cells]
        if len(set(values)) < len(values):
            errors.append(f"ROWID_VALUES_NOT_UNIQUE: {about}")
    return header


def _read_json(path: Path, root: Path, errors: list[str]) -> dict[str, Any]:
    if not path.is_file():
        return {}
    about = path.relative_to(root).as_posix()
    try:
        return parse_json_object(path.read_bytes().decode("utf-8"), about)
    except UnicodeDecodeError:
        errors.append(f"JSON_ENCODING_ERROR: {about}")
    except InputError as error:
        errors.append(f"INVALID_JSON_FORMATTING: {error}")
    return {}


PLATFORM = Platform(
    "psych-ds",
    Exporter(export_psych_ds, check=check_psych_ds, format="the rules of Psych-DS 1.5"),
)
