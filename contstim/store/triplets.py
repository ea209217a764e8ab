"""Triplets of a study: cached results of searches, and natural sentences of model pairs.

A result is stored under a key of everything that determines it (models, natural sentence, words,
settings). A study that grows, shrinks or changes thus reuses existing results and searches only for
the rest. The state of a study is one small table. For each pair of models and slot, it has the
natural sentence and the assigned result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from contstim.items.stimuli import Triplet
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.store.database import Store

_ROLES = ("accept", "reject")
_ENTRIES = {
    "steps": ("round", "visit", "position", "old", "new", "sentence"),
    "evaluations": ("visit", "position", "word", "sentence"),
    "frontier": ("changed", "drop", "sentence"),
}
_LOG_PROBS = ("log_prob_accept", "log_prob_reject")


State: TypeAlias = Literal["found", "inadmissible", "failed"]
"""Final state of the search for a triplet."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a search: a triplet and the trails of its sentences, or the reason for none.

    A triplet whose three sentences are not all different also has a reason. The times are not
    stored.

    Attributes:
        state: final state of the search.
        reason: see `Result`.
        triplet: triplet found by the search.
        trails: trail of the search for each synthetic sentence, see `tasks.trail_of`.
        wall_seconds: duration of the searches.
        network_seconds: time within networks.
    """

    state: State
    reason: str = ""
    triplet: Triplet | None = None
    trails: tuple[dict[str, Any], ...] = ()
    wall_seconds: float = field(default=0.0, compare=False)
    network_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Result:
    """A stored outcome, without its trails.

    Attributes:
        id: number in the store; 0 before it is stored.
        base: digest of everything that determines it, except the excluded words.
        excluded: words, in lower case, that the search must not insert.
        model_1: first model, as in the triplet.
        model_2: second model, as in the triplet.
        natural: natural sentence.
        state: final state of the search.
        reason: why there is no triplet or its sentences are not all different; otherwise empty.
        triplet: triplet found by the search; None if there is none.
        rows: sequences processed by the two networks.
        tokens: tokens in these sequences.
        searches: number of searches, both directions together.
    """

    id: int
    base: str
    excluded: frozenset[str]
    model_1: str
    model_2: str
    natural: str
    state: State
    reason: str
    triplet: Triplet | None
    rows: int
    tokens: int
    searches: int

    @property
    def in_vain(self) -> bool:
        """True if the search found no new triplet: the three sentences are not all different."""
        return self.triplet is not None and not self.triplet.distinct

    def holds(self, words: frozenset[str]) -> bool:
        """True if one of the sentences contains one of the words, which are in lower case."""
        sentences = [Sentence.parse(self.natural)]
        if self.triplet is not None:
            sentences += [self.triplet.synthetic_1, self.triplet.synthetic_2]
        return any(word.lower() in words for s in sentences for word in s.words)


@dataclass(frozen=True)
class AssignedSentence:
    """A natural sentence assigned to a pair of models; fields are the columns of assignment.csv.

    Attributes:
        model_1: first model, as in triplets.csv.
        model_2: second model, as in triplets.csv.
        slot: position in the pair's search order, from 0; some slots are skipped.
        sentence: natural sentence, which may be searched, skipped, or in reserve.
    """

    model_1: str
    model_2: str
    slot: int
    sentence: Sentence


@dataclass(frozen=True)
class Slot(AssignedSentence):
    """An assigned sentence and its result.

    Attributes:
        result: number of its result in the store; None if there is none yet.
        refused: words, in lower case, that exceeded a cap in that result. The result is then not
            valid, and the next search must not insert these words.
        rejected: why its triplet is skipped permanently: a reviewer's reason, or a sentence that
            was removed; otherwise empty.
    """

    result: int | None = None
    refused: frozenset[str] = frozenset()
    rejected: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Names of the two models."""
        return self.model_1, self.model_2


