"""The order of natural sentences, which search comes next, and which results count."""

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
from contstim.store import Outcome, Store, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples

SENTENCES = tuple(Sentence((f"word{i}", "follows")) for i in range(200))
WORDS = Vocabulary(tuple(f"word{i}" for i in range(200)), ("follows",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TripletStore]:
    with Store(tmp_path / "s.sqlite") as opened:
        yield TripletStore(opened)


def queue_of(
    n_models: int, per_pair: int, store: TripletStore, sentences: tuple[Sentence, ...] = SENTENCES
) -> TripletQueue:
    """A queue that continues with the results of the store."""
    models = tuple(f"kenlm:{i}.arpa" for i in range(n_models))
    pairs = list(combinations(models, 2))
    question = SearchQuestion(recipe="golan2023", per_pair=per_pair).resolved
    profiles = {m: ModelProfile(Convention("rule", "", True, f"of {m}"), None) for m in models}
    words = dict.fromkeys(pairs, WORDS)
    walks = {pair: natural_walk(0, pair, sentences, WORDS) for pair in pairs}
    return TripletQueue(Searches(question, profiles, words, {}, store), walks)


def missing(queue: TripletQueue, per_pair: int) -> int:
    """Number of triplets that the pairs lack."""
    results = queue.results.values()
    return sum(per_pair - sum(not result.is_skipped for result in some) for some in results)


def is_inadmissible(sentence: Sentence) -> bool:
    return int(sentence.words[0][4:]) % 5 == 0


def is_unsuccessful(sentence: Sentence) -> bool:
    return not is_inadmissible(sentence) and int(sentence.words[0][4:]) % 4 == 1


def outcome(task: TripletTask) -> Outcome:
    """Some sentences are inadmissible, some searches find nothing, the others find a triplet."""
    if is_inadmissible(task.natural):
        return Outcome("inadmissible")
    if not is_unsuccessful(task.natural):
        return Outcome("found")
    triplet = Triplet("t", *task.models, *(task.natural,) * 3, *(0.0,) * 7)
    return Outcome("found", triplet.equality_note, triplet)


def work(queue: TripletQueue, chance: random.Random, workers: int, stop: float) -> int:
    """Take and answer tasks in random order; with probability `stop` after each, be killed.

    Returns the number of searches that were done.
    """
    out: list[TripletTask] = []
    n_done = 0
    while not queue.finished:
        if len(out) < workers and (taken := queue.take(())) is not None:
            out.append(taken)
            continue
        task = out.pop(chance.randrange(len(out)))
        if chance.random() < 0.1:
            queue.failed(task, ContstimError("now and then"), 1)
            continue
        queue.done(task, outcome(task))
        n_done += 1
        if chance.random() < stop:
            break
    return n_done


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), per_pair=st.integers(1, 6))
def test_whatever_the_order_and_the_kills_the_same_results_count(
    tmp_path_factory: pytest.TempPathFactory, seed: int, workers: int, per_pair: int
) -> None:
    """Witness: outcomes of the sentences in their order, up to the end of each walk, in a loop."""
    folder = tmp_path_factory.mktemp("queues")
    chance, searched = random.Random(seed), 0
    with Store(folder / "a.sqlite") as opened:
        store = TripletStore(opened)
        for _ in range(500):
            queue = queue_of(4, per_pair, store)
            if queue.finished:
                break
            searched += work(queue, chance, workers, 0.2)
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
        # No search is repeated, and few are done beyond the end of a walk
        assert n_needed <= searched <= n_needed + 6 * workers


def test_the_walk_ends_after_three_unsuccessful_searches_a_triplet(store: TripletStore) -> None:
    """No search finds a triplet; at most the running and the waiting one are wasted."""
    unsuccessful = tuple(s for s in SENTENCES if is_unsuccessful(s))
    queue = queue_of(2, 4, store, unsuccessful)
    assert 12 <= work(queue, random.Random(1), 3, 0.0) <= 12 + 3
    assert [len(results) for results in queue.results.values()] == [12]
    assert missing(queue, 4) == 4


def test_where_the_pool_ends_triplets_are_missing(store: TripletStore) -> None:
    """Of 200 sentences 120 yield a triplet: neither a fifth nor a quarter of the others does."""
    queue = queue_of(2, 130, store)
    work(queue, random.Random(2), 3, 0.0)
    assert missing(queue, 130) == 10


