"""Strict readers of JSON and TOML, which refuse content that other programs could misread.

Python's readers accept NaN, half of a surrogate pair (which UTF-8 cannot encode), and the same name
twice in one object. For deep nesting, they raise a RecursionError. For an integer with thousands of
digits, their message is about a setting of Python.
"""

from __future__ import annotations

import json
import math
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.files.files import reading, refuse_device, write_text
from contstim.wording import find_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FORMAT = 1
"""Format number of all records, and of the tables and certificates that records describe.

A record is a JSON file next to an output; it describes how the output was made. A certificate is a
JSON file that describes how a solver selected items, or assigned items to groups.
"""

DEEPEST = 64
"""Maximum nesting depth of lists and objects."""

_MAX_SHOWN = 40


def parse_json(text: str | bytes, source: object, *, constants: bool = False) -> Any:
    """Parse a JSON text.

    If `constants` is true, NaN, Infinity and -Infinity are accepted. Python writes these constants,
    but JSON does not allow them. Messages name the `source`, such as a path, or a path and a row.

    Raises:
        InputError: if the text is not valid JSON in UTF-8, is nested deeper than `DEEPEST`, has a
            name twice in one object, or has a number too large for floating point.
    """
    text = _decode(text, source)
    with _source_errors(source, "JSON"):
        value = json.loads(
            text,
            parse_constant=float if constants else _parse_finite,
            parse_float=_parse_finite,
            object_pairs_hook=_make_object,
        )
        _check_value(value)
    return value


def parse_json_object(
    text: str | bytes, source: object, *, constants: bool = False
) -> dict[str, Any]:
    """Parse a JSON text that contains an object.

    Raises:
        InputError: if the text contains a value that is not an object; see also `parse_json`.
    """
    value = parse_json(text, source, constants=constants)
    if not isinstance(value, dict):
        raise InputError(
            f'{source} is not a JSON object: expected {{"name": value, …}}, got {shortened(value)}.'
        )
    return value


def parse_toml(text: str | bytes, source: object) -> dict[str, Any]:
    """Parse a TOML text.

    Raises:
        InputError: if the text is not valid TOML in UTF-8, is nested deeper than `DEEPEST`, or has
            a number that is not finite.
    """
    text = _decode(text, source).replace("\r\n", "\n")
    with _source_errors(source, "TOML"):
        tables = tomllib.loads(text, parse_float=_parse_finite)
        _check_value(tables)
    return tables


def parse_json_lines(
    lines: Iterable[str], path: Path | str, *, constants: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse JSON Lines: yield line number (from 1) and object of each line that is not blank.

    Raises:
        InputError: if a line is not one JSON object; the message names the line.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, parse_json_object(line, f"{path}, line {number}", constants=constants)


def write_json(
    path: Path | str, value: object, *, default: Any = str, private: bool = False
) -> None:
    """Write a value as an indented JSON file.

    `default` converts values that JSON cannot represent. Only the owner may read a private file.

    Raises:
        InputError: if the file cannot be written.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    write_text(path, text + "\n", private=private)


def read_json_object(path: Path | str, *, constants: bool = False) -> dict[str, Any]:
    """Read a JSON file that contains an object.

    Raises:
        InputError: if the file cannot be read; see also `parse_json_object`.
    """
    return parse_json_object(_read_bytes(path), path, constants=constants)


def read_json_lines(path: Path | str) -> list[tuple[int, dict[str, Any]]]:
    """Read a JSON Lines file; return the line number, from 1, and the object of each line.

    Raises:
        InputError: if the file cannot be read, or if a line is not one JSON object. The message
            names the line.
    """
    return list(parse_json_lines(read_text(path).split("\n"), path))


def read_toml(path: Path | str) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        InputError: if the file cannot be read; see also `parse_toml`.
    """
    return parse_toml(_read_bytes(path), path)


def read_text(path: Path | str) -> str:
    """Read a UTF-8 text; remove a byte order mark, and convert line ends to LF.

    Raises:
        InputError: if the file cannot be read, or is not UTF-8. The message names the first byte
            that is not UTF-8.
    """
    return _decode(_read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")


def refuse_other_format(path: Path | str, content: Mapping[str, Any]) -> None:
    """Check that a file or its record has the format that this version of contstim reads.

    Raises:
        InputError: if `content` has another format number; content without a number is accepted.
    """
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(
            f"{path} has the format {shortened(content['format'])}, but this version of "
            f"contstim reads {FORMAT}. Create the file again, or use the version that wrote it."
        )


def shortened(value: object) -> str:
    """Return the representation of a value for messages, at most about 40 characters."""
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


@contextmanager
def _source_errors(source: object, language: str) -> Iterator[None]:
    """Convert the errors of Python's readers to an `InputError` that names the source."""
    try:
        yield
    except RecursionError:
        problem = f"lists and objects are nested more than {DEEPEST} levels deep"
        raise InputError(f"{source} is not readable {language}: {problem}.") from None
    except ValueError as error:
        # Python's message about integers of more than 4,300 digits is only useful to programmers
        problem = "an integer is too long" if "integer string" in str(error) else str(error)
        raise InputError(f"{source} is not readable {language}: {problem}.") from error


def _read_bytes(path: Path | str) -> bytes:
    with reading(path):
        refuse_device(path)
        return Path(path).read_bytes()


def _decode(text: str | bytes, source: object) -> str:
    if isinstance(text, str):
        return text
    with reading(source):
        # Windows editors begin files with a byte order mark
        return text.decode("utf-8-sig")


def _parse_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:_MAX_SHOWN]} is not a finite number")
    return value


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        duplicates = find_duplicates(name for name, _ in pairs)
        raise ValueError(f"one object has the name {shortened(duplicates[0])} twice")
    return value


def _check_value(value: object) -> None:
    depth, level = 0, [value]  # a loop over levels, because Python limits the depth of recursion
    while level:
        inner: list[object] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.keys()
                inner += part.values()
            elif isinstance(part, list):
                inner += part
            elif isinstance(part, str):
                try:
                    part.encode()
                except UnicodeEncodeError:
                    raise ValueError("a text contains half of a surrogate pair") from None
            elif isinstance(part, int):
                try:
                    float(part)  # later computations must not overflow
                except OverflowError:
                    raise ValueError("an integer is too large for floating point") from None
        if inner and depth == DEEPEST:
            raise RecursionError
        depth, level = depth + 1, inner
