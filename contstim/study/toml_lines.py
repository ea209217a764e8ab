"""Line of each key of a TOML text, which Python's TOML reader does not report."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import TypeAlias

Key: TypeAlias = tuple[str, ...]

_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_HEADER = re.compile(rf"\s*\[{{1,2}}\s*({_PATH})\s*\]{{1,2}}")
_ASSIGNMENT = re.compile(rf"\s*({_PATH})\s*=")
# The pieces of a value: strings over several lines, strings, comments, brackets
_PIECE = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[\[\]{}]|\n''',
    re.DOTALL,
)


def lines_of_keys(text: str) -> dict[Key, int]:
    """Return the 1-based line of each table and key of a valid TOML text.

    Keys of an inline table count as the key of the table. A table in double brackets has its
    1-based number as the last part of its key.
    """
    lines: dict[Key, int] = {}
    numbers: Counter[Key] = Counter()
    table: Key = ()
    position, line, counted = 0, 1, 0
    while position < len(text):
        header = _HEADER.match(text, position)
        match = header or _ASSIGNMENT.match(text, position)
        if match:
            # To the name itself: the white space before it may hold empty lines
            line, counted = line + text.count("\n", counted, match.start(1)), match.start(1)
            names = _parts(match[1])
            table, key = (names, names) if header else (table, (*table, *names))
            lines.setdefault(key, line)
            if header and "[[" in header[0]:
                numbers[names] += 1
                table = (*names, str(numbers[names]))
                lines[table] = line
            position = match.end()
            if not header:
                position = _end_of_value(text, position)
                continue
        # Behind a header, or in an empty line or a comment: on to the next line
        end = text.find("\n", position)
        position = len(text) if end < 0 else end + 1
    return lines


def line_of(lines: dict[Key, int], key: Key) -> int | None:
    """Return the line of a key, or of the nearest table or key around it; None without a line."""
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return None


def _end_of_value(text: str, position: int) -> int:
    """Position where the line begins that follows a value."""
    depth = 0
    for piece in _PIECE.finditer(text, position):
        if piece[0] in ("[", "{"):
            depth += 1
        elif piece[0] in ("]", "}"):
            depth -= 1
        elif piece[0] == "\n" and depth == 0:
            return piece.end()
    return len(text)


def _parts(path: str) -> Key:
    """The names of a dotted path, without quotes."""
    names: list[str] = []
    value: object = tomllib.loads(f"{path} = 0")
    while isinstance(value, dict):
        ((name, value),) = value.items()
        names.append(name)
    return tuple(names)
