"""What the record beside a table of scores says of its models."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from contstim.documents import read_json_object
from contstim.errors import InputError
from contstim.models.base import Convention
from contstim.records import record_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def recorded_conventions(scores: Path | str, models: Iterable[str]) -> dict[str, Convention]:
    """How the scores of models came about, by name; nothing of models without an entry.

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
    try:
        return {name: _convention(entries[name]) for name in models if name in entries}
    except TypeError as error:
        raise InputError(
            f"{path} is not the record of a table of scores: {error}. Score the sentences again, "
            f"or move the record away."
        ) from error


def _convention(entry: dict[str, Any]) -> Convention:
    """From an entry that may say more, such as the specification that the model was loaded by."""
    names = [field.name for field in fields(Convention)]
    return Convention(**{name: entry[name] for name in names if name in entry})


def require_log_probabilities(scores: Path | str, models: Iterable[str], purpose: str) -> None:
    """Refuse a table of scores whose record says that they are not log-probabilities.

    Args:
        scores: the table; without a record beside it nothing is known, and nothing refused.
        models: whose columns are to be used.
        purpose: what needs log-probabilities; a noun phrase that begins a sentence.

    Raises:
        ModelError: the scores of a model are something else; says what.
        InputError: see `recorded_conventions`.
    """
    for model, convention in recorded_conventions(scores, models).items():
        convention.require_log_probability(model, purpose)
