from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError, ModelError, StoreError, VocabularyError, WorkerError
from contstim.jobs import LocalExecutor, ProcessExecutor
from contstim.jobs.pool import Executor
from contstim.models.base import Convention
from contstim.models.loading import Loading
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.plan import SynthesisPlan, seed_for
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.tasks import ModelProfile, TripletTask
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.search.recipes import DEFAULT, recipe_named
from contstim.optimization.search.restarts import SINGLE, SearchBudget
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.sentence import Sentence
from contstim.store import Store, TripletStore
from contstim.vocabulary import Vocabulary

Changed = Callable[..., SynthesisPlan]


def find(
    study: SynthesisPlan, path: Path, executor: Executor | None = None, **options: Any
) -> TripletResults:
    context = SearchContext(
        Loading(device="cpu"), vocabulary=study.vocabulary, allow_unknown=study.allow_unknown
    )
    with Store(path) as store:
        return find_triplets(study, store, executor or LocalExecutor(), context, **options)


@pytest.fixture(scope="module")
def finished(
    study: SynthesisPlan, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, TripletResults]:
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    return path, find(study, path)


@pytest.fixture
def whole(finished: tuple[Path, TripletResults]) -> TripletResults:
    """What an uninterrupted run finds."""
    return finished[1]


@pytest.fixture(scope="module")
def thorough(
    changed: Changed, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, TripletResults]:
    """A store of longer searches, in several rounds, and what they found."""
    path = tmp_path_factory.mktemp("thorough") / "whole.sqlite"
    return path, find(changed(recipe="default", per_pair=1), path)


@pytest.fixture
def store(finished: tuple[Path, TripletResults], tmp_path: Path) -> Path:
    """A copy of the store that an uninterrupted run leaves."""
    copied = tmp_path / "copied.sqlite"
    copied.write_bytes(finished[0].read_bytes())
    return copied


@pytest.mark.parametrize(
    ("recipe", "fixture", "per_pair"), [("golan2023", "finished", 4), ("default", "thorough", 1)]
)
def test_every_pair_has_its_triplets_and_no_sentence_is_used_twice(
    study: SynthesisPlan,
    words: Vocabulary,
    recipe: str,
    fixture: str,
    per_pair: int,
    request: pytest.FixtureRequest,
) -> None:
    """Witness: one call of `synthesize_triplet` each, with the job's seed."""
    results: TripletResults = request.getfixturevalue(fixture)[1]
    assert results.complete
    pairs = [(t.model_1, t.model_2) for t in results.triplets]
    assert pairs == [pair for pair in combinations(study.models, 2) for _ in range(per_pair)]
    assert len({t.natural for t in results.triplets}) == 3 * per_pair
    for triplet in results.triplets[:: per_pair + 1]:
        names = (triplet.model_1, triplet.model_2)
        first, second = (NgramModel(name.removeprefix("kenlm:"), name) for name in names)
        seed = seed_for(
            5, (first.convention.fingerprint, second.convention.fingerprint), triplet.natural.text
        )
        expected, *_ = synthesize_triplet(
            first,
            second,
            triplet.natural,
            words,
            recipe=recipe_named(recipe),
            seed=seed,
            seeds=3,
            restarts=SINGLE,
        )
        assert triplet == expected


def test_statistics_are_means_over_the_pairs_own_triplets(whole: TripletResults) -> None:
    for pair in whole.pairs:
        own = [t for t in whole.triplets if (t.model_1, t.model_2) == (pair.model_1, pair.model_2)]
        assert pair.triplets == len(own) == 4
        assert pair.controversiality == pytest.approx(np.mean([t.controversiality for t in own]))
        assert pair.drop_1 is not None
        assert pair.drop_2 is not None
        assert pair.drop_1 + pair.drop_2 == pytest.approx(pair.controversiality)
        assert (pair.unchanged, pair.failed, pair.inadmissible, pair.missing) == (0, 0, 0, 0)


