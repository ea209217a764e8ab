"""What is searched again after a review, or when words are excluded later, and what stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from contstim.errors import InputError
from contstim.items.reviews import Decision, Review, undecided
from contstim.items.stimuli import Condition, Kind, Trial, Triplet
from contstim.store import Store, TripletStore
from contstim.words.sentence import Sentence
from tests.optimization.jobs.studies import MADE_UP, MODELS, MadeUpSearches, reviewed

STUDY = MADE_UP.but(models=MODELS[:2], per_pair=5)


def trial_of(triplet: Triplet) -> Trial:
    return Trial(
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


def test_rejected_triplets_are_replaced_from_the_next_sentences_and_all_others_stay(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: the study that wanted two triplets more from the start."""
    path = tmp_path / "s.sqlite"
    whole = STUDY.find(path)
    rejected = whole.triplets[1:3]
    review = reviewed(whole.triplets, rejected)
    more = STUDY.but(per_pair=7).find(tmp_path / "more.sqlite")
    searches.done.clear()
    replaced = STUDY.find(path, review=review)
    assert replaced.triplets == tuple(t for t in more.triplets if t not in rejected)
    assert replaced.pairs[0].reasons["rejected in a review"] == 2
    searches.done.clear()
    # Whether the review is given again or not
    assert STUDY.find(path, review=review) == STUDY.find(path) == replaced
    assert not searches.done
    with Store(path) as kept:
        ids = {*TripletStore(kept).entries(replaced.found, {}, "steps")["triplet_id"]}
    assert ids <= {t.triplet_id for t in replaced.triplets}


@pytest.mark.usefixtures("searches")
@pytest.mark.parametrize("stop", [0, 4, 5])
def test_a_killed_run_of_replacements_goes_on(tmp_path: Path, stop: int) -> None:
    """Witness: the same run without interruption. At stop 0 nothing has been searched yet."""
    path, unharmed = tmp_path / "killed.sqlite", tmp_path / "whole.sqlite"
    whole = STUDY.find(path)
    assert STUDY.find(unharmed) == whole
    review = reviewed(whole.triplets, whole.triplets[:2])
    word = whole.triplets[3].synthetic_1.words[2]
    changed = STUDY.but(exclude=(word,))
    expected = changed.find(unharmed, review=review)

    def stop_at(settled: int, _wanted: int) -> None:
        if settled >= stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        changed.find(path, review=review, progress=stop_at)
    assert changed.find(path, review=review) == expected == changed.find(path)


@pytest.mark.usefixtures("searches")
def test_a_trial_that_is_rejected_rejects_its_triplet(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    triplet = STUDY.find(path).triplets[4]
    (item,) = undecided([trial_of(triplet)])
    item = replace(item, reviewer="Ann", decision=Decision.REJECT)
    changed = replace(item, sentence_1=Sentence.parse("Something else"))
    with pytest.raises(InputError, match="trial-1 has changed since the review"):
        STUDY.find(path, review=Review((changed,)))
    foreign = replace(item, source_id="triplet-of-others")
    with pytest.raises(InputError, match="of another set"):
        STUDY.find(path, review=Review((foreign,)))
    assert triplet not in STUDY.find(path, review=Review((item,))).triplets


@pytest.mark.usefixtures("searches")
def test_reviews_of_other_or_changed_triplets_are_refused_before_anything_is_changed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.sqlite"
    whole = STUDY.find(path)
    rejected = whole.triplets[:1]
    other = replace(whole.triplets[0], triplet_id="triplet-000000000000")
    with pytest.raises(InputError, match="of another set: 1 of 6"):
        STUDY.find(path, review=reviewed((*whole.triplets, other), rejected))
    changed = replace(whole.triplets[0], synthetic_1=Sentence.parse("Something else"))
    with pytest.raises(InputError, match="has changed since the review"):
        STUDY.find(path, review=reviewed((changed, *whole.triplets[1:]), rejected))
    with pytest.raises(InputError, match="holds no triplets yet"):
        STUDY.find(tmp_path / "empty.sqlite", review=reviewed(whole.triplets, rejected))
    assert STUDY.find(path) == whole


def test_a_word_that_is_excluded_later_has_only_those_searched_again_that_hold_it(
    searches: MadeUpSearches, tmp_path: Path
) -> None:
    """Witness: looking for the words in every sentence."""
    path = tmp_path / "s.sqlite"
    whole = STUDY.find(path)
    words = {whole.triplets[0].synthetic_1.words[2], whole.triplets[-1].natural.words[2]}

    def holds(*some: Sentence) -> bool:
        return any(word.lower() in words for s in some for word in s.words)

    holding = [t for t in whole.triplets if holds(t.natural, t.synthetic_1, t.synthetic_2)]
    assert 0 < len(holding) < len(whole.triplets)
    searches.done.clear()
    excluding = STUDY.but(exclude=tuple(words))
    results = excluding.find(path)
    same = [t for t in whole.triplets if t not in holding]
    assert [t for t in results.triplets if t in same] == same
    again = {t.natural for t in holding if not holds(t.natural)}
    naturals = {task.natural for task in searches.done}
    assert again <= naturals
    # In place of a natural sentence that holds a word comes the next that has not been used
    assert naturals.isdisjoint({t.natural for t in whole.triplets} - again)
    searches.done.clear()
    assert excluding.find(path) == results
    # Words that may stand again: as it was before
    assert STUDY.find(path).triplets == whole.triplets
    assert not searches.done
    # Of a triplet that is gone a review may still tell, and trials
    assert excluding.find(path) == results
    first = holding[0]
    assert excluding.find(path, review=reviewed((first,), (first,))).triplets == results.triplets
    told = Review(undecided([trial_of(first)]))
    assert excluding.find(path, review=told).triplets == results.triplets
