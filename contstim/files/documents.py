"""JSON and TOML, read strictly: what one program writes and another would misread is refused.

Python's own readers accept more than the formats say (NaN, half surrogate pairs, a name twice in
one object) and fail in ways of their own on deep nesting and on integers of thousands of digits.
Whatever reads such a file or text reads it here.
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
from contstim.wording import repeated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FORMAT = 1
"""Number of the format of all records, and of the tables and certificates that they are of."""

DEEPEST = 64
"""How deep lists and objects may be nested."""

_LONGEST_SHOWN = 40


def parse_json(text: str | bytes, source: object, *, constants: bool = False) -> Any:
    """The value that a JSON text holds.

    Args:
        text: as characters, or as bytes in UTF-8.
        source: where the text is from, such as a path, or a path and a row, for messages.
        constants: whether NaN, Infinity and -Infinity are taken, which Python writes for numbers
            that JSON does not have.

    Raises:
        InputError: it is not JSON in UTF-8; it holds NaN, an infinity, a number too large for
            floating point, half of a surrogate pair, or a name twice in one object; or it is
            nested deeper than `DEEPEST`.
    """
    text = _decoded(text, source)
    with _naming(source, "JSON"):
        value = json.loads(
            text,
            parse_constant=float if constants else _refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_distinct,
        )
        _check(value)
    return value


def parse_json_object(
    text: str | bytes, source: object, *, constants: bool = False
) -> dict[str, Any]:
    """The object, a mapping from names to values, that a JSON text holds.

    Raises:
        InputError: it holds another value; and see `parse_json`.
    """
    value = parse_json(text, source, constants=constants)
    if not isinstance(value, dict):
        raise InputError(
            f'{source} is not a JSON object: expected {{"name": value, …}}, not {shortened(value)}.'
        )
    return value


def parse_toml(text: str | bytes, source: object) -> dict[str, Any]:
    """The tables that a TOML text holds.

    Raises:
        InputError: it is not TOML in UTF-8; it holds nan, an infinity or a number too large for
            floating point; or it is nested deeper than `DEEPEST`.
    """
    text = _decoded(text, source).replace("\r\n", "\n")
    with _naming(source, "TOML"):
        tables = tomllib.loads(text, parse_float=_finite)
        _check(tables)
    return tables


def parse_json_lines(
    lines: Iterable[str], path: Path | str, *, constants: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines with the number of each line, from 1; blank lines are left out.

    Raises:
        InputError: a line is not one JSON object (names it).
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, parse_json_object(line, f"{path}, line {number}", constants=constants)


def write_json(
    path: Path | str, value: object, *, default: Any = str, private: bool = False
) -> None:
    """Write a value as a JSON file that people can read.

    Args:
        path: the file.
        value: what it is to hold.
        default: what stands for a value that JSON does not have.
        private: whether its owner alone may read it.

    Raises:
        InputError: the file cannot be written.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, default=default)
    write_text(path, text + "\n", private=private)


def read_json(path: Path | str) -> Any:
    """The value of a JSON file.

    Raises:
        InputError: the file cannot be read; and see `parse_json`.
    """
    return parse_json(_content(path), path)


def read_json_object(path: Path | str, *, constants: bool = False) -> dict[str, Any]:
    """The object of a JSON file.

    Raises:
        InputError: the file cannot be read; and see `parse_json_object`.
    """
    return parse_json_object(_content(path), path, constants=constants)


def read_json_lines(path: Path | str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a file of JSON lines with the number of each line, from 1.

    Raises:
        InputError: the file cannot be read, or a line is not one JSON object (names it).
    """
    return list(parse_json_lines(read_text(path).split("\n"), path))


def read_toml(path: Path | str) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        InputError: the file cannot be read; and see `parse_toml`.
    """
    return parse_toml(_content(path), path)


def read_text(path: Path | str) -> str:
    """The text of a UTF-8 file, without a byte order mark, its lines ended by LF.

    Raises:
        InputError: the file cannot be read or is not UTF-8 (names the byte).
    """
    text = _decoded(_content(path), path)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def refuse_other_format(path: Path | str, content: Mapping[str, Any]) -> None:
    """Refuse a file that another version of contstim wrote in another format.

    Raises:
        InputError: what the file, or its record, holds names another format.
    """
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(
            f"{path} has the format {shortened(content['format'])}, and this version of contstim "
            f"reads {FORMAT}: make the file again, or use the version that wrote it."
        )


def shortened(value: object) -> str:
    """A value as messages show it: at most a few dozen characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


@contextmanager
def _naming(source: object, language: str) -> Iterator[None]:
    """Errors of readers as ours, with the source's name."""
    try:
        yield
    except RecursionError:
        what = f"lists and objects are nested deeper than {DEEPEST}"
        raise InputError(f"{source} is not readable {language}: {what}.") from None
    except ValueError as error:
        # Python refuses integers of more than 4,300 digits with advice for programmers.
        what = "an integer is too long" if "integer string" in str(error) else str(error)
        raise InputError(f"{source} is not readable {language}: {what}.") from error


def _content(path: Path | str) -> bytes:
    with reading(path):
        refuse_device(path)
        return Path(path).read_bytes()


def _decoded(text: str | bytes, source: object) -> str:
    if isinstance(text, str):
        return text
    with reading(source):
        # Editors on Windows put a byte order mark first
        return text.decode("utf-8-sig")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:_LONGEST_SHOWN]} is not a finite number")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = repeated(name for name, _ in pairs)
        raise ValueError(f"one object has the name {shortened(twice[0])} twice")
    return value


def _check(value: object) -> None:
    """Refuse what readers let pass: see `parse_json`."""
    depth, level = 0, [value]  # level by level, since recursion itself ends at some depth
    while level:
        inner: list[object] = []
        for part in level:
            if isinstance(part, dict):
                # Names are texts too, and may hold half of a surrogate pair
                inner += part.keys()
                inner += part.values()
            elif isinstance(part, list):
                inner += part
            elif isinstance(part, str):
                try:
                    part.encode()
                except UnicodeEncodeError:
                    raise ValueError("a text holds half of a surrogate pair") from None
            elif isinstance(part, int):
                try:
                    float(part)  # so that every number can be computed with
                except OverflowError:
                    raise ValueError("an integer is too large for floating point") from None
        if inner and depth == DEEPEST:
            raise RecursionError
        depth, level = depth + 1, inner
