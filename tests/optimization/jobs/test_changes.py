"""Studies that change: each equals one that was made at once, and no search is repeated."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contstim.items.stimuli import Triplet
from contstim.optimization.jobs.results import TripletResults
from contstim.words.vocabulary import Vocabulary
from tests.examples import examples
from tests.optimization.jobs.studies import (
    MADE_UP,
    MODELS,
    NATURALS,
    NOUNS,
    WORDS,
    MadeUpSearches,
)

ORDERED = sorted(MODELS)


def triplets_by_pair(results: TripletResults) -> dict[tuple[str, str], list[Triplet]]:
    pairs: dict[tuple[str, str], list[Triplet]] = {}
    for triplet in results.triplets:
        pairs.setdefault((triplet.model_1, triplet.model_2), []).append(triplet)
    return pairs


@pytest.fixture(scope="module")
def made_up() -> Iterator[MadeUpSearches]:
    with pytest.MonkeyPatch.context() as patch:
        yield MadeUpSearches(patch)


Edits = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "models": st.lists(st.sampled_from(MODELS), min_size=2, unique=True).map(tuple),
            "sentences": st.lists(st.sampled_from(NATURALS), min_size=20, unique=True).map(tuple),
            "per_pair": st.integers(1, 4),
            "exclude": st.sets(st.sampled_from(NOUNS[:6]), max_size=2).map(sorted).map(tuple),
            "max_changes": st.sampled_from([None, 3]),
            "seed": st.integers(0, 1),
        },
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=Edits)
def test_whatever_was_searched_before_a_study_equals_one_made_at_once(
    made_up: MadeUpSearches, tmp_path_factory: pytest.TempPathFactory, edits: list[dict[str, Any]]
) -> None:
    """Witness: the same study in a new store."""
    folder = tmp_path_factory.mktemp("edited")
    searched: list[str] = []
    for number, edit in enumerate(edits):
        study = MADE_UP.but(**{"per_pair": 2, **edit})
        made_up.done.clear()
        results = study.find(folder / "grown.sqlite")
        searched += [task.key for task in made_up.done]
        assert results == study.find(folder / f"{number}.sqlite")
        excluded = {*study.question.exclude}
        shown = [s for t in results.triplets for s in (t.natural, t.synthetic_1, t.synthetic_2)]
        assert not excluded & {word.lower() for sentence in shown for word in sentence.words}
        assert {t.natural for t in results.triplets} <= {*study.sentences}
        for pair in results.pairs:
            assert pair.triplets + pair.missing == study.question.per_pair
    assert len({*searched}) == len(searched)


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("models", ["", " where kenlm:a.arpa and kenlm:b.arpa rejects", None])
def test_a_reason_has_the_names_of_the_user_instead_of_specifications(
    tmp_path: Path, models: str | None
) -> None:
    """Of a search for few new words; without `models`, of another one."""
    results = MADE_UP.find(tmp_path / "s.sqlite")
    distinct = replace(results.triplets[0], model_1="first", model_2="second")
    one = replace(distinct, synthetic_1=distinct.natural)
    both = replace(one, synthetic_2=one.natural)
    few, same = "few new words do not reach 5 nats", "should reject is the natural sentence"
    reasons = [f"{few} where first rejects", f"{few} where first and second reject"]
    if models is None:
        reasons = [f"the sentence that first {same}"]
        reasons += [f"{reasons[0]}, and the sentence that second {same}"]
    for triplet, reason in zip((one, both), reasons, strict=True):
        result = replace(
            results.searches[0],
            model_1="first",
            model_2="second",
            natural=triplet.natural.text,
            triplet=triplet,
            reason=f"the sentence that kenlm:a.arpa {same}" if models is None else few + models,
        )
        assert replace(results, searches=(result,)).why_unchanged(triplet) == reason


def test_more_triplets_follow_the_first_ones(searches: MadeUpSearches, tmp_path: Path) -> None:
    path, more = tmp_path / "grown.sqlite", MADE_UP.but(per_pair=6)
    before = triplets_by_pair(MADE_UP.find(path))
    after = triplets_by_pair(more.find(path))
    assert {pair: triplets[:4] for pair, triplets in after.items()} == before
    searches.done.clear()
    assert triplets_by_pair(MADE_UP.find(path)) == before
    assert not searches.done


def test_models_that_come_and_go_leave_the_searches_of_others_alone(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: only pairs of a new model are searched, and all others have the same triplets."""
    path, known = tmp_path / "grown.sqlite", dict[tuple[str, str], list[Triplet]]()
    steps = [ORDERED[:2], ORDERED[:3], ORDERED[:3:2], ORDERED[::-1]]
    for models, n_new in zip(steps, (1, 2, 0, 3), strict=True):
        searches.done.clear()
        results = MADE_UP.but(models=tuple(models)).find(path)
        pairs = [*combinations(sorted(models), 2)]
        assert [(pair.model_1, pair.model_2) for pair in results.pairs] == pairs
        by_pair = triplets_by_pair(results)
        assert {pair: by_pair[pair] for pair in known if pair in by_pair} == {
            pair: triplets for pair, triplets in known.items() if pair in by_pair
        }
        assert {task.models for task in searches.done} == by_pair.keys() - known.keys()
        assert len(by_pair.keys() - known.keys()) == n_new
        known |= by_pair


