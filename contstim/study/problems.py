"""Problems of a study file, which are collected and reported together, each with its line."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

from contstim.errors import ContstimError, InputError
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

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
_OPTION = re.compile(r"--([a-z][a-z-]*)")
_FIELD = re.compile(r"`([a-z][a-z0-9_]*)`")

_OF_A_MODEL = (
    "there is no such key here: each model has its own `context` in [models], such as "
    'NAME = { model = "hf:gpt2", context = ". " }.'
)
_RENAMED = {
    "scores": "is now [score].",
    "pairs": "is now [select.natural].",
    "selection": "is now [select.triplets].",
    "minimal_pairs": "is now [evaluate.blimp] with data, and [select.minimal_pairs].",
    "responses": "is now [simulate], [import.NAME], or the key responses of [analyze].",
    "analysis": "is now [analyze].",
    "review.decisions": "is now the key review of [select.natural], [select.triplets], "
    "[select.minimal_pairs] and [design].",
    "vocabulary.file": "is now the key vocabulary of [sentences] and [triplets].",
    "sentences.file": "is now the key sentences of [triplets] and [design].",
    "sentences.exclude_training": "is now exclude = [].",
    "triplets.plausible": "is now the key judge, which names a model outside the comparison.",
    "synthesize.fluency": "is now the key judge, which names a model outside the comparison.",
    "triplets.frontier": "is no longer written.",
    "loading.prompt": _OF_A_MODEL,
    "loading.context": _OF_A_MODEL,
}
"""Sections and keys that have other names now, or are elsewhere."""


class Problems:
    """The problems of one study file, each once."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text.replace(" ", "")
        self._lines = lines_of_keys(text)
        self._told: set[tuple[int, str, str]] = set()  # line, key as a user finds it, text

    def __bool__(self) -> bool:
        return bool(self._told)

    def add(self, key: Key, text: str) -> None:
        """Add a problem of a key.

        Args:
            key: such as `("select", "natural", "per_pair")`. If it is a section, the first key that
                the text names is used instead.
            text: the problem and its remedy.
        """
        # Settings speak of options, which are keys here
        text = _OPTION.sub(lambda option: option[1].replace("-", "_"), text)
        field_keys = ((*key, name) for name in _FIELD.findall(text))
        key = next((field_key for field_key in field_keys if field_key in self._lines), key)
        line = line_of(self._lines, key) or 0
        self._told.add((line, self._show(key), _FIELD.sub(r"\1", text)))

    def _show(self, key: Key) -> str:
        """Write a key as it is in the file, such as `[select.natural] per_pair`."""
        parts = [name.replace("\0", "\\u0000") for name in key]
        section = ".".join(parts[:2])
        depth = 2 if len(parts) > 1 and f"[{section}]" in self._text else 1
        return f"[{'.'.join(parts[:depth])}] {'.'.join(parts[depth:])}".rstrip()

    @contextmanager
    def of(self, key: Key) -> Iterator[None]:
        """Within a `with` statement, an error is a problem of a key, and ends the statement."""
        try:
            yield
        except ContstimError as error:
            self.add(key, str(error))

    def refuse_unknown(self, table: Key, keys: Iterable[str], known_keys: Iterable[str]) -> None:
        """Add a problem for each unknown key of a table, with the most similar known key."""
        names = list(known_keys)
        for key in keys:
            renamed = _RENAMED.get(".".join((*table, key)))
            if renamed and key not in names:
                self.add((*table, key), renamed)
            elif key not in names:
                near = get_close_matches(key, names, n=1, cutoff=0.5)
                remedy = (
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}."
                )
                kind = "key" if table else "section"
                self.add((*table, key), f"there is no such {kind}; {remedy}")

    def has_table(self, key: Key, value: object) -> bool:
        """True if the value of a key is a table; a problem if it is not."""
        is_table = isinstance(value, dict)
        if not is_table:
            header = ".".join(key)
            self.add(key, f"{value!r} is not a section: write [{header}] and keys below it.")
        return is_table

    def refuse_null_characters(self, value: object, key: Key = ()) -> None:
        """A problem for each key and text, in tables and lists, that holds a null character."""
        if isinstance(value, dict):
            for name, inner in value.items():
                self.refuse_null_characters(name, (*key, name))
                self.refuse_null_characters(inner, (*key, name))
        elif isinstance(value, list):
            for inner in value:
                self.refuse_null_characters(inner, key)
        elif isinstance(value, str) and "\0" in value:
            self.add(key, "holds a null character (\\u0000): leave it out.")

    def concern(self, *key: str) -> bool:
        """True if there is a problem of a section or key, from which others may only follow."""
        return any(name.startswith(self._show(key)) for _, name, _ in self._told)

    def raise_any(self) -> None:
        """Refuse the file if there is any problem.

        Raises:
            InputError: lists all, in the order of lines.
        """
        if self._told:
            listed = "".join(
                f"\n  {f'line {line}, ' if line else ''}{key}: {text}"
                for line, key, text in sorted(self._told)
            )
            raise InputError(f"{self._path} has {quantity(len(self._told), 'problem')}:{listed}")


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
