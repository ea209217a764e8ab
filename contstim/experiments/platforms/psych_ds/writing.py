"""A Psych-DS data set of stimuli and, where there are any, responses and scores.

Every column is described in words, as a PropertyValue of schema.org.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from contstim.errors import InputError, VerificationError
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.lists import check_trials
from contstim.experiments.platforms.psych_ds.checking import check_psych_ds
from contstim.experiments.responses.origin import ResponseOrigin, origin_of
from contstim.experiments.responses.spreadsheets import NO_BREAK_SPACE, escape_formula
from contstim.experiments.responses.table import (
    SCALE,
    SIMULATED,
    SIMULATED_NAME,
    UNKNOWN,
    Response,
    read_responses,
)
from contstim.options import AnswerScale, Help
from contstim.reporting.report import Paragraph, Report
from contstim.scale import Scale
from contstim.scores import ScoreTable
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.platforms.platform import Exported
    from contstim.stimuli import Trial

_PLAIN: dict[str, str] = {
    "trial_id": "The trial: two sentences that the participants of a group compared.",
    "group": "The group of participants who saw the trial, from 1.",
    "model_1": "One of the two language models that the trial sets against each other.",
    "model_2": "The other one.",
    "sentence_1": "The sentence that the lower half of ratings prefers.",
    "sentence_2": "The sentence that the upper half of ratings prefers.",
    "source_id": "The pair or triplet that the trial was made of.",
    "instead_of": "The trial whose turn and side it has, after a review of the stimuli.",
    "participant": "A pseudonym of the participant.",
    "sentence": "A sentence, to which the scores of a row belong.",
}


def variable(name: str, *, model: bool = False, scale: Scale = Scale.CONFIDENCE) -> dict[str, Any]:
    """The PropertyValue of a column.

    Args:
        name: of the column.
        model: whether it holds a model's scores.
        scale: of ratings.
    """
    if model:
        return _value(
            name, f"Log-probability of the sentence under the model {name}.", unitText="nats"
        )
    if name in _PLAIN:
        return _value(name, _PLAIN[name])
    if name == "rating":
        description = (
            "1: sentence_1 was chosen, 2: sentence_2 was"
            if scale is Scale.CHOICE
            else "1: very confident that sentence_1 is likelier, to 6: very confident that "
            "sentence_2 is"
        )
        description += ", whatever side each was on. Empty where none was given."
        first, last = scale.answers[0], scale.answers[-1]
        return _value(name, description, minValue=first, maxValue=last)
    return _MEASURED[name]


def _value(name: str, description: str, **more: object) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, "description": description, **more}


_MEASURED = {
    "condition": _value(
        "condition", "What the trial compares.", valueReference=list(map(str, Condition))
    ),
    "kind_1": _value("kind_1", "Where sentence_1 comes from.", valueReference=list(map(str, Kind))),
    "kind_2": _value("kind_2", "Where sentence_2 comes from.", valueReference=list(map(str, Kind))),
    "left": _value(
        "left",
        "The sentence that was shown left, 1 or 2. Empty where not recorded.",
        minValue=1,
        maxValue=2,
    ),
    "position": _value(
        "position", "Order of presentation, from 1. Empty where not recorded.", minValue=1
    ),
    "simulated": _value(
        "simulated",
        "Whether an artificial participant answered, and no person: true or false.",
        valueReference=["true", "false"],
    ),
    "rt_ms": _value("rt_ms", "Reaction time. Empty where not recorded.", unitText="ms"),
}

COLUMNS = frozenset((*_PLAIN, *_MEASURED, "rating"))
"""The columns of stimuli and responses, and `sentence` of scores."""


@dataclass(frozen=True)
class Description:
    """Description of the whole data set in dataset_description.json.

    Attributes:
        name: of the data set.
        description: a sentence or more; empty for one that says what contstim exports.
        authors: names of people.
        licence: its name or address; empty where none is stated.
    """

    name: str
    description: str = ""
    authors: tuple[str, ...] = ()
    licence: str = ""


@dataclass(frozen=True)
class PsychDsSettings:
    """The tables of a data set beside the stimuli, and what is said of the whole."""

    responses: Annotated[Path | None, Help("What people answered.")] = None
    scores: Annotated[Path | None, Help("Scores of the sentences.")] = None
    scale: AnswerScale = None
    name: Annotated[str, Help("The name of the data set.")] = "contstim"
    description: Annotated[str, Help("What it holds, in a sentence.")] = ""
    authors: Annotated[tuple[str, ...], Help("Who made it; repeatable.", flag="--author")] = ()
    licence: Annotated[str, Help("A licence's name or address.")] = ""
    keep_names: Annotated[
        bool, Help("Keep the names of participants instead of numbering them.")
    ] = False
    simulated: Annotated[
        bool,
        Help(
            "Allow answers of artificial participants; the data set is named after them.",
            flag="--simulated",
        ),
    ] = False


def export_psych_ds(
    trials: Sequence[Trial], out: Path | str, settings: PsychDsSettings
) -> Exported:
    """Write a Psych-DS 1.5 data set, or check one.

    Stimuli, and responses and scores where given, with every column described. Participants are
    numbered, unless you keep their names. `--check` prints what is wrong with a data set and exits
    with status 1 if it breaks a rule.

    Example: `contstim export psych-ds --trials trials.csv --responses responses.csv --name
    "Controversial pairs" --author "Ada Lovelace" --out dataset`

    Raises:
        InputError: a table cannot be read, and see `write_psych_ds`.
        VerificationError: the data set does not obey the rules.
    """
    return write_psych_ds(
        trials,
        out,
        Description(settings.name, settings.description, settings.authors, settings.licence),
        responses=()
        if settings.responses is None
        else read_responses(settings.responses, trials, scale=settings.scale),
        scores=None if settings.scores is None else ScoreTable.read(settings.scores),
        keep_names=settings.keep_names,
        simulated=settings.simulated,
    )


def write_psych_ds(
    trials: Sequence[Trial],
    out: Path | str,
    about: Description,
    *,
    responses: Sequence[Response] = (),
    scores: ScoreTable | None = None,
    keep_names: bool = False,
    simulated: bool = False,
) -> Exported:
    """Write dataset_description.json, README.md, CHANGES.md and the tables in data/.

    Each table is `study-<name>_description-<stimuli|responses|scores>_data.csv`. The result is held
    against the rules of Psych-DS (`check_psych_ds`).

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        about: name, description, authors and licence of the data set.
        responses: of these trials.
        scores: of their sentences.
        keep_names: of participants, as they are. By default numbers in order of first responses
            replace them, because a recruiting platform may know people by their names.
        simulated: whether some responses may be, and are, those of artificial participants. Then
            name, description and README say so, and a column of the responses marks them.

    Raises:
        InputError: responses are simulated and `simulated` does not say so, or the other way
            round; the name has no letter or digit, a response is of no trial, the trials cannot be
            traced back, or the folder holds other files.
        VerificationError: the data set does not obey the rules.
    """
    # In names of files, the rules allow letters and digits only as values.
    study = re.sub(r"[^A-Za-z0-9]", "", about.name)
    if not study:
        raise InputError(f"The name {about.name!r} has no letter or digit, which file names need.")
    check_trials(trials)
    origin = origin_of(responses)
    _check_responses(trials, responses, origin, simulated=simulated)
    folder = ExportFolder(out, "psych-ds")
    tables = {
        "stimuli": [_cells(trial) for trial in trials],
        "responses": [
            _cells(response, simulated=simulated)
            for response in (responses if keep_names else _numbered(responses))
        ],
        "scores": _score_rows(scores),
    }
    # The first row names the columns, so that a table without rows cannot be written.
    tables = {what: rows for what, rows in tables.items() if rows}
    models = scores.models if scores else ()
    for what, rows in tables.items():
        folder.rows(f"data/study-{study}_description-{what}_data.csv", rows, list(rows[0]))
    # Every column of any table is described once, whichever tables have it.
    columns = dict.fromkeys(name for rows in tables.values() for name in rows[0])
    scale = responses[0].scale if responses else Scale.CONFIDENCE
    variables = [variable(name, model=name in models, scale=scale) for name in columns]
    metadata = _metadata(about, origin, variables)
    folder.text("dataset_description.json", json.dumps(metadata, indent=2, ensure_ascii=False))
    folder.readme(
        template("psych_ds.md"),
        head=Report(metadata["name"], [Paragraph(metadata["description"])]).markdown().strip(),
        tables="\n".join(f"* {what}: {counted(len(rows), 'row')}" for what, rows in tables.items()),
    )
    folder.text("CHANGES.md", "# Changes\n\nFirst version.\n")
    # Our record of the export lies in the folder and is not part of the data set.
    folder.text(".psychds-ignore", "export.meta.json\n")
    exported = folder.finish(
        check=_verify, keep_names=keep_names, simulated_participants=origin.simulated
    )
    _verify(exported.path)  # with what else lies in the folder
    return replace(exported, message=f"{exported.path} obeys the rules of Psych-DS 1.5.")


def _verify(folder: Path) -> None:
    errors = [str(finding) for finding in check_psych_ds(folder) if finding.error]
    if errors:
        raise VerificationError("This is not a Psych-DS data set:\n" + "\n".join(errors))


def _check_responses(
    trials: Sequence[Trial],
    responses: Sequence[Response],
    origin: ResponseOrigin,
    *,
    simulated: bool,
) -> None:
    """Refuse responses to other trials, and artificial ones that nobody has announced."""
    trial_ids = {trial.trial_id for trial in trials}
    stray = sorted({r.trial_id for r in responses if r.trial_id not in trial_ids})
    if stray:
        raise InputError(
            f"Responses to {counted(len(stray), 'trial')} beyond the table of trials: "
            f"{', '.join(stray[:5])}. Export them with the trials that were shown."
        )
    if origin.simulated and not simulated:
        raise InputError(
            f"{origin.warning} A public data set must say so: export with --simulated, which names "
            "it in the title and marks every answer, or export the answers of people alone."
        )
    if simulated and not origin.simulated:
        raise InputError(
            "--simulated is for answers of artificial participants, and none of these is marked as "
            "one; leave it out."
        )


def _numbered(responses: Sequence[Response]) -> list[Response]:
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


def _cells(row: Trial | Response, *, simulated: bool = False) -> dict[str, Any]:
    """The fields of a row; texts escaped, unknown numbers empty."""
    cells: dict[str, Any] = {}
    # The scale is told with the description of the ratings
    left_out = {SCALE} if simulated else {SCALE, SIMULATED}
    for name in (field.name for field in fields(row) if field.name not in left_out):
        value = cells[name] = getattr(row, name)
        if isinstance(value, str | Sentence):
            cells[name] = escape_formula(str(value), NO_BREAK_SPACE)
        elif isinstance(value, bool):
            cells[name] = str(value).lower()
        elif (isinstance(value, float) and math.isnan(value)) or (
            # Elsewhere 0 is a number as any other; here it stands for what nobody recorded.
            value == UNKNOWN and name in ("rating", "left", "position")
        ):
            cells[name] = None
    return cells


def _score_rows(scores: ScoreTable | None) -> list[dict[str, Any]]:
    if scores is None:
        return []
    if not scores.sentences:
        raise InputError("These scores say nothing of their sentences; give a table that does.")
    clash = sorted(COLUMNS.intersection(scores.models))
    if clash:
        raise InputError(
            f"{', '.join(clash)} cannot be the name of a model here, because a column of the "
            "stimuli or responses is called so; score under another name."
        )
    return [
        {
            "sentence": escape_formula(sentence.text, NO_BREAK_SPACE),
            **dict(zip(scores.models, map(float, row), strict=True)),
        }
        for sentence, row in zip(scores.sentences, scores.log_probs, strict=True)
    ]


def _metadata(
    about: Description, origin: ResponseOrigin, variables: list[dict[str, Any]]
) -> dict[str, Any]:
    """The content of dataset_description.json."""
    name, description = about.name, about.description
    # Artificial participants stand in the name itself, which every catalogue of data sets shows.
    if origin.simulated:
        who = "artificial" if not origin.people else "people and artificial"
        name += f" ({who} participants)"
        description = description or (
            "Pairs of sentences on which language models disagree, rated."
        )
        description = f"{origin.warning} {description}"
    metadata: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": name,
        "description": description
        or "Pairs of sentences on which language models disagree, and what people said of them.",
        "schemaVersion": "Psych-DS 1.5.1",
        "variableMeasured": variables,
    }
    if about.authors:
        metadata["author"] = [{"@type": "Person", "name": name} for name in about.authors]
    if about.licence:
        metadata["license"] = about.licence
    return metadata
