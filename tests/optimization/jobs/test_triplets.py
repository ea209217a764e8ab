"""Searches of a whole study: results, failures and killed workers."""

from __future__ import annotations

import multiprocessing
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import InputError, ModelError, VocabularyError, WorkerError
from contstim.jobs import LocalExecutor, ProcessExecutor
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.tasks import SEEDS, SearchContext, TripletTask
from contstim.optimization.search.constraints import capitals
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store import Store, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import (
    FAKE_STUDY,
    MODELS,
    FakeSearches,
    Study,
    fake_result,
    seed_of,
)
from tests.store.trails import entries

Finished = tuple[Path, TripletResults]
"""The store of a finished study, and its results."""


@pytest.fixture(scope="module")
def finished_study(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    return path, study.find(path)


@pytest.fixture(scope="module")
def thorough_study(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A study with longer searches, in several rounds."""
    path = tmp_path_factory.mktemp("thorough") / "whole.sqlite"
    return path, study.with_values(
        models=study.models[:2], recipe="default", frame="none", per_pair=1
    ).find(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "fixture"), [("golan2023", "finished_study"), ("default", "thorough_study")]
)
def test_triplets_equal_searches_with_their_seeds(
    words: Vocabulary, recipe: str, fixture: str, request: pytest.FixtureRequest
) -> None:
    """Witness: one call of `synthesize_triplet` per triplet."""
    results: TripletResults = request.getfixturevalue(fixture)[1]
    assert results.complete
    triplets = results.triplets
    models = sorted({pair.model_1 for pair in results.pairs} | {p.model_2 for p in results.pairs})
    assert [(p.model_1, p.model_2) for p in results.pairs] == [*combinations(models, 2)]
    for triplet in triplets[::2]:
        names = (triplet.model_1, triplet.model_2)
        first, second = (NgramModel(name.removeprefix("kenlm:"), name) for name in names)
        expected, *_ = synthesize_triplet(
            *(first, second, triplet.natural, words),
            recipe=recipe_named(recipe),
            seed=seed_of(5, (first, second), triplet.natural),
            seeds=SEEDS,
            constraints=[rule for rule in [capitals(words)] if rule and recipe == "default"],
        )
        assert triplet == expected


def test_statistics_are_means_over_the_triplets_of_a_pair(finished_study: Finished) -> None:
    for pair in finished_study[1].pairs:
        names, triplets = (pair.model_1, pair.model_2), finished_study[1].triplets
        values = [t.controversiality for t in triplets if (t.model_1, t.model_2) == names]
        assert pair.triplets == len(values) == 2
        assert pair.controversiality == pytest.approx(np.mean(values))
        assert (pair.failed, pair.inadmissible, pair.missing) == (0, 0, 0)
        assert pair.searches >= 2 * (pair.triplets + pair.unchanged)


@pytest.mark.parametrize("fixture", ["finished_study", "thorough_study"])
def test_trajectories_link_sentences(fixture: str, request: pytest.FixtureRequest) -> None:
    """Steps are contiguous within a round; the triplet contains the best sentence of all rounds."""
    path, results = request.getfixturevalue(fixture)
    with Store(path) as store:
        columns = entries(store, results.searches, {}, "steps")
    steps = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert (max(columns["round"]) > 0) == (fixture == "thorough_study")
    for triplet in results.triplets:
        for reject, synthetic in (
            (triplet.model_1, triplet.synthetic_1),
            (triplet.model_2, triplet.synthetic_2),
        ):
            keys = (triplet.triplet_id, reject)
            trajectory = [s for s in steps if (s["triplet_id"], s["reject"]) == keys]
            sentence, round_number = triplet.natural, 0
            for step in trajectory:
                new_sentence = Sentence.parse(step["sentence"])
                old_sentence = new_sentence.replace(step["position"], step["old"])
                assert new_sentence.words[step["position"]] == step["new"]
                assert old_sentence == sentence or step["round"] > round_number
                sentence, round_number = new_sentence, step["round"]
            best = min(trajectory, key=lambda step: step["log_prob_reject"], default=None)
            assert str(synthetic) == (str(triplet.natural) if best is None else best["sentence"])


def test_killed_workers_do_not_change_the_results(
    study: Study, finished_study: Finished, tmp_path: Path
) -> None:
    remarks: list[str] = []
    kill_times = {2}

    def kill_worker(settled: int, _total: int) -> None:
        if settled in kill_times:
            kill_times.remove(settled)
            multiprocessing.active_children()[0].kill()

    results = study.find(
        tmp_path / "killed.sqlite", ProcessExecutor(2), say=remarks.append, progress=kill_worker
    )
    assert results == finished_study[1]
    replacements = [remark for remark in remarks if "is replaced" in remark]
    assert replacements
    assert all("killed by SIGKILL" in remark for remark in replacements)
    assert not multiprocessing.active_children()


def test_changing_a_file_has_no_effect(study: Study, trained: Path, tmp_path: Path) -> None:
    """Witness: the same job without the change; the file is read once."""
    copies = [tmp_path / f"{n}.arpa" for n in (2, 3)]
    for n, copy in zip((2, 3), copies, strict=True):
        copy.write_bytes((trained / f"{n}gram.arpa").read_bytes())
    pair_study = study.with_values(models=tuple(f"kenlm:{copy}" for copy in copies))
    expected = pair_study.find(tmp_path / "unchanged.sqlite").triplets

    def overwrite(settled: int, total: int) -> None:
        assert total == 2
        if settled == 0:
            copies[1].write_bytes((trained / "1gram.arpa").read_bytes())

    assert pair_study.find(tmp_path / "changed.sqlite", progress=overwrite).triplets == expected


def test_impossible_sentences_are_replaced_and_counted(
    study: Study,
    finished_study: Finished,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test makes a natural sentence of the first pair impossible for its second model."""
    impossible = finished_study[1].triplets[0].natural
    original_log_probs = NgramModel.log_probs

    def log_probs(model: NgramModel, sentences: list[Sentence]) -> Any:
        is_impossible = [s == impossible and "2gram" in model.name for s in sentences]
        return np.where(is_impossible, -np.inf, original_log_probs(model, sentences))

    monkeypatch.setattr(NgramModel, "log_probs", log_probs)
    pair_study = study.with_values(models=study.models[:2])
    results = pair_study.find(tmp_path / "impossible.sqlite")
    assert results.complete
    assert results.pairs[0].reasons == {"impossible to one of the models": 1}
    assert impossible not in {t.natural for t in results.triplets}
    assert pair_study.find(tmp_path / "impossible.sqlite") == results


@pytest.mark.usefixtures("searches")
def test_failed_searches_are_listed_and_retried_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = FAKE_STUDY.find(tmp_path / "whole.sqlite")
    failing = expected.triplets[5]
    attempts = 0

    def perform(task: TripletTask, _context: SearchContext) -> object:
        nonlocal attempts
        if (task.natural, *task.models) == (failing.natural, failing.model_1, failing.model_2):
            attempts += 1
            raise MemoryError("too much")
        return fake_result(task)

    monkeypatch.setattr(TripletTask, "perform", perform)
    path = tmp_path / "broken.sqlite"
    results = FAKE_STUDY.find(path)
    assert attempts == 3
    assert not results.complete
    # No other sentence replaces it, so that the next run can complete the same study
    assert results.triplets == (*expected.triplets[:5], *expected.triplets[6:])
    assert [(failure.natural, failure.reason) for failure in results.failures] == [
        (failing.natural.text, "MemoryError: too much")
    ]
    monkeypatch.setattr(TripletTask, "perform", lambda task, _context: fake_result(task))
    assert FAKE_STUDY.find(path) == expected


@pytest.mark.usefixtures("searches")
def test_a_job_ends_if_no_worker_starts(tmp_path: Path) -> None:
    class FailingExecutor(LocalExecutor):
        def wait(self, timeout: float) -> Any:
            del timeout
            return 0, WorkerError("exit status 1")

    with pytest.raises(WorkerError, match=r"die before they are ready \(exit status 1\)"):
        FAKE_STUDY.find(tmp_path / "x.sqlite", FailingExecutor())


NO_START = Vocabulary((), ("x",))


def test_bad_input_is_refused_before_storing(searches: FakeSearches, tmp_path: Path) -> None:
    path = tmp_path / "bad.sqlite"
    searches.fingerprints = {MODELS[3]: MODELS[0]}
    for study, error, message in (
        (FAKE_STUDY.with_values(models=MODELS[:1]), InputError, "two models or more"),
        (FAKE_STUDY.with_values(models=MODELS[:1] * 2), ModelError, "got several models named"),
        (FAKE_STUDY.with_values(models=MODELS), ModelError, "same model: they can never disagree"),
        (FAKE_STUDY.with_values(per_pair=5_000), InputError, "Too few natural sentences"),
        (FAKE_STUDY.with_values(fix=("xylograph",)), InputError, "no sentence has the word"),
        (FAKE_STUDY.with_values(vocabulary=NO_START), VocabularyError, "start a sentence"),
    ):
        with pytest.raises(error, match=message):
            study.find(path)
    with Store(path) as store:
        assert not TripletStore(store).naturals()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"per_pair": 0}, "`per_pair` must be 1 or more, not 0"),
        ({"recipe": "quick"}, "no recipe 'quick'; there are default, golan2023"),
        ({"seed": -1}, "`seed` must be 0 or more, not -1"),
        ({"frame": "none", "judge": ("hf:gpt2",)}, "`judge`"),
    ],
)
def test_invalid_questions_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchQuestion(**values)
