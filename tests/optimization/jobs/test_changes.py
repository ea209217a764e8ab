"""Changed studies equal new studies with the same settings, and no search is repeated."""

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
    FAKE_STUDY,
    MODELS,
    NATURALS,
    NOUNS,
    WORDS,
    FakeSearches,
)

SORTED_MODELS = sorted(MODELS)


def group_triplets_by_pair(results: TripletResults) -> dict[tuple[str, str], list[Triplet]]:
    pairs: dict[tuple[str, str], list[Triplet]] = {}
    for triplet in results.triplets:
        pairs.setdefault((triplet.model_1, triplet.model_2), []).append(triplet)
    return pairs


@pytest.fixture(scope="module")
def module_searches() -> Iterator[FakeSearches]:
    with pytest.MonkeyPatch.context() as patch:
        yield FakeSearches(patch)


EDITS = st.lists(
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
@given(edits=EDITS)
def test_edited_studies_equal_new_ones(
    module_searches: FakeSearches,
    tmp_path_factory: pytest.TempPathFactory,
    edits: list[dict[str, Any]],
) -> None:
    """Witness: the same study in a new store."""
    folder = tmp_path_factory.mktemp("edited")
    keys: list[str] = []
    for number, edit in enumerate(edits):
        study = FAKE_STUDY.with_values(**{"per_pair": 2, **edit})
        module_searches.tasks.clear()
        results = study.find(folder / "grown.sqlite")
        keys += [task.key for task in module_searches.tasks]
        assert results == study.find(folder / f"{number}.sqlite")
        excluded = {*study.question.exclude}
        sentences = [s for t in results.triplets for s in (t.natural, t.synthetic_1, t.synthetic_2)]
        assert not excluded & {word.lower() for sentence in sentences for word in sentence.words}
        assert {t.natural for t in results.triplets} <= {*study.sentences}
        for pair in results.pairs:
            assert pair.triplets + pair.missing == study.question.per_pair
    assert len({*keys}) == len(keys)


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("models", ["", " where kenlm:a.arpa and kenlm:b.arpa rejects", None])
def test_reasons_name_models_as_the_user_does(tmp_path: Path, models: str | None) -> None:
    """Covers searches for few new words and, without `models`, other searches."""
    results = FAKE_STUDY.find(tmp_path / "s.sqlite")
    distinct = replace(results.triplets[0], model_1="first", model_2="second")
    half_changed = replace(distinct, synthetic_1=distinct.natural)
    unchanged = replace(half_changed, synthetic_2=half_changed.natural)
    few_words = "few new words do not reach 5 nats"
    natural_kept = "should reject is the natural sentence"
    reasons = [f"{few_words} where first rejects", f"{few_words} where first and second reject"]
    if models is None:
        reasons = [f"the sentence that first {natural_kept}"]
        reasons += [f"{reasons[0]}, and the sentence that second {natural_kept}"]
    for triplet, reason in zip((half_changed, unchanged), reasons, strict=True):
        result = replace(
            results.searches[0],
            model_1="first",
            model_2="second",
            natural=triplet.natural.text,
            triplet=triplet,
            reason=f"the sentence that kenlm:a.arpa {natural_kept}"
            if models is None
            else few_words + models,
        )
        assert replace(results, searches=(result,)).why_unchanged(triplet) == reason


def test_a_larger_per_pair_appends_triplets(searches: FakeSearches, tmp_path: Path) -> None:
    path, larger_study = tmp_path / "grown.sqlite", FAKE_STUDY.with_values(per_pair=6)
    old_triplets = group_triplets_by_pair(FAKE_STUDY.find(path))
    new_triplets = group_triplets_by_pair(larger_study.find(path))
    assert {pair: triplets[:4] for pair, triplets in new_triplets.items()} == old_triplets
    searches.tasks.clear()
    assert group_triplets_by_pair(FAKE_STUDY.find(path)) == old_triplets
    assert not searches.tasks


def test_changing_models_keeps_other_pairs(searches: FakeSearches, tmp_path: Path) -> None:
    """Witness: searches run only for pairs of a new model; other pairs keep their triplets."""
    path, earlier = tmp_path / "grown.sqlite", dict[tuple[str, str], list[Triplet]]()
    steps = [SORTED_MODELS[:2], SORTED_MODELS[:3], SORTED_MODELS[:3:2], SORTED_MODELS[::-1]]
    for models, n_new in zip(steps, (1, 2, 0, 3), strict=True):
        searches.tasks.clear()
        results = FAKE_STUDY.with_values(models=tuple(models)).find(path)
        pairs = [*combinations(sorted(models), 2)]
        assert [(pair.model_1, pair.model_2) for pair in results.pairs] == pairs
        by_pair = group_triplets_by_pair(results)
        assert {pair: by_pair[pair] for pair in earlier if pair in by_pair} == {
            pair: triplets for pair, triplets in earlier.items() if pair in by_pair
        }
        assert {task.models for task in searches.tasks} == by_pair.keys() - earlier.keys()
        assert len(by_pair.keys() - earlier.keys()) == n_new
        earlier |= by_pair


def test_removing_a_sentence_changes_one_triplet(searches: FakeSearches, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    before = FAKE_STUDY.find(path)
    removed = before.triplets[5].natural
    searches.tasks.clear()
    later = FAKE_STUDY.with_values(sentences=tuple(s for s in NATURALS if s != removed)).find(path)
    other_triplets = [triplet for triplet in before.triplets if triplet.natural != removed]
    assert [triplet for triplet in later.triplets if triplet in before.triplets] == other_triplets
    affected_pairs = {(t.model_1, t.model_2) for t in before.triplets if t.natural == removed}
    assert {task.models for task in searches.tasks} == affected_pairs


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
def test_settings_that_determine_results_repeat_all_searches(
    searches: FakeSearches, tmp_path: Path, values: dict[str, Any]
) -> None:
    path = tmp_path / "s.sqlite"
    results = FAKE_STUDY.find(path)
    searches.tasks.clear()
    FAKE_STUDY.with_values(**values).find(path)
    keys = {task.key for task in searches.tasks}
    assert len(keys) == len(searches.tasks) >= 12
    searches.tasks.clear()
    assert FAKE_STUDY.find(path) == results
    assert not searches.tasks


def test_a_changed_model_repeats_its_searches(searches: FakeSearches, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    before = FAKE_STUDY.find(path)
    searches.tasks.clear()
    searches.fingerprints = {"kenlm:a.arpa": "another"}
    later = FAKE_STUDY.find(path)
    pairs = [("kenlm:a.arpa", other_model) for other_model in ("kenlm:b.arpa", "kenlm:c.arpa")]
    assert {task.models for task in searches.tasks} == {*pairs}
    other_triplets = [t for t in before.triplets if (t.model_1, t.model_2) not in pairs]
    assert [t for t in later.triplets if t in before.triplets] == other_triplets


def grow_and_kill(path: Path, n: int) -> None:
    """Grow a study in this process, which kills itself after some reports of progress."""
    calls = 0

    def progress(_settled: int, _total: int) -> None:
        nonlocal calls
        if calls == n:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1

    with pytest.MonkeyPatch.context() as patch:
        FakeSearches(patch)
        FAKE_STUDY.find(path, progress=progress)


def test_a_study_killed_while_growing_continues(searches: FakeSearches, tmp_path: Path) -> None:
    """Witness: a run without a kill. After 0 reports, the new model has no search yet."""
    killed, uninterrupted = tmp_path / "killed.sqlite", tmp_path / "whole.sqlite"
    for path in (killed, uninterrupted):
        FAKE_STUDY.with_values(models=SORTED_MODELS[:2]).find(path)
    searches.tasks.clear()
    expected = FAKE_STUDY.find(uninterrupted)
    n_searches = len(searches.tasks)
    searches.tasks.clear()
    for n in (0, 2, 3):
        process = multiprocessing.get_context("fork").Process(
            target=grow_and_kill, args=(killed, n)
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert FAKE_STUDY.find(killed) == expected
    # Reported searches are not repeated; all calls but the first of a run report one
    assert len(searches.tasks) == n_searches - 2 - 3
