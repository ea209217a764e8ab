"""Conversion of answers, as platforms record them, to responses.

The `trial_id` of an answer identifies the trial. In a platform's data, low ratings mean a
preference for the left sentence. In responses, low ratings mean a preference for sentence_1. So a
rating is mirrored if sentence_2 was on the left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contstim.errors import InputError
from contstim.experiments.responses import checks, table
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.files.documents import shortened
from contstim.files.tables import join_names, whole_number
from contstim.wording import grouped, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.items.stimuli import Trial


class RecordedAnswer(BaseModel):
    """A rating as a platform records it; its fields are parsed from table cells.

    Attributes:
        where: file and row, for messages.
        left: the sentence shown on the left, 1 or 2.
        rating: rating on the trial's scale; low ratings mean a preference for the left sentence. -1
            if the trial was shown but not rated.
        position: order of presentation, from 1; 0 if unknown.
        rt_ms: reaction time in milliseconds; nan if unknown.
        rt_s: reaction time in seconds, for platforms that record seconds.
        blurs: number of times that the page lost the focus during the trial.
        away_ms: total time during which the page did not have the focus, milliseconds.
        row: row of the platform's table, as column name → cell. The function `kept_columns` reads
            it. None if the reader does not store the row.
    """

    model_config = ConfigDict(frozen=True)

    where: str
    participant: Annotated[table.Text, Field(min_length=1)]
    trial_id: table.Text
    left: Annotated[int, BeforeValidator(whole_number), Field(ge=1, le=2)]
    rating: table.Rating = table.UNRATED
    position: table.Position = table.UNKNOWN
    rt_ms: table.Time = math.nan
    rt_s: table.Time = math.nan
    simulated: table.Mark = False
    input: table.Text = ""
    blurs: table.Count = None
    away_ms: table.Time = math.nan
    row: Any = None


class NoTrialsError(InputError):
    """Error for a file without trials; all other files are still read."""


def recorded_or_unreadable(where: str, **cells: object) -> RecordedAnswer | InputError:
    """Parse an answer from cells; return an error that names `where` if a cell is invalid."""
    try:
        return RecordedAnswer.model_validate({"where": where, **cells})
    except ValidationError as error:
        return InputError(f"{where}: {table.mistake(error.errors()[0])}")


@dataclass(frozen=True)
class Imported:
    """Result of an import: trials, responses to these trials, and skipped data.

    Attributes:
        trials: trials as passed, or as built from published data.
        responses: responses in the order of the files; low ratings mean a preference for
            sentence_1.
        notes: messages about decisions of the import and about ignored data.
        unmatched: one finding for each participant who rated trials that are not in `trials`.
            `responses` does not contain these ratings.
        unreadable: errors of skipped rows, with file, line and reason.
        rows: (participant, row of the platform's table) for each answer to a trial, including
            repeated answers; a row is empty if the reader does not store it.
    """

    trials: tuple[Trial, ...]
    responses: tuple[table.Response, ...]
    notes: tuple[str, ...] = ()
    unmatched: tuple[checks.ResponseFinding, ...] = ()
    unreadable: tuple[InputError, ...] = ()
    questions: tuple[QuestionAnswer, ...] = ()
    rows: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False, compare=False)

    @property
    def report(self) -> checks.CheckReport:
        """Findings about the responses (`check_responses`), and about unmatched ratings."""
        report = checks.check_responses(self.trials, self.responses)
        return replace(report, findings=self.unmatched + report.findings)


# An answer, an error of an unreadable row, an answer to a question, or a note
_Part: TypeAlias = RecordedAnswer | InputError | QuestionAnswer | str


def import_files(
    files: Iterable[Path | str],
    trials: Sequence[Trial],
    read: Callable[[Path], Iterable[_Part]],
) -> Imported:
    """Find the trial of each answer, and convert its rating to the order of the trial's sentences.

    Unreadable rows and ratings outside the scale of the trial are skipped.

    The function `read` yields the parts of a file: answers, errors of unreadable rows, answers to
    questions, and notes (strings).

    Raises:
        InputError: if more than half of a file's rows about trials are unreadable; if the codes of
            ratings seem to be shifted by one, such as 0 to 5 instead of 1 to 6; if no answer
            belongs to a trial; or if `read` raises this error.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    files = list(files)
    is_only = len(files) == 1
    parts = [part for file in files for part in _read_file(file, read, by_id, is_only=is_only)]
    answers = [part for part in parts if isinstance(part, RecordedAnswer)]
    matched = [(answer, by_id[answer.trial_id]) for answer in answers if answer.trial_id in by_id]
    unmatched = [answer for answer in answers if answer.trial_id not in by_id]
    if not matched:
        first = (
            f"{shortened(unmatched[0].trial_id)} ({unmatched[0].where})" if unmatched else "none"
        )
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; trial of the first answer: "
            f"{first}. Name the table of the trials that participants saw."
        )
    unknown = grouped((answer.participant, answer.trial_id) for answer in unmatched)
    return Imported(
        tuple(trials),
        tuple(_to_response(answer, trial) for answer, trial in matched),
        tuple(part for part in parts if isinstance(part, str)),
        tuple(
            checks.ResponseFinding(checks.Problem.UNKNOWN_TRIAL, name, tuple(dict.fromkeys(ids)))
            for name, ids in unknown.items()
        ),
        tuple(part for part in parts if isinstance(part, InputError)),
        tuple(dict.fromkeys(part for part in parts if isinstance(part, QuestionAnswer))),
        tuple((answer.participant, answer.row or {}) for answer, _ in matched),
    )


