"""Columns of a Gorilla export and what they hold: stated by the user, or recognised by name."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object, read_toml, shortened
from contstim.errors import InputError
from contstim.scale import Scale
from contstim.tables import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "participant": ("Participant Private ID", "Participant Public ID"),
    "left": ("sentence1", "sentence_left", "left_sentence", "left", "sentenceA", "s1"),
    "right": ("sentence2", "sentence_right", "right_sentence", "right", "sentenceB", "s2"),
    "zone": ("Zone Name", "Object Name"),
    "response": ("Response",),
    "rt_ms": ("Reaction Time",),
    "position": ("Trial Number",),
    "group": (),
    "trial_id": ("trial_id",),
    "side": ("shown_left",),
}
"""Names that are recognised, compared without case, spaces, hyphens and underscores."""

SIDES = ("left", "right")
REQUIRED = ("participant", *SIDES)
# Columns of several spreadsheets end in "-ab12"; of those that a file repeats, later ones in ".1".
_SUFFIX = re.compile(r"-[a-z0-9]{4}$|\.\d+$")


@dataclass(frozen=True)
class GorillaOptions:
    """Options of reading an export; whatever is not stated is recognised, or left out.

    Attributes:
        columns: our names (keys of `RECOGNISED`) → the export's column, with those that differ
            from it only in a suffix such as `-ab12`; or several columns, exactly these; or none.
        ratings: names of zones, or else responses, → rating from left (1) to right (6). By default
            resp1 … resp6 and the like.
        only: column → the values of the rows to read, such as display → trial.
        flipped: column → the values with which the sentences stood the other way round than left
            and right say.
    """

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ratings: Mapping[str, int] = field(default_factory=dict)
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_names("columns", self.columns, RECOGNISED)

    @classmethod
    def read(cls, path: Path | str) -> GorillaOptions:
        """Read options from TOML or JSON: a table for each attribute.

        Raises:
            InputError: the file cannot be read, or has a table or a value that has no meaning.
        """
        is_json = Path(path).suffix.lower() == ".json"
        tables = read_json_object(path) if is_json else read_toml(path)
        _check_names(str(path), tables, [field.name for field in fields(cls)])
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise InputError(f"{path}: {name} must be a table of names, not {table!r}.")
        try:
            return cls(
                **{
                    name: {key: _value(name, value) for key, value in table.items()}
                    for name, table in tables.items()
                }
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: {error}") from None

    def find(self, name: str, columns: Iterable[str]) -> list[str]:
        """The columns of an export that hold one of ours; none where it has none.

        Raises:
            InputError: a stated column is not there.
        """
        columns = list(columns)
        # Stated as nothing, it is not looked for, though a column may be called so.
        stated = self.columns.get(name)
        if stated is None:
            return next(filter(None, (family(s, columns) for s in RECOGNISED[name])), [])
        named = [column for column in columns if column.strip() in stated]
        # One name stands for all its suffixed copies; of several, each stands for itself.
        if len(stated) == 1:
            named = family(stated[0], columns, exact=True)
        if stated and not named:
            raise InputError(
                f"There is no column {' or '.join(map(repr, stated))} for {name}; the columns are "
                f"{listed(columns)}."
            )
        return named


def family(name: str, columns: Iterable[str], *, exact: bool = False) -> list[str]:
    """The column of a name and those that differ from it by a suffix of several spreadsheets."""
    wanted = name.strip() if exact else normalised(name)
    return [column for column in columns if wanted in _forms(column, exact)]


@functools.lru_cache(maxsize=2**18)  # every column is asked for under each of many names
def _forms(column: str, exact: bool) -> tuple[str, str]:
    """Name of a column, with and without its suffix."""
    plain = str.strip if exact else normalised
    return plain(column), plain(_SUFFIX.sub("", column.strip()))


def normalised(name: str) -> str:
    """A name in lower case without what people write in different ways."""
    # Exports write `Spreadsheet: name` for columns that come from the spreadsheet.
    return re.sub(r"[\s_-]", "", name.lower().removeprefix("spreadsheet:"))


def _check_names(where: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise InputError(
            f"{where} has no place for {', '.join(unknown)}: give {', '.join(allowed)}."
        )


def _value(name: str, value: object) -> Any:
    if name == "ratings":
        answers = Scale.CONFIDENCE.answers  # those of choices are among them
        # To Python, true is a whole number too, and would pass for the rating 1.
        if not isinstance(value, int) or isinstance(value, bool) or value not in answers:
            raise ValueError(
                f"the rating {shortened(value)} is not a whole number from {answers[0]} to "
                f"{answers[-1]}."
            )
        return value
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) for each in several):
        raise ValueError(f"{shortened(value)} under [{name}] is not a text.")
    return tuple(several)
