"""Studies that change: whatever is searched again or anew, nothing else is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from contstim.errors import InputError, StoreError
from contstim.jobs import LocalExecutor
from contstim.models.loading import Loading
from contstim.models.ngram.adapter import NgramModel
from contstim.models.specifications import parse_models
from contstim.optimization.jobs import word_cap
from contstim.optimization.jobs.plan import SynthesisPlan, seed_for
from contstim.optimization.jobs.plausibility import Plausibility
from contstim.optimization.jobs.results import TripletResults, rename_columns
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.store_changes import AllowedChanges
from contstim.optimization.jobs.tasks import SEEDS, ScoringTask, TripletTask
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.jobs.word_cap import WordCap
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.reviews import Decision, Review, undecided
from contstim.store import Store, TripletStore
from contstim.vocabulary import REPEATABLE_ENGLISH, Vocabulary

MODELS = AllowedChanges(models=True)
Assigned = dict[tuple[str, str], dict[int, str]]


def find(study: SynthesisPlan, path: Path, **options: Any) -> TripletResults:
    context = SearchContext(
        Loading(device="cpu"), vocabulary=study.vocabulary, allow_unknown=study.allow_unknown
    )
    with Store(path) as store:
        return find_triplets(study, store, LocalExecutor(), context, **options)


def assigned(path: Path) -> Assigned:
    with Store(path) as store:
        return TripletStore(store).assignments()


@pytest.fixture
def four(trained: Path) -> tuple[str, ...]:
    """2-, 3-, 4- and 1-gram: the last in the alphabet is not the last to be added."""
    return tuple(f"kenlm:{trained}/{n}gram.arpa" for n in (2, 3, 4, 1))


@pytest.fixture
def plan(study: SynthesisPlan, four: tuple[str, ...]) -> Callable[..., SynthesisPlan]:
    """The study with two triplets a pair, the models of these numbers, and other values."""
    return lambda *numbers, **values: replace(
        study, **{"models": tuple(four[n] for n in numbers), "per_pair": 2, **values}
    )


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[TripletTask]:
    """The searches that are done from here on."""
    tasks: list[TripletTask] = []
    genuine = TripletTask.perform

    def note(task: TripletTask, context: SearchContext) -> object:
        tasks.append(task)
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", note)
    return tasks


def assert_searched_one_by_one(results: TripletResults, study: SynthesisPlan) -> None:
    """Witness: a call of `synthesize_triplet` for each natural sentence, with the job's seed."""
    assert study.vocabulary is not None
    for triplet in (*results.triplets, *results.unchanged):
        names = (triplet.model_1, triplet.model_2)
        first, second = (NgramModel(name.removeprefix("kenlm:"), name) for name in names)
        fingerprints = (first.convention.fingerprint, second.convention.fingerprint)
        expected, *_ = synthesize_triplet(
            first,
            second,
            triplet.natural,
            study.vocabulary,
            recipe=recipe_named(study.recipe),
            seed=seed_for(study.seed, fingerprints, triplet.natural.text),
            seeds=SEEDS,
            restarts=study.restarts,
        )
        assert triplet == expected


def test_models_that_come_and_go_leave_the_searches_of_others_alone(
    plan: Callable[..., SynthesisPlan],
    four: tuple[str, ...],
    searched: list[TripletTask],
    tmp_path: Path,
) -> None:
    """Witness: one search at a time, and a count of all that were done."""
    path = tmp_path / "grown.sqlite"
    results = find(plan(0, 1), path)
    standing = assigned(path)
    steps = [(0, 1, 2), (0, 2), (0, 2, 3), (3, 2, 1, 0)]
    for numbers, new in zip(steps, (2, 0, 2, 1), strict=True):
        searched.clear()
        study = plan(*numbers)
        results = find(study, path, changes=MODELS)
        models = [model for model in four if model in study.models]
        assert [(p.model_1, p.model_2) for p in results.pairs] == [*combinations(models, 2)]
        pairs = {(p.model_1, p.model_2) for p in results.pairs}
        assert {(t.model_1, t.model_2) for t in results.triplets} <= pairs
        assert {(row.model_1, row.model_2) for row in results.allotment} == pairs
        # Only pairs of a model that was not there before
        per_pair = Counter(task.models for task in searched)
        assert {*per_pair} & {*standing} == set()
        assert len(per_pair) == new
        now = assigned(path)
        assert {pair: now[pair] for pair in standing} == standing
        standing = now
    sentences = [s for by_place in standing.values() for s in by_place.values()]
    assert len(sentences) == len({*sentences})
    assert len(results.triplets) + len(results.unchanged) == 12
    assert_searched_one_by_one(results, study)
    searched.clear()
    assert find(study, path) == results
    assert not searched
    given = parse_models([f"bi={four[0]}", f"uni={four[3]}"])
    with Store(path) as store:
        columns = rename_columns(TripletStore(store).trajectories(), given)
    assert {*columns["accept"]} | {*columns["reject"]} == {"bi", "uni"}


