"""Data of jsPsych pages: html-button-response trials that carry trial_id and left.

One CSV or JSON file for a participant or for many, or several of them in one file, as JATOS writes
them; the content says which, not the name. Data of our own page are read too; there the reaction
time is called rt_ms.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.rows import (
    MISSING,
    Row,
    json_rows,
    looks_like_json,
    read_data,
    table_rows,
)
from contstim.experiments.responses.alignment import (
    Imported,
    NoTrialsError,
    UnreadableRow,
    import_files,
    recorded_or_unreadable,
)
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.experiments.responses.table import SIMULATED, UNRATED, unescape_formula
from contstim.items.scale import Scale
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.responses.alignment import RecordedAnswer
    from contstim.items.stimuli import Trial

PARTICIPANT = ("participant", "participant_id", "PROLIFIC_PID", "subject", "subject_id", "workerId")


def import_jspsych(files: Sequence[Path | str], trials: Sequence[Trial]) -> Imported:
    """Read data of a jsPsych page: trials with trial_id, left, rating (or response) and rt.

    A file that names no participant is one participant.

    Example: `contstim import jspsych data/*.json --trials trials.csv --out responses.csv`

    Args:
        files: of one participant or many. A row with a trial_id is a trial, one with a question is
            an answer beside the trials; all others are left aside and counted. `left` says which of
            the trial's sentences stood left (1 or 2). The rating is `rating`, on the trials' scale
            from sentence_1 to sentence_2, or follows from `response`, from the left: the index from
            0 of the button pressed, or a slider's value; where a row has both they must agree.
            Answers that the page gave by itself say so in `simulated`, which stays. A participant
            is named under any of `PARTICIPANT`, else by the file. Answers that are identical in all
            count once: a page that is reloaded may send an answer twice.
        trials: what was shown.

    Raises:
        InputError: a file cannot be read, or has no trial; a row states no side, or two ratings;
            and see `import_files`.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    seen: set[tuple[object, ...]] = set()
    return import_files(files, trials, lambda path: _answers(path, by_id, seen))


def _answers(
    path: Path, by_id: Mapping[str, Trial], seen: set[tuple[object, ...]]
) -> Iterator[RecordedAnswer | UnreadableRow | QuestionAnswer | str]:
    """The answers of a file without those that were seen before, unreadable rows, and notes."""
    rows, column = _read(path)
    if column is None:
        yield f"{path} names no participant: it is one, called {path.stem}."
    shown: Counter[str] = Counter()
    others = repeats = 0
    for row in rows:
        if isinstance(row, UnreadableRow):
            yield row
            continue
        cells = row.cells
        participant = path.stem if column is None else _cell(cells, column)
        if not _cell(cells, "trial_id"):
            others += 1
            if question := _cell(cells, "question"):
                yield QuestionAnswer(
                    str(participant), str(question), unescape_formula(str(_cell(cells, "answer")))
                )
            continue
        shown[str(participant)] += 1
        answer = _answer(row.where, cells, participant, shown[str(participant)], by_id)
        if isinstance(answer, UnreadableRow):
            yield answer
            continue
        about = answer.model_dump(exclude={"where", "row"})
        # nan differs from itself, and two unknown times would make two answers of one.
        key = tuple(None if value != value else value for value in about.values())
        if key in seen:
            repeats += 1
        else:
            seen.add(key)
            yield answer
    yield f"{path}: {counted(others, 'row')} of no trial."
    if repeats:
        yield f"{path}: left aside {counted(repeats, 'row')}, identical to an earlier one."


def _answer(
    where: str,
    row: Mapping[str, Any],
    participant: object,
    position: int,
    by_id: Mapping[str, Trial],
) -> RecordedAnswer | UnreadableRow:
    """The answer of a row, or why it is unreadable.

    Raises:
        InputError: the row states two ratings, for then others may be coded as wrongly.
    """
    if not {"rating", "response"} & row.keys():
        return UnreadableRow(f"{where}: has neither a rating nor a response.")
    cells = {
        "participant": participant,
        "trial_id": _cell(row, "trial_id"),
        "left": _cell(row, "left"),
        "position": _cell(row, "position") or position,
        # jsPsych itself calls the time rt; our own page saves it as rt_ms.
        "rt_ms": _cell(row, "rt") or _cell(row, "rt_ms"),
        **{name: _cell(row, name) for name in (SIMULATED, "input", "blurs", "away_ms")},
        "row": row,
    }
    answer = recorded_or_unreadable(where, **cells, rating=_cell(row, "rating"))
    if isinstance(answer, UnreadableRow):
        return answer
    trial = by_id.get(answer.trial_id)
    # An unknown trial is named later, with others
    scale = trial.scale if trial else Scale.CONFIDENCE
    # Button or slider count from the left, the stated rating from sentence_1.
    rating = answer.rating if answer.left == 1 else scale.mirrored(answer.rating)
    response = _cell(row, "response")
    if response != "":
        pressed = recorded_or_unreadable(f"{where}, response", **cells, rating=response)
        if isinstance(pressed, UnreadableRow):
            return pressed
        if answer.rating != UNRATED and rating != pressed.rating + scale.answers[0]:
            raise InputError(
                f"{where}: the rating {answer.rating} with sentence {answer.left} left does not "
                f"fit the response {pressed.rating} (from 0, from the left)."
            )
        rating = pressed.rating + scale.answers[0]
    return answer.model_copy(update={"rating": rating})


def _cell(row: Mapping[str, Any], name: str) -> Any:
    """A value, as text; jsPsych writes what does not apply as null, empty, or not at all."""
    value = row.get(name)
    if isinstance(value, bool | list | dict):
        return value  # which readers refuse
    text = str(value).strip()
    return "" if text in MISSING else text


def _read(path: Path) -> tuple[list[Row | UnreadableRow], str | None]:
    """The rows of a file, and the column that names participants; None where none does."""
    text = read_data(path)
    rows = json_rows(path, text) if looks_like_json(text) else table_rows(path, text)
    readable = [row for row in rows if isinstance(row, Row)]
    if not any(_cell(row.cells, "trial_id") for row in readable):
        is_of_jspsych = any({"trial_type", "trial_id"} & row.cells.keys() for row in readable)
        kind = NoTrialsError if is_of_jspsych else InputError
        raise kind(f"{path} has no row with a trial_id, so nothing in it is a trial.")
    named = (name for name in PARTICIPANT if any(_cell(row.cells, name) for row in readable))
    column = next(named, None)
    # A file of one run can lend its name to whoever answered; one of several runs cannot.
    runs = len({row.run for row in readable} - {None})
    if column is None and runs > 1:
        raise InputError(
            f"{path} holds {runs} runs but no participant, under any of {', '.join(PARTICIPANT)}."
        )
    return rows, column