@pytest.mark.parametrize("fixture", ["finished", "thorough"])
def test_trajectories_lead_from_the_natural_to_the_synthetic_sentence(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    """Step by step within a round; the triplet has the best sentence of all rounds."""
    path, results = request.getfixturevalue(fixture)
    with Store(path) as kept:
        columns = TripletStore(kept).trajectories()
    steps = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert (max(columns["round"]) > 0) == (fixture == "thorough")
    for triplet in results.triplets:
        for reject, synthetic in (
            (triplet.model_1, triplet.synthetic_1),
            (triplet.model_2, triplet.synthetic_2),
        ):
            own = [
                s for s in steps if (s["triplet_id"], s["reject"]) == (triplet.triplet_id, reject)
            ]
            sentence, number = triplet.natural, 0
            for step in own:
                after = Sentence.parse(step["sentence"])
                before = after.replace(step["position"], step["old"])
                assert after.words[step["position"]] == step["new"]
                assert before == sentence or step["round"] > number
                sentence, number = after, step["round"]
            best = min(own, key=lambda step: step["log_prob_reject"], default=None)
            assert str(synthetic) == (str(triplet.natural) if best is None else best["sentence"])


def test_a_finished_job_searches_no_more(
    study: SynthesisPlan, whole: TripletResults, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("searched again")

    monkeypatch.setattr(TripletTask, "perform", refuse)
    assert find(study, store) == whole


def test_more_triplets_a_pair_are_added_to_those_that_are_there(
    whole: TripletResults,
    store: Path,
    changed: Changed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Witness: a run that wanted so many from the start."""
    at_once = find(changed(per_pair=6), tmp_path / "other.sqlite")
    searched: list[str] = []
    genuine = TripletTask.perform

    def note(task: TripletTask, context: SearchContext) -> object:
        searched.append(task.natural.text)
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", note)
    assert find(changed(per_pair=6), store) == at_once
    assert len(searched) == 6
    assert {t.natural.text for t in at_once.triplets} - {
        t.natural.text for t in whole.triplets
    } == {*searched}
    with pytest.raises(StoreError, match="per pair: 6 → 4"):
        find(changed(per_pair=4), store)


@pytest.mark.parametrize(
    ("values", "difference"),
    [
        ({"seed": 6}, "seed: 5 → 6"),
        ({"recipe": "default"}, "recipe: golan2023 → default"),
        ({"restarts": SearchBudget(5)}, r"restarts: \(none\) → at most 5, until 5 in a row gain"),
        ({"allow_unknown": True}, "allow unknown: false → true"),
        ({"vocabulary": None}, "vocabulary: [0-9,]+ words, sha256 [0-9a-f]{16} → the models' own"),
    ],
)
def test_changed_settings_are_refused_showing_old_and_new(
    store: Path, changed: Changed, values: dict[str, Any], difference: str
) -> None:
    with pytest.raises(StoreError, match=difference):
        find(changed(**values), store)


def test_changed_sentences_and_models_are_refused(
    whole: TripletResults, store: Path, study: SynthesisPlan, changed: Changed
) -> None:
    n = len({*study.sentences})
    with pytest.raises(StoreError, match=f"sentences: {n} sentences, .* → {n - 1} sentences, "):
        find(changed(sentences=study.sentences[1:]), store)
    reordered = changed(sentences=study.sentences[::-1])
    assert find(reordered, store) == whole
    fewer = changed(models=study.models[:2])
    with pytest.raises(StoreError, match=r"model 3: kenlm:.*4gram.arpa → \(none\)"):
        find(fewer, store)


def test_a_model_that_changes_during_the_job_is_noticed(
    study: SynthesisPlan, trained: Path, tmp_path: Path
) -> None:
    """The file is overwritten after the models were looked at: three failures, not a mixture."""
    copies = []
    for n in (2, 3, 4):
        copies.append(tmp_path / f"{n}.arpa")
        copies[-1].write_bytes((trained / f"{n}gram.arpa").read_bytes())
    models = tuple(f"kenlm:{copy}" for copy in copies)
    mixed = SynthesisPlan(models, study.sentences, study.vocabulary, 2)

    def overwrite(settled: int, wanted: int) -> None:
        assert wanted == 6
        if settled == 0:
            copies[2].write_bytes((trained / "1gram.arpa").read_bytes())

    found = find(mixed, tmp_path / "changed.sqlite", progress=overwrite)
    assert not found.complete
    assert [pair.failed for pair in found.pairs] == [0, 2, 2]
    assert all("has changed since the job began" in job.reason for job in found.failures)


def test_a_poisoned_job_is_kept_after_three_failures_and_the_rest_goes_on(
    study: SynthesisPlan, whole: TripletResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = whole.triplets[5].natural.text
    attempts: Counter[str] = Counter()
    genuine = TripletTask.perform

    def perform(task: TripletTask, context: SearchContext) -> object:
        attempts[task.natural.text] += 1
        if task.natural.text == poison:
            raise MemoryError("too much")
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", perform)
    path = tmp_path / "poisoned.sqlite"
    found = find(study, path)
    assert not found.complete
    assert found.triplets == (*whole.triplets[:5], *whole.triplets[6:])
    assert [(job.natural, job.reason) for job in found.failures] == [
        (poison, "MemoryError: too much")
    ]
    assert attempts[poison] == 3
    assert found.pairs[1].failed == 1
    assert find(study, path) == found
    assert attempts[poison] == 3
    monkeypatch.setattr(TripletTask, "perform", genuine)
    assert find(study, path, retry_failed=True) == whole


def test_impossible_sentences_make_room_for_others_and_are_counted(
    study: SynthesisPlan, whole: TripletResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two natural sentences of the first pair are made impossible to its second model."""
    impossible = {t.natural for t in whole.triplets[2:4]}
    genuine = NgramModel.log_probs

    def log_probs(model: NgramModel, sentences: list[Sentence]) -> Any:
        scores = genuine(model, sentences)
        hit = [s in impossible and "2gram" in model.name for s in sentences]
        return np.where(hit, -np.inf, scores)

    monkeypatch.setattr(NgramModel, "log_probs", log_probs)
    found = find(study, tmp_path / "impossible.sqlite")
    assert found.complete
    assert [pair.inadmissible for pair in found.pairs] == [2, 0, 0]
    assert not impossible & {t.natural for t in found.triplets}
    kept = [t for t in whole.triplets if t.natural not in impossible]
    assert len(found.triplets) == 12
    assert {t.natural for t in kept} < {t.natural for t in found.triplets}
    resumed = find(study, tmp_path / "impossible.sqlite")
    assert resumed == found


def test_workers_that_are_killed_change_nothing(
    study: SynthesisPlan, whole: TripletResults, tmp_path: Path
) -> None:
    remarks: list[str] = []

    def kill_now_and_then(settled: int, _wanted: int) -> None:
        if settled in (2, 7):
            multiprocessing.active_children()[0].kill()

    found = find(
        study,
        tmp_path / "killed.sqlite",
        ProcessExecutor(2),
        say=remarks.append,
        progress=kill_now_and_then,
    )
    assert found == whole
    assert remarks
    assert all("is replaced: killed by SIGKILL" in remark for remark in remarks)
    assert not multiprocessing.active_children()


def test_workers_that_never_start_end_the_job(study: SynthesisPlan, tmp_path: Path) -> None:
    class Unborn(LocalExecutor):
        def wait(self, timeout: float) -> Any:
            del timeout
            from contstim.jobs.pool import Died

            return 0, Died("exit status 1")

    with pytest.raises(WorkerError, match=r"die before they are ready \(exit status 1\)"):
        find(study, tmp_path / "x.sqlite", Unborn())


def test_a_worker_with_an_unforeseen_error_is_replaced(
    study: SynthesisPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an error of a GPU, which may spoil all that its process does afterwards."""
    spoilt = False
    genuine = TripletTask.perform

    def perform(task: TripletTask, context: SearchContext) -> object:
        nonlocal spoilt
        if not spoilt and task.place == 1:
            spoilt = True
            context.loads = -100
        if context.loads < 0:
            raise RuntimeError("device-side assert")
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", perform)
    found = find(study, tmp_path / "spoilt.sqlite")
    assert found.complete


def test_models_are_loaded_once_a_pair(
    study: SynthesisPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[SearchContext] = []
    genuine = TripletTask.perform

    def note(task: TripletTask, context: SearchContext) -> object:
        contexts.append(context)
        return genuine(task, context)

    monkeypatch.setattr(TripletTask, "perform", note)
    find(study, tmp_path / "loads.sqlite")
    assert contexts[-1].loads == 3 + 2  # each once to look at it; the first two are then at hand


def test_bad_input_is_refused_before_anything_is_kept(
    study: SynthesisPlan, changed: Changed, trained: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.sqlite"
    with pytest.raises(InputError, match="give --model at least twice"):
        changed(models=study.models[:1])
    with pytest.raises(InputError, match="must be 1 or more, not 0"):
        changed(per_pair=0)
    recipes = "no recipe 'quick'; there are default, golan2023"
    with pytest.raises(InputError, match=recipes):
        changed(recipe="quick")
    with pytest.raises(InputError, match="must not be negative"):
        changed(seed=-1)
    with pytest.raises(ModelError, match="given twice"):
        changed(models=study.models * 2)
    with pytest.raises(InputError, match="3 pairs of models × 5,000 sentences are 15,000"):
        find(changed(per_pair=5_000), path)
    with pytest.raises(VocabularyError, match="None of the 2 words"):
        find(changed(vocabulary=Vocabulary(("Qwx",), ("qwx",))), path)
    again = tmp_path / "again.arpa"
    again.write_bytes((trained / "2gram.arpa").read_bytes())
    with pytest.raises(ModelError, match="same model: they can never disagree"):
        find(changed(models=(*study.models, f"kenlm:{again}")), path)
    assert find(study, path).complete


def test_the_order_of_the_models_changes_nothing(
    study: SynthesisPlan, whole: TripletResults, changed: Changed, tmp_path: Path
) -> None:
    """Witness: the study whose models were given in another order."""
    turned = changed(models=(study.models[1], study.models[2], study.models[0]))
    assert find(turned, tmp_path / "turned.sqlite") == whole


def test_a_store_in_another_order_goes_on_in_its_own(
    study: SynthesisPlan, changed: Changed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that was made when the order of the models still mattered."""
    turned = changed(models=study.models[::-1], per_pair=1)
    with monkeypatch.context() as before:
        before.setattr(SynthesisPlan, "ordered", lambda study, _before: study)
        found = find(turned, tmp_path / "old.sqlite")
    assert (found.pairs[0].model_1, found.pairs[0].model_2) == turned.models[:2]
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    assert find(turned, tmp_path / "old.sqlite") == found
    assert find(changed(per_pair=1), tmp_path / "old.sqlite") == found


def test_a_store_made_with_single_searches_goes_on_with_them(
    whole: TripletResults, store: Path, changed: Changed
) -> None:
    """Such as one that was made before there were several; a new one does as the recipe says."""
    assert find(changed(restarts=None), store) == whole
    with Store(store) as kept:
        assert "restarts" not in TripletStore(kept).settings()


def test_several_searches_are_kept_counted_and_resumed(
    whole: TripletResults, changed: Changed, tmp_path: Path
) -> None:
    """Witness: a run that wanted so many triplets from the start, and one of single searches."""
    twice = SearchBudget(2, patience=None)
    path = tmp_path / "twice.sqlite"
    find(changed(restarts=twice, per_pair=1), path)
    resumed = find(changed(restarts=twice, per_pair=2), path)
    assert resumed == find(changed(restarts=twice, per_pair=2), tmp_path / "at once.sqlite")
    single = {triplet.natural: triplet for triplet in whole.triplets}
    for triplet in resumed.triplets:
        before = single[triplet.natural]
        assert triplet.controversiality >= before.controversiality
    assert [pair.searches for pair in resumed.pairs] == [2 * 2 * 2] * 3
    assert [pair.searches for pair in whole.pairs] == [2 * 4] * 3
    with pytest.raises(StoreError, match=r"restarts: at most 2 → \(none\)"):
        find(changed(restarts=None, per_pair=2), path)
    with Store(path) as kept:
        rows = kept.rows("SELECT search, number, loss, gain FROM restart ORDER BY search, number")
    assert [row[1] for row in rows] == [0, 1] * 12
    for (_, _, first, _), (_, _, second, gain) in zip(rows[::2], rows[1::2], strict=True):
        assert gain == max(0, first - second)


def test_stores_from_before_black_boxes_were_learned_are_of_another_study(
    changed: Changed,
) -> None:
    """Their searches would find other sentences now; those of other models are as they were."""
    convention = Convention("rule", "", False, "x")
    known = ModelProfile(convention, None)
    told = [
        changed().settings([known, ModelProfile(convention, None, is_black_box=learned), known])
        for learned in (False, True)
    ]
    assert set(told[1].items()) - set(told[0].items()) == {
        ("model 2 search", "learns from all of its scores")
    }


def test_a_new_store_is_searched_as_the_recipe_says(changed: Changed) -> None:
    for recipe, restarts in (("default", DEFAULT.restarts.text), ("golan2023", None)):
        plan = changed(recipe=recipe, restarts=None).resumed({})
        profile = ModelProfile(Convention("rule", "", False, "x"), None)
        assert plan.settings([profile] * 3).get("restarts") == restarts
