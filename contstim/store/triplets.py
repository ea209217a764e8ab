"""Triplets of a study: outcomes of searches by what was searched, and sentences of model pairs.

A result is kept under a key of all that decides it (models, natural sentence, words, settings), so
that a study that grows, shrinks or changes looks up what it has and searches the rest. What a study
was before is in one small table: which natural sentence stands in which slot of which pair of
models, and which result stands there.
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
"""State in which the search for a triplet ended."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a search: a triplet and the two ways to it, or the reason why there is none.

    A triplet whose three sentences are not all different has a reason besides. How long its
    searches took, and how much of that networks did, is not kept.

    Attributes:
        state: what became of the search.
        reason: see `Result`.
        triplet: what was found.
        trails: the way to each synthetic sentence, as `tasks.trail_of` tells it.
        wall_seconds: that searches took.
        network_seconds: within networks.
    """

    state: State
    reason: str = ""
    triplet: Triplet | None = None
    trails: tuple[dict[str, Any], ...] = ()
    wall_seconds: float = field(default=0.0, compare=False)
    network_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Result:
    """A kept outcome, without the way to it.

    Attributes:
        id: its number in the store; 0 before it is kept.
        base: a digest of all that decides it, but for the words that may not be put in.
        excluded: such words of the study, in lower case.
        model_1: as in the triplet.
        model_2: as in the triplet.
        natural: the sentence.
        state: what became of the search.
        reason: why there is no triplet, or why its sentences are not all different; else empty.
        triplet: what was found; None where nothing was.
        rows: sequences that passed through the two networks.
        tokens: tokens in them.
        searches: how many were made, both directions together.
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
        """True if the search found nothing new: the three sentences are not all different."""
        return self.triplet is not None and not self.triplet.distinct

    def holds(self, words: frozenset[str]) -> bool:
        """True if a word, in lower case, stands in one of its sentences."""
        sentences = [Sentence.parse(self.natural)]
        if self.triplet is not None:
            sentences += [self.triplet.synthetic_1, self.triplet.synthetic_2]
        return any(word.lower() in words for s in sentences for word in s.words)


@dataclass(frozen=True)
class AssignedSentence:
    """A natural sentence of a pair of models; fields are the columns of assignment.csv.

    Attributes:
        model_1: as in triplets.csv.
        model_2: as in triplets.csv.
        slot: from 0, the order in which the pair's sentences are searched; some are passed over.
        sentence: searched, passed over, or held ready.
    """

    model_1: str
    model_2: str
    slot: int
    sentence: Sentence


@dataclass(frozen=True)
class Slot(AssignedSentence):
    """The same, and what stands there.

    Attributes:
        result: the number of its result in the store; None where there is none yet.
        refused: words, in lower case, that were too many under a cap in that result: it does not
            stand, and the next search may not put them in.
        rejected: why its triplet is passed over for good: what reviewers said, or that its sentence
            was gone; empty where it is not.
    """

    result: int | None = None
    refused: frozenset[str] = frozenset()
    rejected: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """The two models."""
        return self.model_1, self.model_2


