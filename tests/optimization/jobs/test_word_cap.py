"""A cap on words over a whole study: counted by hand, whoever searches, whenever it is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError, StoreError
from contstim.jobs import LocalExecutor, ProcessExecutor
from contstim.jobs.pool import Executor
from contstim.models.loading import Loading
from contstim.optimization.jobs import word_cap
from contstim.optimization.jobs.plan import SynthesisPlan
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.tasks import TripletTask
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.jobs.word_cap import WordCap
from contstim.optimization.search.constraints import WordLimits
from contstim.sentence import Sentence
from contstim.stimuli import Triplet
from contstim.store import Store, TripletStore
from contstim.vocabulary import REPEATABLE_ENGLISH

CAP = WordCap(6, REPEATABLE_ENGLISH | {"is", "has", "his", "her", "their"})


def find(
    study: SynthesisPlan,
    path: Path,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
) -> TripletResults:
    context = SearchContext(Loading(device="cpu"), vocabulary=study.vocabulary)
    with Store(path) as store:
        return find_triplets(study, store, executor or LocalExecutor(), context, progress=progress)


def count(triplets: tuple[Triplet, ...], cap: WordCap) -> Counter[str]:
    """How many sentences hold each word that counts, in plain loops."""
    counts: Counter[str] = Counter()
    for triplet in triplets:
        for sentence in (triplet.natural, triplet.synthetic_1, triplet.synthetic_2):
            for word in {word.lower() for word in sentence.words}:
                counts[word] += word not in cap.uncapped
    return counts


@pytest.fixture(autouse=True, scope="module")
def small_waves() -> Iterator[None]:
    """Several waves, and several triplets of a pair in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_cap, "_TRIPLETS_PER_WAVE", 6)
        patch.setattr(word_cap, "_LEAST_PER_PAIR", 2)
        yield


@pytest.fixture(scope="module")
def plan(study: SynthesisPlan) -> SynthesisPlan:
    return replace(study, per_pair=4, cap=CAP)


@pytest.fixture(scope="module")
def finished(
    plan: SynthesisPlan, small_waves: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, TripletResults]:
    del small_waves
    path = tmp_path_factory.mktemp("finished") / "whole.sqlite"
    return path, find(plan, path)


@pytest.fixture
def whole(finished: tuple[Path, TripletResults], tmp_path: Path) -> TripletResults:
    """What an uninterrupted run finds; a copy of its store is `whole.sqlite`."""
    (tmp_path / "whole.sqlite").write_bytes(finished[0].read_bytes())
    return finished[1]


def test_no_word_stands_in_more_sentences_whoever_searches_and_wherever_it_is_killed(
    plan: SynthesisPlan, whole: TripletResults, tmp_path: Path
) -> None:
    """Witness: counting; and the study without a cap, in which words stand more often."""
    free = find(replace(plan, cap=None), tmp_path / "free.sqlite")
    assert max(count(free.triplets, CAP).values()) > CAP.sentences
    assert max(count(whole.triplets, CAP).values()) <= CAP.sentences
    assert len(whole.triplets) + len(whole.unchanged) == 12 - sum(p.missing for p in whole.pairs)
    with Store(tmp_path / "whole.sqlite") as store:
        kept = TripletStore(store)
        refused = kept.decisions().refused
        assert refused  # else nothing was put to the test
        # What was searched again does not hold what it was searched without
        for key, triplet in kept.triplets_by_place().items():
            for sentence in (triplet.synthetic_1, triplet.synthetic_2):
                pairs = zip(triplet.natural.words, sentence.words, strict=True)
                new = {word.lower() for old, word in pairs if word != old}
                assert not new & refused.get(key, frozenset())

    assert find(plan, tmp_path / "three.sqlite", ProcessExecutor(3)) == whole
    searches = 0

    class KilledError(Exception):
        pass

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal searches
        searches += 1
        if searches % 3 == 0:
            raise KilledError

    for _ in range(100):
        try:
            resumed = find(plan, tmp_path / "killed.sqlite", progress=progress)
            break
        except KilledError:
            continue
    assert resumed == whole


def test_a_finished_study_searches_no_more_and_knows_its_cap(
    plan: SynthesisPlan, whole: TripletResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    assert find(plan, tmp_path / "whole.sqlite") == whole
    with pytest.raises(StoreError, match="word cap: 6 → 7"):
        find(replace(plan, cap=WordCap(7, CAP.uncapped)), tmp_path / "whole.sqlite")
    with pytest.raises(InputError, match="3 sentences or more, not 2"):
        WordCap(2)


def test_a_word_excluded_later_leaves_the_cap_and_all_other_triplets(
    plan: SynthesisPlan, whole: TripletResults, tmp_path: Path
) -> None:
    first = whole.triplets[0]
    word = next(w for w in first.synthetic_1.words if w not in first.natural.words).lower()
    limits = WordLimits(exclude=frozenset({word}))
    results = find(replace(plan, limits=limits), tmp_path / "whole.sqlite")

    def holds(triplet: Triplet) -> bool:
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        return any(word == w.lower() for s in sentences for w in s.words)

    same = [t for t in whole.triplets if not holds(t)]
    assert [t for t in results.triplets if t in same] == same
    assert not any(map(holds, results.triplets))
    assert max(count(results.triplets, CAP).values()) <= CAP.sentences


def test_natural_sentences_without_room_are_passed_over() -> None:
    """Witness: three sentences more than those that are there."""
    cap = WordCap(5, frozenset({"the"}))
    natural = Sentence.parse("The dog saw the cat")
    assert not cap.no_room({"dog": 2, "the": 50}, natural)
    assert cap.no_room({"dog": 3}, natural) == "no room under the cap on words: dog"
    assert cap.used_up({"dog": 5, "cat": 4}) == {"dog"}
