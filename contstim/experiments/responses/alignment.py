"""Answers as platforms record them, aligned with trials by trial_id and the side shown."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contstim.errors import InputError
from contstim.experiments.responses import table
from contstim.experiments.responses.checks import (
    CheckReport,
    Problem,
    ResponseFinding,
    check_responses,
)
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.files.documents import shortened
from contstim.files.tables import listed, whole_number
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.items.stimuli import Trial


class RecordedAnswer(BaseModel):
    """A rating in the words of a platform; fields are given as its cells.

    Attributes:
        where: file and row, for messages.
        participant: the platform's name of a person.
        trial_id: of the trial.
        left: the trial's sentence that stood left, 1 or 2.
        rating: on the trial's scale, from left to right; -1 where a trial was shown and not rated.
        position: order of presentation, from 1; 0 unknown.
        rt_ms: nan unknown.
        rt_s: the same in seconds, of platforms that count these.
        simulated: whether an artificial participant answered.
        input: by key, mouse or touch.
        blurs: how often the page lost the focus.
        away_ms: how long it was without.
        row: the whole row by the names of its columns, of which some may be kept.
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
    """A file of the platform without a trial; other files are read."""


@dataclass(frozen=True)
class UnreadableRow:
    """A row of data that is left out.

    Attributes:
        message: file, line and reason.
    """

    message: str

    def __str__(self) -> str:
        return self.message


def recorded_or_unreadable(where: str, **cells: object) -> RecordedAnswer | UnreadableRow:
    """An answer of these cells, or what is wrong with one of them."""
    try:
        return recorded(where, **cells)
    except InputError as error:
        return UnreadableRow(str(error))


def recorded(where: str, **cells: object) -> RecordedAnswer:
    """An answer of these cells.

    Raises:
        InputError: a cell is something else (names it).
    """
    try:
        return RecordedAnswer.model_validate({"where": where, **cells})
    except ValidationError as error:
        raise InputError(f"{where}: {table.mistake(error.errors()[0])}") from None


@dataclass(frozen=True)
class Imported:
    """Responses in canonical order, the trials that they belong to, and an account of the rest.

    Attributes:
        trials: as given, or as built from published data.
        responses: in the order of the files.
        notes: what was decided and what was left aside.
        unmatched: ratings that belong to none of the trials; they are not in responses.
        unreadable: rows that are left out, with file, line and reason.
        questions: what people answered to questions beside the trials.
        rows: each answer's participant, and its row where the reader gives it.
    """

    trials: tuple[Trial, ...]
    responses: tuple[table.Response, ...]
    notes: tuple[str, ...] = ()
    unmatched: tuple[ResponseFinding, ...] = ()
    unreadable: tuple[UnreadableRow, ...] = ()
    questions: tuple[QuestionAnswer, ...] = ()
    rows: tuple[tuple[str, Mapping[str, Any]], ...] = field(default=(), repr=False, compare=False)

    @property
    def report(self) -> CheckReport:
        """The responses held against the trials, and what could not be matched with any."""
        report = check_responses(self.trials, self.responses)
        return CheckReport(report.responses, report.participants, self.unmatched + report.findings)


