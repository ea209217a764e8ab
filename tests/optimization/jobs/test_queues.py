"""The order of natural sentences, the order of searches, and the results that count."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.errors import ContstimError
from contstim.items.stimuli import Triplet
from contstim.models.base import Convention
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.queues import (
    Searches,
    TripletQueue,
    natural_walk,
    pairs_sharing_models,
)
from contstim.optimization.jobs.so_far import so_far
from contstim.optimization.jobs.tasks import ModelProfile, TripletTask
from contstim.reporting.report import Table
from contstim.store import Result, Store, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples

SENTENCES = tuple(Sentence((f"word{i}", "follows")) for i in range(200))
WORDS = Vocabulary(tuple(f"word{i}" for i in range(200)), ("follows",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TripletStore]:
    with Store(tmp_path / "s.sqlite") as opened:
        yield TripletStore(opened)


def make_queue(
    n_models: int, per_pair: int, store: TripletStore, sentences: tuple[Sentence, ...] = SENTENCES
) -> TripletQueue:
    """Return a queue that continues with the stored results."""
    models = tuple(f"kenlm:{i}.arpa" for i in range(n_models))
    pairs = list(combinations(models, 2))
    question = SearchQuestion(recipe="golan2023", per_pair=per_pair).resolved
    profiles = {m: ModelProfile(Convention("rule", "", True, f"of {m}"), None) for m in models}
    words = dict.fromkeys(pairs, WORDS)
    walks = {pair: natural_walk(0, pair, sentences, WORDS) for pair in pairs}
    return TripletQueue(Searches(question, profiles, words, {}, store), walks)


def count_missing_triplets(queue: TripletQueue, per_pair: int) -> int:
    """Return the number of triplets that the pairs still need."""
    results = queue.results.values()
    return sum(per_pair - sum(not result.is_skipped for result in row) for row in results)


def is_inadmissible(sentence: Sentence) -> bool:
    return int(sentence.words[0][4:]) % 5 == 0


def is_unsuccessful(sentence: Sentence) -> bool:
    return not is_inadmissible(sentence) and int(sentence.words[0][4:]) % 4 == 1


def make_result(task: TripletTask) -> Result:
    """Return `inadmissible` for some sentences, no triplet for others, else `found`."""
    if is_inadmissible(task.natural):
        return task.result("inadmissible")
    if not is_unsuccessful(task.natural):
        return task.result("found")
    triplet = Triplet("t", *task.models, *(task.natural,) * 3, *(0.0,) * 7)
    return task.result("found", triplet.equality_note, triplet)


def run_tasks(queue: TripletQueue, rng: random.Random, workers: int, stop: float) -> int:
    """Take and finish tasks in random order; stop after each with probability `stop`.

    Returns the number of finished searches.
    """
    running: list[TripletTask] = []
    n_done = 0
    while not queue.finished:
        if len(running) < workers and (next_task := queue.take(())) is not None:
            running.append(next_task)
            continue
        task = running.pop(rng.randrange(len(running)))
        if rng.random() < 0.1:
            queue.failed(task, ContstimError("now and then"), 1)
            continue
        queue.done(task, make_result(task))
        n_done += 1
        if rng.random() < stop:
            break
    return n_done


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), per_pair=st.integers(1, 6))
def test_results_do_not_depend_on_order_or_kills(
    tmp_path_factory: pytest.TempPathFactory, seed: int, workers: int, per_pair: int
) -> None:
    """Witness: a loop over the sentences in their order, up to the end of each walk."""
    folder = tmp_path_factory.mktemp("queues")
    rng, n_searched = random.Random(seed), 0
    with Store(folder / "a.sqlite") as opened:
        store = TripletStore(opened)
        for _ in range(500):
            queue = make_queue(4, per_pair, store)
            if queue.finished:
                break
            n_searched += run_tasks(queue, rng, workers, 0.2)
        assert len(queue.results) == 6
        n_needed = 0
        for pair, results in queue.results.items():
            expected, triplets, unsuccessful = [], 0, 0
            for sentence in natural_walk(0, pair, SENTENCES, WORDS):
                if triplets == per_pair or unsuccessful == 3 * per_pair:
                    break
                number = int(sentence.words[0][4:])
                expected.append(sentence.text)
                triplets += number % 5 != 0 and number % 4 != 1
                unsuccessful += number % 5 != 0 and number % 4 == 1
            assert [result.natural for result in results] == expected
            n_needed += len(expected)
        # No search is repeated, and few go beyond the end of a walk
        assert n_needed <= n_searched <= n_needed + 6 * workers


def test_walks_end_after_three_unsuccessful_searches_per_triplet(store: TripletStore) -> None:
    """No search finds a triplet; at most the running and the queued searches are wasted."""
    unsuccessful = tuple(s for s in SENTENCES if is_unsuccessful(s))
    queue = make_queue(2, 4, store, unsuccessful)
    assert 12 <= run_tasks(queue, random.Random(1), 3, 0.0) <= 12 + 3
    assert [len(results) for results in queue.results.values()] == [12]
    assert count_missing_triplets(queue, 4) == 4


def test_triplets_are_missing_when_sentences_run_out(store: TripletStore) -> None:
    """Of 200 sentences, 120 yield a triplet: 4/5 are admissible, and 3/4 of those succeed."""
    queue = make_queue(2, 130, store)
    run_tasks(queue, random.Random(2), 3, 0.0)
    assert count_missing_triplets(queue, 130) == 10


@pytest.mark.parametrize("n", range(2, 12))
def test_one_worker_loads_at_most_one_model_per_pair(n: int, store: TripletStore) -> None:
    """In each of two passes, every pair after the first loads one model, the minimum."""
    models = [f"m{i}" for i in range(n)]
    order = pairs_sharing_models(models)
    assert sorted(order) == sorted(combinations(models, 2))
    assert all({*a} & {*b} for a, b in pairwise(order))
    queue = make_queue(n, 3, store)
    models_in_memory: tuple[str, ...] = ()
    loads = 0
    pairs: list[tuple[str, str]] = []
    while (task := queue.take(models_in_memory)) is not None:
        loads += len({*task.models} - {*models_in_memory})
        models_in_memory = task.models
        pairs.append(task.models)
        queue.done(task, task.result("found"))
    # One search of each pair comes first; the second pass starts with the models in memory
    assert len({*pairs[: len(order)]}) == len(order)
    assert loads <= 2 * len(order) + 1


def test_workers_search_different_pairs_first(store: TripletStore) -> None:
    queue = make_queue(3, 2, store)
    tasks = [queue.take(()) for _ in range(6)]
    pairs = [task.models for task in tasks if task is not None]
    assert len({*pairs[:3]}) == 3
    assert len(pairs) == 6
    assert queue.take(()) is None
    assert not queue.finished


def test_the_third_failure_is_final_until_the_next_run(store: TripletStore) -> None:
    queue = make_queue(2, 1, store)
    for attempt in (1, 2, 3):
        task = queue.take(())
        assert task is not None
        assert not queue.results[task.models]
        queue.failed(task, ContstimError("out of luck"), attempt)
    assert [[r.state for r in results] for results in queue.results.values()] == [["failed"]]
    assert queue.finished
    repeated = make_queue(2, 1, store).take(())
    assert repeated == task


def test_failed_searches_do_not_count_in_the_mean_duration(store: TripletStore) -> None:
    """Witness: the mean of 4 and 8 seconds, by hand; the duration of a failure is unknown."""
    queue = make_queue(2, 3, store)
    for seconds in (4.0, 0.0, 8.0):
        task = queue.take(())
        assert task is not None
        if seconds:
            queue.done(task, replace(make_result(task), state="found", wall_seconds=seconds))
        else:
            queue.failed(task, ContstimError("out of luck"), 3)
    numbers, *_ = so_far(queue.results, queue._seconds)
    assert isinstance(numbers, Table)
    failed, speed = next(iter(numbers.rows))[-2:]
    assert (failed, speed) == (1, "6.0")


def test_sentences_are_ordered_by_hash() -> None:
    """Witness: the definition, a hash of seed, models and sentence."""

    def key(sentence: Sentence) -> str:
        return hashlib.sha256(f"3\x1fa\x1fb\x1f{sentence.text}".encode()).hexdigest()

    expected = sorted(SENTENCES, key=key)
    for pair in (("a", "b"), ("b", "a")):
        assert [*natural_walk(3, pair, SENTENCES * 2, WORDS)] == expected
    other_walks = [(4, ("a", "b")), (3, ("a", "c")), (3, ("b", "c"))]
    walks = {tuple(natural_walk(seed, pair, SENTENCES, WORDS)) for seed, pair in other_walks}
    assert len(walks | {tuple(expected)}) == 4


@given(st.sets(st.sampled_from(SENTENCES)), st.randoms())
def test_other_sentences_do_not_change_the_order(subset: set[Sentence], rng: random.Random) -> None:
    """Witness: the order of all sentences, without the missing ones."""
    shuffled = rng.sample(sorted(subset, key=str), len(subset))
    full_walk = natural_walk(0, ("a", "b"), SENTENCES, WORDS)
    walk = natural_walk(0, ("a", "b"), shuffled, WORDS)
    assert [*walk] == [sentence for sentence in full_walk if sentence in subset]


def test_sentences_with_unknown_or_only_one_word_are_excluded() -> None:
    unusable = [Sentence(("word1",)), Sentence(("word1", "unknown"))]
    walk = natural_walk(0, ("a", "b"), [*unusable, SENTENCES[0]], WORDS)
    assert [*walk] == [SENTENCES[0]]
