"""Reader of the data of jsPsych pages; the data of each trial need `trial_id` and `left`.

A file is CSV or JSON, with one or several participants. JATOS joins the data of several runs into
one file. The format is recognised by the content, not by the file name. The page of `export
jspsych` writes CSV, with the reaction time in `rt_ms`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError
from contstim.experiments.platforms.rows import (
    MISSING,
    json_rows,
    looks_like_json,
    read_data,
    table_rows,
    unnamed_note,
)
from contstim.experiments.responses import alignment
from contstim.experiments.responses.questionnaire import QuestionAnswer
from contstim.experiments.responses.table import SIMULATED, UNRATED, unescape_formula
from contstim.items.scale import Scale
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contstim.experiments.platforms.rows import Row
    from contstim.items.stimuli import Trial

PARTICIPANT = ("participant", "participant_id", "PROLIFIC_PID", "subject", "subject_id", "workerId")


def import_jspsych(files: Sequence[Path | str], trials: Sequence[Trial]) -> alignment.Imported:
    """Read data of a jsPsych page.

    Each trial has trial_id, left, rt, and rating or response. A file that names no participant is
    read as the data of one participant.

    Example: `contstim import jspsych data/*.json --trials trials.csv --out responses.csv`

    Args:
        files: data files with one or several participants. Rows with a trial_id are trials. Rows
            with a question are answers to questions. All other rows are skipped and counted. `left`
            is the sentence shown on the left (1 or 2). `rating` is on the trials' scale; low values
            mean a preference for sentence_1. If `rating` is missing, it is computed from
            `response`. `response` is the index of the button, counted from 0 and from the left, or
            the value of a slider. If a row has `rating` and `response`, they must agree. The column
            `simulated` marks simulated answers. Participants are named by the first column of
            `PARTICIPANT` that has a value, or else by the file name. Identical answers count once,
            because a reloaded page may send an answer twice.
        trials: trials that were shown.

    Raises:
        InputError: if a file cannot be read or has no trial; or if `rating` and `response` of a row
            contradict each other; see also `import_files`.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    seen: set[tuple[object, ...]] = set()
    return alignment.import_files(files, trials, lambda path: _read_answers(path, by_id, seen))


def _read_answers(
    path: Path, by_id: Mapping[str, Trial], seen: set[tuple[object, ...]]
) -> Iterator[alignment.RecordedAnswer | InputError | QuestionAnswer | str]:
    """Yield a file's new answers, an error for each unreadable row, and notes about the file.

    `seen` contains the keys of earlier answers. Answers with these keys are skipped. This function
    adds the keys of new answers.
    """
    rows, errors, column = _read_rows(path)
    yield from errors
    if column is None:
        yield unnamed_note(path)
    n_trials: Counter[str] = Counter()
    n_others = repeats = 0
    for row in rows:
        cells = row.cells
        participant = path.stem if column is None else _cell(cells, column)
        if not _cell(cells, "trial_id"):
            n_others += 1
            if question := _cell(cells, "question"):
                yield QuestionAnswer(
                    str(participant), str(question), unescape_formula(str(_cell(cells, "answer")))
                )
            continue
        n_trials[str(participant)] += 1
        answer = _parse_answer(row.where, cells, participant, n_trials[str(participant)], by_id)
        if isinstance(answer, InputError):
            yield answer
            continue
        fields = answer.model_dump(exclude={"where", "row"})
        # nan is unequal to itself, so unknown times would make identical answers differ
        key = tuple(None if value != value else value for value in fields.values())
        if key in seen:
            repeats += 1
        else:
            seen.add(key)
            yield answer
    yield f"{path}: skipped {quantity(n_others, 'row')} without a trial_id."
    if repeats:
        yield f"{path}: skipped {quantity(repeats, 'row')} identical to earlier rows."


def _parse_answer(
    where: str,
    row: Mapping[str, Any],
    participant: object,
    position: int,
    by_id: Mapping[str, Trial],
) -> alignment.RecordedAnswer | InputError:
    """Parse the answer of a row; return an error if the row is unreadable.

    Raises:
        InputError: if `rating` and `response` contradict each other. Skipping this row would not be
            enough, because the ratings of all rows may be wrongly coded.
    """
    if not {"rating", "response"} & row.keys():
        return InputError(f"{where}: has neither a rating nor a response.")
    cells = {
        "participant": participant,
        "trial_id": _cell(row, "trial_id"),
        "left": _cell(row, "left"),
        "position": _cell(row, "position") or position,
        # The reaction time is `rt` in jsPsych, and `rt_ms` in the page of `export jspsych`
        "rt_ms": _cell(row, "rt") or _cell(row, "rt_ms"),
        **{name: _cell(row, name) for name in (SIMULATED, "input", "blurs", "away_ms")},
        "row": row,
    }
    answer = alignment.recorded_or_unreadable(where, **cells, rating=_cell(row, "rating"))
    if isinstance(answer, InputError):
        return answer
    trial = by_id.get(answer.trial_id)
    # `import_files` reports unknown trials
    scale = trial.scale if trial else Scale.CONFIDENCE
    # Low values of `response` prefer the left sentence, low values of `rating` prefer sentence_1
    rating = answer.rating if answer.left == 1 else scale.mirrored(answer.rating)
    response = _cell(row, "response")
    if response != "":
        pressed = alignment.recorded_or_unreadable(f"{where}, response", **cells, rating=response)
        if isinstance(pressed, InputError):
            return pressed
        if answer.rating != UNRATED and rating != pressed.rating + scale.answers[0]:
            raise InputError(
                f"{where}: the rating {answer.rating} with sentence {answer.left} on the "
                f"left does not match the response {pressed.rating} (from 0, from the left)."
            )
        rating = pressed.rating + scale.answers[0]
    return answer.model_copy(update={"rating": rating})


def _cell(row: Mapping[str, Any], name: str) -> Any:
    """Return a value as text; empty if the value is missing, null, or another of `MISSING`."""
    value = row.get(name)
    if isinstance(value, bool | list | dict):
        return value  # an invalid value, which the parsers reject
    text = str(value).strip()
    return "" if text in MISSING else text


def _read_rows(path: Path) -> tuple[list[Row], list[InputError], str | None]:
    """Return a file's rows, an error for each unreadable row, and the column of participants.

    The column is None if no row names a participant.
    """
    text = read_data(path)
    rows, errors = json_rows(path, text) if looks_like_json(text) else table_rows(path, text)
    if not any(_cell(row.cells, "trial_id") for row in rows):
        is_of_jspsych = any({"trial_type", "trial_id"} & row.cells.keys() for row in rows)
        kind = alignment.NoTrialsError if is_of_jspsych else InputError
        raise kind(f"{path} has no row with a trial_id, and therefore no trials.")
    candidates = (name for name in PARTICIPANT if any(_cell(row.cells, name) for row in rows))
    column = next(candidates, None)
    # A file name can identify one participant, but not the participants of several runs (sessions)
    runs = len({row.run for row in rows} - {None})
    if column is None and runs > 1:
        raise InputError(
            f"{path} contains {runs} runs but no name of a participant in any of the columns "
            f"{', '.join(PARTICIPANT)}. Add one of these columns, or read a file for each run."
        )
    return rows, errors, column
