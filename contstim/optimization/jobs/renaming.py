"""A study's findings under the names that the user gave its models.

Searches and what a store keeps know models by their specifications, so that another name costs no
search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.models.specifications import NamedSpecification
    from contstim.optimization.jobs.triplets import Found


def renamed(found: Found, given: Iterable[NamedSpecification]) -> Found:
    """The same with each model's name for its specification."""
    names = {one.specification: one.name for one in given}

    def rename(rows: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            replace(row, model_1=names[row.model_1], model_2=names[row.model_2]) for row in rows
        )

    return replace(
        found,
        triplets=rename(found.triplets),
        unchanged=rename(found.unchanged),
        failures=rename(found.failures),
        pairs=rename(found.pairs),
        conventions={names[one]: how for one, how in found.conventions.items()},
        training_texts={names[one]: text for one, text in found.training_texts.items()},
    )


def rename_columns(
    columns: dict[str, list[Any]], given: Sequence[NamedSpecification]
) -> dict[str, list[Any]]:
    """A table with each model's name for its specification in the columns accept and reject."""
    names = {one.specification: one.name for one in given}
    return {
        column: [names[cell] for cell in cells] if column in ("accept", "reject") else cells
        for column, cells in columns.items()
    }
