"""Searches of a study: their stored results, and which search is next.

Each pair of models uses the natural sentences in its own order, called the walk of the pair. A
search begins from a natural sentence and finds a triplet or none. The diagram shows one pair:

    natural sentences      a random order for each pair of models: a hash of seed, pair and text
          |
    [natural_walk]     s17    s4     s31    s8     s22  …      both models know all words
          |
       searches        found  none   found  none   found       started in order, ended in any order
          |
    [counted_results]  s17           s31           s22         the first `per_pair` triplets count

Sentences, seed and models determine the order of the walk. The order determines which results
count. So the store need not contain which sentences belong to which pair.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from itertools import combinations
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

from contstim.jobs.pool import TaskQueue
from contstim.optimization.jobs.so_far import SearchProgress, so_far
from contstim.optimization.jobs.tasks import TripletTask, describe_words, digest
from contstim.reporter import SILENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from contstim.errors import ContstimError
    from contstim.optimization.jobs.floors import Floors
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.reporter import Reporter
    from contstim.store.triplets import Result, TripletStore
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

    ModelPair = tuple[str, str]


_ATTEMPTS = 3

MAX_UNSUCCESSFUL_SEARCHES = 3
"""The walk of a pair of models ends after a maximum number of unsuccessful searches.

The maximum is this constant times `per_pair`, the number of triplets for each pair. Unsuccessful
searches take longest. If many searches are unsuccessful, the allowed words permit hardly any
change, and further searches would hardly ever succeed.
"""


class Searches:
    """The searches of a study, and their results in its store.

    Args:
        question: settings of the searches, with defaults filled in (`SearchQuestion.resolved`).
        profiles: facts about each model.
        words: words that searches of each pair may use.
        floors: lowest log-probabilities that natural sentences may have; see the module `floors`.
        store: store of the results.
        judges: judges of each pair, the models that choose plausible sentences.
        sds: standard deviation of each model's scores of natural sentences; only needed for pairs
            with a model whose scores are not in nats.

    Attributes:
        wall_seconds: duration of the searches of this run, summed over workers.
        network_seconds: part of `wall_seconds` that neural networks took.
    """

    def __init__(
        self,
        question: SearchQuestion,
        profiles: Mapping[str, ModelProfile],
        words: Mapping[ModelPair, Vocabulary],
        floors: Floors,
        store: TripletStore,
        judges: Mapping[ModelPair, Sequence[str]] = MappingProxyType({}),
        sds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.question, self._judges, self._sds = question, judges, sds
        self._profiles, self._floors, self._store = profiles, floors, store
        self._words = {pair: describe_words(vocabulary) for pair, vocabulary in words.items()}
        self.wall_seconds = self.network_seconds = 0.0

    def task(self, pair: ModelPair, natural: Sentence) -> TripletTask:
        """Return the search of a pair of models that begins from a natural sentence."""
        # The floors of a model have one entry for each length of natural sentences that the model
        # can score. Without an entry for the length of `natural`, the model cannot score `natural`.
        # Then the minimum is -inf, so that the search starts and reports why
        least = {m: floors.get(len(natural), -inf) for m, floors in self._floors.items()}
        fingerprints = {m: profile.convention.fingerprint for m, profile in self._profiles.items()}
        first, second = pair
        judges = self._judges.get(pair, ())
        in_nats = all(self._profiles[model].convention.is_log_probability for model in pair)
        return TripletTask(
            question=self.question,
            models=pair,
            fingerprints=(fingerprints[first], fingerprints[second]),
            natural=natural,
            words=self._words[pair],
            judges=tuple((judge, fingerprints[judge]) for judge in judges),
            floors=(least[first], least[second]) if least and not judges else None,
            sds=None if in_nats else (self._sds[first], self._sds[second]),
        )

    def expected_seconds(self, pair: ModelPair) -> float | None:
        """Return the measured seconds of search for each triplet of two models.

        This is the duration of all searches between these models, including unsuccessful searches,
        divided by the number of triplets. Return None if no triplet was found yet.
        """
        return self._store.times.get(search_key(self.question, *pair)).a_unit

    def find(self, task: TripletTask) -> Result | None:
        """Return the stored result of a search; None if there is none.

        If the natural sentence contains an excluded word, return a result with the state
        `inadmissible` instead: the sentence is skipped.
        """
        excluded = self.question.excluded
        words = [word for word in task.natural.words if word.lower() in excluded]
        if words:
            reason = f"contains an excluded word: {', '.join(words)}"
            return task.result("inadmissible", reason)
        return self._store.find(task.key)

    def keep(self, task: TripletTask, result: Result) -> Result:
        """Store the result of a search; return it with its number in the store.

        A failed result is not stored, so that the next run repeats the search.
        """
        self.wall_seconds += result.wall_seconds
        self.network_seconds += result.network_seconds
        if result.wall_seconds:
            is_triplet = result.triplet is not None and result.triplet.distinct
            seconds, key = result.wall_seconds, search_key(self.question, *task.models)
            self._store.times.add(key, units=is_triplet, seconds=seconds, rows=result.rows)
        return result if result.state == "failed" else self._store.keep(task.key, result)


def search_key(question: SearchQuestion, model_1: str, model_2: str) -> str:
    """Return the key of `store.times` for the durations of searches between two models.

    `question` has defaults filled in (`SearchQuestion.resolved`). The models are specifications;
    their order does not matter.
    """
    settings = digest([json.dumps(question.key, sort_keys=True)])[:12]
    return f"search {settings} {' '.join(sorted((model_1, model_2)))}"


class TripletQueue(TaskQueue[TripletTask]):
    """The searches for the triplets of every pair of models; each result is stored immediately.

    Each pair uses its natural sentences in the order of its walk. A pair starts another search if
    its triplets and running searches together are fewer than `per_pair`. The first results in the
    order of the walk count, whatever the number and the speed of the workers.

    Args:
        walks: natural sentences of each pair in order, see `natural_walk`.
        together: whether searches of one pair of models are faster when several of them run at the
            same time.
        write_table: function that writes a table of the triplets so far; None for no table.
    """

    def __init__(
        self,
        searches: Searches,
        walks: Mapping[ModelPair, Iterable[Sentence]],
        reporter: Reporter = SILENT,
        *,
        together: bool = False,
        write_table: Callable[[Mapping[ModelPair, Sequence[Result]]], None] | None = None,
    ) -> None:
        self._searches, self._reporter = searches, reporter
        self._together, self._write_table = together, write_table
        self._per_pair = searches.question.per_pair
        self._progress = SearchProgress(reporter, searches.expected_seconds)
        self._walks = {pair: iter(walk) for pair, walk in walks.items()}
        # Results in the order of the walk; None for a search without a result so far
        self._results: dict[ModelPair, dict[Sentence, Result | None]] = {p: {} for p in walks}
        self._waiting: dict[ModelPair, deque[TripletTask]] = {pair: deque() for pair in walks}
        # Number of triplets of each pair, if each waiting and running search finds a triplet
        self._expected: Counter[ModelPair] = Counter()
        self._unsuccessful: Counter[ModelPair] = Counter()
        self._ended: set[ModelPair] = set()  # pairs whose walk ended without enough triplets
        self._seconds: dict[ModelPair, list[float]] = {pair: [] for pair in walks}
        for pair in walks:
            self._walk_on(pair)
        self._order = pairs_sharing_models([*dict.fromkeys(m for pair in walks for m in pair)])
        self._report()

    def _walk_on(self, pair: ModelPair) -> None:
        """Look up stored results along the walk, and queue the search of the first missing result.

        Stop earlier if the pair needs no further search.
        """
        # Queue at most one search: running searches may make the search in the queue unnecessary
        while not self._waiting[pair] and self._expected[pair] < self._per_pair:
            is_over = self._unsuccessful[pair] >= MAX_UNSUCCESSFUL_SEARCHES * self._per_pair
            sentence = None if is_over else next(self._walks[pair], None)
            if sentence is None:
                self._ended.add(pair)
                return
            task = self._searches.task(pair, sentence)
            result = self._results[pair][sentence] = self._searches.find(task)
            self._expected[pair] += 1
            if result is None:
                self._waiting[pair].append(task)
            else:
                self._count(pair, result)

    def _count(self, pair: ModelPair, result: Result) -> None:
        self._expected[pair] -= result.is_skipped
        self._unsuccessful[pair] += result.is_unsuccessful

    @property
    def results(self) -> dict[ModelPair, list[Result]]:
        """Pair of models → its `counted_results` so far, in the order of the pair's walk."""
        return {
            pair: counted_results(filter(None, results.values()), self._per_pair)
            for pair, results in self._results.items()
        }

    def _report(self) -> None:
        results = self.results
        ended = {p: sum(not r.is_skipped for r in of_pair) for p, of_pair in results.items()}
        needed = {p: self._expected[p] if p in self._ended else self._per_pair for p in results}
        self._progress.report(ended, needed)
        if self._write_table is not None:
            self._write_table(results)
        self._reporter.show(lambda: so_far(self.results, self._seconds))

    def tick(self) -> None:
        """See `TaskQueue.tick`."""
        self._progress.tick()

    def _has_searched(self, pair: ModelPair) -> bool:
        return any(r and r.state != "inadmissible" for r in self._results[pair].values())

    @property
    def finished(self) -> bool:
        """See `TaskQueue.finished`."""
        return not any(self._waiting.values()) and not any(self._progress.running.values())

    def take(self, loaded: Sequence[str]) -> TripletTask | None:
        """See `TaskQueue.take`.

        Each pair has a first search before any pair has a second one, so that examples of all pairs
        are soon available. Otherwise, choose the pair with the fewest models to load. In a tie,
        choose the pair with the fewest running searches; with `together`, choose the pair with the
        most running searches. In a further tie, choose the pair that `pairs_sharing_models` returns
        first.
        """
        waiting = [pair for pair in self._order if self._waiting[pair]]
        if not waiting:
            return None
        n_running = {pair: len(self._progress.running[pair]) for pair in waiting}
        new = [p for p in waiting if not n_running[p] and not self._has_searched(p)]
        sign = -1 if self._together else 1
        pair = min(new or waiting, key=lambda p: (len({*p} - {*loaded}), sign * n_running[p]))
        self._progress.begin(pair)
        task = self._waiting[pair].popleft()
        self._walk_on(pair)
        return task

    def done(self, task: TripletTask, result: Result) -> None:
        """See `TaskQueue.done`."""
        # Store before reporting, so that a reported result survives the end of this process
        pair, stored = task.models, self._searches.keep(task, result)
        self._results[pair][task.natural] = stored
        self._count(pair, stored)
        self._progress.end(pair)
        if result.state != "failed":  # a failed search has no time
            self._seconds[pair].append(result.wall_seconds)
        self._walk_on(pair)
        self._report()

    def failed(self, task: TripletTask, error: ContstimError, attempt: int) -> None:
        """See `TaskQueue.failed`. After three attempts, the error becomes the search's result."""
        if attempt == _ATTEMPTS:
            self.done(task, task.result("failed", str(error)))
            return
        self._progress.end(task.models)
        # Put the task at the front, so that searches still begin in the order of the walk
        self._waiting[task.models].appendleft(task)


