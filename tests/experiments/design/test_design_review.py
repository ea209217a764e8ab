"""Designs after a review: what was rejected is gone, all else stays as far as it can."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.errors import InfeasibleError, InputError, VerificationError
from contstim.experiments.design.building import Design, build_design
from contstim.experiments.design.verification import verify_design
from contstim.items.reviews import Decision, ItemKind, Review, ReviewedItem, undecided_items
from contstim.items.stimuli import Condition, Pair, Trial, Triplet
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.experiments.stimuli import natural, some_pairs, some_triplets

MODELS = ("ngram", "rnn", "bert")
PAIRS, TRIPLETS = some_pairs(9, MODELS), some_triplets(9, MODELS)
NATURAL = natural(60)
SIZES: dict[str, int] = {"groups": 3, "random_per_group": 2, "catch_per_group": 2}
FILLERS = (Condition.RANDOM_NATURAL, Condition.CATCH)


def of_each(stimuli: Iterable[Any], left_out: set[str], per_pair: int = 6) -> list[Any]:
    """The first of each model pair, without those left out."""
    chosen: dict[tuple[str, str], list[Any]] = {}
    for each in stimuli:
        own = chosen.setdefault((each.model_1, each.model_2), [])
        if name(each) not in left_out and len(own) < per_pair:
            own.append(each)
    return [each for own in chosen.values() for each in own]


def name(stimulus: Pair | Triplet) -> str:
    return stimulus.triplet_id if isinstance(stimulus, Triplet) else stimulus.trial_id


def design(left_out: Iterable[str] = (), **changes: Any) -> Design:
    out = set(left_out)
    given: dict[str, Any] = {
        "pairs": of_each(PAIRS, out),
        "triplets": of_each(TRIPLETS, out),
        "natural": NATURAL,
        "twins": True,
        **SIZES,
    }
    given |= changes
    found = build_design(**given)
    if "review" in given:
        sizes = {name: given[name] for name in SIZES}
        verify_review(found.trials, given["natural"], given["review"], **sizes)
    return found


BEFORE = design(seed=1)


def reviewed(trials: Iterable[Trial], rejected: set[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in undecided_items(trials, "Ann")
        )
    )


def rejection(stimulus: Pair | Triplet) -> Review:
    (item,) = undecided_items([stimulus], "Ann")
    return Review((replace(item, decision=Decision.REJECT),))


def require(holds: bool, failure: str) -> None:
    if not holds:
        raise VerificationError(failure)


def verify_review(
    trials: Sequence[Trial],
    natural: Iterable[Sentence],
    review: Review,
    *,
    groups: int,
    random_per_group: int,
    catch_per_group: int,
) -> None:
    """Second account of what a design keeps of an earlier one, and that what was rejected is gone.

    That all random and catch trials stay that can is counted here.
    """
    rejected = review.rejected
    stood = {item.item_id: item for item in review.decisions if item.kind is ItemKind.TRIAL}
    stays = {i: t for i, t in stood.items() if not review.rejects(t)}
    # Of a rejected trial of a triplet, the sentences of the whole triplet
    gone = {s.words for t in review.decisions if review.rejects(t) for s in t.sentences}
    uses = Counter(
        text for trial in trials for text in (trial.sentence_1.bare, trial.sentence_2.bare)
    )
    # To draw from, which the natural sentences of synthetic pairs are not
    natural_texts = {s.bare for s in natural} - {t.source.bare for t in trials if t.source}
    kept: Counter[tuple[str, int]] = Counter()  # (condition, group): trials that stayed
    for trial in trials:
        name = trial.trial_id
        require(not rejected & {name, trial.source_id}, f"{name} was rejected")
        item = stays.get(name)
        same = item is not None and item.sentences == (trial.sentence_1, trial.sentence_2)
        if item is not None and same and item.group == trial.group:
            kept[trial.condition, trial.group] += 1
        elif trial.condition in FILLERS:
            again = [s.text for s in (trial.sentence_1, trial.sentence_2) if s.words in gone]
            require(not again, f"{name} has a sentence of a rejected item: {again}")
    # A random or catch trial can stay if its sentences still are natural, and are used elsewhere
    # in no trial; its own use is not another.
    here = {trial.trial_id for trial in trials}
    able: Counter[tuple[str, int]] = Counter()
    for name, item in stays.items():
        drawn = item.sentences[: 1 if item.condition == Condition.CATCH else 2]
        free = all(uses[s.bare] == (name in here) for s in item.sentences)
        if free and item.group <= groups and all(s.bare in natural_texts for s in drawn):
            able[item.condition, item.group] += 1
    for condition, needs in zip(FILLERS, (random_per_group, catch_per_group), strict=True):
        for group in range(1, groups + 1):
            has, can = kept[condition, group], min(needs, able[condition, group])
            require(has >= can, f"group {group} keeps {has} {condition} trials, and could {can}")


def places(trials: Iterable[Trial]) -> set[tuple[str, int]]:
    return {(trial.trial_id, trial.group) for trial in trials}


@settings(max_examples=examples(15))
@given(st.sets(st.integers(0, len(BEFORE.trials) - 1), max_size=3))
def test_all_that_was_not_rejected_stays(drawn: set[int]) -> None:
    """Witness: new stimuli take the places of rejected ones, so that all others can stay."""
    rejected = {BEFORE.trials[i].trial_id for i in drawn}
    review = reviewed(BEFORE.trials, rejected)
    after = design(review.rejected, seed=2, review=review)
    out = review.rejected
    stay = [t for t in BEFORE.trials if not out & {t.trial_id, t.source_id}]
    assert places(stay) <= places(after.trials)
    assert not after.changed
    assert len(after.trials) == len(BEFORE.trials)
    assert not out & {t.trial_id for t in after.trials}
    # With one trial of a triplet, the sentences of all its trials
    of_rejected = [t for t in BEFORE.trials if out & {t.trial_id, t.source_id}]
    gone = {s for t in of_rejected for s in (t.sentence_1, t.sentence_2)}
    drawn_anew = [t for t in after.trials if t.condition in FILLERS and t not in stay]
    assert not gone & {s for t in drawn_anew for s in (t.sentence_1, t.sentence_2)}


def test_nothing_rejected_changes_nothing_whatever_the_seed() -> None:
    after = design(seed=7, review=reviewed(BEFORE.trials, set()))
    assert after.trials == BEFORE.trials
    assert not after.changed


def test_fewer_groups_and_trials_keep_what_they_can() -> None:
    review = reviewed(BEFORE.trials, set())
    after = design(seed=7, review=review, groups=3, random_per_group=1, catch_per_group=3)
    for condition, each in ((Condition.RANDOM_NATURAL, 1), (Condition.CATCH, 2)):
        fillers = [t for t in after.trials if t.condition == condition]
        assert len(places(fillers) & places(BEFORE.trials)) == 3 * each
    # Six groups of half the size: what was in groups 1 to 3 is halved, the rest is elsewhere.
    more = design(seed=7, review=review, groups=6)
    targeted = [t for t in BEFORE.trials if t.condition not in FILLERS]
    assert len(places(targeted) & places(more.trials)) == len(targeted) // 2
    assert {i.item_id for i in more.changed} == {
        name for name, _ in places(BEFORE.trials) - places(more.trials)
    }


def test_a_random_pair_goes_whose_sentence_now_stands_in_a_triplet() -> None:
    random = next(t for t in BEFORE.trials if t.condition == Condition.RANDOM_NATURAL)
    used = [replace(t, natural=random.sentence_2) if not i else t
            for i, t in enumerate(of_each(TRIPLETS, set()))]  # fmt: skip
    used[0] = replace(used[0], triplet_id="triplet-new")
    after = design(triplets=used, review=reviewed(BEFORE.trials, set()))
    assert random.trial_id not in {t.trial_id for t in after.trials}
    assert len(after.changed) == 1 + 3


def test_a_random_pair_goes_that_has_the_natural_sentence_of_a_synthetic_pair() -> None:
    """Witness: the pair is looked for. Without twins no other trial has the natural sentence."""
    before = design(twins=False)
    review = reviewed(before.trials, set())
    random = next(t for t in before.trials if t.condition == Condition.RANDOM_NATURAL)
    first, *others = of_each(TRIPLETS, set())
    used = [replace(first, triplet_id="triplet-new", natural=random.sentence_2), *others]
    after = design(twins=False, triplets=used, review=review)
    shown = {s for t in after.trials for s in (t.sentence_1, t.sentence_2)}
    assert random.sentence_2 not in shown
    assert len(after.changed) == 1 + 1
    trials = [*after.trials]
    place = next(i for i, t in enumerate(trials) if t.condition == Condition.RANDOM_NATURAL)
    trials[place] = replace(trials[place], sentence_1=random.sentence_2)
    with pytest.raises(VerificationError, match="is the natural sentence of two synthetic ones"):
        verify_design(trials, of_each(PAIRS, set()), used, NATURAL, twins=False, **SIZES)


def test_the_last_file_says_in_which_group_a_trial_was() -> None:
    other = design(seed=5)
    rows = (*reviewed(BEFORE.trials, set()).decisions, *reviewed(other.trials, set()).decisions)
    both = Review(rows, (0, len(BEFORE.trials)))
    assert places(other.trials) <= places(design(review=both).trials)


def test_three_rounds_change_what_was_rejected_only() -> None:
    """A random pair, a pair and a triplet are rejected, one a round."""
    current, rows = BEFORE, list[ReviewedItem]()
    first_rows: list[int] = []
    conditions = (Condition.RANDOM_NATURAL, Condition.NATURAL_CONTROVERSIAL)
    for condition in (*conditions, Condition.SYNTHETIC_SYNTHETIC):
        rejected = next(t for t in current.trials if t.condition == condition)
        first_rows.append(len(rows))
        rows += reviewed(current.trials, {rejected.trial_id}).decisions
        review = Review(tuple(rows), tuple(first_rows))
        after = design(review.rejected, seed=len(rows), review=review)
        gone = {rejected.trial_id, rejected.source_id or "none"}
        stay = [t for t in current.trials if not gone & {t.trial_id, t.source_id}]
        assert places(stay) <= places(after.trials)
        assert not review.rejected & {t.trial_id for t in after.trials}
        current = after


def test_rejected_stimuli_are_refused_with_what_to_do_first() -> None:
    for stimulus, command in ((PAIRS[0], "select natural"), (TRIPLETS[3], "select triplets")):
        rejected = {t.trial_id for t in BEFORE.trials if t.source_id == name(stimulus)}
        for review in (rejection(stimulus), reviewed(BEFORE.trials, rejected)):
            with pytest.raises(InputError, match=f"were rejected.*'contstim {command} --review"):
                design(review=review)


def test_too_few_sentences_for_new_trials_are_counted() -> None:
    catch = next(t for t in BEFORE.trials if t.condition == Condition.CATCH)
    texts = {
        s for t in BEFORE.trials if t.condition in FILLERS for s in (t.sentence_1, t.sentence_2)
    }
    review = reviewed(BEFORE.trials, {catch.trial_id})
    with pytest.raises(InfeasibleError, match=r"need 0 more sentences for random .* and 1 of two"):
        design(natural=[s for s in NATURAL if s in texts], review=review)


def test_sentences_of_rejected_pairs_are_not_drawn_as_fillers() -> None:
    """Whatever their end mark: only these and enough others could be drawn."""
    pair = PAIRS[0]
    review = rejection(pair)
    assert pair.sentence_1 is not None
    given = [Sentence(pair.sentence_1.words, "!"), *NATURAL[:18]]
    after = design([pair.trial_id], natural=given, review=review)
    words = {s.words for t in after.trials for s in (t.sentence_1, t.sentence_2)}
    assert pair.sentence_1.words not in words