@pytest.mark.parametrize("n", range(2, 12))
def test_pairs_take_a_turn_and_then_one_worker_loads_one_model_a_pair(
    n: int, store: TripletStore
) -> None:
    """In each of the two turns every pair after the first costs one load, as few as can be."""
    models = [f"m{i}" for i in range(n)]
    order = pairs_sharing_models(models)
    assert sorted(order) == sorted(combinations(models, 2))
    assert all({*a} & {*b} for a, b in pairwise(order))
    queue = queue_of(n, 3, store)
    loaded: tuple[str, ...] = ()
    loads = 0
    taken: list[tuple[str, str]] = []
    while (task := queue.take(loaded)) is not None:
        loads += len({*task.models} - {*loaded})
        loaded = task.models
        taken.append(task.models)
        queue.done(task, Outcome("found"))
    # First one search of each pair, then those that are left; the last pair needs no new load
    assert len({*taken[: len(order)]}) == len(order)
    assert loads <= 2 * len(order) + 1


def test_workers_spread_over_pairs_and_share_the_last(store: TripletStore) -> None:
    queue = queue_of(3, 2, store)
    tasks = [queue.take(()) for _ in range(6)]
    pairs = [task.models for task in tasks if task is not None]
    assert len({*pairs[:3]}) == 3
    assert len(pairs) == 6
    assert queue.take(()) is None
    assert not queue.finished


def test_the_third_failure_is_the_outcome_until_the_next_run(store: TripletStore) -> None:
    queue = queue_of(2, 1, store)
    for attempt in (1, 2, 3):
        task = queue.take(())
        assert task is not None
        assert not queue.results[task.models]
        queue.failed(task, ContstimError("out of luck"), attempt)
    assert [[r.state for r in results] for results in queue.results.values()] == [["failed"]]
    assert queue.finished
    again = queue_of(2, 1, store).take(())
    assert again == task


def test_failed_searches_are_no_fast_ones_in_the_numbers_so_far(store: TripletStore) -> None:
    """Witness: the mean of 4 and 8 seconds, by hand; the time of a failure is not known."""
    queue = queue_of(2, 3, store)
    for seconds in (4.0, 0.0, 8.0):
        task = queue.take(())
        assert task is not None
        if seconds:
            queue.done(task, replace(outcome(task), state="found", wall_seconds=seconds))
        else:
            queue.failed(task, ContstimError("out of luck"), 3)
    numbers, *_ = so_far(queue.results, queue._seconds)
    assert isinstance(numbers, Table)
    failed, speed = next(iter(numbers.rows))[-2:]
    assert (failed, speed) == (1, "6.0")


def test_the_order_is_by_the_hash_of_seed_models_and_sentence() -> None:
    """Witness: the definition, written out."""

    def key(sentence: Sentence) -> str:
        return hashlib.sha256(f"3\x1fa\x1fb\x1f{sentence.text}".encode()).hexdigest()

    expected = sorted(SENTENCES, key=key)
    for pair in (("a", "b"), ("b", "a")):
        assert [*natural_walk(3, pair, SENTENCES * 2, WORDS)] == expected
    others = [(4, ("a", "b")), (3, ("a", "c")), (3, ("b", "c"))]
    walks = {tuple(natural_walk(seed, pair, SENTENCES, WORDS)) for seed, pair in others}
    assert len(walks | {tuple(expected)}) == 4


@given(st.sets(st.sampled_from(SENTENCES)), st.randoms())
def test_sentences_keep_their_order_whatever_else_is_there(
    some: set[Sentence], chance: random.Random
) -> None:
    """Witness: the order of all sentences, without those that are missing."""
    shuffled = chance.sample(sorted(some, key=str), len(some))
    whole = natural_walk(0, ("a", "b"), SENTENCES, WORDS)
    walk = natural_walk(0, ("a", "b"), shuffled, WORDS)
    assert [*walk] == [sentence for sentence in whole if sentence in some]


def test_sentences_without_a_word_to_change_or_with_unknown_words_are_left_out() -> None:
    unusable = [Sentence(("word1",)), Sentence(("word1", "unknown"))]
    walk = natural_walk(0, ("a", "b"), [*unusable, SENTENCES[0]], WORDS)
    assert [*walk] == [SENTENCES[0]]
