"""The ways in which a file may be damaged, by the kind of the file.

A damage takes the content of a good file, in bytes, and gives the content of a damaged one, or the
same where there is nothing in it that could be damaged so.
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


def _middle(content: bytes) -> bytes:
    """Not at the end of a line, which nothing could tell from a shorter file."""
    return content[: len(content) // 2 - 3]


def _inverted(content: bytes) -> bytes:
    start = len(content) // 2
    changed = bytes(255 - byte for byte in content[start : start + 40])
    return content[:start] + changed + content[start + 40 :]


def _foreign(_: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "<w:document/>")
    return file.getvalue()


ANY: dict[str, Damage] = {
    "empty": lambda _: b"",
    "random bytes": lambda content: random.Random(len(content)).randbytes(1_000),
    "another program's": _foreign,
}
BINARY: dict[str, Damage] = {
    **ANY,
    "cut in the middle": _middle,
    "cut at the end": lambda content: content[:-20],
    "text": lambda _: b"hello, world\n" * 20,
    "null bytes": lambda content: bytes(len(content)),
    "inverted in the middle": _inverted,
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


def _table(change: Callable[[Rows], Rows]) -> Damage:
    """A change of the cells, header included; numbers stay without quotation marks."""

    def damage(content: bytes) -> bytes:
        first = content.decode().split("\n")[0]
        delimiter = max(",\t;", key=first.count)
        rows = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))
        file = io.StringIO(newline="")
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerows(change(rows))
        return file.getvalue().encode()

    return damage


def _numbers(replacement: str) -> Damage:
    """Every number of the last row by something else."""

    def change(rows: Rows) -> Rows:
        *before, last = rows
        numbers = [re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell) for cell in last]
        new = [replacement if n else cell for n, cell in zip(numbers, last, strict=True)]
        return [*before, new]

    return _table(change)


def _quoted(content: bytes) -> bytes:
    """Cut inside the last cell, which gets quotation marks."""
    return content.rstrip(b"\n").rpartition(b"\n")[0] + b'\n"the file ends here'


CSV: dict[str, Damage] = {
    **TEXT,
    "header only": lambda content: content[: content.index(b"\n") + 1],
    "cut inside a quoted cell": _quoted,
    "text behind a quoted cell": lambda c: c.rstrip(b"\n") + b'\n"quoted"unquoted' + b",1" * 40,
    "a column missing": _table(lambda rows: [row[1:] for row in rows]),
    "the last column missing": _table(lambda rows: [row[:-1] for row in rows]),
    "a column twice": _table(lambda rows: [[*row, row[0]] for row in rows]),
    "a ragged row": _table(lambda rows: [*rows[:-1], rows[-1][:-1]]),
    "a row too long": _table(lambda rows: [*rows[:-1], [*rows[-1], "more"]]),
    "a row twice": _table(lambda rows: [*rows, rows[-1]]),
    "empty cells": _table(lambda rows: [*rows[:-1], ["" for _ in rows[-1]]]),
    "words for numbers": _numbers("many"),
    "underscores in numbers": _numbers("1_0"),
    "not a number": _numbers("nan"),
    "infinite": _numbers("inf"),
    "huge": _numbers("1e999"),
    "long": _numbers(LONG),
    "negative": _numbers("-7"),
    "digits of another script": _numbers("３"),
}

NUMBER, TEXTS = re.compile(r"(?<=: )-?\d+(\.\d+)?(?=[,}\]\n])"), re.compile(r': "[^"]*"')


def _values(pattern: re.Pattern[str], replacement: str) -> Damage:
    """The last value of a kind by something else; the first stays, so that rows are mixed."""

    def damage(content: bytes) -> bytes:
        found = list(pattern.finditer(content.decode()))
        if not found:
            return content
        start, end = found[-1].span()
        return (content.decode()[:start] + replacement + content.decode()[end:]).encode()

    return damage


def _every(pattern: re.Pattern[str], replacement: str) -> Damage:
    return lambda content: pattern.sub(lambda _: replacement, content.decode()).encode()


def _without_a_name(content: bytes) -> bytes:
    return re.sub(rb'^(\s*\[?\{?\s*)"[^"]+": ', rb'\1"another name": ', content, flags=re.MULTILINE)


JSON: dict[str, Damage] = {
    **TEXT,
    "cut in the middle": _middle,
    "deep": lambda _: DEEP.encode(),
    "a list": lambda _: b"[1, 2, 3]\n",
    "null": lambda _: b"null\n",
    "a number": lambda _: b"3\n",
    "another object": lambda _: b'{"a": 1}\n',
    "a name missing": _without_a_name,
    "null for a text": _values(TEXTS, ": null"),
    "null for all texts": _every(TEXTS, ": null"),
    "a list for a text": _values(TEXTS, ': ["a", "b"]'),
    "objects for all texts": _every(TEXTS, ': {"a": {"b": 1}}'),
    "true for a text": _values(TEXTS, ": true"),
    "numbers for all texts": _every(TEXTS, ": 3"),
    "half of a surrogate pair": _values(TEXTS, r': "\ud800"'),
    "deep for a text": _values(TEXTS, f": {'[' * 300}{']' * 300}"),
    "a text for a number": _values(NUMBER, '"many"'),
    "null for a number": _values(NUMBER, "null"),
    "true for a number": _values(NUMBER, "true"),
    "a list for all numbers": _every(NUMBER, "[1]"),
    "not a number": _values(NUMBER, "NaN"),
    "infinite": _every(NUMBER, "Infinity"),
    "huge": _values(NUMBER, HUGE),
    "long": _every(NUMBER, LONG),
}
TOML_NUMBER, TOML_TEXT = re.compile(r"(?<== )\d+"), re.compile(r"= ['\"][^\n]*['\"]")
TOML: dict[str, Damage] = {
    **TEXT,
    "cut in the middle": lambda content: content[:-9],
    "deep": lambda _: b"a = " + DEEP.encode(),
    "deep names": lambda _: b"a" + b".a" * 5_000 + b" = 1",
    "another table": lambda _: b"[a]\nb = 1\n",
    "another value": lambda _: b"a = 1\n",
    "a list for a text": _values(TOML_TEXT, '= ["a", "b"]'),
    "dates for texts": _every(TOML_TEXT, "= 1979-05-27"),
    "true for a text": _values(TOML_TEXT, "= true"),
    "tables for texts": _every(TOML_TEXT, '= {a = "b"}'),
    "a text for a number": _values(TOML_NUMBER, '"many"'),
    "true for a number": _values(TOML_NUMBER, "true"),
    "huge": _values(TOML_NUMBER, HUGE),
    "long": _values(TOML_NUMBER, LONG),
    "infinite": _values(TOML_NUMBER, "inf"),
}
DAMAGES = {"binary": BINARY, "lines": LINES, "csv": CSV, "json": JSON, "toml": TOML}


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
