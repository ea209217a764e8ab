"""The table of responses: a row for each rating that a participant gave.

A cell that begins with one of a few signs is a formula to Excel and LibreOffice, quoted or not. A
mark in front makes it text: an apostrophe in tables that we read again, a no-break space where
people read the cell on a screen, who would see an apostrophe (and `Sentence.parse` reads past the
space). What already looks escaped gets one more mark, so that `unescape_formula` gives back every
text.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from contstim.errors import InputError
from contstim.files.documents import read_json_object, shortened
from contstim.files.records import record_path
from contstim.files.tables import (
    FORMULA_SIGNS,
    listed,
    number,
    read_table,
    text,
    whole_number,
    write_table,
)
from contstim.items.scale import Scale
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance
    from pydantic_core import ErrorDetails

    from contstim.items.stimuli import Trial

APOSTROPHE = "'"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
UNKNOWN = 0  # of left and position: not recorded
UNRATED = -1  # a trial that was shown and not rated; 0 is an answer on a slider
OBSERVED = ("input", "blurs", "away_ms", "received")  # columns that few platforms have
SIMULATED = "simulated"  # the column that only tables with artificial participants have
SCALE = "scale"  # of a table: what its record calls it
SIMULATED_NAME = "simulated-"  # how contstim begins the names of artificial participants


def escape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """The text, with the mark in front if a spreadsheet might take it for a formula."""
    return f"{mark}{text}" if _is_formula(text, mark) else text


def unescape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """Text that `escape_formula` was given."""
    return text[1:] if text.startswith(mark) and _is_formula(text, mark) else text


def _is_formula(text: str, mark: str) -> bool:
    # Any number of marks: a text that begins with a mark and a sign gets one more, and loses one
    return re.match(f"{mark}*[{re.escape(FORMULA_SIGNS)}]", text) is not None


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def _or_unknown(parse: Callable[[Any], Any], unknown: float) -> BeforeValidator:
    """Reader of a cell; an empty one is unknown."""
    return BeforeValidator(
        lambda cell: unknown if _stripped(cell) in ("", None) else parse(_stripped(cell))
    )


def _answer(cell: Any) -> int:
    answer = whole_number(cell)
    if answer < 0:  # no scale has such, and -1 would pass for no rating
        raise ValueError
    return answer


Text = Annotated[str, BeforeValidator(lambda cell: text(_stripped(cell)))]
"""A text of a cell; a number as it is written."""
Name = Annotated[
    str, BeforeValidator(lambda cell: unescape_formula(text(_stripped(cell)))), Field(min_length=1)
]
"""A name or an identifier in a table that we wrote."""
Whole = Annotated[int, _or_unknown(whole_number, UNKNOWN)]
Rating = Annotated[int, _or_unknown(_answer, UNRATED)]
Position = Annotated[int, _or_unknown(whole_number, UNKNOWN), Field(ge=0)]
"""A place in an order, from 1; 0 unknown."""
Count = Annotated[int | None, _or_unknown(whole_number, None)]
Time = Annotated[float, _or_unknown(number, math.nan)]
Mark = Annotated[bool, _or_unknown(lambda cell: cell, False)]
"""Whether an artificial participant answered; an empty cell says that a person did."""

_CELLS = {
    "participant": "the name of a participant",
    "group": "a whole number from 1",
    "trial_id": "an identifier",
    "left": "the sentence shown left, 1 or 2",
    "rating": "a whole number from 0 (export numeric values, not the texts of choices)",
    "position": "a place in an order",
    "rt_ms": "a number",
    "rt_s": "a number",
    "blurs": "a whole number",
    "away_ms": "a number",
    SIMULATED: "a truth value; write true or false, or leave it empty where a person answered",
}


def mistake(wrong: ErrorDetails) -> str:
    """Message of pydantic about the cell of a field, in words of users."""
    name = str(wrong["loc"][-1])
    return f"{shortened(wrong['input'])} under {name} is not {_CELLS[name]}."


@dataclass(frozen=True)
class Response:
    """A participant's rating of one trial; fields are the columns of responses.csv.

    What was not recorded is an empty cell in the file; here it is -1 (rating), 0 (left, position),
    nan (rt_ms, away_ms), None (blurs) or an empty text; columns from `input` on are in a file only
    if something was. The column `simulated` (true or false) is in a file only if some answer is
    simulated; where it or its cell is missing, a person answered, unless the participant's name
    begins with `simulated-`: so the mark outlives the column. The scale is that of a whole table,
    and stands in its record.
    """

    participant: Name
    group: Annotated[int, BeforeValidator(whole_number), Field(ge=1)]
    trial_id: Name
    rating: Rating  # on the scale, for sentence_1 to sentence_2, whatever side each was shown on
    left: Whole  # 1 or 2: the sentence shown left
    position: Position
    rt_ms: Time
    simulated: Mark = False
    scale: Scale = Scale.CONFIDENCE
    input: Text = ""  # key, mouse or touch
    blurs: Count = None  # how often the page lost the focus while the trial was shown
    away_ms: Time = math.nan  # how long it was without, in all
    received: Text = field(default="", compare=False)  # when the server had the answer, UTC

    def __post_init__(self) -> None:
        # Past the frozen dataclass: a table that lost the column must not pass for people's
        if self.participant.startswith(SIMULATED_NAME):
            object.__setattr__(self, SIMULATED, True)

    @property
    def button(self) -> int | None:
        """The answer from left to right, of which a slider has a 0; None where not recorded."""
        if self.rating == UNRATED or self.left == UNKNOWN:
            return None
        return self.rating if self.left == 1 else self.scale.mirrored(self.rating)

    @property
    def choice(self) -> int:
        """The preferred sentence, 1 or 2; 0 where none is, or no rating was recorded."""
        return 0 if self.rating == UNRATED else self.scale.preferred(self.rating)


@dataclass(frozen=True)
class ResponseOrigin:
    """Who gave a table of responses.

    Attributes:
        people: how many participants have no answer that is marked as simulated.
        simulated: how many have one or more.
    """

    people: int
    simulated: int

    @property
    def share(self) -> str:
        """Share of artificial participants among all, such as `3 of 10`."""
        return f"{self.simulated:,} of {self.people + self.simulated:,}"

    @property
    def warning(self) -> str:
        """Warning above every result of these responses; empty where people gave all."""
        if not self.simulated:
            return ""
        nobody = "" if self.people else "no person answered; "
        return f"Artificial participants: {nobody}{self.share} participants were simulated."


def origin_of(responses: Iterable[Response]) -> ResponseOrigin:
    """Count people and artificial participants."""
    # One marked answer is enough: who let a page answer for them is not a person to an analysis
    every, marked = set(), set()
    for response in responses:
        every.add(response.participant)
        if response.simulated:
            marked.add(response.participant)
    return ResponseOrigin(len(every - marked), len(marked))


def numbered(responses: Sequence[Response]) -> list[Response]:
    """The responses under numbers: P1, P2, … for people, simulated-1, … for artificial ones."""
    names = dict.fromkeys(response.participant for response in responses)
    artificial = {response.participant for response in responses if response.simulated}
    # Zeros before numbers, so that names sort as numbers do.
    width = len(str(len(names)))
    number = {
        name: f"{SIMULATED_NAME if name in artificial else 'P'}{place:0{width}}"
        for place, name in enumerate(names, start=1)
    }
    return [replace(r, participant=number[r.participant]) for r in responses]


def write_responses(path: Path | str, responses: Iterable[Response]) -> None:
    """Write responses.csv (or `.tsv`, `.parquet`, `.jsonl`): the fields of `Response`, in order.

    Texts that a spreadsheet would run as a formula get an apostrophe in front, which
    `read_responses` takes away.

    Raises:
        InputError: the file cannot be written.
    """
    write_table(path, response_columns(responses))


_ROWS = TypeAdapter(list[Response])
_OF_THE_PAGE = ("seed", "assigned_by", "device", "viewport")  # what the exported page says besides


def response_columns(responses: Iterable[Response]) -> dict[str, list[Any]]:
    """The columns of responses.csv; see `write_responses` and `Response`."""
    rows = [cells_of(response, APOSTROPHE) for response in responses]
    names = [each.name for each in fields(Response) if each.name != SCALE]
    columns = {name: [row[name] for row in rows] for name in names}
    if "true" not in columns[SIMULATED]:  # tables of people alone have no such column
        del columns[SIMULATED]
    return {name: c for name, c in columns.items() if name not in OBSERVED or {*c} - {None, ""}}


def cells_of(row: DataclassInstance, mark: str) -> dict[str, Any]:
    """The fields of a row as cells: texts escaped by a mark, unknown numbers empty."""
    cells: dict[str, Any] = {}
    # The scale is that of the whole table, and told with it
    for name in (each.name for each in fields(row) if each.name != SCALE):
        value = getattr(row, name)
        # Elsewhere 0 is a number as any other; here it stands for what nobody recorded
        unknown = value == {"rating": UNRATED, "left": UNKNOWN, "position": UNKNOWN}.get(name)
        if isinstance(value, str | Sentence):
            value = escape_formula(str(value), mark)
        elif isinstance(value, bool):
            value = str(value).lower()
        cells[name] = None if unknown or value != value else value  # nan differs from itself
    return cells


def read_responses(
    path: Path | str, trials: Iterable[Trial] = (), *, scale: Scale | None = None
) -> tuple[Response, ...]:
    """Read what `write_responses` wrote; further columns are ignored, with a warning.

    The scale is the one that the table's record names (`responses.csv.meta.json`), else the one
    that is stated, else that of the trials. Ratings outside it are read as they stand:
    `check_responses` names them.

    Args:
        path: the table.
        trials: what was shown.
        scale: of a table without a record that names it.

    Raises:
        InputError: the file cannot be read, lacks a column, has a row without participant or trial,
            or a value of another type; the record names another scale than the stated one, or
            nothing names choices and all ratings are 1 or 2.
    """
    columns = read_table(path)
    known = {f.name: f.default is MISSING for f in fields(Response) if f.name != SCALE}
    missing = [name for name, needed in known.items() if needed and name not in columns]
    if missing:
        raise InputError(f"{path} is not a table of responses: it lacks {', '.join(missing)}.")
    foreign = [name for name in columns if name not in known and name not in _OF_THE_PAGE]
    if foreign:
        warnings.warn(
            f"{path} has further columns, which nothing here uses: {listed(foreign)}.",
            stacklevel=1,  # one place for all callers, so that Python says it once
        )
    named = [name for name in known if name in columns]
    cells = zip(*(columns[name] for name in named), strict=True)
    try:
        rows = _ROWS.validate_python([dict(zip(named, row, strict=True)) for row in cells])
    except ValidationError as error:
        wrong = error.errors()[0]
        raise InputError(f"{path}, row {wrong['loc'][0]}: {mistake(wrong)}") from None
    recorded = _recorded_scale(path)
    if scale is not None and recorded not in (scale, None):
        raise InputError(
            f"{path} holds answers on the scale {recorded}, as {record_path(path)} says, and the "
            f"stated scale is {scale}."
        )
    scale = recorded or scale or scale_of(str(path), trials, (row.rating for row in rows))
    return tuple(replace(row, scale=scale) for row in rows)


def scale_of(what: str, trials: Iterable[Trial], ratings: Iterable[int]) -> Scale:
    """The scale of answers that do not say it themselves: that of the trials.

    Args:
        what: holds the answers, for messages.
        trials: what was shown.
        ratings: all of them.

    Raises:
        InputError: these are coded as choices are, and the trials do not ask for choices: on the
            other scale 2 would prefer sentence_1.
    """
    if named := {trial.scale for trial in trials} - {Scale.CONFIDENCE}:
        return named.pop()
    given = {*ratings} - {UNRATED}
    if 2 in given and given <= {*Scale.CHOICE.answers}:
        raise InputError(
            f"All ratings of {what} are 1 or 2, and nothing says whether these are choices. State "
            f"`scale`: {Scale.CHOICE} for {Scale.CHOICE.meaning}, {Scale.CONFIDENCE} for "
            f"{Scale.CONFIDENCE.meaning}."
        )
    return Scale.CONFIDENCE


def _recorded_scale(path: Path | str) -> Scale | None:
    record = record_path(path)
    name = read_json_object(record).get(SCALE) if record.is_file() else None
    if name not in (None, *Scale):
        raise InputError(f"{record} names no scale of {', '.join(Scale)}: {shortened(name)}.")
    return None if name is None else Scale(name)