class TripletStore:
    """The triplets of a study, kept in its database, each with the way to it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.times = store.times

    def slots(self, seed: int) -> list[Slot]:
        """Natural sentences of all pairs of models, also of those left out, as they came."""
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
        """Keep slots, in place of what stood there.

        Raises:
            StoreError: a sentence stands in another slot, or the disk is full.
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
        """Keep a result, all of it or nothing, in place of one of the same search.

        Args:
            key: a digest of all that decides it, words that a cap excludes among them.
            result: what was found.
            trails: the way to it.

        Raises:
            StoreError: the disk is full, or the file cannot be written.
        """
        triplet = result.triplet
        columns = {each.name: getattr(result, each.name) for each in fields(Result)}
        columns |= {
            "id": None,  # the next one, or that of the result that stands there
            "key": key,
            "excluded": _text(result.excluded),
            "triplet": None if triplet is None else _as_json(triplet),
            "trails": json.dumps(trails),
        }
        again = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
        with self._store.transaction() as connection:
            ((number,),) = connection.execute(
                f"INSERT INTO result ({', '.join(columns)}) "
                f"VALUES ({', '.join('?' * len(columns))}) "
                f"ON CONFLICT (key) DO UPDATE SET {again} RETURNING id",
                [*columns.values()],
            ).fetchall()
        return replace(result, id=number)

    def find(self, key: str) -> Result | None:
        """The result of a search; None where there is none."""
        return next(iter(self._results("key = ?", key)), None)

    def results(self, seed: int) -> dict[int | None, Result]:
        """All results of slots, by their numbers."""
        some = self._results("id IN (SELECT result FROM assignment WHERE seed = ?)", seed)
        return {result.id: result for result in some}

    def triplets(self) -> list[Triplet]:
        """All triplets that were ever found, whether they stand or not."""
        some = self._results("triplet IS NOT NULL")
        return [result.triplet for result in some if result.triplet is not None]

    def _results(self, condition: str, *values: object) -> list[Result]:
        names = ", ".join(each.name for each in fields(Result))
        rows = self._store.rows(f"SELECT {names} FROM result WHERE {condition}", values)
        return [_result(*row) for row in rows]

    def floors(self, model: str, words: str, quantile: float) -> dict[int, float]:
        """Floors of plausibility, nats, by the number of words.

        Args:
            model: its fingerprint.
            words: a digest of the words that it lets a search use.
            quantile: of natural sentences.
        """
        rows = self._store.rows(
            "SELECT n_words, log_prob FROM floor WHERE model = ? AND words = ? AND quantile = ?",
            (model, words, quantile),
        )
        return dict(rows)

    def keep_floors(
        self, model: str, words: str, quantile: float, floors: Mapping[int, float]
    ) -> None:
        """Keep floors, to go on with them also where other sentences would make others."""
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO floor VALUES (?, ?, ?, ?, ?)",
                [(model, words, quantile, n, floor) for n, floor in floors.items()],
            )

    def entries(
        self, results: Iterable[Result], names: Mapping[str, str], kind: str
    ) -> dict[str, list[Any]]:
        """Every accepted step, scored candidate or frontier point of the searches for results.

        Columns, a row an entry, in order.

        Args:
            results: those of which the way is told.
            names: of models in the table, by those that they have in results.
            kind: `steps`, `evaluations`, or `frontier`, which only searches for few changes have.
        """
        rows = []
        for result in results:
            if result.triplet is None:
                continue
            # One after the other: all of them may not fit into memory
            ((trails,),) = self._store.rows("SELECT trails FROM result WHERE id = ?", (result.id,))
            rows += [
                (result.triplet.triplet_id, *models, number, *entry)
                for trail in json.loads(trails)
                for models in ([names.get(trail[role], trail[role]) for role in _ROLES],)
                for number, entry in enumerate(trail.get(kind, ()))
            ]
        every = ("triplet_id", *_ROLES, "number", *_ENTRIES[kind], *_LOG_PROBS)
        return {name: [row[i] for row in rows] for i, name in enumerate(every)}


def _text(words: frozenset[str]) -> str:
    return " ".join(sorted(words))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _as_json(triplet: Triplet) -> str:
    return json.dumps([getattr(triplet, each.name) for each in fields(Triplet)], default=str)


def _result(number: int, base: str, excluded: str, *row: Any) -> Result:
    first, second, natural, state, reason, triplet, *counts = row
    found = None
    if triplet is not None:
        texts = json.loads(triplet)
        found = Triplet(*texts[:3], *map(Sentence.parse, texts[3:6]), *texts[6:])
    models = (first, second, natural)
    return Result(number, base, _words(excluded), *models, state, reason, found, *counts)
