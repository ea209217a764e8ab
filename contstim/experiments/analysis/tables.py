"""The results as tables: named columns of equal length."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from contstim.experiments.analysis.reliability import ItemReliability, item_reliabilities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.arrays import FloatArray
    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.failures import Failure
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.run import Analysis
    from contstim.models.training_text import Contamination

Columns = dict[str, list[Any]]


def rows_table(rows: Sequence[Any], **before: object) -> Columns:
    """A column for each field of dataclass values; fields that are dataclasses are spread out."""
    return columns_of_records([{**before, **_cells(row)} for row in rows])


def columns_of_records(rows: Iterable[dict[str, Any]]) -> Columns:
    """Rows with the same keys, turned into columns."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def training_texts_table(seen: Mapping[str, Contamination | None]) -> Columns:
    """A row for each model whose training text is known: how many of the sentences it holds."""
    return columns_of_records(
        {
            "model": model,
            "natural_sentences": overlap.sentences,
            "in_training_text": len(overlap.hashes),
            "share": overlap.share,
        }
        for model, overlap in seen.items()
        if overlap is not None
    )


def participants_table(results: Iterable[Result], ratings: Ratings) -> Columns:
    """A row for each participant, scope, measure and model."""
    return columns_of_records(
        {
            "participant": name,
            "group": int(scores.groups[row]),
            "scope": str(result.scope),
            "measure": result.measure.name,
            "model": model,
            "value": float(scores.values[row, column]),
            "lower_ceiling": float(scores.lower[row, column]),
            "upper_ceiling": float(scores.upper[row, column]),
            "n_trials": int(scores.n_trials[row, column]),
        }
        for result in results
        for scores in [result.evaluation]
        for row, name in enumerate(ratings.participants)
        for column, model in enumerate(scores.models)
        if scores.n_trials[row, column]  # models that the scope does not evaluate have no row
    )


def groups_table(results: Iterable[Result]) -> Columns:
    """A row for each group, scope, measure and model: means over the group's participants."""
    return columns_of_records(
        {
            "group": int(number),
            "scope": str(result.scope),
            "measure": result.measure.name,
            "model": model,
            "value": float(values[row, column]),
            "lower_ceiling": float(lower[row, column]),
            "upper_ceiling": float(upper[row, column]),
            "n_participants": int((scores.groups == number).sum()),
            # everybody in a group saw the same trials, so that the first stands for all
            "n_trials": int(scores.n_trials[scores.groups == number][0, column]),
        }
        for result in results
        for scores in [result.evaluation]
        for values, lower, upper in [
            map(scores.of_groups, (scores.values, scores.lower, scores.upper))
        ]
        for row, number in enumerate(scores.group_numbers)
        for column, model in enumerate(scores.models)
        if scores.n_trials[scores.groups == number][0, column]
    )


def models_table(results: Iterable[Result]) -> Columns:
    """A row for each scope, measure and model."""
    return _results_table(results, "models")


def comparisons_table(results: Iterable[Result]) -> Columns:
    """A row for each scope, measure and contrast."""
    return _results_table(results, "comparisons")


def matrix_table(models: Sequence[str], matrix: FloatArray) -> Columns:
    """A square matrix with its rows' names in the column `model`."""
    # A column holds what stands below one model's name: a row of the transpose.
    return {"model": list(models), **dict(zip(models, matrix.T.tolist(), strict=True))}


def trials_table(ratings: Ratings) -> Columns:
    """A row for each trial: its ratings, how sure people are of it, every model's ratio (nats)."""
    reliabilities = item_reliabilities(ratings)
    unknown = dict.fromkeys(field.name for field in fields(ItemReliability))  # empty cells
    return columns_of_records(
        {
            "trial_id": trial.trial_id,
            "group": group.number,
            "condition": str(trial.condition),
            "model_1": trial.model_1,
            "model_2": trial.model_2,
            "sentence_1": trial.sentence_1.text,
            "sentence_2": trial.sentence_2.text,
            **{f"rated_{n}": int((rated == n).sum()) for n in ratings.scale.answers},
            "mean_rating": float(rated.mean()),
            "share_sentence_2": float((rated > ratings.scale.middle).mean()),
            **(unknown if reliability is None else asdict(reliability)),
            **{
                f"log_ratio {model}": float(group.ratios[row, column])
                for row, model in enumerate(ratings.models)
            },
        }
        for group in ratings.groups
        for column, trial in enumerate(group.trials)
        for rated in [group.ratings[:, column]]
        for reliability in [reliabilities[trial.trial_id]]
    )


def failures_table(rows: Iterable[Failure]) -> Columns:
    """A row for each failure: both sentences, their log-probabilities (nats), people's choices."""
    return columns_of_records(
        {
            "scope": str(failure.scope),
            "model": failure.model,
            "rival": failure.rival,
            "group": failure.group,
            "trial_id": failure.trial_id,
            "people_prefer": failure.people_prefer,
            "model_prefers": failure.model_prefers,
            "log_prob_people_prefer_model": failure.log_probs[0],
            "log_prob_model_prefers_model": failure.log_probs[1],
            "log_prob_people_prefer_rival": failure.log_probs[2],
            "log_prob_model_prefers_rival": failure.log_probs[3],
            "chose_people_prefer": failure.choices[0],
            "chose_model_prefers": failure.choices[1],
            "error": failure.error,
        }
        for failure in rows
    )


def _results_table(results: Iterable[Result], kind: str) -> Columns:
    return columns_of_records(
        {"scope": str(result.scope), "measure": result.measure.name, **_cells(row)}
        for result in results
        for row in getattr(result, kind)
    )


def _cells(row: Any) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if is_dataclass(value):
            # An interval's columns have their own names, the value of an `Estimate` its holder's
            cells |= {field.name if x == "value" else x: cell for x, cell in _cells(value).items()}
        else:
            cells[field.name] = value if isinstance(value, int | float) else str(value)
    return cells


def result_tables(analysis: Analysis) -> dict[str, Columns]:
    """Every table by its name; one without rows has no columns."""
    ratings, results = analysis.ratings, analysis.results
    return {
        "participants": participants_table(results, ratings),
        "groups": groups_table(results),
        "models": models_table(results),
        "comparisons": comparisons_table(results),
        "model_pairs": rows_table(analysis.pairs),
        "roles": rows_table(analysis.roles),
        "unanimity": rows_table(analysis.unanimity),
        "trials": trials_table(ratings),
        "failures": failures_table(analysis.failures),
        "regressions": rows_table(analysis.regressions),
        "excluded": rows_table(analysis.admission.excluded),
        **{
            f"{kind}-{condition}": matrix_table(ratings.models, matrix)
            for kind, matrices in (
                ("agreement", analysis.agreement),
                ("dominance", analysis.dominance),
            )
            for condition, matrix in matrices.items()
        },
    }