def import_files(
    files: Iterable[Path | str],
    trials: Sequence[Trial],
    read: Callable[[Path], Iterable[RecordedAnswer | UnreadableRow | QuestionAnswer | str]],
) -> Imported:
    """Find the trial of every answer, and turn its rating to the trial's canonical order.

    Unreadable rows are left out, among them ratings outside the scale of their trial.

    Args:
        files: of the platform.
        trials: what was shown.
        read: yields the answers of a file, its unreadable rows, answers to questions, and notes on
            the file, which are texts.

    Raises:
        InputError: if more than half of the trials' rows in a file are unreadable, if ratings
            seem to count from another number than the scale, if no answer finds a trial, and what
            `read` raises.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    contents = _contents(list(files), read, by_id)
    answers = [answer for content in contents for answer in content.answers]
    matched = [(answer, by_id[answer.trial_id]) for answer in answers if answer.trial_id in by_id]
    others = [answer for answer in answers if answer.trial_id not in by_id]
    if not matched:
        first = f"{shortened(others[0].trial_id)} ({others[0].where})" if others else "none"
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; the first is {first}. Are "
            "these the trials that were shown?"
        )
    unknown: dict[str, dict[str, None]] = defaultdict(dict)  # trials by participant, each once
    for answer in others:
        unknown[answer.participant][answer.trial_id] = None
    return Imported(
        tuple(trials),
        tuple(_canonical(answer, trial) for answer, trial in matched),
        tuple(note for content in contents for note in content.notes),
        tuple(
            ResponseFinding(Problem.UNKNOWN_TRIAL, participant, tuple(trials_of))
            for participant, trials_of in unknown.items()
        ),
        tuple(row for content in contents for row in content.unreadable),
        tuple(dict.fromkeys(answer for content in contents for answer in content.questions)),
        tuple((answer.participant, answer.row or {}) for answer, _ in matched),
    )


@dataclass
class _FileContent:
    """What a reader yields of a file, by kind."""

    answers: list[RecordedAnswer] = field(default_factory=list)
    unreadable: list[UnreadableRow] = field(default_factory=list)
    questions: list[QuestionAnswer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _contents(
    files: Sequence[Path | str],
    read: Callable[[Path], Iterable[RecordedAnswer | UnreadableRow | QuestionAnswer | str]],
    by_id: Mapping[str, Trial],
) -> list[_FileContent]:
    """The content of each file; of several, those without trials have a note only."""
    contents = []
    for file in files:
        try:
            contents.append(_content(file, read(Path(file)), by_id))
        except NoTrialsError as error:
            if len(files) == 1:
                raise
            contents.append(_FileContent(notes=[str(error)]))
    return contents


def _content(
    file: Path | str,
    parts: Iterable[RecordedAnswer | UnreadableRow | QuestionAnswer | str],
    by_id: Mapping[str, Trial],
) -> _FileContent:
    """The content of a file; ratings outside the scale of their trial are unreadable rows.

    Raises:
        InputError: see `import_files`.
    """
    content = _FileContent()
    outside: list[RecordedAnswer] = []
    for part in parts:
        if isinstance(part, str):
            content.notes.append(part)
        elif isinstance(part, QuestionAnswer):
            content.questions.append(part)
        elif isinstance(part, UnreadableRow):
            content.unreadable.append(part)
        elif (trial := by_id.get(part.trial_id)) and part.rating not in (
            table.UNRATED,
            *trial.scale.answers,
        ):
            outside.append(part)
            reason = f"the rating {part.rating} is not on the scale {trial.scale.meaning}."
            content.unreadable.append(UnreadableRow(f"{part.where}: {reason}"))
        else:
            content.answers.append(part)
    _refuse_shifted_ratings(file, content.answers, outside, by_id)
    n_rows = len(content.answers) + len(content.unreadable)
    if 2 * len(content.unreadable) > n_rows:
        raise InputError(
            f"{file}: {len(content.unreadable):,} of {counted(n_rows, 'row')} of trials cannot be "
            f"read, which is more than half. {content.unreadable[0]}"
        )
    return content


def _refuse_shifted_ratings(
    file: Path | str,
    answers: Iterable[RecordedAnswer],
    outside: Sequence[RecordedAnswer],
    by_id: Mapping[str, Trial],
) -> None:
    """Refuse ratings that count from 0 or 2: those on the scale would be off by one, too."""
    if len(outside) < 2:
        return
    scale = by_id[outside[0].trial_id].scale.answers
    strays = {answer.rating for answer in outside}
    ratings = {answer.rating for answer in answers if answer.trial_id in by_id}
    for stray, absent in ((scale[0] - 1, scale[-1]), (scale[-1] + 1, scale[0])):
        if strays == {stray} and absent not in ratings:
            raise InputError(
                f"{file}: {counted(len(outside), 'rating')} of {stray} and none of {absent}: they "
                f"seem to be coded off by one. Code them {scale[0]} to {scale[-1]}."
            )


def _canonical(answer: RecordedAnswer, trial: Trial) -> table.Response:
    # Three decimals: seconds times 1000 would else end in digits of rounding
    rt_ms = answer.rt_ms if math.isnan(answer.rt_s) else round(1_000 * answer.rt_s, 3)
    return table.Response(
        answer.participant,
        trial.group,
        trial.trial_id,
        # platforms count from left to right, responses from sentence_1 to sentence_2
        answer.rating if answer.left == 1 else trial.scale.mirrored(answer.rating),
        answer.left,
        answer.position,
        rt_ms,
        answer.simulated,
        trial.scale,
        answer.input,
        answer.blurs,
        answer.away_ms,
    )


def kept_columns(imported: Imported, names: Iterable[str]) -> list[QuestionAnswer]:
    """What columns of a platform's data say of each participant, as answers to questions.

    Raises:
        InputError: there is no such column, or it says several things of a participant.
    """
    columns = dict.fromkeys(name for _, row in imported.rows for name in row)
    told: dict[tuple[str, str], str] = {}
    for name in names:
        if name not in columns:
            raise InputError(f"`keep` names {name}; columns of the answers are {listed(columns)}.")
        for participant, row in imported.rows:
            value = str("" if row.get(name) is None else row[name]).strip()
            if told.setdefault((participant, name), value) != value:
                raise InputError(
                    f"`keep` names {name}, which says several things of {participant}, "
                    f"{shortened(told[participant, name])} and {shortened(value)}: keep columns "
                    "that say one thing of a person."
                )
    return [QuestionAnswer(*key, value) for key, value in told.items() if value]


def keep_one(imported: Imported, which: Literal["first", "last"]) -> Imported:
    """The same with one rating of each trial by each participant; notes say whose were left out."""
    chosen: dict[tuple[str, str], table.Response] = {}
    repeated: dict[str, list[str]] = defaultdict(list)
    for response in imported.responses:
        key = (response.participant, response.trial_id)
        if key in chosen:
            repeated[response.participant].append(response.trial_id)
        # A dictionary keeps the place of the first rating, whichever of them stays
        if which == "last" or key not in chosen:
            chosen[key] = response
    left_out = [
        f"Left out, the {which} kept: {counted(len(trials), 'further rating')} by {participant}, "
        f"{', '.join(trials)}."
        for participant, trials in repeated.items()
    ]
    notes = (*imported.notes, *left_out)
    return replace(imported, responses=tuple(chosen.values()), notes=notes)
