"""The results as tables: named columns of equal length."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis.reliability import ItemReliability, item_reliabilities
from contstim.files.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.run import Analysis
    from contstim.experiments.responses.table import ResponseOrigin
    from contstim.files.arrays import FloatArray
    from contstim.models.training_text import Contamination

Columns: TypeAlias = dict[str, list[Any]]
Row: TypeAlias = dict[str, Any]
"""A row of a table: column name → cell."""


def rows_table(rows: Iterable[Any]) -> Columns:
    """Return a table of rows, which all have the same type.

    A cell that contains a dataclass becomes several columns.
    """
    cells = [_cells(row) for row in rows]
    return {name: [row[name] for row in cells] for name in cells[0]} if cells else {}


def _cells(row: Any) -> Row:
    values = {f.name: getattr(row, f.name) for f in fields(row)} if is_dataclass(row) else row
    cells: Row = {}
    for name, value in values.items():
        if is_dataclass(value):
            # Each field of the inner record becomes a column with the field's name. Only the field
            # `value` of an `Estimate` gets the name of the outer field instead.
            cells |= {name if x == "value" else x: cell for x, cell in _cells(value).items()}
        else:
            cells[name] = value if value is None or isinstance(value, int | float) else str(value)
    return cells


def named_frame(tables: Mapping[str, Columns], name: str, of: str) -> DataFrame:
    """Return one table of an analysis; `of` names the analysis in messages.

    Raises:
        InputError: if there is no table of this name; the message lists the names.
    """
    if name not in tables:
        raise InputError(
            f"The table {name!r} does not exist in {of}; the tables are {', '.join(tables)}."
        )
    return frame_of(tables[name])


def with_origin(columns: Columns, origin: ResponseOrigin) -> Columns:
    """Add a column for the share of artificial participants if there are any."""
    # The share is a column, because a column remains if rows are copied, sorted or joined. A note
    # or a file name would be lost.
    rows = len(next(iter(columns.values()), ()))
    simulated = {"simulated_participants": [origin.share] * rows} if origin.simulated else {}
    return {**columns, **simulated}


def training_texts_table(seen: Mapping[str, Contamination | None]) -> Columns:
    """Count, for each model with a known training text, the natural sentences in this text."""
    return rows_table(
        {
            "model": model,
            "natural_sentences": overlap.sentences,
            "in_training_text": len(overlap.hashes),
            "share": overlap.share,
        }
        for model, overlap in seen.items()
        if overlap is not None
    )


def trials_table(ratings: Ratings) -> Columns:
    """Return a row for each rated trial: ratings, reliability, log-probability ratios (nats)."""
    reliabilities = item_reliabilities(ratings)
    unknown = dict.fromkeys(field.name for field in fields(ItemReliability))  # empty cells
    return rows_table(
        {
            "trial_id": trial.trial_id,
            "group": group.number,
            "condition": trial.condition,
            "model_1": trial.model_1,
            "model_2": trial.model_2,
            "sentence_1": trial.sentence_1.text,
            "sentence_2": trial.sentence_2.text,
            **{f"rated_{n}": int((rated == n).sum()) for n in ratings.scale.buttons},
            "mean_rating": float(rated.mean()),
            "share_sentence_2": float((1 + np.sign(rated - ratings.scale.middle)).mean() / 2),
            **(unknown if reliability is None else asdict(reliability)),
            **{f"log_ratio {model}": x for model, x in zip(ratings.models, ratios, strict=True)},
        }
        for group in ratings.groups
        for trial, trial_ratings, ratios in zip(
            group.trials, group.ratings.T, group.ratios.T.tolist(), strict=True
        )
        if len(rated := trial_ratings[~np.isnan(trial_ratings)])
        for reliability in [reliabilities[trial.trial_id]]
    )


def _rows_of_results(results: Iterable[Result], kind: str) -> Columns:
    return rows_table(
        {"scope": result.scope, "measure": result.measure.name, **_cells(row)}
        for result in results
        for row in getattr(result, kind)
    )


def _scores(result: Result, ratings: Ratings, *, by_group: bool) -> Iterator[Row]:
    scores = result.evaluation
    kinds = {"value": scores.values, "lower_ceiling": scores.lower, "upper_ceiling": scores.upper}
    numbers, first, sizes = np.unique(scores.groups, return_index=True, return_counts=True)
    people, n_trials = ratings.participants, scores.n_trials
    if by_group:
        # All participants of a group saw the same trials, so the numbers of trials of the group are
        # those of its first participant
        kinds = {name: scores.of_groups(kind) for name, kind in kinds.items()}
        n_trials = n_trials[first]
    for row, column in np.argwhere(n_trials).tolist():
        group = int(numbers[row] if by_group else scores.groups[row])
        yield {
            **({} if by_group else {"participant": people[row]}),
            "group": group,
            "scope": result.scope,
            "measure": result.measure.name,
            "model": scores.models[column],
            **{name: kind[row, column].item() for name, kind in kinds.items()},
            **({"n_participants": int(sizes[row])} if by_group else {}),
            "n_trials": n_trials[row, column].item(),
        }


def _matrices(kind: str, models: Sequence[str], matrices: Mapping[Any, FloatArray]) -> Row:
    """Return a table for each square matrix; the column `model` names the matrix's rows."""
    return {
        f"{kind}-{name}": {"model": [*models], **dict(zip(models, matrix.T.tolist(), strict=True))}
        for name, matrix in matrices.items()
    }


def result_tables(analysis: Analysis) -> dict[str, Columns]:
    """Return every table by name; a table without rows has no columns."""
    ratings, results = analysis.ratings, analysis.results
    return {
        "participants": rows_table(x for r in results for x in _scores(r, ratings, by_group=False)),
        "groups": rows_table(x for r in results for x in _scores(r, ratings, by_group=True)),
        "models": _rows_of_results(results, "models"),
        "comparisons": _rows_of_results(results, "comparisons"),
        "trivial_rivals": _rows_of_results(analysis.rivals, "models"),
        "against_rivals": _rows_of_results(analysis.rivals, "comparisons"),
        "model_pairs": rows_table(analysis.pairs),
        "paradigms": rows_table(analysis.paradigms),
        "roles": rows_table(analysis.roles),
        "unanimity": rows_table(analysis.unanimity),
        "trials": trials_table(ratings),
        "failures": rows_table(analysis.failures),
        "regressions": rows_table(analysis.regressions),
        "excluded": rows_table(
            {"participant": who, "reason": why} for who, why in analysis.admission.excluded.items()
        ),
        **_matrices("agreement", ratings.models, analysis.agreement),
        **_matrices("dominance", ratings.models, analysis.dominance),
    }
