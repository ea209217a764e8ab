"""Studies that change: whatever is searched again or anew, nothing else is."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.items.stimuli import Triplet
from contstim.optimization.jobs.results import TripletResults
from contstim.store import Store, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples
from tests.optimization.jobs.studies import (
    MADE_UP,
    MODELS,
    NATURALS,
    NOUNS,
    WORDS,
    MadeUpSearches,
    found,
    reviewed,
)

Assigned = dict[tuple[str, str, int], str]
ORDERED = sorted(MODELS)


def assigned(path: Path, seed: int = 0) -> Assigned:
    with Store(path) as store:
        slots = TripletStore(store).slots(seed)
    return {(*slot.pair, slot.slot): slot.sentence.text for slot in slots}


def whole(results: TripletResults) -> tuple[Triplet, ...]:
    return results.triplets + results.unchanged


def but_held(results: TripletResults) -> TripletResults:
    """Without the sentences of pairs, of which other searches in vain may have held more ready."""
    return replace(results, assignment=())


def test_a_finished_study_searches_no_more_whatever_the_order_of_its_models(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    results = MADE_UP.find(tmp_path / "s.sqlite")
    pairs = [(pair.model_1, pair.model_2) for pair in results.pairs]
    assert pairs == list(combinations(sorted(MADE_UP.models), 2))
    assert len(results.triplets) == 12
    searches.done.clear()
    turned = MADE_UP.but(models=MADE_UP.models[::-1], sentences=NATURALS[::-1])
    assert turned.find(tmp_path / "s.sqlite") == MADE_UP.find(tmp_path / "s.sqlite") == results
    assert not searches.done
    assert turned.find(tmp_path / "other.sqlite") == results


def test_more_triplets_are_added_and_fewer_are_the_first(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: a run that wanted so many from the start."""
    path, more = tmp_path / "grown.sqlite", MADE_UP.but(per_pair=6)
    at_once = more.find(tmp_path / "once.sqlite")
    before = MADE_UP.find(path)
    searches.done.clear()
    assert more.find(path) == at_once
    assert {task.natural for task in searches.done}.isdisjoint(t.natural for t in whole(before))
    searches.done.clear()
    assert MADE_UP.find(path).triplets == before.triplets
    assert not searches.done


@pytest.mark.parametrize(
    "values",
    [
        {"seed": 6},
        {"recipe": "golan2023"},
        {"restarts": 5},
        {"max_changes": 1},
        {"fix": ("verb1",)},
        {"capitals": "rules"},
        {"fluency": "kenlm:e.arpa:-60"},
        {"vocabulary": Vocabulary(WORDS.initial, (*WORDS.inner, "another"))},
    ],
)
def test_what_decides_a_result_has_all_searched_anew_and_going_back_finds_what_was_found(
    searches: MadeUpSearches, tmp_path: Path, values: dict[str, Any]
) -> None:
    before = MADE_UP.find(tmp_path / "s.sqlite")
    other = MADE_UP.but(**values)
    searches.done.clear()
    results = other.find(tmp_path / "s.sqlite")
    keys = {task.key for task in searches.done}
    assert len(keys) == len(searches.done) >= 12
    assert but_held(results) == but_held(other.find(tmp_path / "new.sqlite"))
    searches.done.clear()
    assert but_held(MADE_UP.find(tmp_path / "s.sqlite")) == but_held(before)
    assert other.find(tmp_path / "s.sqlite") == results
    assert not searches.done


