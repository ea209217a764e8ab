"""An analysis in R: a table of ratings, a description of its columns, and a complete script.

The script recomputes accuracies and noise ceilings, and fits the mixed models of `contstim mixed`
with R's packages. The script prints its results next to contstim's results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.measures import ACCURACY, evaluate
from contstim.experiments.analysis.mixed.models import MixedSettings, fit_mixed
from contstim.experiments.analysis.ratings import TESTING, Scope, gather, scope_mask, scopes_of
from contstim.experiments.platforms.folder import ExportFolder, template
from contstim.experiments.platforms.platform import Exported, Exporter, Platform
from contstim.experiments.platforms.psych_ds import variable
from contstim.experiments.responses.admission import Exclusions, admit
from contstim.experiments.responses.table import NO_BREAK_SPACE, anonymise, cells_of, read_responses
from contstim.items.scale import DEGREES, Scale
from contstim.items.scores import ScoreTable
from contstim.options import AnswerScale, Help, Reads
from contstim.wording import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.responses.table import Response
    from contstim.items.stimuli import Trial

RATIO = "log_ratio "
"""Beginning of the names of columns with log-probability ratios; the name of a model follows."""

_TRIAL = "trial_id condition model_1 model_2 kind_1 kind_2 sentence_1 sentence_2".split()
_COLUMNS = ("participant", "simulated", "group", *_TRIAL, "left", "position", "rt_ms", "rating")
_ACCURACY = ("scope", "model", "accuracy", "lower_ceiling", "upper_ceiling")
_FIT = ("model", "log_likelihood", "estimate", "standard_error", "note")


@dataclass(frozen=True)
class RSettings(Exclusions):
    """Inputs of the analysis in addition to the trials."""

    responses: Annotated[Path, Reads("The responses of participants.", kind="responses")]
    scores: Annotated[
        Path,
        Reads(
            "Scores of the sentences of the trials, written by `score`.", kind="scores of trials"
        ),
    ]
    scale: AnswerScale = None
    keep_names: Annotated[bool, Help("Keep the participants' names; default: numbers.")] = False


def export_r(trials: Sequence[Trial], out: Path | str, settings: RSettings) -> Exported:
    """Write a table of ratings and an R script that analyses them.

    `Rscript analysis.R` prints accuracies, noise ceilings and mixed models next to contstim's
    results, and draws the accuracies. Participants who did not finish or failed catch trials are
    excluded, as in `contstim analyze`.

    Example: `contstim export r --trials trials.csv --responses responses.csv --scores scores.csv
    --out in-r`

    Raises:
        InputError: if a table cannot be read; if responses, trials and scores do not match; if all
            trials are catch trials; or if the folder contains other files.
    """
    folder = ExportFolder(out, "r")
    responses = read_responses(settings.responses, trials, scale=settings.scale)
    admission = admit(trials, responses, exclusions=settings)
    ratings = gather(trials, admission.responses, ScoreTable.from_file(settings.scores))
    answers = admission.responses if settings.keep_names else anonymise(admission.responses)
    rows = _rating_rows(ratings, answers)
    pair_columns = ["paradigm"] * any(trial.paradigm for trial in trials)
    columns = [*_COLUMNS, *pair_columns, *(RATIO + model for model in ratings.models)]
    folder.rows("ratings.csv", rows, columns)
    descriptions = [{"column": n, "description": _description(n, ratings.scale)} for n in columns]
    folder.rows("dictionary.csv", descriptions, ("column", "description"))
    folder.rows("accuracies.csv", _accuracy_rows(ratings), _ACCURACY)
    folder.rows("mixed.csv", _mixed_rows(ratings), _FIT)
    scale, script = ratings.scale, template("r_analysis.R")
    script = script.replace("middle <- 3.5", f"middle <- {scale.middle:g}")
    if not scale.buttons:
        script = script.replace("degrees <- NA", f"degrees <- {DEGREES}")
    folder.text("analysis.R", script)
    folder.readme(
        origin=f"{admission.origin.warning} " if admission.origin.warning else "",
        participants=quantity(len(ratings.participants), "participant"),
        trials=quantity(ratings.n_trials, "trial"),
        models=quantity(len(ratings.models), "model"),
        sided=f"{ratings.sided:,} of {ratings.size:,}",
        excluded=quantity(len(admission.excluded), "participant"),
    )
    return folder.finish(
        keep_names=settings.keep_names, simulated_participants=admission.origin.simulated
    )


def _rating_rows(ratings: Ratings, answers: Sequence[Response]) -> list[dict[str, object]]:
    names = [RATIO + model for model in ratings.models]
    trial_cells = {
        trial.trial_id: cells_of(trial, NO_BREAK_SPACE) | dict(zip(names, ratios, strict=True))
        for group in ratings.groups
        for trial, ratios in zip(group.trials, group.ratios.T.tolist(), strict=True)
    }
    return [trial_cells[answer.trial_id] | cells_of(answer, NO_BREAK_SPACE) for answer in answers]


def _description(column: str, scale: Scale) -> str:
    if not column.startswith(RATIO):
        return str(variable(column, scale=scale)["description"])
    return (
        f"log p(sentence_2) - log p(sentence_1) under the model {column.removeprefix(RATIO)}, nats;"
        " inf or -inf where one sentence is impossible."
    )


def _accuracy_rows(ratings: Ratings) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for scope in scopes_of(ratings):
        if scope is Scope.OVERALL:
            continue  # the script analyses each kind of trial separately
        masks = [scope_mask(group.trials, scope, ratings.models) for group in ratings.groups]
        scores = evaluate(ratings, ACCURACY, masks)
        # If no trial of a group evaluates a model, the group's value and ceilings for the model are
        # nan. Ceilings are also nan if the group has only one participant.
        values, lower, upper = (
            np.ma.masked_invalid(scores.of_groups(kind)).mean(axis=0).filled(np.nan).tolist()
            for kind in (scores.values, scores.lower, scores.upper)
        )
        for column, model in enumerate(ratings.models):
            if any(mask[column].any() for mask in masks):
                ceilings = (None if math.isnan(c[column]) else c[column] for c in (lower, upper))
                cells = (str(scope), model, values[column], *ceilings)
                rows.append(dict(zip(_ACCURACY, cells, strict=True)))
    if not rows:
        raise InputError(
            "All trials are catch trials, which do not evaluate models. Export a design with "
            "other trials."
        )
    return rows


def _mixed_rows(ratings: Ratings) -> list[dict[str, object]]:
    # If all ratings have the same degree of confidence (choices always do), the script fits
    # logistic models
    scale, degrees = ratings.scale, set[float]()
    for group in ratings.groups:
        rated = group.ratings[:, [trial.condition in TESTING for trial in group.trials]]
        grouped = scale.grouped(rated[np.isfinite(rated)])
        degrees.update(np.abs(grouped - scale.middle).tolist())
    settings = MixedSettings(link="logit" if len(degrees) == 1 else "probit")
    rows: list[dict[str, object]] = []
    for model in ratings.models:
        try:
            fit = fit_mixed(ratings, [model], settings)
        except InputError as error:
            rows.append({"model": model, "note": str(error)})
            continue
        coefficients = fit[model]
        standard_error = coefficients["estimate"].standard_error * coefficients["typical_ratio"]
        cells = (model, fit.log_likelihood, coefficients["typical_effect"], standard_error, "")
        rows.append(dict(zip(_FIT, cells, strict=True)))
    return rows


PLATFORM = Platform("r", Exporter(export_r, RSettings))
