from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import ContstimError, ModelError, WorkerError
from contstim.models.base import Convention
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.sentence_allocation import SentenceAllocator
from contstim.optimization.jobs.task_queue import (
    ModelInspection,
    TripletQueue,
    pairs_sharing_models,
)
from contstim.optimization.jobs.tasks import InspectionTask, ModelProfile, TripletTask
from contstim.sentence import Sentence
from contstim.store import Job, JobState, Outcome

SENTENCES = tuple(Sentence((f"word{i}", "follows")) for i in range(200))


def profile(name: str) -> ModelProfile:
    return ModelProfile(Convention("rule", "", True, f"fingerprint of {name}"), None)


def queue_of(
    n_models: int, per_pair: int, settled: list[Job], kept: dict[tuple[str, str, int], JobState]
) -> TripletQueue:
    models = tuple(f"kenlm:{i}.arpa" for i in range(n_models))
    plan = SynthesisPlan(models, SENTENCES, None, per_pair)
    allocator = SentenceAllocator(SENTENCES, [lambda _: True] * len(plan.pairs), seed=0)
    allocator.assign(per_pair, plan.pairs)

    def keep(task: TripletTask, outcome: Outcome) -> None:
        key = (*task.models, task.place)
        assert key not in kept, "done twice"
        kept[key] = outcome.state

    profiles = {name: profile(name) for name in models}
    return TripletQueue(plan, profiles, allocator, settled, keep, lambda _settled, _wanted: None)


def is_inadmissible(task: TripletTask) -> bool:
    return int(task.natural.words[0][4:]) % 5 == 0


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
        state = JobState.INADMISSIBLE if is_inadmissible(task) else JobState.FOUND
        queue.done(task, Outcome(state))
        if chance.random() < stop:
            break
    return out


@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), per_pair=st.integers(1, 8))
def test_whatever_the_order_and_the_kills_the_same_jobs_are_done_once(
    seed: int, workers: int, per_pair: int
) -> None:
    """Witness: one worker, never killed, in the order of the sentences."""
    expected: dict[tuple[str, str, int], JobState] = {}
    work(queue_of(4, per_pair, [], expected), random.Random(0), 1, 0.0)
    chance = random.Random(seed)
    kept: dict[tuple[str, str, int], JobState] = {}
    for _ in range(500):
        settled = [Job(m1, m2, place, "", state, "") for (m1, m2, place), state in kept.items()]
        queue = queue_of(4, per_pair, settled, kept)
        if queue.finished:
            break
        work(queue, chance, workers, 0.2)
    assert kept == expected
    for pair in combinations([f"kenlm:{i}.arpa" for i in range(4)], 2):
        assert [s for (*p, _), s in kept.items() if tuple(p) == pair].count(
            JobState.FOUND
        ) == per_pair


def test_where_the_pool_ends_the_shortage_is_told() -> None:
    """200 sentences for 10 pairs: 20 each; every fifth is inadmissible and none replaces it."""
    kept: dict[tuple[str, str, int], JobState] = {}
    queue = queue_of(5, 20, [], kept)
    work(queue, random.Random(2), 3, 0.0)
    assert len(kept) == 200
    assert sum(pair.missing for pair in queue.pairs.values()) == 40


@pytest.mark.parametrize("n", range(2, 12))
def test_one_worker_loads_one_model_a_pair(n: int) -> None:
    """Every pair after the first costs one load: fewer is impossible with two in memory."""
    models = [f"m{i}" for i in range(n)]
    order = pairs_sharing_models(models)
    assert sorted(order) == sorted(combinations(models, 2))
    assert all({*a} & {*b} for a, b in pairwise(order))
    queue = queue_of(n, 3, [], {})
    loaded: tuple[str, ...] = ()
    loads = 0
    while (task := queue.take(loaded)) is not None:
        loads += len({*task.models} - {*loaded})
        loaded = task.models
        queue.done(task, Outcome(JobState.FOUND))
    assert loads == len(order) + 1


def test_workers_spread_over_pairs_and_share_the_last() -> None:
    queue = queue_of(3, 2, [], {})
    tasks = [queue.take(()) for _ in range(6)]
    pairs = [task.models for task in tasks if task is not None]
    assert len({*pairs[:3]}) == 3
    assert len(pairs) == 6
    assert queue.take(()) is None
    assert not queue.finished


def test_the_third_failure_is_kept() -> None:
    kept: dict[tuple[str, str, int], JobState] = {}
    queue = queue_of(2, 1, [], kept)
    for attempt in (1, 2, 3):
        task = queue.take(())
        assert task is not None
        assert not kept
        queue.failed(task, ContstimError("out of luck"), attempt)
    assert list(kept.values()) == [JobState.FAILED]
    assert queue.finished


def test_the_same_model_under_two_names_is_refused_at_once() -> None:
    inspection = ModelInspection(["a", "b", "c"])
    assert [inspection.take(()) for _ in range(2)] == [InspectionTask("c"), InspectionTask("b")]
    inspection.done(InspectionTask("c"), profile("c"))
    with pytest.raises(ModelError, match="b and c are the same model"):
        inspection.done(InspectionTask("b"), profile("c"))


def test_a_model_that_does_not_load_ends_the_job_a_dead_worker_does_not() -> None:
    inspection = ModelInspection(["a"])
    for attempt in (1, 2):
        assert inspection.take(()) == InspectionTask("a")
        inspection.failed(InspectionTask("a"), WorkerError("gone"), attempt)
        assert not inspection.finished
    assert inspection.take(()) == InspectionTask("a")
    with pytest.raises(ModelError, match="no such file"):
        inspection.failed(InspectionTask("a"), ModelError("no such file"), 1)
