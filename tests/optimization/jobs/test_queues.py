"""Which search comes next, whatever workers do, and what is kept of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.errors import ContstimError
from contstim.items.stimuli import Triplet
from contstim.models.base import Convention
from contstim.optimization.jobs import queues
from contstim.optimization.jobs.assignment import Assignment
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.queues import (
    CapRounds,
    Searches,
    TripletQueue,
    pairs_sharing_models,
)
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.tasks import ModelProfile, TripletTask
from contstim.reporting.report import Table
from contstim.store import Outcome, Slot, Store, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples
from tests.optimization.jobs.studies import MADE_UP, MODELS, MadeUpSearches, reviewed

SENTENCES = tuple(Sentence((f"word{i}", "follows")) for i in range(200))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TripletStore]:
    with Store(tmp_path / "s.sqlite") as opened:
        yield TripletStore(opened)


def kept(store: TripletStore) -> dict[str, str]:
    """What became of each natural sentence."""
    return {result.natural: result.state for result in store.results(0).values()}


def queue_of(n_models: int, per_pair: int, store: TripletStore) -> TripletQueue:
    """A queue that goes on where the store is."""
    models = tuple(f"kenlm:{i}.arpa" for i in range(n_models))
    pairs = list(combinations(models, 2))
    held = Assignment(
        SENTENCES,
        {pair: lambda _: True for pair in pairs},
        seed=0,
        standing=store.slots(0),
        save=lambda slots: store.assign(0, slots),
    )
    held.assign(per_pair)
    held.save([slot for slots in held.slots.values() for slot in slots])
    question = SearchQuestion(frame="none", per_pair=per_pair, plausible="none").resolved
    told = {m: ModelProfile(Convention("rule", "", True, f"of {m}"), None) for m in models}
    words = {pair: Vocabulary(("a",), ("b",)) for pair in pairs}
    return TripletQueue(Searches(question, told, words, {}, store), held)


def is_inadmissible(task: TripletTask) -> bool:
    return int(task.natural.words[0][4:]) % 5 == 0


def outcome(task: TripletTask) -> Outcome:
    """Some sentences are inadmissible; of others nothing new is found; the rest is."""
    if is_inadmissible(task):
        return Outcome("inadmissible")
    if int(task.natural.words[0][4:]) % 4 != 1:
        return Outcome("found")
    triplet = Triplet("t", *task.models, *(task.natural,) * 3, *(0.0,) * 7)
    return Outcome("found", triplet.alike, triplet)


def work(
    queue: TripletQueue, chance: random.Random, workers: int, stop: float
) -> list[TripletTask]:
    """Take and answer tasks in random order; with probability `stop` after each, be killed."""
    out: list[TripletTask] = []
    while not queue.finished:
        if len(out) < workers and (taken := queue.take(())) is not None:
            out.append(taken)
            continue
        task = out.pop(chance.randrange(len(out)))
        if chance.random() < 0.1:
            queue.failed(task, ContstimError("now and then"), 1)
            continue
        queue.done(task, outcome(task))
        if chance.random() < stop:
            break
    return out


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), per_pair=st.integers(1, 6))
def test_whatever_the_order_and_the_kills_the_same_searches_are_done(
    tmp_path_factory: pytest.TempPathFactory, seed: int, workers: int, per_pair: int
) -> None:
    """Witness: one worker, never killed, in the order of the sentences."""
    folder = tmp_path_factory.mktemp("queues")
    with Store(folder / "a.sqlite") as one, Store(folder / "b.sqlite") as other:
        expected, store = TripletStore(one), TripletStore(other)
        work(queue_of(4, per_pair, expected), random.Random(0), 1, 0.0)
        chance = random.Random(seed)
        for _ in range(500):
            queue = queue_of(4, per_pair, store)
            if queue.finished:
                break
            work(queue, chance, workers, 0.2)
        assert kept(store) == kept(expected)
        assert store.slots(0) == expected.slots(0) or len(kept(store)) == len(kept(expected))
        found = [r for r in store.results(0).values() if r.state == "found"]
        in_vain = Counter((r.model_1, r.model_2) for r in found if r.in_vain)
        missing = sum(max(n - 3 * per_pair, 0) for n in in_vain.values())
        assert len(found) - in_vain.total() == 6 * per_pair - missing
        assert queue_of(4, per_pair, store).missing.total() == missing


def test_where_the_pool_ends_the_shortage_is_told(store: TripletStore) -> None:
    """200 sentences for 10 pairs: 20 each; every fifth is inadmissible and none replaces it.

    Nor what is searched in vain: a quarter of the others.
    """
    queue = queue_of(5, 20, store)
    work(queue, random.Random(2), 3, 0.0)
    assert len(kept(store)) == 200
    assert queue.missing.total() == 40 + 40


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


def test_the_third_failure_is_kept(store: TripletStore) -> None:
    queue = queue_of(2, 1, store)
    for attempt in (1, 2, 3):
        task = queue.take(())
        assert task is not None
        assert not kept(store)
        queue.failed(task, ContstimError("out of luck"), attempt)
    assert list(kept(store).values()) == ["failed"]
    assert queue.finished


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
    numbers, *_ = queue._so_far()
    assert isinstance(numbers, Table)
    failed, speed = next(iter(numbers.rows))[-2:]
    assert (failed, speed) == (1, "6.0")


CAP = 4
CAPPED = MADE_UP.but(word_cap=CAP, uncapped=frozenset(f"verb{n}" for n in range(7)))


def counts(results: TripletResults) -> Counter[str]:
    """How many sentences hold each word that counts, in plain loops."""
    found: Counter[str] = Counter()
    for triplet in results.triplets:
        for sentence in (triplet.natural, triplet.synthetic_1, triplet.synthetic_2):
            for word in {word.lower() for word in sentence.words}:
                found[word] += not word.startswith("verb")
    return found


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rounds, and several triplets of a pair in each."""
    monkeypatch.setattr(queues, "_TRIPLETS_PER_ROUND", 6)
    monkeypatch.setattr(queues, "_LEAST_PER_PAIR", 2)


