"""Check that a folder is a Psych-DS data set, by the rules of version 1.5.

Facts from the Psych-DS schema 1.5.1 (psych-ds/psych-DS on GitHub, `schema_model/versions`); the
codes of findings are those of its errors. Ignored files are named in `.psychds-ignore` (so the
rules; one of their texts says `.psychdsignore`).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from contstim.errors import InputError
from contstim.files.documents import parse_json_object
from contstim.wording import repeated

# Pairs of keyword and value, joined by underscores, and `data` at the end.
_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.(csv|tsv)")
_KEYWORDS = frozenset(
    "study site subject session task condition trial stimulus description".split()
)
_MAIN = "dataset_description.json"
_REQUIRED = ("name", "description", "variableMeasured")
_RECOMMENDED = ("author", "license")
_SCHEMA_ORG = re.compile(r"https?://schema\.org/?")


def check_psych_ds(folder: Path | str) -> tuple[list[str], list[str]]:
    """Rules that a data set breaks, and recommendations that it does not follow.

    Each is the name of the rule in the Psych-DS schema, and the file, column or key.

    Raises:
        InputError: there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.")
    errors: list[str] = []
    # Without a description or a folder of data there is nothing to hold the other rules against.
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
        about = path.relative_to(root).as_posix()
        if not _NAME.fullmatch(path.name):
            errors.append(f"FILENAME_KEYWORD_FORMATTING_ERROR: {about}")
            continue
        tables += 1
        # Of a name that is right, the last part is `data`; all others are keyword and value.
        keywords = (part.split("-")[0] for part in path.stem.split("_")[:-1])
        warnings += (
            f"FILENAME_UNOFFICIAL_KEYWORD_WARNING: {about}: {keyword}"
            for keyword in keywords
            if keyword not in _KEYWORDS
        )
        variables = _check_metadata(path, root, main, errors, warnings)
        described.update(dict.fromkeys(variables))
        header = _read_table(path, about, errors)
        absent = (column for column in header if column not in variables)
        errors += (f"CSV_COLUMN_MISSING_FROM_METADATA: {about}: {column}" for column in absent)
        used.update(header)
    if not tables:
        errors.append("MISSING_DATAFILE: data/")
    unused = (name for name in described if name not in used)
    errors += (f"VARIABLE_MISSING_FROM_CSV_COLUMNS: {name}" for name in unused)
    return errors, warnings


def _check_metadata(
    path: Path, root: Path, main: dict[str, Any], errors: list[str], warnings: list[str]
) -> list[str]:
    """Names of the variables that a table's metadata describe, which are checked."""
    about, metadata = path.relative_to(root).as_posix(), dict(main)
    # From the data set's folder down to the sidecar: what stands nearer to the table counts.
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
    # Texts, or `name`s of objects; a single one needs no list
    stated = metadata.get("variableMeasured", [])
    return [
        str(each.get("name", "")) if isinstance(each, dict) else str(each)
        for each in (stated if isinstance(stated, list) else [stated])
    ]


def _read_table(path: Path, about: str, errors: list[str]) -> list[str]:
    """The header of a table, whose form is checked; empty where it cannot be read."""
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
    errors += (f"CSV_HEADER_REPEATED: {about}: {name}" for name in repeated(header))
    # Identifiers of rows can only be compared where every row is as long as the header.
    if any(len(row) != len(header) for row in cells):
        errors.append(f"CSV_HEADER_LENGTH_MISMATCH: {about}")
    elif "row_id" in header:
        values = [row[header.index("row_id")] for row in cells]
        if len(set(values)) < len(values):
            errors.append(f"ROWID_VALUES_NOT_UNIQUE: {about}")
    return header


def _read_json(path: Path, root: Path, errors: list[str]) -> dict[str, Any]:
    """An object; empty where there is no file or what is wrong with it is among the errors."""
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