def _read_file(
    file: Path | str,
    read: Callable[[Path], Iterable[_Part]],
    by_id: Mapping[str, Trial],
    *,
    is_only: bool,
) -> list[_Part]:
    """Read a file. Ratings outside the scale become errors of unreadable rows.

    For a file without trials, return only a note, or raise an error if it is the only file.
    """
    parts: list[_Part] = []
    outside: list[RecordedAnswer] = []
    try:
        for part in read(Path(file)):
            if (
                isinstance(part, RecordedAnswer)
                and (trial := by_id.get(part.trial_id))
                and part.rating not in (table.UNRATED, *trial.scale.answers)
            ):
                outside.append(part)
                reason = f"the rating {part.rating} is not on the scale {trial.scale.meaning}."
                parts.append(InputError(f"{part.where}: {reason}"))
            else:
                parts.append(part)
    except NoTrialsError as error:
        if is_only:
            raise
        return [str(error)]
    answers = [part for part in parts if isinstance(part, RecordedAnswer)]
    unreadable = [part for part in parts if isinstance(part, InputError)]
    if len(outside) > 1:
        # If codes are shifted by one, such as 0 to 5 instead of 1 to 6, ratings on the scale are
        # wrong too. So refuse the file; do not skip only the ratings outside the scale
        scale = by_id[outside[0].trial_id].scale.answers
        strays = {answer.rating for answer in outside}
        ratings = {answer.rating for answer in answers if answer.trial_id in by_id}
        for stray, absent in ((scale[0] - 1, scale[-1]), (scale[-1] + 1, scale[0])):
            if strays == {stray} and absent not in ratings:
                raise InputError(
                    f"{file}: {quantity(len(outside), 'rating')} with the value {stray}, but none "
                    f"with {absent}. The codes seem to be shifted by one. Use codes from "
                    f"{scale[0]} to {scale[-1]}."
                )
    n_rows = len(answers) + len(unreadable)
    if 2 * len(unreadable) > n_rows:
        raise InputError(
            f"{file}: more than half of the rows of trials cannot be read "
            f"({len(unreadable):,} of {quantity(n_rows, 'row')}). {unreadable[0]}"
        )
    return parts


def _to_response(answer: RecordedAnswer, trial: Trial) -> table.Response:
    # Rounding removes floating-point noise from the conversion of seconds
    rt_ms = answer.rt_ms if math.isnan(answer.rt_s) else round(1_000 * answer.rt_s, 3)
    # Low recorded ratings prefer the left sentence, low ratings of responses prefer sentence_1
    rating = answer.rating if answer.left == 1 else trial.scale.mirrored(answer.rating)
    cells = answer.model_dump(exclude={"where", "rt_s", "row"}) | {"rating": rating, "rt_ms": rt_ms}
    return table.Response(**cells, group=trial.group, scale=trial.scale)


def kept_columns(imported: Imported, names: Iterable[str]) -> list[QuestionAnswer]:
    """Convert columns of a platform's data to answers to questions.

    There is one answer for each participant and column, unless the participant's cell is empty.

    Raises:
        InputError: if a column is missing, or has several values for a participant.
    """
    columns = dict.fromkeys(name for _, row in imported.rows for name in row)
    values: dict[tuple[str, str], str] = {}
    for name in names:
        if name not in columns:
            raise InputError(
                f"`keep` must name columns of the answers, got {name}. The columns are "
                f"{join_names(columns)}."
            )
        for participant, row in imported.rows:
            value = str("" if row.get(name) is None else row[name]).strip()
            if values.setdefault((participant, name), value) != value:
                raise InputError(
                    f"`keep` names {name}, which has several values for {participant}: "
                    f"{shortened(values[participant, name])} and {shortened(value)}. Keep "
                    "columns with one value per participant."
                )
    return [QuestionAnswer(*key, value) for key, value in values.items() if value]


def keep_one(imported: Imported, which: Literal["first", "last"]) -> Imported:
    """Keep a participant's first or last rating of each trial; name excluded ratings in notes."""
    chosen: dict[tuple[str, str], table.Response] = {}
    repeated: dict[str, list[str]] = defaultdict(list)
    for response in imported.responses:
        key = (response.participant, response.trial_id)
        if key in chosen:
            repeated[response.participant].append(response.trial_id)
        # Reassigning a key keeps its position, so responses stay in the order of first ratings
        if which == "last" or key not in chosen:
            chosen[key] = response
    left_out = [
        f"Excluded repeated ratings (the {which} rating of a trial is kept): "
        f"{quantity(len(trials), 'rating')} by {participant}, of {', '.join(trials)}."
        for participant, trials in repeated.items()
    ]
    return replace(imported, responses=tuple(chosen.values()), notes=(*imported.notes, *left_out))
