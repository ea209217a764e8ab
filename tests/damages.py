"""Kinds of damage to files, by file format.

A damage takes the bytes of a valid file and returns those of a damaged file. It returns the same
bytes if it does not apply to the content.
"""

import csv
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

Damage = Callable[[bytes], bytes]
Rows = list[list[str]]

DEEP = "[" * 20_000
LONG = "7" * 5_000
HUGE = "1" + "0" * 400


def _cut_middle(content: bytes) -> bytes:
    """Cut inside a line; a cut at the end of a line would be a valid shorter file."""
    return content[: len(content) // 2 - 3]


def _invert_middle(content: bytes) -> bytes:
    start = len(content) // 2
    changed = bytes(255 - byte for byte in content[start : start + 40])
    return content[:start] + changed + content[start + 40 :]


def _foreign_zip(_: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    return file.getvalue()


ANY: dict[str, Damage] = {
    "empty": lambda _: b"",
    "random bytes": lambda content: random.Random(len(content)).randbytes(1_000),
    "another program's": _foreign_zip,
}
BINARY: dict[str, Damage] = {
    **ANY,
    "cut in the middle": _cut_middle,
    "cut at the end": lambda content: content[:-20],
    "text": lambda _: b"hello, world\n" * 20,
    "null bytes": lambda content: bytes(len(content)),
    "inverted in the middle": _invert_middle,
}
TEXT: dict[str, Damage] = {
    **ANY,
    "UTF-16": lambda content: content.decode().encode("utf-16"),
    "UTF-16 without a byte order mark": lambda content: content.decode().encode("utf-16-le"),
    "a byte that is not UTF-8": lambda content: content[:-3] + b"\xff" + content[-3:],
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "line ends of Windows": lambda content: content.replace(b"\n", b"\r\n"),
}
LINES: dict[str, Damage] = {
    **TEXT,
    "null character": lambda content: content[:-2] + b"\0" + content[-2:],
    "line ends of old Macintoshes": lambda content: content.replace(b"\n", b"\r"),
}


def _change_table(change: Callable[[Rows], Rows]) -> Damage:
    """Return a damage that changes the cells, including the header."""

    def damage(content: bytes) -> bytes:
        first = content.decode().split("\n")[0]
        delimiter = max(",\t;", key=first.count)
        rows = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows(change(rows))
        return file.getvalue().encode()

    return damage


def _replace_numbers(number: str) -> Damage:
    """Return a damage that replaces every number of the last row."""

    def change(rows: Rows) -> Rows:
        *first_rows, last = rows
        matches = [re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell) for cell in last]
        new_row = [number if match else cell for match, cell in zip(matches, last, strict=True)]
        return [*first_rows, new_row]

    return _change_table(change)


def _cut_in_quotes(content: bytes) -> bytes:
    """Cut the file inside a last cell with quotation marks."""
    return content.rstrip(b"\n").rpartition(b"\n")[0] + b'\n"the file ends here'


CSV: dict[str, Damage] = {
    **TEXT,
    "header only": lambda content: content[: content.index(b"\n") + 1],
    "cut inside a quoted cell": _cut_in_quotes,
    "text behind a quoted cell": lambda c: c.rstrip(b"\n") + b'\n"quoted"unquoted' + b",1" * 40,
    "a column missing": _change_table(lambda rows: [row[1:] for row in rows]),
    "the last column missing": _change_table(lambda rows: [row[:-1] for row in rows]),
    "a column twice": _change_table(lambda rows: [[*row, row[0]] for row in rows]),
    "a ragged row": _change_table(lambda rows: [*rows[:-1], rows[-1][:-1]]),
    "a row too long": _change_table(lambda rows: [*rows[:-1], [*rows[-1], "more"]]),
    "a row twice": _change_table(lambda rows: [*rows, rows[-1]]),
    "empty cells": _change_table(lambda rows: [*rows[:-1], ["" for _ in rows[-1]]]),
    "words for numbers": _replace_numbers("many"),
    "underscores in numbers": _replace_numbers("1_0"),
    "not a number": _replace_numbers("nan"),
    "infinite": _replace_numbers("inf"),
    "huge": _replace_numbers("1e999"),
    "long": _replace_numbers(LONG),
    "negative": _replace_numbers("-7"),
    "digits of another script": _replace_numbers("３"),
}

NUMBER, TEXTS = re.compile(r"(?<=: )-?\d+(\.\d+)?(?=[,}\]\n])"), re.compile(r': "[^"]*"')


def _replace_last(pattern: re.Pattern[str], replacement: str) -> Damage:
    """Return a damage that replaces the last match, so that valid and invalid rows are mixed."""

    def damage(content: bytes) -> bytes:
        matches = list(pattern.finditer(content.decode()))
        if not matches:
            return content
        start, end = matches[-1].span()
        return (content.decode()[:start] + replacement + content.decode()[end:]).encode()

    return damage


def _replace_all(pattern: re.Pattern[str], replacement: str) -> Damage:
    return lambda content: pattern.sub(lambda _: replacement, content.decode()).encode()


def _rename_first_key(content: bytes) -> bytes:
    return re.sub(rb'^(\s*\[?\{?\s*)"[^"]+": ', rb'\1"another name": ', content, flags=re.MULTILINE)


JSON: dict[str, Damage] = {
    **TEXT,
    "cut in the middle": _cut_middle,
    "deep": lambda _: DEEP.encode(),
    "a list": lambda _: b"[1, 2, 3]\n",
    "null": lambda _: b"null\n",
    "a number": lambda _: b"3\n",
    "another object": lambda _: b'{"a": 1}\n',
    "a name missing": _rename_first_key,
    "null for a text": _replace_last(TEXTS, ": null"),
    "null for all texts": _replace_all(TEXTS, ": null"),
    "a list for a text": _replace_last(TEXTS, ': ["a", "b"]'),
    "objects for all texts": _replace_all(TEXTS, ': {"a": {"b": 1}}'),
    "true for a text": _replace_last(TEXTS, ": true"),
    "numbers for all texts": _replace_all(TEXTS, ": 3"),
    "half of a surrogate pair": _replace_last(TEXTS, r': "\ud800"'),
    "deep for a text": _replace_last(TEXTS, f": {'[' * 300}{']' * 300}"),
    "a text for a number": _replace_last(NUMBER, '"many"'),
    "null for a number": _replace_last(NUMBER, "null"),
    "true for a number": _replace_last(NUMBER, "true"),
    "a list for all numbers": _replace_all(NUMBER, "[1]"),
    "not a number": _replace_last(NUMBER, "NaN"),
    "infinite": _replace_all(NUMBER, "Infinity"),
    "huge": _replace_last(NUMBER, HUGE),
    "long": _replace_all(NUMBER, LONG),
}
TOML_NUMBER, TOML_TEXT = re.compile(r"(?<== )\d+"), re.compile(r"= ['\"][^\n]*['\"]")
TOML: dict[str, Damage] = {
    **TEXT,
    "cut in the middle": lambda content: content[:-9],
    "deep": lambda _: b"a = " + DEEP.encode(),
    "deep names": lambda _: b"a" + b".a" * 5_000 + b" = 1",
    "another table": lambda _: b"[a]\nb = 1\n",
    "another value": lambda _: b"a = 1\n",
    "a list for a text": _replace_last(TOML_TEXT, '= ["a", "b"]'),
    "dates for texts": _replace_all(TOML_TEXT, "= 1979-05-27"),
    "true for a text": _replace_last(TOML_TEXT, "= true"),
    "tables for texts": _replace_all(TOML_TEXT, '= {a = "b"}'),
    "a text for a number": _replace_last(TOML_NUMBER, '"many"'),
    "true for a number": _replace_last(TOML_NUMBER, "true"),
    "huge": _replace_last(TOML_NUMBER, HUGE),
    "long": _replace_last(TOML_NUMBER, LONG),
    "infinite": _replace_last(TOML_NUMBER, "inf"),
}
DAMAGES = {"binary": BINARY, "lines": LINES, "csv": CSV, "json": JSON, "toml": TOML}


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
