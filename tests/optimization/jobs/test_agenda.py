from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import ContstimError, ModelError, WorkerError
from contstim.models.base import Convention
from contstim.optimization.jobs.agenda import Examination, TripletAgenda, neighbours_share_a_model
from contstim.optimization.jobs.dealing import Dealer
from contstim.optimization.jobs.study import Study
from contstim.optimization.jobs.tasks import Examine, Examined, Search
from contstim.sentence import Sentence
from contstim.store import Job, Outcome, State

SENTENCES = tuple(Sentence((f"word{i}", "follows")) for i in range(200))


def examined(name: str) -> Examined:
    return Examined(Convention("rule", "", True, f"fingerprint of {name}"), None)


def agenda_of(
    n_models: int, per_pair: int, settled: list[Job], kept: dict[tuple[str, str, int], State]
) -> TripletAgenda:
    models = tuple(f"kenlm:{i}.arpa" for i in range(n_models))
    study = Study(models, SENTENCES, None, per_pair)
    dealer = Dealer(SENTENCES, [lambda _: True] * len(study.pairs), seed=0)
    dealer.deal_all(per_pair, study.pairs)

    def keep(task: Search, outcome: Outcome) -> None:
        key = (*task.models, task.place)
        assert key not in kept, "done twice"
        kept[key] = outcome.state

    found = {name: examined(name) for name in models}
    return TripletAgenda(study, found, dealer, settled, keep, lambda _settled, _wanted: None)


def is_inadmissible(task: Search) -> bool:
    return int(task.natural.words[0][4:]) % 5 == 0


def work(agenda: TripletAgenda, chance: random.Random, workers: int, stop: float) -> list[Search]:
    """Take and answer tasks in random order; with probability `stop` after each, be killed."""
    out: list[Search] = []
    while not agenda.finished:
        if len(out) < workers and (taken := agenda.take(())) is not None:
            out.append(taken)
            continue
        task = out.pop(chance.randrange(len(out)))
        if chance.random() < 0.1:
            agenda.failed(task, ContstimError("now and then"), 1)
            continue
        state = State.INADMISSIBLE if is_inadmissible(task) else State.FOUND
        agenda.done(task, Outcome(state))
        if chance.random() < stop:
            break
    return out


@given(seed=st.integers(0, 10_000), workers=st.integers(1, 5), per_pair=st.integers(1, 8))
def test_whatever_the_order_and_the_kills_the_same_jobs_are_done_once(
    seed: int, workers: int, per_pair: int
) -> None:
    """Witness: one worker, never killed, in the order of the deal."""
    expected: dict[tuple[str, str, int], State] = {}
    work(agenda_of(4, per_pair, [], expected), random.Random(0), 1, 0.0)
    chance = random.Random(seed)
    kept: dict[tuple[str, str, int], State] = {}
    for _ in range(500):
        settled = [Job(m1, m2, place, "", state, "") for (m1, m2, place), state in kept.items()]
        agenda = agenda_of(4, per_pair, settled, kept)
        if agenda.finished:
            break
        work(agenda, chance, workers, 0.2)
    assert kept == expected
    for pair in combinations([f"kenlm:{i}.arpa" for i in range(4)], 2):
        assert [s for (*p, _), s in kept.items() if tuple(p) == pair].count(State.FOUND) == per_pair


def test_where_the_deck_ends_the_shortage_is_told() -> None:
    """200 sentences for 10 pairs: 20 each; every fifth is inadmissible and none replaces it."""
    kept: dict[tuple[str, str, int], State] = {}
    agenda = agenda_of(5, 20, [], kept)
    work(agenda, random.Random(2), 3, 0.0)
    assert len(kept) == 200
    assert sum(pair.missing for pair in agenda.pairs.values()) == 40


@pytest.mark.parametrize("n", range(2, 12))
def test_one_worker_loads_one_model_a_pair(n: int) -> None:
    """Every pair after the first costs one load: fewer is impossible with two in memory."""
    models = [f"m{i}" for i in range(n)]
    order = neighbours_share_a_model(models)
    assert sorted(order) == sorted(combinations(models, 2))
    assert all({*a} & {*b} for a, b in pairwise(order))
    agenda = agenda_of(n, 3, [], {})
    loaded: tuple[str, ...] = ()
    loads = 0
    while (task := agenda.take(loaded)) is not None:
        loads += len({*task.models} - {*loaded})
        loaded = task.models
        agenda.done(task, Outcome(State.FOUND))
    assert loads == len(order) + 1


def test_workers_spread_over_pairs_and_share_the_last() -> None:
    agenda = agenda_of(3, 2, [], {})
    tasks = [agenda.take(()) for _ in range(6)]
    pairs = [task.models for task in tasks if task is not None]
    assert len({*pairs[:3]}) == 3
    assert len(pairs) == 6
    assert agenda.take(()) is None
    assert not agenda.finished


def test_the_third_failure_is_kept() -> None:
    kept: dict[tuple[str, str, int], State] = {}
    agenda = agenda_of(2, 1, [], kept)
    for attempt in (1, 2, 3):
        task = agenda.take(())
        assert task is not None
        assert not kept
        agenda.failed(task, ContstimError("out of luck"), attempt)
    assert list(kept.values()) == [State.FAILED]
    assert agenda.finished


def test_the_same_model_under_two_names_is_refused_at_once() -> None:
    examination = Examination(["a", "b", "c"])
    assert [examination.take(()) for _ in range(2)] == [Examine("c"), Examine("b")]
    examination.done(Examine("c"), examined("c"))
    with pytest.raises(ModelError, match="b and c are the same model"):
        examination.done(Examine("b"), examined("c"))


def test_a_model_that_does_not_load_ends_the_job_a_dead_worker_does_not() -> None:
    examination = Examination(["a"])
    for attempt in (1, 2):
        assert examination.take(()) == Examine("a")
        examination.failed(Examine("a"), WorkerError("gone"), attempt)
        assert not examination.finished
    assert examination.take(()) == Examine("a")
    with pytest.raises(ModelError, match="no such file"):
        examination.failed(Examine("a"), ModelError("no such file"), 1)
