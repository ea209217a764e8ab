"""A Psych-DS data set of stimuli and, where there are any, responses and scores."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from contstim.errors import InputError, VerificationError
from contstim.experiments.platforms.cells import guarded
from contstim.experiments.platforms.folder import ExportFolder
from contstim.experiments.platforms.lists import check_trials
from contstim.experiments.platforms.psych_ds.checking import check_psych_ds
from contstim.experiments.platforms.psych_ds.variables import COLUMNS, variable
from contstim.experiments.responses.origin import ResponseOrigin, origin_of
from contstim.experiments.responses.table import SIMULATED, UNKNOWN, Response
from contstim.sentence import Sentence
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contstim.scores import ScoreTable
    from contstim.stimuli import Trial


@dataclass(frozen=True)
class Description:
    """What dataset_description.json says of the whole.

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


def export_psych_ds(
    trials: Sequence[Trial],
    out: Path | str,
    about: Description,
    *,
    responses: Sequence[Response] = (),
    scores: ScoreTable | None = None,
    keep_names: bool = False,
    simulated: bool = False,
) -> Path:
    """Write dataset_description.json, README.md, CHANGES.md and the tables in data/.

    Each table is `study-<name>_description-<stimuli|responses|scores>_data.csv`. Names of
    participants are replaced by numbers in order of their first response, because they may be those
    that a recruiting platform knows them by. The result is held against the rules of Psych-DS
    (`check_psych_ds`) before it is returned.

    Args:
        trials: a design's.
        out: the folder, new or of an earlier export.
        about: name, description, authors and licence of the data set.
        responses: of these trials.
        scores: of their sentences.
        keep_names: write the names of participants as they are.
        simulated: whether some responses may be, and are, those of artificial participants. Then
            name, description and README say so, and a column of the responses marks them.

    Raises:
        InputError: responses are simulated and `simulated` does not say so, or the other way
            round; the name has no letter or digit, a response is of no trial, the trials cannot be
            traced back, or the folder holds other files.
        VerificationError: the data set does not obey the rules.
    """
    study = re.sub(r"[^A-Za-z0-9]", "", about.name)
    if not study:
        raise InputError(f"The name {about.name!r} has no letter or digit, which file names need.")
    check_trials(trials)
    _check_known(trials, responses)
    origin = origin_of(responses)
    _check_origin(origin, simulated=simulated)
    about = _named(about, origin)
    folder = ExportFolder(out)
    tables = {"stimuli": [_cells(trial) for trial in trials]}
    if responses:
        named = responses if keep_names else _numbered(responses)
        tables["responses"] = [_cells(response, simulated=simulated) for response in named]
    models = scores.models if scores else ()
    if scores is not None:
        tables["scores"] = _score_rows(scores)
    for what, rows in tables.items():
        folder.rows(f"data/study-{study}_description-{what}_data.csv", rows, list(rows[0]))
    columns = dict.fromkeys(name for rows in tables.values() for name in rows[0])
    metadata = _metadata(about, [variable(name, model=name in models) for name in columns])
    folder.text("dataset_description.json", json.dumps(metadata, indent=2, ensure_ascii=False))
    folder.readme(
        "psych_ds.md",
        title=about.name,
        description=metadata["description"],
        tables="\n".join(f"* {what}: {counted(len(rows), 'row')}" for what, rows in tables.items()),
    )
    folder.text("CHANGES.md", "# Changes\n\nFirst version.\n")
    folder.text(".psychds-ignore", "export.meta.json\n")
    return _verified(
        folder.finish(
            "psych-ds",
            check=_verified,
            keep_names=keep_names,
            simulated_participants=origin.simulated,
        )
    )


def _verified(folder: Path) -> Path:
    errors = [str(one) for one in check_psych_ds(folder) if one.error]
    if errors:
        raise VerificationError("This is not a Psych-DS data set:\n" + "\n".join(errors))
    return folder


def _check_known(trials: Sequence[Trial], responses: Sequence[Response]) -> None:
    known = {trial.trial_id for trial in trials}
    stray = sorted({r.trial_id for r in responses if r.trial_id not in known})
    if stray:
        raise InputError(
            f"Responses to {counted(len(stray), 'trial')} beyond the table of trials: "
            f"{', '.join(stray[:5])}. Export them with the trials that were shown."
        )


def _check_origin(origin: ResponseOrigin, *, simulated: bool) -> None:
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


def _named(about: Description, origin: ResponseOrigin) -> Description:
    """What is said of the whole, with the artificial participants in its name."""
    if not origin.simulated:
        return about
    who = "artificial" if not origin.people else "people and artificial"
    said = about.description or "Pairs of sentences on which language models disagree, rated."
    return replace(
        about,
        name=f"{about.name} ({who} participants)",
        description=f"{origin.warning} {said}",
    )


def _numbered(responses: Sequence[Response]) -> list[Response]:
    """The responses under numbers: P1, P2, … for people, simulated-1, … for artificial ones."""
    names = dict.fromkeys(response.participant for response in responses)
    artificial = {response.participant for response in responses if response.simulated}
    width = len(str(len(names)))
    number = {
        name: f"{'simulated-' if name in artificial else 'P'}{place:0{width}}"
        for place, name in enumerate(names, start=1)
    }
    return [replace(one, participant=number[one.participant]) for one in responses]


def _cells(row: Trial | Response, *, simulated: bool = False) -> dict[str, Any]:
    """The fields of a row; texts guarded, unknown numbers empty."""
    names = [field.name for field in fields(row) if simulated or field.name != SIMULATED]
    return {name: _cell(name, getattr(row, name)) for name in names}


def _cell(name: str, value: Any) -> Any:
    if isinstance(value, str | Sentence):
        return guarded(str(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if value == UNKNOWN and name in ("rating", "left", "position") else value


def _score_rows(scores: ScoreTable) -> list[dict[str, Any]]:
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
            "sentence": guarded(sentence.text),
            **dict(zip(scores.models, map(float, row), strict=True)),
        }
        for sentence, row in zip(scores.sentences, scores.log_probs, strict=True)
    ]


def _metadata(about: Description, variables: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": about.name,
        "description": about.description
        or "Pairs of sentences on which language models disagree, and what people said of them.",
        "schemaVersion": "Psych-DS 1.5.1",
        "variableMeasured": variables,
    }
    if about.authors:
        found["author"] = [{"@type": "Person", "name": name} for name in about.authors]
    if about.licence:
        found["license"] = about.licence
    return found