class TripletStore:
    """The triplets of a study in its database, with their trails."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.times = store.times

    def slots(self, seed: int) -> list[Slot]:
        """Return the slots of all pairs of models, also of pairs no longer in the study."""
        rows = self._store.rows(
            "SELECT model_1, model_2, slot, sentence, result, refused, rejected FROM assignment "
            "WHERE seed = ? ORDER BY rowid",
            (seed,),
        )
        return [
            Slot(first, second, slot, Sentence.parse(text), result, _words(refused), rejected)
            for first, second, slot, text, result, refused, rejected in rows
        ]

    def assign(self, seed: int, slots: Iterable[Slot]) -> None:
        """Store slots, and replace existing ones.

        Raises:
            StoreError: if another slot has the same sentence, or the disk is full.
        """
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT INTO assignment VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (seed, model_1, model_2, slot) DO UPDATE SET "
                "sentence = excluded.sentence, result = excluded.result, "
                "refused = excluded.refused, rejected = excluded.rejected",
                [
                    (seed, *s.pair, s.slot, s.sentence.text, s.result, _text(s.refused), s.rejected)
                    for s in slots
                ],
            )

    def keep(self, key: str, result: Result, trails: Sequence[Mapping[str, Any]]) -> Result:
        """Store a result in one transaction, and replace an earlier result of the same search.

        Args:
            key: digest of everything that determines it, including words excluded by a cap.
            result: result of the search.
            trails: trails of its searches.

        Raises:
            StoreError: if the disk is full, or the file cannot be written.
        """
        triplet = result.triplet
        columns = {column.name: getattr(result, column.name) for column in fields(Result)}
        columns |= {
            "id": None,  # a new number, or that of the replaced result
            "key": key,
            "excluded": _text(result.excluded),
            "triplet": None if triplet is None else _as_json(triplet),
            "trails": json.dumps(trails),
        }
        updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
        with self._store.transaction() as connection:
            ((number,),) = connection.execute(
                f"INSERT INTO result ({', '.join(columns)}) "
                f"VALUES ({', '.join('?' * len(columns))}) "
                f"ON CONFLICT (key) DO UPDATE SET {updates} RETURNING id",
                [*columns.values()],
            ).fetchall()
        return replace(result, id=number)

    def find(self, key: str) -> Result | None:
        """Return the result of a search; None if there is none."""
        return next(iter(self._results("key = ?", key)), None)

    def results(self, seed: int) -> dict[int | None, Result]:
        """Return all results of slots, by number."""
        results = self._results("id IN (SELECT result FROM assignment WHERE seed = ?)", seed)
        return {result.id: result for result in results}

    def triplets(self) -> list[Triplet]:
        """Return all triplets that were ever found, valid or not."""
        results = self._results("triplet IS NOT NULL")
        return [result.triplet for result in results if result.triplet is not None]

    def _results(self, condition: str, *values: object) -> list[Result]:
        names = ", ".join(column.name for column in fields(Result))
        rows = self._store.rows(f"SELECT {names} FROM result WHERE {condition}", values)
        return [_result(*row) for row in rows]

    def floors(self, model: str, words: str, quantile: float) -> dict[int, float]:
        """Return plausibility floors, nats, by number of words.

        Args:
            model: fingerprint of the model.
            words: digest of the words that a search may use.
            quantile: quantile of natural sentences.
        """
        rows = self._store.rows(
            "SELECT n_words, log_prob FROM floor WHERE model = ? AND words = ? AND quantile = ?",
            (model, words, quantile),
        )
        return dict(rows)

    def keep_floors(
        self, model: str, words: str, quantile: float, floors: Mapping[int, float]
    ) -> None:
        """Store floors, so that later runs with other sentences use the same ones."""
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO floor VALUES (?, ?, ?, ?, ?)",
                [(model, words, quantile, n, floor) for n, floor in floors.items()],
            )

    def entries(
        self, results: Iterable[Result], names: Mapping[str, str], kind: str
    ) -> dict[str, list[Any]]:
        """Return every accepted step, scored candidate or frontier point of the searches.

        The result maps column names to columns, with one row per entry, in order.

        Args:
            results: results of the searches.
            names: names of models in the table, by their names in results.
            kind: `steps`, `evaluations`, or `frontier` (only in searches for few changes).
        """
        rows = []
        for result in results:
            if result.triplet is None:
                continue
            # One result at a time: all trails may not fit into memory
            ((trails,),) = self._store.rows("SELECT trails FROM result WHERE id = ?", (result.id,))
            rows += [
                (result.triplet.triplet_id, *models, number, *entry)
                for trail in json.loads(trails)
                for models in ([names.get(trail[role], trail[role]) for role in _ROLES],)
                for number, entry in enumerate(trail.get(kind, ()))
            ]
        columns = ("triplet_id", *_ROLES, "number", *_ENTRIES[kind], *_LOG_PROBS)
        return {name: [row[i] for row in rows] for i, name in enumerate(columns)}


def _text(words: frozenset[str]) -> str:
    return " ".join(sorted(words))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _as_json(triplet: Triplet) -> str:
    return json.dumps([getattr(triplet, column.name) for column in fields(Triplet)], default=str)


def _result(number: int, base: str, excluded: str, *row: Any) -> Result:
    first, second, natural, state, reason, triplet, *counts = row
    parsed = None
    if triplet is not None:
        texts = json.loads(triplet)
        parsed = Triplet(*texts[:3], *map(Sentence.parse, texts[3:6]), *texts[6:])
    models = (first, second, natural)
    return Result(number, base, _words(excluded), *models, state, reason, parsed, *counts)
