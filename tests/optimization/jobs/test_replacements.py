"""What is searched again after a review, or when words are excluded later, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError, StoreError
from contstim.jobs import LocalExecutor
from contstim.jobs.pool import Executor
from contstim.models.loading import Loading
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.tasks import TripletTask
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.search.constraints import WordLimits
from contstim.reviews import Decision, Review, undecided
from contstim.sentence import Sentence
from contstim.stimuli import Condition, Kind, Trial, Triplet
from contstim.store import Store, TripletStore


def find(
    study: SynthesisPlan,
    path: Path,
    review: Review | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
) -> TripletResults:
    context = SearchContext(Loading(device="cpu"), vocabulary=study.vocabulary)
    with Store(path) as store:
        return find_triplets(
            study,
            store,
            executor or LocalExecutor(),
            context,
            review=review,
            progress=progress,
        )


@pytest.fixture(scope="module")
def plan(study: SynthesisPlan) -> SynthesisPlan:
    # With the study's own seed a search finds nothing, which is not the subject here
    return replace(study, models=study.models[:2], per_pair=5, seed=6)


@pytest.fixture(scope="module")
def finished(
    plan: SynthesisPlan, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, TripletResults]:
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    return path, find(plan, path)


@pytest.fixture
def store(finished: tuple[Path, TripletResults], tmp_path: Path) -> Path:
    copied = tmp_path / "copied.sqlite"
    copied.write_bytes(finished[0].read_bytes())
    return copied


@pytest.fixture
def whole(finished: tuple[Path, TripletResults]) -> TripletResults:
    return finished[1]


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


def reviewed(triplets: tuple[Triplet, ...], rejected: tuple[Triplet, ...]) -> Review:
    return Review(
        tuple(
            replace(
                item,
                reviewer="Ann",
                decision=Decision.REJECT
                if item.item_id in {t.triplet_id for t in rejected}
                else Decision.KEEP,
                reason="odd",
            )
            for item in undecided(triplets)
        )
    )


def sentences(triplet: Triplet) -> tuple[Sentence, ...]:
    return triplet.natural, triplet.synthetic_1, triplet.synthetic_2


def test_rejected_triplets_are_replaced_from_the_next_sentences_and_all_others_stay(
    plan: SynthesisPlan,
    whole: TripletResults,
    store: Path,
    tmp_path: Path,
    searched: list[TripletTask],
) -> None:
    """Witness: the study that wanted two triplets more from the start."""
    rejected = whole.triplets[1:3]
    review = reviewed(whole.triplets, rejected)
    more = find(replace(plan, per_pair=7), tmp_path / "more.sqlite")
    assert not more.unchanged
    searched.clear()
    replaced = find(plan, store, review)
    assert replaced.triplets == tuple(t for t in more.triplets if t not in rejected)
    assert [task.place for task in searched] == [5, 6]
    assert (replaced.unaltered, replaced.gone, replaced.new) == (3, 2, 2)
    assert replaced.pairs[0].reasons == {"rejected in a review": 2}
    searched.clear()
    # Whether the review is given again or not
    assert find(plan, store, review) == find(plan, store) == replaced
    assert not searched
    with Store(store) as kept:
        ids = {*TripletStore(kept).trajectories()["triplet_id"]}
        assert ids <= {t.triplet_id for t in replaced.triplets}


@pytest.mark.parametrize("stop", [0, 4, 5])
def test_a_killed_run_of_replacements_goes_on(
    plan: SynthesisPlan, whole: TripletResults, store: Path, tmp_path: Path, stop: int
) -> None:
    """Witness: the same run without interruption. At stop 0 nothing has been rejected yet."""
    review = reviewed(whole.triplets, whole.triplets[:2])
    uninterrupted = tmp_path / "uninterrupted.sqlite"
    uninterrupted.write_bytes(store.read_bytes())
    expected = find(plan, uninterrupted, review)

    def stop_at(settled: int, _wanted: int) -> None:
        if settled >= stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find(plan, store, review, progress=stop_at)
    assert find(plan, store, review) == expected


def test_a_trial_that_is_rejected_rejects_its_triplet(
    plan: SynthesisPlan, whole: TripletResults, store: Path
) -> None:
    triplet = whole.triplets[4]
    trial = Trial(
        "trial-1",
        1,
        Condition.SYNTHETIC_SYNTHETIC,
        triplet.model_1,
        triplet.model_2,
        triplet.synthetic_1,
        triplet.synthetic_2,
        Kind.SYNTHETIC_1,
        Kind.SYNTHETIC_2,
        triplet.triplet_id,
    )
    (item,) = undecided([trial])
    item = replace(item, reviewer="Ann", decision=Decision.REJECT)
    changed = replace(item, sentence_1=Sentence.parse("Something else"))
    with pytest.raises(InputError, match="trial-1 has changed since the review"):
        find(plan, store, Review((changed,)))
    foreign = replace(item, source_id="triplet-of-others")
    with pytest.raises(InputError, match="of another set"):
        find(plan, store, Review((foreign,)))
    assert find(plan, store, Review((item,))).gone == 1


def test_reviews_of_other_or_changed_triplets_are_refused_before_anything_is_changed(
    plan: SynthesisPlan, whole: TripletResults, store: Path, tmp_path: Path
) -> None:
    rejected = whole.triplets[:1]
    other = replace(whole.triplets[0], triplet_id="triplet-000000000000")
    with pytest.raises(InputError, match="of another set: 1 of 6"):
        find(plan, store, reviewed((*whole.triplets, other), rejected))
    changed = replace(whole.triplets[0], synthetic_1=Sentence.parse("Something else"))
    with pytest.raises(InputError, match="have changed since the review"):
        find(plan, store, reviewed((changed, *whole.triplets[1:]), rejected))
    with pytest.raises(InputError, match="holds no triplets yet"):
        find(plan, tmp_path / "empty.sqlite", reviewed(whole.triplets, rejected))
    assert find(plan, store) == whole


def test_a_word_that_is_excluded_later_has_only_those_searched_again_that_hold_it(
    plan: SynthesisPlan, whole: TripletResults, store: Path, searched: list[TripletTask]
) -> None:
    """Witness: looking for the words in every sentence."""
    first, second = whole.triplets[0], whole.triplets[-1]
    put_in = next(w for w in first.synthetic_1.words if w not in first.natural.words).lower()
    natural_word = second.natural.words[-1].lower()
    words = frozenset({put_in, natural_word})
    limits = WordLimits(exclude=words)

    def holds(some: tuple[Sentence, ...]) -> bool:
        return any(word.lower() in words for s in some for word in s.words)

    holding = [t for t in whole.triplets if holds(sentences(t))]
    assert 0 < len(holding) < len(whole.triplets)
    results = find(replace(plan, limits=limits), store)
    same = [t for t in whole.triplets if t not in holding]
    assert [t for t in results.triplets if t in same] == same
    assert not any(holds(sentences(t)) for t in results.triplets)
    again = {t.natural for t in holding if not holds((t.natural,))}
    passed_over = [t for t in holding if holds((t.natural,))]
    assert passed_over
    places = [task.place for task in searched if task.natural not in again]
    assert {task.natural for task in searched} >= again
    # In place of a natural sentence that holds a word comes the next that has not been used
    assert len(places) == len(passed_over)
    assert min(places) >= plan.per_pair
    searched.clear()
    assert find(replace(plan, limits=limits), store) == results
    assert not searched
    with pytest.raises(StoreError, match=r"exclude: .* → \(none\)"):
        find(plan, store)
    with pytest.raises(StoreError, match=f"exclude: .* → {put_in}"):
        find(replace(plan, limits=WordLimits(exclude=frozenset({put_in}))), store)


@pytest.mark.parametrize("stop", [0, 2, 5])
def test_a_review_and_excluded_words_may_be_given_again(
    plan: SynthesisPlan, whole: TripletResults, store: Path, tmp_path: Path, stop: int
) -> None:
    """Witness: the same run without interruption, and one that is given neither again."""
    review = reviewed(whole.triplets, whole.triplets[:1])
    # Kept in the review, and dropped for a word that was put in, or that the natural one holds
    kept = whole.triplets[1:]
    put_in = next(w for w in kept[0].synthetic_1.words if w not in kept[0].natural.words).lower()
    words = frozenset({put_in, kept[-1].natural.words[-1].lower()})
    excluding = replace(plan, limits=WordLimits(exclude=words))
    uninterrupted = tmp_path / "uninterrupted.sqlite"
    uninterrupted.write_bytes(store.read_bytes())
    expected = find(excluding, uninterrupted, review)
    assert expected.gone > 1

    def stop_at(settled: int, _wanted: int) -> None:
        if settled >= stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find(excluding, store, review, progress=stop_at)
    assert find(excluding, store, review).triplets == expected.triplets
    assert find(excluding, store, review) == find(excluding, store)
    # Of a triplet that is gone the sentences are still known, and others are still of another set
    gone = next(t for t in kept if t not in expected.triplets)
    changed = replace(gone, synthetic_1=Sentence((put_in, "else")))
    with pytest.raises(InputError, match="have changed since the review"):
        find(excluding, store, reviewed((changed,), ()))
    other = replace(gone, triplet_id="triplet-000000000000")
    with pytest.raises(InputError, match="of another set: 1 of 6"):
        find(excluding, store, reviewed((*whole.triplets, other), ()))


def test_words_may_be_excluded_before_the_review_is_given(
    plan: SynthesisPlan, whole: TripletResults, store: Path
) -> None:
    first = whole.triplets[0]
    put_in = next(w for w in first.synthetic_1.words if w not in first.natural.words).lower()
    excluding = replace(plan, limits=WordLimits(exclude=frozenset({put_in})))
    results = find(excluding, store)
    stays = next(t for t in whole.triplets if t in results.triplets)
    replaced = find(excluding, store, reviewed(whole.triplets, (first, stays)))
    # The triplet of the same natural sentence that came in place of the first is not rejected
    assert stays not in replaced.triplets
    assert [t for t in results.triplets if t != stays] == list(replaced.triplets[:-1])
    # Trials of what is gone are no longer of any triplet, but not of another set
    trial = Trial(
        "trial-1",
        1,
        Condition.NATURAL_SYNTHETIC,
        first.model_1,
        first.model_2,
        first.natural,
        first.synthetic_1,
        Kind.NATURAL,
        Kind.SYNTHETIC_1,
        first.triplet_id,
    )
    assert find(excluding, store, Review(undecided([trial]))).triplets == replaced.triplets