def test_a_sentence_that_is_left_out_changes_only_the_triplet_that_began_with_it(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path = tmp_path / "s.sqlite"
    before = MADE_UP.find(path)
    removed = before.triplets[5].natural
    searches.done.clear()
    after = MADE_UP.but(sentences=tuple(s for s in NATURALS if s != removed)).find(path)
    kept = [triplet for triplet in before.triplets if triplet.natural != removed]
    assert [triplet for triplet in after.triplets if triplet in before.triplets] == kept
    lost = {(t.model_1, t.model_2) for t in before.triplets if t.natural == removed}
    assert {task.models for task in searches.done} == lost


@pytest.mark.parametrize(
    "values",
    [
        {"seed": 6},
        {"same_length": 3},
        {"restarts": 5},
        {"max_changes": 1},
        {"fix": ("verb1",)},
        {"exclude": ("noun3",)},
        {"vocabulary": Vocabulary(WORDS.initial, (*WORDS.inner, "another"))},
    ],
)
def test_a_setting_that_determines_results_has_all_searched_again(
    searches: MadeUpSearches, tmp_path: Path, values: dict[str, Any]
) -> None:
    path = tmp_path / "s.sqlite"
    before = MADE_UP.find(path)
    searches.done.clear()
    MADE_UP.but(**values).find(path)
    keys = {task.key for task in searches.done}
    assert len(keys) == len(searches.done) >= 12
    searches.done.clear()
    assert MADE_UP.find(path) == before
    assert not searches.done


def test_a_model_that_changed_has_its_pairs_searched_again(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path = tmp_path / "s.sqlite"
    before = MADE_UP.find(path)
    searches.done.clear()
    searches.fingerprints = {"kenlm:a.arpa": "another"}
    after = MADE_UP.find(path)
    pairs = [("kenlm:a.arpa", other) for other in ("kenlm:b.arpa", "kenlm:c.arpa")]
    assert {task.models for task in searches.done} == {*pairs}
    others = [t for t in before.triplets if (t.model_1, t.model_2) not in pairs]
    assert [t for t in after.triplets if t in before.triplets] == others


def grow_and_die(path: Path, after: int) -> None:
    """Grow a study in this process, which kills itself after some searches."""
    calls = 0

    def progress(_ended: int, _wanted: int) -> None:
        nonlocal calls
        if calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1

    with pytest.MonkeyPatch.context() as patch:
        MadeUpSearches(patch)
        MADE_UP.find(path, progress=progress)


def test_a_study_that_was_killed_while_it_grew_continues(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: a run without a kill; at 0 no search of the new model has been made."""
    killed, unharmed = tmp_path / "killed.sqlite", tmp_path / "whole.sqlite"
    for path in (killed, unharmed):
        MADE_UP.but(models=ORDERED[:2]).find(path)
    searches.done.clear()
    expected = MADE_UP.find(unharmed)
    n_searches = len(searches.done)
    searches.done.clear()
    for after in (0, 2, 3):
        process = multiprocessing.get_context("fork").Process(
            target=grow_and_die, args=(killed, after)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert MADE_UP.find(killed) == expected
    # Reported searches are not repeated: one for each call but the first of each run
    assert len(searches.done) == n_searches - 2 - 3
