"""Read the trails of stored searches, so that tests can compare them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from contstim.store import Result, Store

_ROLES = ("accept", "reject")
_ENTRIES = {
    "steps": ("round", "visit", "position", "old", "new", "sentence"),
    "evaluations": ("visit", "position", "word", "sentence"),
}
_LOG_PROBS = ("log_prob_accept", "log_prob_reject")


def entries(
    store: Store, results: Iterable[Result], names: Mapping[str, str], kind: str
) -> dict[str, list[Any]]:
    """Return every accepted step or scored candidate of the searches.

    The result maps column names to columns, with one row per entry, in order.

    Args:
        store: store of the results.
        results: results of the searches.
        names: names of models in the table, by their names in results.
        kind: `steps` or `evaluations`.
    """
    rows = []
    for result in results:
        if result.triplet is None:
            continue
        ((trails,),) = store.rows("SELECT trails FROM result WHERE id = ?", (result.id,))
        rows += [
            (result.triplet.triplet_id, *models, number, *entry)
            for trail in json.loads(trails)
            for models in ([names.get(trail[role], trail[role]) for role in _ROLES],)
            for number, entry in enumerate(trail[kind])
        ]
    columns = ("triplet_id", *_ROLES, "number", *_ENTRIES[kind], *_LOG_PROBS)
    return {name: [row[i] for row in rows] for i, name in enumerate(columns)}
