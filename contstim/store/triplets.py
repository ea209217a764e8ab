"""Triplets of a study: cached results of searches, and plausibility floors.

The key of a result is a digest of everything that determines the result: models, natural sentence,
words and settings. After the study file changes, all results with unchanged keys are reused. A
plausibility floor is the lowest plausible log-probability under a model (see
`contstim.optimization.jobs.floors`).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from contstim.items.stimuli import Triplet
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.store.database import Store


State: TypeAlias = Literal["found", "inadmissible", "failed"]
"""Final state of a search; `inadmissible` means that the natural sentence is unsuitable."""

# In the table `floor`, a row with this quantile and 0 words contains the standard deviation of
# scores. A separate table would change the layout, and earlier stores could not be read
_SD = -1.0


@dataclass(frozen=True)
class Result:
    """The result of a search for a triplet.

    Attributes:
        id: number of the result in the store; 0 for a result that is not stored.
        reason: why there is no triplet, or why two sentences of the triplet are equal; otherwise
            empty.
        rows: number of sequences that the two networks processed.
        tokens: number of tokens in these sequences.
        searches: number of searches for the first and for the second synthetic sentence, together.
        trails: steps and costs of the search for each synthetic sentence; see `trail_of` in
            `contstim.optimization.jobs.tasks`. `keep` stores them; `find` does not read them, and
            returns empty trails.
        wall_seconds: duration of the searches, not stored.
        network_seconds: time within networks, not stored.
    """

    id: int
    model_1: str
    model_2: str
    natural: str
    state: State
    reason: str
    triplet: Triplet | None
    rows: int
    tokens: int
    searches: int
    trails: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    wall_seconds: float = field(default=0.0, compare=False)
    network_seconds: float = field(default=0.0, compare=False)

    @property
    def is_unsuccessful(self) -> bool:
        """True if at least two of the three sentences of the triplet are equal."""
        return self.triplet is not None and not self.triplet.distinct

    @property
    def is_skipped(self) -> bool:
        """True if the natural sentence is unsuitable (inadmissible), or the search is unsuccessful.

        In this case, the study uses another natural sentence.
        """
        return self.state == "inadmissible" or self.is_unsuccessful


# Columns that `find` reads: all except `trails`, which is long. `wall_seconds` and
# `network_seconds` are not stored, so they have no columns
_COLUMNS = [column.name for column in fields(Result) if column.compare]


class TripletStore:
    """The triplets of a study in its database, with the trails (steps and costs) of searches."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.times = store.times

    def keep(self, key: str, result: Result) -> Result:
        """Store a result in one transaction; return it with its number, without its trails.

        An earlier result with the same key is replaced.

        Raises:
            StoreError: if the disk is full, or the file cannot be written.
        """
        triplet = result.triplet
        columns = {name: getattr(result, name) for name in _COLUMNS}
        columns |= {
            "id": None,  # the database chooses the number
            "key": key,
            "triplet": None if triplet is None else _as_json(triplet),
            "trails": json.dumps(result.trails),
        }
        updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
        with self._store.transaction() as connection:
            ((number,),) = connection.execute(
                f"INSERT INTO result ({', '.join(columns)}) "
                f"VALUES ({', '.join('?' * len(columns))}) "
                f"ON CONFLICT (key) DO UPDATE SET {updates} RETURNING id",
                [*columns.values()],
            ).fetchall()
        return replace(result, id=number, trails=())

    def find(self, key: str) -> Result | None:
        """Return the stored result with a key; None if there is none."""
        query = f"SELECT {', '.join(_COLUMNS)} FROM result WHERE key = ?"
        rows = self._store.rows(query, (key,))
        return _result(dict(zip(_COLUMNS, rows[0], strict=True))) if rows else None

    def refused_shares(self, results: Iterable[Result]) -> dict[str, float]:
        """Return judge → share of the judged sentences that only this judge refused.

        A judge is a language model that chooses sensible sentences. Only searches for few new words
        have judges.
        """
        rows = self._store.rows(
            "SELECT json_extract(trail.value, '$.choice.judged'), "
            "json_extract(trail.value, '$.choice.refused') "
            "FROM result, json_each(result.trails) AS trail "
            "WHERE result.id IN (SELECT value FROM json_each(?))",
            (json.dumps([result.id for result in results]),),
        )
        n_judged, refused = 0, Counter[str]()
        for judged, by_judge in rows:
            n_judged += judged or 0
            refused.update(json.loads(by_judge or "{}"))
        return {judge: n / n_judged for judge, n in refused.items()} if n_judged else {}

    def naturals(self) -> set[str]:
        """Return the natural sentences of all stored searches."""
        return {text for (text,) in self._store.rows("SELECT DISTINCT natural FROM result")}

    def panel(self) -> list[str] | None:
        """Return the fingerprints (digests) of the default judges; None if not chosen yet."""
        rows = self._store.rows("SELECT fingerprint FROM panel ORDER BY fingerprint")
        return [name for (name,) in rows if name] if rows else None

    def keep_panel(self, fingerprints: Sequence[str]) -> None:
        """Store the fingerprints of the default judges."""
        with self._store.transaction() as connection:
            # An empty text records that the choice was made, and that there are no judges
            rows = [(name,) for name in fingerprints or [""]]
            connection.executemany("INSERT INTO panel VALUES (?)", rows)

    def floors(self, model: str, words: str, quantile: float) -> dict[int, float]:
        """Return number of words → plausibility floor, nats.

        `model` is a fingerprint, and `words` a digest of the words that a search may use. A floor
        is a quantile (with level `quantile`) of scores of natural sentences with equal length.
        """
        rows = self._store.rows(
            "SELECT n_words, log_prob FROM floor WHERE model = ? AND words = ? AND quantile = ?",
            (model, words, quantile),
        )
        return dict(rows)

    def keep_floors(
        self, model: str, words: str, quantile: float, floors: Mapping[int, float]
    ) -> None:
        """Store floors; later runs use the same floors, even if the natural sentences change."""
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO floor VALUES (?, ?, ?, ?, ?)",
                [(model, words, quantile, n, floor) for n, floor in floors.items()],
            )

    def natural_sd(self, model: str, words: str) -> float | None:
        """Return the standard deviation of the scores of natural sentences; None if not stored."""
        return self.floors(model, words, _SD).get(0)

    def keep_natural_sd(self, model: str, words: str, sd: float) -> None:
        """Store the value of `natural_sd`; later runs use it, even if the sentences change."""
        self.keep_floors(model, words, _SD, {0: sd})


def _as_json(triplet: Triplet) -> str:
    return json.dumps([getattr(triplet, column.name) for column in fields(Triplet)], default=str)


def _result(columns: dict[str, Any]) -> Result:
    if columns["triplet"] is not None:
        values = json.loads(columns["triplet"])
        values[3:6] = map(Sentence.parse, values[3:6])
        # Earlier versions stored fewer fields
        names = (column.name for column in fields(Triplet))
        columns["triplet"] = Triplet(**dict(zip(names, values, strict=False)))
    return Result(**columns)
