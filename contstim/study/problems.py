"""Problems of a study file: gathered, so that all of them are told together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.study.toml_lines import line_of, lines_of_keys
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contstim.study.toml_lines import Key


_OPTION = re.compile(r"--([a-z][a-z-]*)")
_FIELD = re.compile(r"`([a-z][a-z0-9_]*)`")


@dataclass(frozen=True, order=True)
class StudyProblem:
    """Something that must be changed before a study can run.

    Attributes:
        line: of the file, from 1; 0 where it is about the whole file.
        key: such as `[pairs] per_pair`.
        text: what is wrong, and what to do.
    """

    line: int
    key: str
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        return f"{where}{self.key}: {self.text}"


@dataclass
class Problems:
    """The problems of one study file.

    Attributes:
        path: of the file, for messages.
        text: of the file.
        problems: so far, each once, in the order in which they were noticed.
    """

    path: Path
    text: str
    problems: dict[StudyProblem, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lines = lines_of_keys(self.text)

    def add(self, key: Key, text: str) -> None:
        """A problem of a key, such as `("pairs", "per_pair")`."""
        # Settings speak of options, which are keys here
        text = _OPTION.sub(lambda option: option[1].replace("-", "_"), text)
        text = _FIELD.sub(r"\1", text)
        self.problems[StudyProblem(line_of(self._lines, key) or 0, key_text(key), text)] = None

    def refuse_unknown(self, table: Key, keys: Iterable[str], known: Iterable[str]) -> None:
        """A problem for each key of a table that there is not, with the nearest that there is."""
        names = list(known)
        for key in keys:
            if key not in names:
                near = get_close_matches(key, names, n=1, cutoff=0.5)
                remedy = (
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(names))}."
                )
                what = "section" if not table else "key"
                self.add((*table, key), f"there is no such {what}; {remedy}")

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
        return any(problem.key.startswith(key_text(key)) for problem in self.problems)

    def raise_any(self) -> None:
        """Refuse the file if there is any problem.

        Raises:
            InputError: lists all, in the order of lines.
        """
        if self.problems:
            listed = "\n".join(f"  {problem}" for problem in sorted(self.problems))
            raise InputError(f"{self.path} has {counted(len(self.problems), 'problem')}:\n{listed}")


def key_text(key: Key) -> str:
    """A key as a user finds it in the file, such as `[pairs] per_pair`."""
    section, *names = (name.replace("\0", "\\u0000") for name in key)
    return f"[{section}] {'.'.join(names)}".rstrip()
