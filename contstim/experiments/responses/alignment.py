"""Answers as platforms record them, aligned with trials by trial_id and the side shown."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contstim.documents import shortened
from contstim.errors import InputError
from contstim.experiments.responses import table
from contstim.experiments.responses.checks import (
    CheckReport,
    Problem,
    ResponseFinding,
    check_responses,
)
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.tables import listed, whole_number
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from contstim.stimuli import Trial


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
        questions: what people answered to questions beside the trials.
        rows: each answer's participant, and its row where the reader gives it.
    """

    trials: tuple[Trial, ...]
    responses: tuple[table.Response, ...]
    notes: tuple[str, ...] = ()
    unmatched: tuple[ResponseFinding, ...] = ()
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
    read: Callable[[Path], Iterable[RecordedAnswer | QuestionAnswer | str]],
) -> Imported:
    """Find the trial of every answer, and turn its rating to the trial's canonical order.

    Args:
        files: of the platform.
        trials: what was shown.
        read: the answers of a file, those to questions, and notes on it, which are texts.

    Raises:
        InputError: no answer finds a trial, and what `read` raises.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    responses: list[table.Response] = []
    notes: list[str] = []
    lost: dict[str, dict[str, str]] = defaultdict(dict)  # by participant, where each trial stands
    questions: list[QuestionAnswer] = []
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for each in (each for file in files for each in read(Path(file))):
        if isinstance(each, str):
            notes.append(each)
        elif isinstance(each, QuestionAnswer):
            questions.append(each)
        elif trial := by_id.get(each.trial_id):
            responses.append(_canonical(each, trial))
            rows.append((each.participant, each.row or {}))
        else:
            lost[each.participant].setdefault(each.trial_id, each.where)
    if not responses:
        places = (place for of_person in lost.values() for place in of_person.items())
        trial_id, where = next(places, ("", ""))
        example = f"{shortened(trial_id)} ({where})" if where else "none"
        raise InputError(
            f"No answer belongs to any of the {len(trials):,} trials; the first is {example}. Are "
            "these the trials that were shown?"
        )
    unknown = (
        ResponseFinding(Problem.UNKNOWN_TRIAL, participant, tuple(trials_of))
        for participant, trials_of in lost.items()
    )
    further = tuple(notes), tuple(unknown), tuple(dict.fromkeys(questions)), tuple(rows)
    return Imported(tuple(trials), tuple(responses), *further)


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