def test_no_word_stands_in_more_sentences_wherever_the_job_is_killed(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: counting; and the study without a cap, in which words stand more often."""
    free = MADE_UP.but(per_pair=4).find(tmp_path / "free.sqlite")
    assert max(counts(free).values()) > CAP
    searches.done.clear()
    whole = CAPPED.find(tmp_path / "whole.sqlite")
    assert max(counts(whole).values()) <= CAP
    assert len(whole.triplets) == 12 - sum(pair.missing for pair in whole.pairs)
    again = Counter(task.natural for task in searches.done)
    assert max(again.values()) > 1  # else nothing was put to the test
    n_searched = len(searches.done)
    calls = 0

    class KilledError(Exception):
        pass

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KilledError

    searches.done.clear()
    for _ in range(100):
        try:
            resumed = CAPPED.find(tmp_path / "killed.sqlite", progress=progress)
            break
        except KilledError:
            continue
    assert resumed == whole
    assert len(searches.done) == n_searched
    searches.done.clear()
    assert CAPPED.find(tmp_path / "whole.sqlite") == whole
    assert not searches.done


@pytest.mark.usefixtures("searches")
def test_what_stands_stays_while_a_capped_study_changes(tmp_path: Path) -> None:
    """Witness: counting, and the triplets of before."""
    path = tmp_path / "s.sqlite"
    before = CAPPED.but(per_pair=2).find(path)
    more = CAPPED.but(per_pair=3).find(path)
    assert {*before.triplets} <= {*more.triplets}
    larger = CAPPED.but(models=MODELS, per_pair=3).find(path)
    assert {*more.triplets} <= {*larger.triplets}
    rejected = larger.triplets[:2]
    replaced = CAPPED.but(models=MODELS, per_pair=3).find(
        path, review=reviewed(larger.triplets, rejected)
    )
    assert {*larger.triplets} - {*rejected} <= {*replaced.triplets}
    assert not {*rejected} & {*replaced.triplets}
    word = replaced.triplets[0].synthetic_1.words[2]

    def holds(triplet: Triplet) -> bool:
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        return any(word == w.lower() for s in sentences for w in s.words)

    without = CAPPED.but(models=MODELS, per_pair=3, exclude=(word,)).find(path)
    assert {t for t in replaced.triplets if not holds(t)} <= {*without.triplets}
    assert not any(map(holds, without.triplets))
    for results in (before, more, larger, replaced, without):
        assert max(counts(results).values()) <= CAP


def test_natural_sentences_without_room_are_passed_over() -> None:
    """Witness: three sentences more than those that are there."""
    natural = Sentence.parse("The dog saw the cat")
    question = SearchQuestion(frame="none", per_pair=4, uncapped=frozenset({"The"}))
    slot = Slot("a", "b", 0, natural)

    def rounds(*synthetic: str, cap: int = 5) -> CapRounds:
        """After a first triplet."""
        sentences = map(Sentence.parse, ("Small dog", *synthetic))
        triplet = cast("Any", Triplet)("t", "a", "b", *sentences, *(0.0,) * 7)
        result = SimpleNamespace(triplet=triplet, state="found", in_vain=False, id=1)
        searches = SimpleNamespace(
            question=question, standing=lambda _: result, refused=lambda _: frozenset()
        )
        slots = {("a", "b"): [slot]}
        held = SimpleNamespace(slots=slots, stand=lambda _: None)
        return CapRounds(cap, cast("Any", searches), cast("Any", held))

    assert not rounds("The dog", "The the").no_room(natural)
    assert rounds("The dog", "A dog").no_room(natural) == "no room under the cap on words: dog"
    # Forms of a word count together, once a sentence
    assert not rounds("Dogs dogged dogs", "A bird").no_room(natural)
    assert rounds("Two dogs", "A dog").no_room(natural) == "no room under the cap on words: dog"
    assert {"dog", "dogs"} <= rounds("Two dogs", "A dog", cap=3).excluded(slot)
