"""Check that a folder is a Psych-DS data set, by the rules of version 1.5.

Facts from the Psych-DS schema 1.5.1 (psych-ds/psych-DS on GitHub, `schema_model/versions`); the
codes of findings are those of its errors. Ignored files are named in `.psychds-ignore` (so the
rules; one of their texts says `.psychdsignore`).
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import parse_json_object
from contstim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Pairs of keyword and value, joined by underscores, and `data` at the end.
_NAME = re.compile(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.(csv|tsv)")
_KEYWORDS = frozenset(
    "study site subject session task condition trial stimulus description".split()
)
_MAIN = "dataset_description.json"
_REQUIRED = ("name", "description", "variableMeasured")
_RECOMMENDED = ("author", "license")
_SCHEMA_ORG = re.compile(r"https?://schema\.org/?")


@dataclass(frozen=True)
class PsychDsFinding:
    """A rule that is broken (an error) or a recommendation that is not followed.

    Attributes:
        error: whether the folder is not a Psych-DS data set because of it.
        code: the name of the rule in the Psych-DS schema.
        about: file, column or key.
    """

    error: bool
    code: str
    about: str

    def __str__(self) -> str:
        return f"{'error' if self.error else 'warning'}: {self.code}: {self.about}"


def check_psych_ds(folder: Path | str) -> tuple[PsychDsFinding, ...]:
    """Findings of what is wrong with a data set; empty when nothing is.

    Raises:
        InputError: there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"There is no folder {root}.")
    return tuple(_findings(root))


def _error(code: str, about: str) -> PsychDsFinding:
    return PsychDsFinding(True, code, about)


def _findings(root: Path) -> Iterator[PsychDsFinding]:
    # Without a description or a folder of data there is nothing to hold the other rules against.
    if not (root / _MAIN).is_file():
        yield _error("MISSING_DATASET_DESCRIPTION", _MAIN)
        return
    main, problems = _read_json(root / _MAIN, root)
    yield from problems
    if problems:
        return
    if not (root / "data").is_dir():
        yield _error("MISSING_DATA_DIRECTORY", "data/")
        return
    for name in ("README", "CHANGES"):
        if not any((root / f"{name}{kind}").is_file() for kind in (".md", ".txt")):
            yield PsychDsFinding(False, f"MISSING_{name}_DOC", f"{name}.md")
    used: set[str] = set()
    described: dict[str, None] = {}
    tables = 0
    for path in sorted((root / "data").rglob("*.[ct]sv")):
        about = path.relative_to(root).as_posix()
        if not _NAME.fullmatch(path.name):
            yield _error("FILENAME_KEYWORD_FORMATTING_ERROR", about)
            continue
        tables += 1
        # Of a name that is right, the last part is `data`; all others are keyword and value.
        for keyword in (part.split("-")[0] for part in path.stem.split("_")[:-1]):
            if keyword not in _KEYWORDS:
                code = "FILENAME_UNOFFICIAL_KEYWORD_WARNING"
                yield PsychDsFinding(False, code, f"{about}: {keyword}")
        # From the data set's folder down to the sidecar: what stands nearer to the table counts.
        metadata = dict(main)
        inside = [folder for folder in reversed(path.parents) if root in folder.parents]
        sidecars = [folder / "file_metadata.json" for folder in inside]
        for sidecar in (*sidecars, path.with_suffix(".json")):
            nearer, problems = _read_json(sidecar, root)
            metadata |= nearer
            yield from problems
        yield from _metadata_findings(metadata, about)
        variables = _variables(metadata)
        described.update(dict.fromkeys(variables))
        header, problems = _read_table(path, about)
        yield from problems
        for column in header:
            if column not in variables:
                yield _error("CSV_COLUMN_MISSING_FROM_METADATA", f"{about}: {column}")
        used.update(header)
    if not tables:
        yield _error("MISSING_DATAFILE", "data/")
    for name in described:
        if name not in used:
            yield _error("VARIABLE_MISSING_FROM_CSV_COLUMNS", name)


def _variables(metadata: dict[str, Any]) -> list[str]:
    """Names of variables: texts, or `name`s of objects; a single one needs no list."""
    stated = metadata.get("variableMeasured", [])
    return [
        str(each.get("name", "")) if isinstance(each, dict) else str(each)
        for each in (stated if isinstance(stated, list) else [stated])
    ]


def _metadata_findings(metadata: dict[str, Any], about: str) -> Iterator[PsychDsFinding]:
    if not _SCHEMA_ORG.fullmatch(str(metadata.get("@context", ""))):
        yield _error("JSON_KEY_REQUIRED", f"{about}: @context of schema.org")
    kind = metadata.get("@type", metadata.get("type"))
    if kind is None:
        yield _error("MISSING_DATASET_TYPE", about)
    elif not re.fullmatch(r"(https?://schema\.org/)?Dataset", str(kind)):
        yield _error("INCORRECT_DATASET_TYPE", f"{about}: {kind}")
    for key in (*_REQUIRED, *_RECOMMENDED):
        if not metadata.get(key):
            required = key in _REQUIRED
            code = "JSON_KEY_REQUIRED" if required else "JSON_KEY_RECOMMENDED"
            yield PsychDsFinding(required, code, f"{about}: {key}")


def _read_table(path: Path, about: str) -> tuple[list[str], list[PsychDsFinding]]:
    """The header of a table, and what is wrong with its form."""
    delimiter = "\t" if path.suffix == ".tsv" else ","
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter=delimiter, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        return [], [_error("CSV_FORMATTING_ERROR", f"{about}: {error}")]
    if not rows or not any(rows[0]):
        return [], [_error("CSV_HEADER_MISSING", about)]
    header, *cells = rows
    findings = [
        _error("CSV_HEADER_REPEATED", f"{about}: {name}")
        for name, count in Counter(header).items()
        if count > 1
    ]
    # Identifiers of rows can only be compared where every row is as long as the header.
    if any(len(row) != len(header) for row in cells):
        findings.append(_error("CSV_HEADER_LENGTH_MISMATCH", about))
    elif "row_id" in header:
        values = [row[header.index("row_id")] for row in cells]
        if len(set(values)) < len(values):
            findings.append(_error("ROWID_VALUES_NOT_UNIQUE", about))
    return header, findings


def _read_json(path: Path, root: Path) -> tuple[dict[str, Any], list[PsychDsFinding]]:
    """An object, empty where there is no file; or what is wrong with the file."""
    if not path.is_file():
        return {}, []
    about = path.relative_to(root).as_posix()
    try:
        return parse_json_object(path.read_bytes().decode("utf-8"), about), []
    except UnicodeDecodeError:
        return {}, [_error("JSON_ENCODING_ERROR", about)]
    except InputError as error:
        return {}, [_error("INVALID_JSON_FORMATTING", str(error))]
