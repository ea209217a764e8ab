"""A study's triplets: the settings they were made with, each job's outcome, and the way to it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any

from contstim.errors import StoreError
from contstim.sentence import Sentence
from contstim.stimuli import Triplet

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from contstim.store.database import Database

# Behind the identifier, two models and three sentences: six log-probabilities, and Eq. 4's value
_SCORES = tuple(field.name for field in fields(Triplet)[6:])
_TRIPLET = f"triplet_id, model_1, model_2, natural, synthetic_1, synthetic_2, {', '.join(_SCORES)}"
_STEP = "round, visit, position, old, new, sentence, log_prob_accept, log_prob_reject"
_EVALUATION = "visit, position, word, sentence, log_prob_accept, log_prob_reject"
_FROM_SEARCH = (
    "JOIN search ON search.id = search JOIN job ON job.id = job JOIN triplet USING (job) "
    # A triplet that reviewers rejected stays in the store, and is in no table
    "WHERE state = 'found'"
)


class JobState(StrEnum):
    """State in which a job ended."""

    FOUND = "found"
    INADMISSIBLE = "inadmissible"
    FAILED = "failed"


@dataclass(frozen=True)
class Trail:
    """The way to one synthetic sentence, as plain values.

    Attributes:
        accept: the accept model's name.
        reject: the reject model's name.
        visits: how many positions were visited.
        ending: why the search ended.
        costs: (rows, tokens, calls) of each model's network, by its name.
        steps: (round, visit, position, old, new, sentence, log p accept, log p reject) of each
            accepted replacement, in order; nats. Within a round each begins where the one before
            ended; a new round begins from a changed copy of the best sentence so far, which is
            itself a step where it is better: of several new words the last is named.
        evaluations: (visit, position, word, sentence, log p accept, log p reject) of each candidate
            that was scored exactly, in order; nan for a model that was not asked.
        searches: (seed, loss, gain, visits, rows, tokens) of each search from the natural
            sentence, in order; all else is about the best of them, but for the costs, which are
            those of all. None where the trail was kept before there were several.
    """

    accept: str
    reject: str
    visits: int
    ending: str
    costs: Mapping[str, tuple[int, int, int]]
    steps: tuple[tuple[int, int, int, str, str, str, float, float], ...]
    evaluations: tuple[tuple[int, int, str, str, float, float], ...]
    searches: tuple[tuple[int, float, float, int, int, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """Outcome of a job: a triplet and the two ways to it, or the reason why there is none.

    A triplet whose three sentences are not all different has a reason besides. How long its
    searches took, and how much of that networks did, is not kept.
    """

    state: JobState
    reason: str = ""
    triplet: Triplet | None = None
    trails: tuple[Trail, ...] = ()
    wall_seconds: float = field(default=0.0, compare=False)
    network_seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Job:
    """One natural sentence for one pair of models, and what became of it.

    Attributes:
        model_1: as in the triplet.
        model_2: as in the triplet.
        place: the sentence's place, from 0, among those assigned to the pair.
        natural: the sentence.
        state: what became of it.
        reason: why there is no triplet, or why its sentences are not all different; else empty.
    """

    model_1: str
    model_2: str
    place: int
    natural: str
    state: JobState
    reason: str


@dataclass(frozen=True)
class Decisions:
    """Decisions about triplets under a cap on words; by their models and places.

    Attributes:
        accepted: those that stay.
        refused: words that the next search of a refused one may not put in, in lower case.
        wave_end: how many triplets each pair is to have after the present wave; 0 before the first.
    """

    accepted: frozenset[tuple[str, str, int]]
    refused: Mapping[tuple[str, str, int], frozenset[str]]
    wave_end: int


@dataclass(frozen=True)
class StoreEdit:
    """Edit of a store: what is written, and what is dropped, together with a study's settings.

    Attributes:
        assigned: (model_1, model_2, place, natural sentence) of all pairs, in place of those kept
            before.
        may_change: names of the settings that may have any value, or none.
        renewed: pairs of models whose jobs are dropped, but for those that reviewers rejected.
        replaced: jobs that are dropped, by their models and places.
        restarts_waves: whether waves under a cap on words begin anew; see `Decisions.wave_end`.
    """

    assigned: Sequence[tuple[str, str, int, str]] = ()
    may_change: Collection[str] = ()
    renewed: Collection[tuple[str, str]] = ()
    replaced: Collection[tuple[str, str, int]] = ()
    restarts_waves: bool = False


class TripletStore:
    """The triplets of one study, kept in its database, each job's with the way to it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def settings(self) -> dict[str, str]:
        """Name and value of the settings kept before; none in a new store."""
        return dict(self._database.rows("SELECT name, value FROM setting"))

    def settle(
        self,
        settings: Mapping[str, str],
        *,
        may_grow: frozenset[str],
        may_gain: frozenset[str] = frozenset(),
        edit: StoreEdit | None = None,
    ) -> None:
        """Keep the study's settings, or make sure that they are the ones kept before.

        Settings and all that goes with them are written together or not at all, so that no result
        ever stands beside settings that it was not made with.

        Args:
            settings: name and value of all that decides which triplets are found.
            may_grow: names of numbers that may be larger than before.
            may_gain: names of lists, words set apart by spaces, that may have more than before.
            edit: what else is written and dropped.

        Raises:
            StoreError: the triplets kept here were made with other settings; shows each difference.
        """
        stored = self.settings()
        may_change = () if edit is None else edit.may_change

        def agree(name: str) -> bool:
            before, now = stored.get(name), settings.get(name)
            if name in may_gain:
                return {*(before or "").split()} <= {*(now or "").split()}
            return _agree(before, now, name in may_grow)

        different = [
            f"  {name}: {stored.get(name, '(none)')} → {settings.get(name, '(none)')}"
            for name in dict.fromkeys((*stored, *settings))
            # A new store has no settings, and agrees with any
            if stored and name not in may_change and not agree(name)
        ]
        if different:
            raise StoreError(
                f"{self._database.path} holds triplets made with other settings (kept → given):\n"
                + "\n".join(different)
                + "\nGive the kept settings to go on, or name another file with --store."
            )
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM setting")
            connection.executemany("INSERT INTO setting VALUES (?, ?)", list(settings.items()))
            if edit is not None:
                _apply(connection, edit)

    def assignments(self) -> dict[tuple[str, str], dict[int, str]]:
        """The natural sentences of each pair of models, by their places.

        None in a new store, and in one that was made before they were kept.
        """
        assigned: dict[tuple[str, str], dict[int, str]] = {}
        for model_1, model_2, place, sentence in self._database.rows(
            "SELECT model_1, model_2, place, sentence FROM assignment "
            "ORDER BY model_1, model_2, place"
        ):
            assigned.setdefault((model_1, model_2), {})[place] = sentence
        return assigned

    def assign(self, assigned: Iterable[tuple[str, str, int, str]]) -> None:
        """Keep further natural sentences of pairs of models: (model_1, model_2, place, sentence).

        Raises:
            StoreError: a pair has that place, or some pair that sentence; the disk is full.
        """
        with self._database.transaction() as connection:
            connection.executemany("INSERT INTO assignment VALUES (?, ?, ?, ?)", assigned)

    def rejected(self) -> frozenset[tuple[str, str, int]]:
        """The jobs, by their models and places, whose triplets reviewers rejected."""
        rows = self._database.rows(
            "SELECT model_1, model_2, place FROM job JOIN triplet ON job = id "
            "WHERE state = 'inadmissible'"
        )
        return frozenset(map(tuple, rows))

    def models(self) -> list[str]:
        """The models of the settings kept before, in their order; none in a new store."""
        settings = self.settings()
        # Settings are texts by name: "model 1", "model 2", … stand for a list
        numbers = takewhile(lambda number: f"model {number}" in settings, count(1))
        return [settings[f"model {number}"] for number in numbers]

    def keep(self, pair: tuple[str, str], place: int, natural: str, outcome: Outcome) -> None:
        """Keep what became of a job, all of it or nothing.

        Raises:
            StoreError: the disk is full, the file cannot be written, or the job is kept already.
        """
        with self._database.transaction() as connection:
            job = connection.execute(
                "INSERT INTO job (model_1, model_2, place, natural, state, reason) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*pair, place, natural, outcome.state, outcome.reason),
            ).lastrowid
            if outcome.triplet is not None:
                triplet = outcome.triplet
                values = [getattr(triplet, name) for name in _SCORES]
                texts = (str(triplet.synthetic_1), str(triplet.synthetic_2))
                connection.execute(
                    f"INSERT INTO triplet VALUES (?, ?, ?, ?{', ?' * len(values)})",
                    (job, triplet.triplet_id, *texts, *values),
                )
            for trail in outcome.trails:
                _insert_trail(connection, job, trail)

    def jobs(self) -> list[Job]:
        """Every kept job, in the order of the models' names and the places."""
        rows = self._database.rows(
            "SELECT model_1, model_2, place, natural, state, reason FROM job "
            "ORDER BY model_1, model_2, place"
        )
        return [Job(m1, m2, place, text, JobState(s), why) for m1, m2, place, text, s, why in rows]

    def forget_failures(self) -> int:
        """Drop the jobs that failed, so that they are tried again; how many they were."""
        with self._database.transaction() as connection:
            jobs = connection.execute("SELECT id FROM job WHERE state = 'failed'").fetchall()
            _delete_jobs(connection, jobs)
        return len(jobs)

    def reject(self, reasons: Mapping[str, str]) -> None:
        """Pass over the natural sentences of triplets that reviewers rejected, for good.

        Args:
            reasons: why, by the triplet's identifier.
        """
        with self._database.transaction() as connection:
            connection.executemany(
                "UPDATE job SET state = 'inadmissible', reason = ? WHERE state = 'found' "
                "AND id IN (SELECT job FROM triplet WHERE triplet_id = ?)",
                [(reason, triplet_id) for triplet_id, reason in reasons.items()],
            )
            connection.execute(
                "DELETE FROM accepted WHERE job IN (SELECT id FROM job WHERE state != 'found' "
                "AND state != 'failed')"
            )

    def forget_holding(self, words: frozenset[str]) -> int:
        """Drop the jobs that hold a word in one of their sentences; how many they were.

        Their triplets are remembered as gone: see `triplets`.

        Args:
            words: in lower case.
        """
        rows = self._database.rows(
            "SELECT id, natural, synthetic_1, synthetic_2 FROM job LEFT JOIN triplet ON job = id "
            "WHERE state != 'inadmissible'"
        )
        jobs = [
            (job,)
            for job, *texts in rows
            if any(
                word.lower() in words
                for text in filter(None, texts)
                for word in Sentence.parse(text).words
            )
        ]
        with self._database.transaction() as connection:
            _forget_jobs(connection, jobs)
        return len(jobs)

    def triplets(self, *, with_gone: bool = False) -> list[Triplet]:
        """All triplets, in the order of the models' names and the jobs' places.

        Args:
            with_gone: also those that reviewers rejected, and, last, those that were dropped since
                they hold an excluded word or the study has changed.
        """
        which = "" if with_gone else "WHERE state = 'found' "
        rows = self._database.rows(
            f"SELECT {_TRIPLET} FROM triplet JOIN job ON job.id = job {which}"
            "ORDER BY model_1, model_2, place"
        )
        if with_gone:
            rows += self._database.rows(f"SELECT {_TRIPLET} FROM gone")
        return [Triplet(*row[:3], *map(Sentence.parse, row[3:6]), *row[6:]) for row in rows]

    def triplets_by_place(self) -> dict[tuple[str, str, int], Triplet]:
        """All triplets that reviewers did not reject, by their models and places."""
        places = self._database.rows(
            "SELECT triplet_id, model_1, model_2, place FROM triplet JOIN job ON job.id = job "
            "WHERE state = 'found'"
        )
        triplets = {triplet.triplet_id: triplet for triplet in self.triplets()}
        return {(m1, m2, place): triplets[name] for name, m1, m2, place in places}

    def decisions(self) -> Decisions:
        """Decisions about triplets under a cap on words."""
        accepted = self._database.rows(
            "SELECT model_1, model_2, place FROM accepted JOIN job ON job.id = job"
        )
        refused = self._database.rows(
            "SELECT model_1, model_2, place, excluded FROM refused ORDER BY attempt"
        )
        ends = self._database.rows("SELECT end FROM wave")
        return Decisions(
            frozenset(map(tuple, accepted)),
            # The last attempt excludes what those before excluded, and more.
            {(m1, m2, place): frozenset(words.split()) for m1, m2, place, words in refused},
            ends[0][0] if ends else 0,
        )

    def decide(
        self,
        accepted: Iterable[tuple[str, str, int]],
        refused: Mapping[tuple[str, str, int], frozenset[str]],
        wave_end: int,
    ) -> None:
        """Keep decisions about triplets, by their models and places, all of them or none.

        Args:
            accepted: those that stay.
            refused: those that are dropped, and what their next searches may not put in.
            wave_end: how many triplets each pair is to have after the wave that comes now.
        """
        where = "model_1 = ? AND model_2 = ? AND place = ?"
        with self._database.transaction() as connection:
            connection.executemany(
                f"INSERT INTO accepted SELECT id FROM job WHERE {where}", list(accepted)
            )
            for key, words in refused.items():
                connection.execute(
                    "INSERT INTO refused SELECT model_1, model_2, place, "
                    f"(SELECT count(*) FROM refused WHERE {where}), ?, synthetic_1, synthetic_2 "
                    f"FROM job JOIN triplet ON job = id WHERE {where}",
                    (*key, " ".join(sorted(words)), *key),
                )
                ids = connection.execute(f"SELECT id FROM job WHERE {where}", key).fetchall()
                _delete_jobs(connection, ids)
            connection.execute("INSERT OR REPLACE INTO wave VALUES (1, ?)", (wave_end,))

    def costs(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Rows, tokens and calls spent on the triplets of each pair of models."""
        rows = self._database.rows(
            "SELECT model_1, model_2, sum(rows), sum(tokens), sum(calls) FROM cost "
            "JOIN search ON search.id = search JOIN job ON job.id = job GROUP BY model_1, model_2"
        )
        return {(m1, m2): tuple(sums) for m1, m2, *sums in rows}

    def searches(self) -> dict[tuple[str, str], int]:
        """Number of searches made for the triplets of each pair of models."""
        # What was kept before searches were counted was found by one each
        rows = self._database.rows(
            "SELECT model_1, model_2, sum(max(1, "
            "(SELECT count(*) FROM restart WHERE restart.search = search.id))) "
            "FROM search JOIN job ON job.id = job GROUP BY model_1, model_2"
        )
        return {(m1, m2): number for m1, m2, number in rows}

    def trajectories(self) -> dict[str, list[Any]]:
        """Every accepted step of every search, as columns; a row a step, in order."""
        return self._export("step", _STEP)

    def evaluations(self) -> dict[str, list[Any]]:
        """Every candidate that was scored exactly, as columns; a row a candidate, in order."""
        return self._export("evaluation", _EVALUATION)

    def _export(self, table: str, columns: str) -> dict[str, list[Any]]:
        names = ["triplet_id", "accept", "reject", "number", *columns.split(", ")]
        rows = self._database.rows(
            f"SELECT {', '.join(names)} FROM {table} {_FROM_SEARCH} "
            # By the study's order and not by time: the order in which workers finished is left to
            # chance
            "ORDER BY model_1, model_2, place, search, number"
        )
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _apply(connection: sqlite3.Connection, edit: StoreEdit) -> None:
    of_pair = "model_1 = ? AND model_2 = ?"
    jobs = []
    for pair in edit.renewed:
        jobs += connection.execute(
            f"SELECT id FROM job LEFT JOIN triplet ON job = id WHERE {of_pair} "
            # Of inadmissible jobs those have a triplet that reviewers rejected
            "AND NOT (state = 'inadmissible' AND job IS NOT NULL)",
            pair,
        ).fetchall()
        connection.execute(f"DELETE FROM refused WHERE {of_pair}", pair)
    for key in edit.replaced:
        jobs += connection.execute(
            f"SELECT id FROM job WHERE {of_pair} AND place = ?", key
        ).fetchall()
        connection.execute(f"DELETE FROM refused WHERE {of_pair} AND place = ?", key)
    _forget_jobs(connection, jobs)
    if edit.restarts_waves:
        connection.execute("DELETE FROM wave")
    connection.execute("DELETE FROM assignment")
    connection.executemany("INSERT INTO assignment VALUES (?, ?, ?, ?)", edit.assigned)


def _forget_jobs(connection: sqlite3.Connection, jobs: list[tuple[int]]) -> None:
    """Drop jobs by their row's number; of their triplets is kept what they were."""
    # A review that was written before may be of them.
    connection.executemany(
        f"INSERT OR IGNORE INTO gone ({_TRIPLET}) "
        f"SELECT {_TRIPLET} FROM triplet JOIN job ON job.id = job WHERE job.id = ?",
        jobs,
    )
    _delete_jobs(connection, jobs)


def _delete_jobs(connection: sqlite3.Connection, jobs: list[tuple[int]]) -> None:
    """Drop jobs by their row's number, and all that hangs on them."""
    for table in ("cost", "step", "evaluation", "restart"):
        connection.executemany(
            f"DELETE FROM {table} WHERE search IN (SELECT id FROM search WHERE job = ?)", jobs
        )
    for table in ("search", "triplet", "accepted"):
        connection.executemany(f"DELETE FROM {table} WHERE job = ?", jobs)
    connection.executemany("DELETE FROM job WHERE id = ?", jobs)


def _agree(before: str | None, now: str | None, may_grow: bool) -> bool:
    if before is None or now is None or not may_grow:
        return before == now
    # More sentences for a pair add jobs and change none of those kept
    return int(now) >= int(before)


def _insert_trail(connection: sqlite3.Connection, job: int | None, trail: Trail) -> None:
    search = connection.execute(
        "INSERT INTO search (job, accept, reject, visits, ending) VALUES (?, ?, ?, ?, ?)",
        (job, trail.accept, trail.reject, trail.visits, trail.ending),
    ).lastrowid
    connection.executemany(
        "INSERT INTO cost VALUES (?, ?, ?, ?, ?)",
        [(search, model, *cost) for model, cost in trail.costs.items()],
    )
    for table, entries in (
        ("step", trail.steps),
        ("evaluation", trail.evaluations),
        ("restart", trail.searches),
    ):
        rows = [(search, number, *entry) for number, entry in enumerate(entries)]
        # A search that accepted nothing has no steps
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
