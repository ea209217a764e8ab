"""A cap on words over a whole study: counted by hand, whoever searches, whenever it is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contstim.optimization.jobs import word_cap
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.word_cap import CapRounds
from contstim.sentence import Sentence
from contstim.stimuli import Triplet
from contstim.store import Slot
from tests.optimization.jobs.studies import MADE_UP, MODELS, MadeUpSearches, reviewed

CAP = 4
CAPPED = MADE_UP.but(word_cap=CAP, uncapped=frozenset(f"verb{n}" for n in range(7)))


def counts(results: TripletResults) -> Counter[str]:
    """How many sentences hold each word that counts, in plain loops."""
    found: Counter[str] = Counter()
    for triplet in results.triplets:
        for sentence in (triplet.natural, triplet.synthetic_1, triplet.synthetic_2):
            for word in {word.lower() for word in sentence.words}:
                found[word] += not word.startswith("verb")
    return found


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several rounds, and several triplets of a pair in each."""
    monkeypatch.setattr(word_cap, "_TRIPLETS_PER_ROUND", 6)
    monkeypatch.setattr(word_cap, "_LEAST_PER_PAIR", 2)


def test_no_word_stands_in_more_sentences_wherever_the_job_is_killed(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: counting; and the study without a cap, in which words stand more often."""
    free = MADE_UP.but(per_pair=4).find(tmp_path / "free.sqlite")
    assert max(counts(free).values()) > CAP
    searches.done.clear()
    whole = CAPPED.find(tmp_path / "whole.sqlite")
    assert max(counts(whole).values()) <= CAP
    assert len(whole.triplets) + len(whole.unchanged) == 12 - sum(p.missing for p in whole.pairs)
    again = Counter(task.natural for task in searches.done)
    assert max(again.values()) > 1  # else nothing was put to the test
    n_searched = len(searches.done)
    calls = 0

    class KilledError(Exception):
        pass

    def progress(_settled: int, _wanted: int) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise KilledError

    searches.done.clear()
    for _ in range(100):
        try:
            resumed = CAPPED.find(tmp_path / "killed.sqlite", progress=progress)
            break
        except KilledError:
            continue
    assert resumed == whole
    assert len(searches.done) == n_searched
    searches.done.clear()
    assert CAPPED.find(tmp_path / "whole.sqlite") == whole
    assert not searches.done


@pytest.mark.usefixtures("searches")
def test_what_stands_stays_while_a_capped_study_changes(tmp_path: Path) -> None:
    """Witness: counting, and the triplets of before."""
    path = tmp_path / "s.sqlite"
    before = CAPPED.but(per_pair=2).find(path)
    more = CAPPED.but(per_pair=3).find(path)
    assert {*before.triplets} <= {*more.triplets}
    larger = CAPPED.but(models=MODELS, per_pair=3).find(path)
    assert {*more.triplets} <= {*larger.triplets}
    rejected = larger.triplets[:2]
    replaced = CAPPED.but(models=MODELS, per_pair=3).find(
        path, review=reviewed(larger.triplets, rejected)
    )
    assert {*larger.triplets} - {*rejected} <= {*replaced.triplets}
    assert not {*rejected} & {*replaced.triplets}
    word = replaced.triplets[0].synthetic_1.words[2]

    def holds(triplet: Triplet) -> bool:
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        return any(word == w.lower() for s in sentences for w in s.words)

    without = CAPPED.but(models=MODELS, per_pair=3, exclude=(word,)).find(path)
    assert {t for t in replaced.triplets if not holds(t)} <= {*without.triplets}
    assert not any(map(holds, without.triplets))
    for results in (before, more, larger, replaced, without):
        assert max(counts(results).values()) <= CAP


def test_natural_sentences_without_room_are_passed_over() -> None:
    """Witness: three sentences more than those that are there."""
    natural = Sentence.parse("The dog saw the cat")
    question = SearchQuestion(per_pair=4, uncapped=frozenset({"The"}))
    slot = Slot("a", "b", 0, natural)

    def rounds(*synthetic: str) -> CapRounds:
        """After a first triplet."""
        sentences = map(Sentence.parse, ("Small dog", *synthetic))
        triplet = cast("Any", Triplet)("t", "a", "b", *sentences, *(0.0,) * 7)
        result = SimpleNamespace(triplet=triplet, state="found", id=1)
        searches = SimpleNamespace(question=question, standing=lambda _: result)
        slots = {("a", "b"): [slot]}
        held = SimpleNamespace(slots=slots, stand=lambda _: None)
        return CapRounds(5, cast("Any", searches), cast("Any", held))

    assert not rounds("The dog", "The the").no_room(natural)
    assert rounds("The dog", "A dog").no_room(natural) == "no room under the cap on words: dog"
