"""Searches of a whole study: what they find, and what becomes of failures and killed workers."""

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
from tests.optimization.jobs.studies import MADE_UP, MODELS, MadeUpSearches, Study, found, seed_of
from tests.store.trails import entries


@pytest.fixture(scope="module")
def finished(study: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TripletResults]:
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    return path, study.find(path)


@pytest.fixture(scope="module")
def thorough(study: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TripletResults]:
    """Longer searches, in several rounds."""
    path = tmp_path_factory.mktemp("thorough") / "whole.sqlite"
    return path, study.but(
        models=study.models[:2], recipe="default", frame="none", per_pair=1
    ).find(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "fixture"), [("golan2023", "finished"), ("default", "thorough")]
)
def test_every_triplet_is_that_of_a_search_with_its_seed(
    words: Vocabulary, recipe: str, fixture: str, request: pytest.FixtureRequest
) -> None:
    """Witness: one call of `synthesize_triplet` each."""
    results: TripletResults = request.getfixturevalue(fixture)[1]
    assert results.complete
    triplets = results.triplets
    models = sorted({pair.model_1 for pair in results.pairs} | {p.model_2 for p in results.pairs})
    assert [(p.model_1, p.model_2) for p in results.pairs] == [*combinations(models, 2)]
    for triplet in triplets[::2]:
        names = (triplet.model_1, triplet.model_2)
        first, second = (NgramModel(name.removeprefix("kenlm:"), name) for name in names)
        expected, *_ = synthesize_triplet(
            first,
            second,
            triplet.natural,
            words,
            recipe=recipe_named(recipe),
            seed=seed_of(5, (first, second), triplet.natural),
            seeds=SEEDS,
            constraints=[rule for rule in [capitals(words)] if rule and recipe == "default"],
        )
        assert triplet == expected


def test_statistics_are_means_over_the_pairs_own_triplets(
    finished: tuple[Path, TripletResults],
) -> None:
    for pair in finished[1].pairs:
        own = [
            t
            for t in finished[1].triplets
            if (t.model_1, t.model_2) == (pair.model_1, pair.model_2)
        ]
        assert pair.triplets == len(own) == 2
        assert pair.controversiality == pytest.approx(np.mean([t.controversiality for t in own]))
        assert pair.drop_1 is not None
        assert pair.drop_2 is not None
        assert pair.drop_1 + pair.drop_2 == pytest.approx(pair.controversiality)
        assert (pair.failed, pair.inadmissible, pair.missing) == (0, 0, 0)
        assert pair.searches >= 2 * (pair.triplets + pair.unchanged)


