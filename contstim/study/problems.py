"""Problems of a study file: they are collected, and reported in one message with line numbers."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from contstim.errors import ContstimError, InputError
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Key: TypeAlias = tuple[str, ...]

_OPTION = re.compile(r"--([a-z][a-z-]*)")
_FIELD = re.compile(r"`([a-z][a-z0-9_]*)`")

_OF_A_MODEL = (
    "there is no such key here: each model has its own `context` in [models], such as "
    'NAME = { model = "hf:gpt2", context = ". " }.'
)
# Former section or key → message that names its replacement, or says that it was removed
_RENAMED = {
    "scores": "is now [score].",
    "pairs": "is now [select.natural].",
    "selection": "is now [select.triplets].",
    "minimal_pairs": "is now [evaluate.blimp], with the key data, and [select.minimal_pairs].",
    "responses": "is now [simulate], [import.NAME], or the key responses of [analyze].",
    "analysis": "is now [analyze].",
    "review.decisions": "is now the key review of [select.natural], [select.triplets], "
    "[select.minimal_pairs] and [design].",
    "vocabulary.file": "is now the key vocabulary of [sentences] and [triplets].",
    "sentences.file": "is now the key sentences of [triplets] and [design].",
    "sentences.exclude_training": "is now exclude = [].",
    "triplets.plausible": "is now the key judge, which names a model outside the comparison.",
    "synthesize.fluency": "is now the key judge, which names a model outside the comparison.",
    "triplets.frontier": "was removed, because its table is no longer written.",
    "loading.prompt": _OF_A_MODEL,
    "loading.context": _OF_A_MODEL,
}


class Problems:
    """Problems of a study file; equal problems are stored once."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text.replace(" ", "")
        self._lines = lines_of_keys(text)
        self._entries: set[tuple[int, str, str]] = set()  # line, key as in the file, text

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, key: Key, text: str) -> None:
        """Add a problem of a key.

        Args:
            key: key, such as `("select", "natural", "per_pair")`, or section, such as
                `("select", "natural")`.
            text: problem and remedy. The text may name keys of the section in backticks. If the
                file sets one of these keys, the problem is reported at the line of that key.
        """
        # Messages may name options of commands, such as --per-pair; a study file has keys instead
        text = _OPTION.sub(lambda option: option[1].replace("-", "_"), text)
        field_keys = ((*key, name) for name in _FIELD.findall(text))
        key = next((field_key for field_key in field_keys if field_key in self._lines), key)
        line = line_of(self._lines, key) or 0
        self._entries.add((line, self._show(key), _FIELD.sub(r"\1", text)))

    def _show(self, key: Key) -> str:
        """Format a key as in the file, such as `[select.natural] per_pair`."""
        parts = [name.replace("\0", "\\u0000") for name in key]
        section = ".".join(parts[:2])
        depth = 2 if len(parts) > 1 and f"[{section}]" in self._text else 1
        return f"[{'.'.join(parts[:depth])}] {'.'.join(parts[depth:])}".rstrip()

    @contextmanager
    def of(self, key: Key) -> Iterator[None]:
        """Catch a `ContstimError` in a `with` statement, and add it as a problem of a key."""
        try:
            yield
        except ContstimError as error:
            self.add(key, str(error))

    def refuse_unknown(self, table: Key, keys: Iterable[str], known_keys: Iterable[str]) -> None:
        """Add a problem for each unknown key of a table, and suggest the most similar known key."""
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
        """Return True if the value of a key is a table; otherwise add a problem."""
        if isinstance(value, dict):
            return True
        self.add(key, f"{value!r} is not a section: write [{'.'.join(key)}] and keys below it.")
        return False

    def refuse_null_characters(self, value: object, key: Key = ()) -> None:
        """Check a value, and add a problem for each key or text that has a null character."""
        if isinstance(value, dict):
            for name, inner in value.items():
                self.refuse_null_characters(name, (*key, name))
                self.refuse_null_characters(inner, (*key, name))
        elif isinstance(value, list):
            for inner in value:
                self.refuse_null_characters(inner, key)
        elif isinstance(value, str) and "\0" in value:
            self.add(key, "contains a null character (\\u0000): remove it.")

    def has_problem(self, *key: str) -> bool:
        """Return True if a problem of a section or key was added.

        Callers then skip checks that could only report consequences of this problem.
        """
        return any(name.startswith(self._show(key)) for _, name, _ in self._entries)

    def raise_any(self) -> None:
        """If there are problems, raise an error that lists them in the order of lines.

        Raises:
            InputError: if there is a problem.
        """
        if self._entries:
            listed = "".join(
                f"\n  {f'line {line}, ' if line else ''}{key}: {text}"
                for line, key, text in sorted(self._entries)
            )
            raise InputError(f"{self._path} has {quantity(len(self._entries), 'problem')}:{listed}")


def lines_of_keys(text: str) -> dict[Key, int]:
    """Return the 1-based line of each table and key of a valid TOML text.

    Keys inside inline tables may be missing from the result. The key of a table in double brackets
    ends with the number of the table, such as `("train", "ngram", "1")`.
    """
    lines: dict[Key, int] = {}
    numbers: Counter[Key] = Counter()
    table: Key = ()
    statement = ""
    for number, line in enumerate(text.split("\n"), start=1):
        statement += f"{line}\n"
        try:
            value: Any = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue  # the value continues on the next line
        names: Key = ()
        first, is_header = number - statement.count("\n") + 1, statement.lstrip().startswith("[")
        while isinstance(value, dict) and len(value) == 1:
            ((name, value),) = value.items()
            names = (*names, name)
            if not is_header:
                lines.setdefault((*table, *names), first)
        if is_header:
            table = names
            lines.setdefault(table, first)
            if isinstance(value, list):  # double brackets
                numbers[names] += 1
                table = (*names, str(numbers[names]))
                lines[table] = first
        statement = ""
    return lines


def line_of(lines: dict[Key, int], key: Key) -> int | None:
    """Return the line of a key.

    For a key without a line, return the line of the innermost key or table around it that has a
    line. Return None if there is no such key or table.
    """
    around = (key[:length] for length in range(len(key), 0, -1))
    return next((lines[outer] for outer in around if outer in lines), None)
