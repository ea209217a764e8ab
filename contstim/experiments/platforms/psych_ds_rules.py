"""Check that a folder is a Psych-DS data set, by the rules of version 1.5.

Facts from the Psych-DS schema 1.5.1 (psych-ds/psych-DS on GitHub, `schema_model/versions`); codes
of findings are those of the schema's errors. Ignored files are named in `.psychds-ignore`, as in
the rules (one of their texts says `.psychdsignore`).
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from contstim.errors import InputError
from contstim.files.documents import parse_json_object
from contstim.wording import find_duplicates

# Pairs of keyword and value, joined by underscores, then `data`
_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.(csv|tsv)")
_KEYWORDS = frozenset(
    "study site subject session task condition trial stimulus description".split()
)
_MAIN = "dataset_description.json"
_REQUIRED = ("name", "description", "variableMeasured")
_RECOMMENDED = ("author", "license")
_SCHEMA_ORG = re.compile(r"https?://schema\.org/?")


def check_psych_ds(folder: Path | str) -> tuple[list[str], list[str]]:
    """Find broken rules (errors) and ignored recommendations (warnings) of a data set.

    Each is the rule's name in the Psych-DS schema, and the file, column or key.

    Raises:
        InputError: if there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.")
    errors: list[str] = []
    # Without a description or a data folder, the other rules cannot be checked
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
        # In a valid name the last part is `data`; all others are keyword and value
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
    """Check the metadata of a table, and return the names of the variables they describe."""
    about, metadata = path.relative_to(root).as_posix(), dict(main)
    # From the data set's folder down to the sidecar: metadata closer to the table take precedence
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
    # Strings, or objects with a `name`; a single one needs no list
    stated = metadata.get("variableMeasured", [])
    return [
        str(variable.get("name", "")) if isinstance(variable, dict) else str(variable)
        for variable in (stated if isinstance(stated, list) else [stated])
    ]


def _read_table(path: Path, about: str, errors: list[str]) -> list[str]:
    """Read and check a table; return its header, empty if it cannot be read."""
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
    # Row identifiers can only be compared if every row is as long as the header
    if any(len(row) != len(header) for row in cells):
        errors.append(f"CSV_HEADER_LENGTH_MISMATCH: {about}")
    elif "row_id" in header:
        values = [row[header.index("row_id")] for row in cells]
        if len(set(values)) < len(values):
            errors.append(f"ROWID_VALUES_NOT_UNIQUE: {about}")
    return header


def _read_json(path: Path, root: Path, errors: list[str]) -> dict[str, Any]:
    """Read a JSON object; empty if the file is missing or invalid (then an error is added)."""
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
