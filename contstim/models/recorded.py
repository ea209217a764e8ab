"""Conventions of the models of a table of scores, from the record beside the table."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from contstim.documents import read_json_object
from contstim.errors import InputError
from contstim.models.base import Convention
from contstim.records import record_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def recorded_conventions(scores: Path | str, models: Iterable[str]) -> dict[str, Convention]:
    """The conventions of models, by name; without the models that the record lacks.

    Args:
        scores: the table; it may have no record.
        models: names of its columns.

    Raises:
        InputError: the record cannot be read, or is not that of a table of scores.
    """
    path = record_path(scores)
    if not path.exists():
        return {}
    entries = read_json_object(path).get("models", {})
    # an entry may say more, such as the specification that the model was loaded by
    names = [field.name for field in fields(Convention)]
    try:
        return {
            model: Convention(**{n: entries[model][n] for n in names if n in entries[model]})
            for model in models
            if model in entries
        }
    except TypeError as error:
        raise InputError(
            f"{path} is not the record of a table of scores: {error}. Score the sentences again, "
            f"or move the record away."
        ) from error


def require_log_probabilities(scores: Path | str, models: Iterable[str], purpose: str) -> None:
    """Refuse a table of scores whose record says that they are not log-probabilities.

    Args:
        scores: the table; without a record beside it, nothing is refused.
        models: names of the columns that are used.
        purpose: the work that needs log-probabilities, a noun phrase that begins a sentence.

    Raises:
        ModelError: the scores of a model have another unit; names it.
        InputError: see `recorded_conventions`.
    """
    # Columns that the record does not name may come from elsewhere, and pass
    for model, convention in recorded_conventions(scores, models).items():
        convention.require_log_probability(model, purpose)