def test_models_that_come_and_go_leave_the_searches_of_others_alone(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path = tmp_path / "grown.sqlite"
    MADE_UP.but(models=ORDERED[:2]).find(path)
    before = assigned(path)
    steps = [ORDERED[:3], ORDERED[:3:2], [ORDERED[0], *ORDERED[2:]], ORDERED[::-1]]
    for models, new in zip(steps, (2, 0, 2, 1), strict=True):
        searches.done.clear()
        study = MADE_UP.but(models=tuple(models))
        results = study.find(path)
        pairs = list(combinations(sorted(models), 2))
        assert [(pair.model_1, pair.model_2) for pair in results.pairs] == pairs
        assert {(row.model_1, row.model_2) for row in results.assignment} == {*pairs}
        # Only pairs of a model that was not there before
        searched = {task.models for task in searches.done}
        assert searched.isdisjoint(key[:2] for key in before)
        assert len(searched) == new
        now = assigned(path)
        assert {key: now[key] for key in before} == before
        before = now
    assert len({*before.values()}) == len(before)
    assert len(results.triplets) == 24
    searches.done.clear()
    assert study.find(path) == results
    assert not searches.done


def test_a_model_that_changed_has_its_pairs_searched_again_from_the_same_sentences(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Killed on the way and started again, nothing that was searched anew is lost."""
    path = tmp_path / "s.sqlite"
    before = MADE_UP.find(path)
    rejected = next(t for t in before.triplets if "a" in t.model_1[6:])
    reviewing = MADE_UP.find(path, review=reviewed(before.triplets, (rejected,)))
    sentences = assigned(path)
    searches.fingerprints = {"kenlm:a.arpa": "another"}
    searches.done.clear()

    def stop(settled: int, _wanted: int) -> None:
        if settled == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MADE_UP.find(path, progress=stop)
    results = MADE_UP.find(path)
    assert all("kenlm:a.arpa" in task.models for task in searches.done)
    naturals = [task.natural for task in searches.done]
    assert len({*naturals}) == len(naturals) >= 7
    now = assigned(path)
    assert {key: now[key] for key in sentences} == sentences
    # What was rejected for good is not searched again, whatever the model has become
    assert rejected.natural not in naturals
    searches.done.clear()
    searches.fingerprints = {}
    assert but_held(MADE_UP.find(path)) == but_held(reviewing)
    searches.fingerprints = {"kenlm:a.arpa": "another"}
    assert MADE_UP.find(path) == results
    assert not searches.done


def test_other_sentences_replace_those_that_are_gone_and_no_others(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path, study = tmp_path / "s.sqlite", MADE_UP.but(sentences=NATURALS[:30])
    before = study.find(path)
    gone = before.triplets[5]
    others = tuple(s for s in NATURALS if s != gone.natural)
    searches.done.clear()
    results = study.but(sentences=others).find(path)
    models = {task.models for task in searches.done}
    assert models == {(gone.model_1, gone.model_2)}
    assert [t for t in before.triplets if t != gone] == [
        t for t in results.triplets if t.natural not in {task.natural for task in searches.done}
    ]
    assert len({*before.triplets} & {*results.triplets}) == 11
    few = study.but(sentences=tuple(t.natural for t in before.triplets[:2]))
    with pytest.raises(InputError, match="Too few natural sentences"):
        few.find(path)
    assert study.but(sentences=others).find(path) == results


def test_other_words_have_all_searched_again_from_the_sentences_that_they_allow(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path = tmp_path / "s.sqlite"
    before = MADE_UP.find(path)
    lost, sentences = before.triplets[0].natural, assigned(path)
    MADE_UP.but(models=ORDERED[:2]).find(path)  # a model that is left out meanwhile, too
    starts = tuple(word for word in WORDS.initial if word != lost.words[0])
    fewer = MADE_UP.but(vocabulary=Vocabulary(starts, WORDS.inner))
    searches.done.clear()
    results = fewer.find(path)
    assert len(results.triplets) == 12
    assert lost not in {task.natural for task in searches.done}
    now = assigned(path)
    assert [text for key, text in sentences.items() if now[key] != text] == [lost.text]


@pytest.fixture(scope="module")
def made_up() -> Iterator[MadeUpSearches]:
    with pytest.MonkeyPatch.context() as patch:
        yield MadeUpSearches(patch)


Edits = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "models": st.sets(st.sampled_from(MODELS), min_size=2).map(sorted).map(tuple),
            "sentences": st.sets(st.sampled_from(NATURALS), min_size=54).map(tuple),
            "per_pair": st.integers(1, 3),
            "exclude": st.sets(st.sampled_from(NOUNS[:6]), max_size=2).map(sorted).map(tuple),
            "recipe": st.sampled_from(["default", "golan2023"]),
        },
    ),
    min_size=2,
    max_size=6,
)


# A sentence that is gone, was searched in vain by another recipe, and comes back
BACK = [
    {},
    {
        "per_pair": 1,
        "models": ("kenlm:a.arpa", "kenlm:c.arpa"),
        "recipe": "golan2023",
        "exclude": ("noun3",),
    },
    {"sentences": NATURALS[:54]},
    {},
]


@example(edits=BACK, rejecting=[0] * 6)
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=Edits, rejecting=st.lists(st.integers(0, 5), min_size=6, max_size=6))
def test_whatever_is_edited_what_holds_stays_and_nothing_is_searched_twice(
    made_up: MadeUpSearches,
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[dict[str, Any]],
    rejecting: list[int],
) -> None:
    """Witness: what stood before each edit, and what a search of each natural sentence finds."""
    path = tmp_path_factory.mktemp("edited") / "s.sqlite"
    made_up.done.clear()
    stood: dict[str, Triplet] = {}
    rejected: set[str] = set()
    recipe, before_excluded, per_pair_before = "", set[str](), 0
    pool_before: tuple[Sentence, ...] = ()
    for edit, number in zip(edits, rejecting, strict=False):
        study = MADE_UP.but(**{"per_pair": 2, **edit})
        review, rejected_before = None, rejected
        if number < len(stood):
            out = tuple(stood.values())[number]
            rejected = {*rejected, out.triplet_id}
            review = reviewed(tuple(stood.values()), (out,))
        try:
            results = study.find(path, review=review)
        except InputError as error:
            # Only where a sentence that a pair had is gone, and no other is free
            told = "Too few natural sentences" in str(error)
            if not told or {*pool_before} <= {*study.sentences}:
                raise
            rejected = rejected_before
            continue
        pool_before = (*pool_before, *study.sentences)
        triplets = whole(results)
        excluded = {*study.question.exclude}
        shown = [s for t in triplets for s in (t.natural, t.synthetic_1, t.synthetic_2)]
        assert not excluded & {word.lower() for s in shown for word in s.words}
        assert not rejected & {t.triplet_id for t in triplets}
        naturals = [t.natural for t in triplets]
        assert len({*naturals}) == len(naturals)
        assert {*naturals} <= {*study.sentences}
        per_pair = Counter(frozenset((t.model_1, t.model_2)) for t in results.triplets)
        pairs = map(frozenset, combinations(study.models, 2))
        # Sentences may run out where those rejected, impossible and in vain are many; this is said
        missing = {frozenset((p.model_1, p.model_2)): p.missing for p in results.pairs}
        wanted = study.question.per_pair
        assert {pair: per_pair[pair] + missing[pair] for pair in pairs} == dict.fromkeys(
            missing, wanted
        )
        now = {t.triplet_id: t for t in triplets}
        if recipe == study.question.recipe:
            for name, triplet in stood.items():
                sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
                pair = {triplet.model_1, triplet.model_2}
                if (
                    pair <= {*study.models}
                    and triplet.natural in study.sentences
                    and name not in rejected
                    and excluded == before_excluded
                    and not excluded & {word.lower() for s in sentences for word in s.words}
                    and study.question.per_pair >= per_pair_before
                ):
                    assert name in now
        stood, recipe = now, study.question.recipe
        before_excluded, per_pair_before = excluded, study.question.per_pair
    keys = [task.key for task in made_up.done]
    assert len({*keys}) == len(keys)


def grow_and_die(path: Path, after: int) -> None:
    """Grow a study in this process, which kills itself after some searches."""
    calls = 0

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal calls
        if calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1

    with pytest.MonkeyPatch.context() as patch:
        MadeUpSearches(patch)
        MADE_UP.find(path, progress=progress)


def test_killed_while_it_grows_a_study_goes_on(searches: MadeUpSearches, tmp_path: Path) -> None:
    """Witness: a run that nobody killed. At 0 nothing of the new model has been searched."""
    killed, unharmed = tmp_path / "killed.sqlite", tmp_path / "whole.sqlite"
    for path in (killed, unharmed):
        MADE_UP.but(models=ORDERED[:2]).find(path)
    expected = MADE_UP.find(unharmed)
    searches.done.clear()
    for after in (0, 2, 3):
        process = multiprocessing.get_context("fork").Process(
            target=grow_and_die, args=(killed, after)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert MADE_UP.find(killed) == expected
    assert assigned(killed) == assigned(unharmed)
    # What was acknowledged is not searched again: one for each call but the first of each run
    assert len(searches.done) <= len(
        [t for t in whole(expected) if MODELS[0] in (t.model_1, t.model_2)]
    )


def test_made_up_searches_depend_on_what_is_searched_alone(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    MADE_UP.find(tmp_path / "s.sqlite")
    assert all(found(task) == found(task) for task in searches.done)
    assert {found(task).state for task in searches.done} == {"found", "inadmissible"}