@pytest.mark.parametrize("fixture", ["finished", "thorough"])
def test_trajectories_lead_from_the_natural_to_the_synthetic_sentence(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    """Step by step within a round; the triplet has the best sentence of all rounds."""
    path, results = request.getfixturevalue(fixture)
    with Store(path) as kept:
        columns = entries(kept, results.searches, {}, "steps")
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


def test_workers_that_are_killed_change_nothing(
    study: Study, finished: tuple[Path, TripletResults], tmp_path: Path
) -> None:
    remarks: list[str] = []
    moments = {2}

    def kill_now_and_then(settled: int, _wanted: int) -> None:
        if settled in moments:
            moments.remove(settled)
            multiprocessing.active_children()[0].kill()

    results = study.find(
        tmp_path / "killed.sqlite",
        ProcessExecutor(2),
        say=remarks.append,
        progress=kill_now_and_then,
    )
    assert results == finished[1]
    replaced = [remark for remark in remarks if "is replaced" in remark]
    assert replaced
    assert all("killed by SIGKILL" in remark for remark in replaced)
    assert not multiprocessing.active_children()


def test_a_model_that_changes_during_the_job_is_no_mixture(
    study: Study, trained: Path, tmp_path: Path
) -> None:
    """Witness: the same job without the change; the file is read once."""
    copies = [tmp_path / f"{n}.arpa" for n in (2, 3)]
    for n, copy in zip((2, 3), copies, strict=True):
        copy.write_bytes((trained / f"{n}gram.arpa").read_bytes())
    mixed = study.but(models=tuple(f"kenlm:{copy}" for copy in copies))
    expected = mixed.find(tmp_path / "unchanged.sqlite").triplets

    def overwrite(settled: int, wanted: int) -> None:
        assert wanted == 2
        if settled == 0:
            copies[1].write_bytes((trained / "1gram.arpa").read_bytes())

    assert mixed.find(tmp_path / "changed.sqlite", progress=overwrite).triplets == expected


def test_impossible_sentences_make_room_for_others_and_are_counted(
    study: Study,
    finished: tuple[Path, TripletResults],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A natural sentence of the first pair is made impossible to its second model."""
    impossible = finished[1].triplets[0].natural
    genuine = NgramModel.log_probs

    def log_probs(model: NgramModel, sentences: list[Sentence]) -> Any:
        hit = [s == impossible and "2gram" in model.name for s in sentences]
        return np.where(hit, -np.inf, genuine(model, sentences))

    monkeypatch.setattr(NgramModel, "log_probs", log_probs)
    two = study.but(models=study.models[:2])
    results = two.find(tmp_path / "impossible.sqlite")
    assert results.complete
    assert results.pairs[0].reasons == {"impossible to one of the models": 1}
    assert impossible not in {t.natural for t in results.triplets}
    assert two.find(tmp_path / "impossible.sqlite") == results


@pytest.mark.usefixtures("searches")
def test_a_search_that_fails_three_times_is_listed_and_tried_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = MADE_UP.find(tmp_path / "whole.sqlite")
    broken = whole.triplets[5]
    attempts = 0

    def perform(task: TripletTask, _context: SearchContext) -> object:
        nonlocal attempts
        if (task.natural, *task.models) == (broken.natural, broken.model_1, broken.model_2):
            attempts += 1
            raise MemoryError("too much")
        return found(task)

    monkeypatch.setattr(TripletTask, "perform", perform)
    path = tmp_path / "broken.sqlite"
    results = MADE_UP.find(path)
    assert attempts == 3
    assert not results.complete
    # No other sentence takes its place, so that the study is the same in the end
    assert results.triplets == (*whole.triplets[:5], *whole.triplets[6:])
    assert [(failure.natural, failure.reason) for failure in results.failures] == [
        (broken.natural.text, "MemoryError: too much")
    ]
    monkeypatch.setattr(TripletTask, "perform", lambda task, _context: found(task))
    assert MADE_UP.find(path) == whole


@pytest.mark.usefixtures("searches")
def test_workers_that_never_start_end_the_job(tmp_path: Path) -> None:
    class Unborn(LocalExecutor):
        def wait(self, timeout: float) -> Any:
            del timeout
            return 0, WorkerError("exit status 1")

    with pytest.raises(WorkerError, match=r"die before they are ready \(exit status 1\)"):
        MADE_UP.find(tmp_path / "x.sqlite", Unborn())


def test_bad_input_is_refused_before_anything_is_kept(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    path = tmp_path / "bad.sqlite"
    searches.fingerprints = {MODELS[3]: MODELS[0]}
    for bad, error, message in (
        (MADE_UP.but(models=MODELS[:1]), InputError, "two models or more"),
        (MADE_UP.but(models=MODELS[:1] * 2), ModelError, "got several models named"),
        (MADE_UP.but(models=MODELS), ModelError, "same model: they can never disagree"),
        (MADE_UP.but(per_pair=5_000), InputError, "Too few natural sentences"),
        (MADE_UP.but(fix=("xylograph",)), InputError, "no sentence has the word or position"),
        (MADE_UP.but(vocabulary=Vocabulary((), ("x",))), VocabularyError, "start a sentence"),
    ):
        with pytest.raises(error, match=message):
            bad.find(path)
    with Store(path) as store:
        assert not TripletStore(store).naturals()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"per_pair": 0}, "`per_pair` must be 1 or more, not 0"),
        ({"recipe": "quick"}, "no recipe 'quick'; there are default, golan2023"),
        ({"seed": -1}, "seed must be 0 or more, not -1"),
        ({"frame": "none", "judge": ("hf:gpt2",)}, "`judge`"),
    ],
)
def test_questions_that_cannot_be_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchQuestion(**values)
