"""Exports in the format of Gorilla's task builder 1, simulated from known responses."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from contstim.experiments.responses.table import Response
from contstim.stimuli import Condition, Kind, Trial

COLUMNS = (
    "Event Index;UTC Timestamp;UTC Date;Local Timestamp;Local Timezone;Local Date;Experiment ID;"
    "Experiment Version;Tree Node Key;Repeat Key;Schedule ID;Participant Public ID;"
    "Participant Private ID;Participant Starting Group;Participant Status;"
    "Participant Completion Code;Participant Device Type;Checkpoint;Task Name;Task Version;"
    "counterbalance-k3d9;Spreadsheet Name;Spreadsheet Row;Trial Number;Screen Number;Screen Name;"
    "Zone Name;Zone Type;Reaction Time;Reaction Onset;Response Type;Response;Attempt;Correct;"
    "Incorrect;Timed Out;randomise_trials;display"
).split(";")
LABELS = ("Very confident", "Confident", "Somewhat confident")

Row = dict[str, object]


def gorilla_rows(
    trials: Sequence[Trial], responses: Iterable[Response], *, suffixed: bool = False
) -> list[Row]:
    """Events as Gorilla lists them: instructions, then a fixation and a rating for each trial.

    Sentences stand in the order shown, without end marks; the button pressed counts from the left.
    With `suffixed`, each group has a spreadsheet, and columns, of its own.
    """
    by_id = {trial.trial_id: trial for trial in trials}
    rows: list[Row] = []
    index = 0
    for participant, theirs in _by_participant(responses).items():
        person = {
            "Participant Private ID": participant,
            "Participant Public ID": "BLIND",
            "Participant Status": "complete",
            "Task Name": "Sentence judgements",
            "counterbalance-k3d9": f"Set {theirs[0].group}",
        }
        rows.append({**person, "Event Index": 1, "Trial Number": "BEGIN TASK"})
        welcome = {"Zone Name": "Zone1", "Zone Type": "continue_button", "Response": "Next"}
        rows.append({**person, **welcome, "display": "instructions", "Reaction Time": 4_000})
        for response in theirs:
            index += 1
            trial = by_id[response.trial_id]
            suffix = f"-k{trial.group:03}" if suffixed else ""
            shown = {f"{key}{suffix}": cell for key, cell in _spreadsheet(trial, response).items()}
            event = {
                **person,
                **shown,
                "Event Index": index,
                "Trial Number": response.position,
                "display": "trial",
            }
            rows.append({**event, "Screen Name": "fixation", "Zone Type": "fixation"})
            button = response.rating if response.left == 1 else 7 - response.rating
            pressed = {
                "Screen Name": "pair",
                "Zone Name": f"resp{button}",
                "Zone Type": "response_button_text",
                "Reaction Time": response.rt_ms,
                "Response": LABELS[min(button, 7 - button) - 1],
                "Attempt": 1,
            }
            rows.append({**event, **pressed})
        rows.append({**person, "Event Index": index + 1, "Trial Number": "END TASK"})
    return rows


def write_gorilla(path: Path, rows: Sequence[Row], *, delimiter: str = ",") -> Path:
    """Write with a byte order mark, and `END OF FILE` alone in a last line."""
    columns = list(dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)]))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        file.write("END OF FILE\n")
    return path


def is_rating(row: Mapping[str, object]) -> bool:
    return str(row.get("Zone Name", "")).startswith("resp")


_TYPES = {Kind.NATURAL: "N", Kind.SHUFFLED: "C", Kind.SYNTHETIC_1: "S", Kind.SYNTHETIC_2: "S"}


def _spreadsheet(trial: Trial, response: Response) -> Row:
    texts = [trial.sentence_1.text.rstrip(".!?"), trial.sentence_2.text.rstrip(".!?")]
    kinds = [_TYPES[trial.kind_1], _TYPES[trial.kind_2]]
    models = [trial.model_1, trial.model_2]
    if trial.condition is Condition.NATURAL_SYNTHETIC:
        models.reverse()  # the synthetic sentence goes by the model that rejects it or not
    order = (0, 1) if response.left == 1 else (1, 0)
    return {
        f"sentence{place}{name}": values[side]
        for place, side in enumerate(order, start=1)
        for name, values in (("", texts), ("_type", kinds), ("_model", models))
    }


def _by_participant(responses: Iterable[Response]) -> dict[str, list[Response]]:
    found: dict[str, list[Response]] = {}
    for response in responses:
        found.setdefault(response.participant, []).append(response)
    return found