def test_what_is_not_allowed_is_refused_and_a_model_left_out_stays_so(
    plan: Callable[..., SynthesisPlan], four: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "study.sqlite"
    whole = find(plan(0, 1, 2), path)
    with pytest.raises(StoreError, match=r"model 4: \(none\) → kenlm:.*1gram.arpa"):
        find(plan(0, 1, 2, 3), path)
    with pytest.raises(StoreError, match="seed: 5 → 6"):
        find(plan(0, 1, seed=6), path, changes=MODELS)
    with pytest.raises(StoreError, match=r"model 3: kenlm:.*4gram.arpa → \(none\)"):
        find(plan(0, 1), path)
    assert find(plan(0, 1, 2), path) == whole
    fewer = find(plan(0, 1), path, changes=MODELS)
    assert fewer.triplets == tuple(t for t in whole.triplets if four[2] not in (t.model_2,))
    assert find(plan(0, 1), path) == fewer
    with pytest.raises(StoreError, match=r"model 3 left out: true → \(none\)"):
        find(plan(0, 1, 2), path)
    assert find(plan(0, 1, 2), path, changes=MODELS) == whole
    assert find(plan(0, 1, 2), path) == whole


def test_only_new_models_are_scored_for_floors(
    plan: Callable[..., SynthesisPlan],
    four: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Witness: the floors of a study with all models from the start."""
    plausible = Plausibility(0.25)
    at_once = find(plan(0, 1, 2, per_pair=1, plausible=plausible), tmp_path / "once.sqlite")
    path = tmp_path / "grown.sqlite"
    find(plan(0, 1, per_pair=1, plausible=plausible), path)
    genuine = ScoringTask.perform
    scored: set[str] = set()

    def note(task: ScoringTask, context: SearchContext) -> object:
        scored.add(task.model)
        return genuine(task, context)

    monkeypatch.setattr(ScoringTask, "perform", note)
    study = plan(0, 1, 2, per_pair=1, plausible=plausible)
    results = find(study, path, changes=MODELS)
    assert scored == {four[2]}
    assert results.floors == at_once.floors
    # Sentences of another length get floors of their own; those that there are stay
    longer = tuple(replace(s, words=(*s.words[:1], *s.words)) for s in study.sentences[:30])
    scored.clear()
    further = replace(study, sentences=study.sentences[20:] + longer)
    changed = find(further, path, changes=AllowedChanges(sentences=True))
    for model, floors in results.floors.items():
        assert {n: changed.floors[model][n] for n in floors} == floors
    assert find(further, path) == changed


def test_a_changed_model_is_refused_or_its_pairs_are_searched_again(
    plan: Callable[..., SynthesisPlan],
    trained: Path,
    searched: list[TripletTask],
    tmp_path: Path,
) -> None:
    """Killed on the way and started again, nothing that was searched anew is lost."""
    copy = tmp_path / "copy.arpa"
    copy.write_bytes((trained / "4gram.arpa").read_bytes())
    name, path = f"kenlm:{copy}", tmp_path / "study.sqlite"
    study = plan(0, 1)
    study = replace(study, models=(*study.models, name))
    before = find(study, path)
    naturals = assigned(path)
    rejected = next(t for t in before.triplets if name in (t.model_1, t.model_2))
    review = Review(
        tuple(
            replace(item, reviewer="Ann", decision=Decision.REJECT)
            for item in undecided([rejected])
        )
    )
    find(study, path, review=review)
    copy.write_bytes((trained / "1gram.arpa").read_bytes())
    with pytest.raises(StoreError, match="fingerprint"):
        find(study, path)
    with pytest.raises(StoreError, match="fingerprint"):
        find(study, path, changes=AllowedChanges(renew=frozenset({study.models[0]})))
    searched.clear()
    renew = AllowedChanges(renew=frozenset({name, study.models[0]}))

    def stop(settled: int, _wanted: int) -> None:
        if settled == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find(study, path, changes=renew, progress=stop)
    results = find(study, path, changes=renew, review=review)
    assert {task.models for task in searched} == {
        pair for pair in combinations(sorted(study.models), 2) if name in pair
    }
    assert len(searched) == len({task.natural for task in searched}) == 4
    after = assigned(path)
    assert all(after[pair][place] == s for pair in naturals for place, s in naturals[pair].items())
    # What was rejected for good is not searched again, whatever the model has become
    assert rejected.natural not in {task.natural for task in searched}
    assert_searched_one_by_one(results, study)
    searched.clear()
    assert find(study, path, changes=renew) == results
    assert not searched


def test_other_sentences_replace_those_that_are_gone_and_no_others(
    plan: Callable[..., SynthesisPlan], searched: list[TripletTask], tmp_path: Path
) -> None:
    path = tmp_path / "study.sqlite"
    study = plan(0, 1, 2, sentences=plan(0, 1).sentences[:60])
    before = find(study, path)
    gone = before.triplets[3]
    further = plan(0, 1).sentences[60:70]
    sentences = (*further, *(s for s in study.sentences if s != gone.natural))
    changed = replace(study, sentences=sentences)
    with pytest.raises(StoreError, match="sentences: "):
        find(changed, path)
    searched.clear()
    results = find(changed, path, changes=AllowedChanges(sentences=True))
    (task,) = searched
    assert task.models == (gone.model_1, gone.model_2)
    assert (results.unaltered, results.gone, results.new) == (5, 1, 1)
    assert [t for t in before.triplets if t != gone] == [
        t for t in results.triplets if t.natural != task.natural
    ]
    # In the same place
    assert [t.natural for t in results.triplets].index(task.natural) == 3
    assert_searched_one_by_one(results, changed)
    few = tuple(t.natural for t in before.triplets[:2])
    with pytest.raises(InputError, match="Too few natural sentences"):
        find(replace(study, sentences=few), path, changes=AllowedChanges(sentences=True))
    assert find(changed, path) == results


def test_another_vocabulary_has_all_searched_again_from_the_same_sentences(
    plan: Callable[..., SynthesisPlan],
    words: Vocabulary,
    searched: list[TripletTask],
    tmp_path: Path,
) -> None:
    """But for a sentence that has a word that is not in it any more."""
    path = tmp_path / "study.sqlite"
    study = plan(0, 1, 2)
    before = find(study, path)
    find(plan(0, 1), path, changes=MODELS)  # a model that is left out meanwhile, too
    lost = before.triplets[0].natural
    others = {w for t in before.triplets[1:] for w in t.natural.words}
    word = next(w for w in lost.words[1:] if w not in others)
    fewer = Vocabulary(words.initial, tuple(w for w in words.inner if w != word), words.repeatable)
    changed = plan(0, 1, vocabulary=fewer)
    with pytest.raises(StoreError, match="vocabulary: "):
        find(changed, path)
    searched.clear()
    find(changed, path, changes=AllowedChanges(vocabulary=True))
    results = find(replace(study, vocabulary=fewer), path, changes=MODELS)
    assert len(searched) == len({task.natural for task in searched}) == 6
    stays = [t.natural for t in before.triplets if t.natural != lost]
    assert [t.natural for t in results.triplets if t.natural in stays] == stays
    assert lost not in {task.natural for task in searched}
    assert_searched_one_by_one(results, replace(study, vocabulary=fewer))


@pytest.fixture
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cap, "_TRIPLETS_PER_WAVE", 6)
    monkeypatch.setattr(word_cap, "_LEAST_PER_PAIR", 2)


@pytest.mark.usefixtures("small_waves")
def test_a_cap_on_words_holds_while_models_come_and_go(
    plan: Callable[..., SynthesisPlan], searched: list[TripletTask], tmp_path: Path
) -> None:
    """Witness: counting; and the same run without interruption."""
    cap = WordCap(6, REPEATABLE_ENGLISH | {"is", "has", "his", "her", "their"})
    start = tmp_path / "start.sqlite"
    small, large = plan(0, 1, per_pair=4, cap=cap), plan(0, 1, 2, per_pair=4, cap=cap)
    before = find(small, start)
    paths = [tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"]
    for path in paths:
        path.write_bytes(start.read_bytes())
    searched.clear()
    whole = find(large, paths[0], changes=MODELS)
    assert before.triplets == whole.triplets[: len(before.triplets)]
    assert small.pairs[0] not in {task.models for task in searched}
    calls = 0

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KeyboardInterrupt

    for _ in range(100):
        try:
            resumed = find(large, paths[1], changes=MODELS, progress=progress)
            break
        except KeyboardInterrupt:
            continue
    assert resumed == whole
    left = find(plan(1, 2, per_pair=4, cap=cap), paths[1], changes=MODELS)
    assert {*left.triplets} < {*whole.triplets}
    results = find(plan(0, 1, 2, 3, per_pair=4, cap=cap), paths[1], changes=MODELS)
    assert {*whole.triplets} <= {*results.triplets}
    counts = Counter(
        word
        for t in results.triplets
        for s in (t.natural, t.synthetic_1, t.synthetic_2)
        for word in {w.lower() for w in s.words} - cap.uncapped
    )
    assert max(counts.values()) <= cap.sentences


def test_a_store_from_before_assignments_were_kept_goes_on_and_grows(
    plan: Callable[..., SynthesisPlan], searched: list[TripletTask], tmp_path: Path
) -> None:
    """Witness: the same store with them."""
    path, old = tmp_path / "new.sqlite", tmp_path / "old.sqlite"
    before = find(plan(0, 1), path)
    old.write_bytes(path.read_bytes())
    connection = sqlite3.connect(old)
    connection.execute("DROP TABLE assignment")
    connection.execute("PRAGMA user_version = 5")
    connection.close()
    older = tmp_path / "older.sqlite"
    older.write_bytes(old.read_bytes())
    searched.clear()
    assert find(plan(0, 1), old) == before
    assert not searched
    expected = find(plan(0, 1, 2), path, changes=MODELS)
    for some in (old, older):
        assert find(plan(0, 1, 2), some, changes=MODELS) == expected


def grow_and_die(study: SynthesisPlan, path: Path, after: int) -> None:
    """Grow a store in this process, which kills itself after some searches."""
    calls = 0

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal calls
        if calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1

    find(study, path, progress=progress, changes=MODELS)


@pytest.fixture
def started(plan: Callable[..., SynthesisPlan], tmp_path: Path) -> Path:
    path = tmp_path / "started.sqlite"
    find(plan(0, 1), path)
    return path


def test_killed_while_it_grows_the_job_goes_on(
    plan: Callable[..., SynthesisPlan], started: Path, tmp_path: Path
) -> None:
    """Witness: a run that nobody killed. At 0 nothing of the new model has been searched."""
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    for path in (whole, killed):
        path.write_bytes(started.read_bytes())
    study = plan(0, 1, 2, plausible=plan(0, 1).plausible)
    expected = find(study, whole, changes=MODELS)
    for after in (0, 1, 2):
        process = multiprocessing.get_context("spawn").Process(
            target=grow_and_die, args=(study, killed, after)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert find(study, killed, changes=MODELS) == expected
    assert assigned(killed) == assigned(whole)