def pairs_sharing_models(models: Sequence[str]) -> list[tuple[str, str]]:
    """Return all unordered pairs, in an order in which consecutive pairs share a model.

    The order for a, b, c, d is ab, ac, ad, bd, bc, cd. If two models fit into memory, each pair
    after the first pair needs to load only one model.
    """
    # Row i has the pairs whose first model is i. Rows with an odd index are reversed, so that they
    # begin with the last model of the previous row
    rows: list[list[tuple[str, str]]] = [[] for _ in models]
    for (i, first), (_, second) in combinations(enumerate(models), 2):
        rows[i].append((first, second))
    return [pair for i, row in enumerate(rows) for pair in (reversed(row) if i % 2 else row)]


def natural_walk(
    seed: int, models: tuple[str, str], sentences: Iterable[Sentence], words: Vocabulary
) -> Iterator[Sentence]:
    """Yield the natural sentences that a pair of models can use, in the pair's own random order.

    Sentences are sorted by a hash of seed, models and sentence. So the order of two sentences does
    not depend on further sentences, on further models, or on the order of `sentences`. Sentences
    with one word, and sentences with words that are not in `words`, are omitted. `models` are the
    fingerprints of the two models, in any order.
    """

    def random_key(sentence: Sentence) -> bytes:
        parts = (str(seed), *sorted(models), sentence.text)
        return hashlib.sha256("\x1f".join(parts).encode()).digest()

    for sentence in sorted(dict.fromkeys(sentences), key=random_key):
        if len(sentence) > 1 and not words.missing_words(sentence):
            yield sentence


def counted_results(results: Iterable[Result], per_pair: int) -> list[Result]:
    """Return the results up to the sentence at which the walk of a pair of models ends.

    The walk, the pair's order of natural sentences, ends after `per_pair` triplets, or after
    `MAX_UNSUCCESSFUL_SEARCHES` * `per_pair` unsuccessful searches. A failed search counts as a
    triplet, because the next run may find a triplet. There may be results after the end of the
    walk, because several searches run at the same time.
    """
    counted: list[Result] = []
    n_triplets = n_unsuccessful = 0
    for result in results:
        if n_triplets == per_pair or n_unsuccessful == MAX_UNSUCCESSFUL_SEARCHES * per_pair:
            break
        counted.append(result)
        n_triplets += not result.is_skipped
        n_unsuccessful += result.is_unsuccessful
    return counted
