"""The table of responses, with a row for each rating of a participant.

Excel and LibreOffice treat cells that begin with certain signs as formulas, even if quoted. A
leading mark prevents this. In tables that contstim reads again, the mark is an apostrophe. In cells
that people read on a screen, the mark is an invisible no-break space, which `Sentence.parse`
ignores. A text that already begins with a mark and such a sign, for example `'=1`, gets one more
mark, so that `unescape_formula` restores every text.
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
    cells_by_name,
    join_names,
    number,
    read_table,
    text,
    whole_number,
    write_table,
)
from contstim.items.scale import Scale
from contstim.wording import grouped
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance
    from pydantic_core import ErrorDetails

    from contstim.items.stimuli import Trial

APOSTROPHE = "'"
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
UNKNOWN = 0  # value of `left` and of `position` if they are not recorded
UNRATED = -1  # rating of a trial that was shown but not rated; 0 is a valid slider rating
OBSERVED = ("input", "blurs", "away_ms", "received")  # columns that few platforms provide
SIMULATED = "simulated"  # column that only tables with artificial participants have
SCALE = "scale"  # key of the response scale in the record of a table
SIMULATED_NAME = "simulated-"  # prefix of the names of artificial participants


def escape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """Prefix the text with the mark if a spreadsheet might treat it as a formula."""
    return f"{mark}{text}" if _is_formula(text, mark) else text


def unescape_formula(text: str, mark: str = APOSTROPHE) -> str:
    """Return the original text of an `escape_formula` result."""
    return text[1:] if text.startswith(mark) and _is_formula(text, mark) else text


def _is_formula(text: str, mark: str) -> bool:
    # Marks before the sign are allowed: `'=1` already looks like the escaped form of `=1`, so it
    # needs one more mark
    return re.match(f"{mark}*[{re.escape(FORMULA_SIGNS)}]", text) is not None


def _strip(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell


def _parser(parse: Callable[[Any], Any], unknown: float) -> BeforeValidator:
    return BeforeValidator(
        lambda cell: unknown if _strip(cell) in ("", None) else parse(_strip(cell))
    )


def _parse_rating(cell: Any) -> int:
    answer = whole_number(cell)
    if answer < 0:  # no scale has negative ratings, and -1 would mean "not rated"
        raise ValueError
    return answer


Text = Annotated[str, BeforeValidator(lambda cell: text(_strip(cell)))]
"""Text of a cell; numbers are converted to text."""
Name = Annotated[
    str, BeforeValidator(lambda cell: unescape_formula(text(_strip(cell)))), Field(min_length=1)
]
"""Name or identifier in a table written by contstim."""
Whole = Annotated[int, _parser(whole_number, UNKNOWN)]
Rating = Annotated[int, _parser(_parse_rating, UNRATED)]
Position = Annotated[int, _parser(whole_number, UNKNOWN), Field(ge=0)]
"""Position in an order, from 1; 0 if unknown."""
Count = Annotated[int | None, _parser(whole_number, None)]
Time = Annotated[float, _parser(number, math.nan)]
Mark = Annotated[bool, _parser(lambda cell: cell, False)]
"""Whether the participant is artificial; an empty cell means a person."""

_EXPECTED_CELLS = {
    "participant": "the name of a participant",
    "group": "a whole number from 1",
    "trial_id": "an identifier",
    "left": "the sentence shown on the left, 1 or 2",
    "rating": "a whole number from 0 (export numeric values, not the texts of choices)",
    "position": "a position in an order",
    "rt_ms": "a number",
    "rt_s": "a number",
    "blurs": "a whole number",
    "away_ms": "a number",
    SIMULATED: "a truth value; write true or false, or leave it empty for human participants",
}


def mistake(wrong: ErrorDetails) -> str:
    """Convert a validation error of pydantic about a cell to a message for users."""
    name = str(wrong["loc"][-1])
    return f"{shortened(wrong['input'])} under {name} is not {_EXPECTED_CELLS[name]}."


@dataclass(frozen=True)
class Response:
    """A participant's rating of one trial; its fields are the columns of responses.csv.

    Unrecorded values are empty cells in the file. In this class, unrecorded values are -1 (rating),
    0 (left, position), nan (rt_ms, away_ms), None (blurs) or an empty text. The columns `input`,
    `blurs`, `away_ms` and `received` are written only if they have a value.

    The column `simulated` (true or false) is written only if an answer is simulated. Participants
    whose names begin with `simulated-` are always artificial. For other names, a missing column or
    an empty cell means a person.

    The scale is not a column. It is stored in the table's record, a JSON file next to the table.
    """

    participant: Name
    group: Annotated[int, BeforeValidator(whole_number), Field(ge=1)]
    trial_id: Name
    rating: Rating  # low ratings prefer sentence_1, whether it was on the left or on the right
    left: Whole  # the sentence shown on the left, 1 or 2
    position: Position
    rt_ms: Time
    simulated: Mark = False
    scale: Scale = Scale.CONFIDENCE
    input: Text = ""  # key, mouse or touch
    blurs: Count = None  # number of times that the page lost the focus during the trial
    away_ms: Time = math.nan  # total time, ms, during which the page did not have the focus
    # Time when the server received the response, UTC
    received: Text = field(default="", compare=False)

    def __post_init__(self) -> None:
        # If the column `simulated` was removed, the name still identifies artificial participants
        if self.participant.startswith(SIMULATED_NAME):
            object.__setattr__(self, SIMULATED, True)  # the dataclass is frozen

    @property
    def button(self) -> int | None:
        """Rating, mirrored if sentence_2 was on the left, so that low values prefer the left side.

        The value is None if the rating or the side was not recorded. 0 cannot have this meaning,
        because 0 is a valid rating on a slider.
        """
        if self.rating == UNRATED or self.left == UNKNOWN:
            return None
        return self.rating if self.left == 1 else self.scale.mirrored(self.rating)

    @property
    def choice(self) -> int:
        """The preferred sentence, 1 or 2; 0 if neither is preferred or no rating was recorded."""
        return 0 if self.rating == UNRATED else self.scale.preferred(self.rating)


@dataclass(frozen=True)
class ResponseOrigin:
    """Numbers of people (`people`) and of participants with simulated answers (`simulated`)."""

    people: int
    simulated: int

    @property
    def share(self) -> str:
        """Share of artificial participants among all participants, such as `3 of 10`."""
        return f"{self.simulated:,} of {self.people + self.simulated:,}"

    @property
    def warning(self) -> str:
        """Warning for every result of these responses; empty if all participants are people."""
        if not self.simulated:
            return ""
        no_people = "" if self.people else "there are no human participants; "
        return f"Artificial participants: {no_people}{self.share} participants were simulated."


def origin_of(responses: Iterable[Response]) -> ResponseOrigin:
    """Return the number of people, and the number of participants with simulated answers."""
    # A participant with one or more simulated answers is not counted as a person
    marks = grouped((response.participant, response.simulated) for response in responses)
    n_artificial = sum(map(any, marks.values()))
    return ResponseOrigin(len(marks) - n_artificial, n_artificial)


def anonymise(responses: Sequence[Response]) -> list[Response]:
    """Replace names by P1, P2, … (or simulated-1, … if artificial), in order of first responses."""
    names = dict.fromkeys(response.participant for response in responses)
    artificial = {response.participant for response in responses if response.simulated}
    # Leading zeros, so that names sort by number
    width = len(str(len(names)))
    number = {
        name: f"{SIMULATED_NAME if name in artificial else 'P'}{index:0{width}}"
        for index, name in enumerate(names, start=1)
    }
    return [replace(r, participant=number[r.participant]) for r in responses]


def write_responses(path: Path | str, responses: Iterable[Response]) -> None:
    """Write responses.csv (or `.tsv`, `.parquet`, `.jsonl`): the fields of `Response`, in order.

    Texts that a spreadsheet would run as a formula get a leading apostrophe, which
    `read_responses` removes.

    Raises:
        InputError: if the file cannot be written.
    """
    write_table(path, response_columns(responses))


_ROW_PARSER = TypeAdapter(list[Response])
_COLUMNS = tuple(column.name for column in fields(Response) if column.name != SCALE)
_PAGE_COLUMNS = ("seed", "assigned_by", "device", "viewport")  # written by pages, but not read


def response_columns(responses: Iterable[Response]) -> dict[str, list[Any]]:
    """Build the columns of responses.csv; see `write_responses` and `Response`."""
    rows = [cells_of(response, APOSTROPHE) for response in responses]
    columns = {name: [row[name] for row in rows] for name in _COLUMNS}
    if "true" not in columns[SIMULATED]:  # all participants are people
        del columns[SIMULATED]
    return {name: c for name, c in columns.items() if name not in OBSERVED or {*c} - {None, ""}}


def cells_of(row: DataclassInstance, mark: str) -> dict[str, Any]:
    """Convert the fields of a row to cells.

    Texts that look like formulas begin with the mark. Unknown numbers become empty cells.
    """
    cells: dict[str, Any] = {}
    for name in (column.name for column in fields(row) if column.name != SCALE):
        value = getattr(row, name)
        # -1 under `rating`, and 0 under `left` or `position`, mean "not recorded". In all other
        # columns, -1 and 0 are ordinary numbers
        unknown = value == {"rating": UNRATED, "left": UNKNOWN, "position": UNKNOWN}.get(name)
        if isinstance(value, str | Sentence):
            value = escape_formula(str(value), mark)
        elif isinstance(value, bool):
            value = str(value).lower()
        cells[name] = None if unknown or value != value else value  # nan is unequal to itself
    return cells


def read_responses(
    path: Path | str, trials: Iterable[Trial] = (), *, scale: Scale | None = None
) -> tuple[Response, ...]:
    """Read a table that `write_responses` wrote; unknown columns are ignored, with a warning.

    The table's record (`responses.csv.meta.json`) names the scale. Without a record, the scale is
    the argument `scale`, or by default the scale of the trials. `check_responses` reports ratings
    outside the scale.

    Raises:
        InputError: if the file cannot be read or lacks a column; if a cell is invalid, or if the
            participant or the trial of a row is missing; if the record names a scale other than
            `scale`; or if the scale is unclear (`scale_of`).
    """
    columns = read_table(path)
    missing = [f.name for f in fields(Response) if f.default is MISSING and f.name not in columns]
    if missing:
        raise InputError(f"{path} is not a table of responses: it lacks {', '.join(missing)}.")
    foreign = [name for name in columns if name not in (*_COLUMNS, *_PAGE_COLUMNS)]
    if foreign:
        warnings.warn(
            f"{path} has columns that contstim does not use: {join_names(foreign)}.",
            stacklevel=1,  # same location for all callers, so that Python shows the warning once
        )
    known = {name: column for name, column in columns.items() if name in _COLUMNS}
    try:
        rows = _ROW_PARSER.validate_python(cells_by_name(known))
    except ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"{path}, row {problem['loc'][0]}: {mistake(problem)}") from None
    recorded = _read_recorded_scale(path)
    if scale is not None and recorded not in (scale, None):
        raise InputError(
            f"{path} contains answers on the scale {recorded}, according to "
            f"{record_path(path)}, but the scale of the command is {scale}."
        )
    scale = recorded or scale or scale_of(str(path), trials, (row.rating for row in rows))
    return tuple(replace(row, scale=scale) for row in rows)


def scale_of(source: str, trials: Iterable[Trial], ratings: Iterable[int]) -> Scale:
    """Return the scale of the trials, for answers that were stored without a scale.

    If all trials have the default scale, confidence, this scale is returned.

    Raises:
        InputError: if all trials have the default scale, all ratings are 1 or 2, and at least one
            rating is 2. The meaning of 2 is then unclear. As a rating of confidence, 2 prefers
            sentence_1. As a choice, 2 prefers sentence_2.
    """
    if scales := {trial.scale for trial in trials} - {Scale.CONFIDENCE}:
        return scales.pop()
    distinct = {*ratings} - {UNRATED}
    if 2 in distinct and distinct <= {*Scale.CHOICE.answers}:
        raise InputError(
            f"All ratings of {source} are 1 or 2, which may be choices or ratings of "
            f"confidence. Set `scale`: {Scale.CHOICE} for {Scale.CHOICE.meaning}, "
            f"{Scale.CONFIDENCE} for {Scale.CONFIDENCE.meaning}."
        )
    return Scale.CONFIDENCE


def _read_recorded_scale(path: Path | str) -> Scale | None:
    record = record_path(path)
    name = read_json_object(record).get(SCALE) if record.is_file() else None
    if name not in (None, *Scale):
        raise InputError(
            f"The scale in {record} must be one of {', '.join(Scale)}, got {shortened(name)}."
        )
    return None if name is None else Scale(name)
