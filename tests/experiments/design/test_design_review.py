"""Designs after a review: rejected items are replaced, as many others as possible stay."""

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


def select_per_pair(stimuli: Iterable[Any], left_out: set[str], per_pair: int = 6) -> list[Any]:
    """Select the first stimuli of each pair of models, without those left out."""
    stimuli_by_pair: dict[tuple[str, str], list[Any]] = {}
    for stimulus in stimuli:
        selected = stimuli_by_pair.setdefault((stimulus.model_1, stimulus.model_2), [])
        if identify(stimulus) not in left_out and len(selected) < per_pair:
            selected.append(stimulus)
    return [stimulus for selected in stimuli_by_pair.values() for stimulus in selected]


def identify(stimulus: Pair | Triplet) -> str:
    return stimulus.triplet_id if isinstance(stimulus, Triplet) else stimulus.trial_id


def design_with(left_out: Iterable[str] = (), **changes: Any) -> Design:
    left_out_ids = set(left_out)
    arguments: dict[str, Any] = {
        "pairs": select_per_pair(PAIRS, left_out_ids),
        "triplets": select_per_pair(TRIPLETS, left_out_ids),
        "natural": NATURAL,
        "twins": True,
        **SIZES,
    }
    arguments |= changes
    design = build_design(**arguments)
    if "review" in arguments:
        sizes = {name: arguments[name] for name in SIZES}
        verify_review(design.trials, arguments["natural"], arguments["review"], **sizes)
    return design


BEFORE = design_with(seed=1)


def review_trials(trials: Iterable[Trial], rejected: set[str]) -> Review:
    return Review(
        tuple(
            replace(item, decision=Decision.REJECT if item.item_id in rejected else Decision.KEEP)
            for item in undecided_items(trials, "Ann")
        )
    )


def reject(stimulus: Pair | Triplet) -> Review:
    (item,) = undecided_items([stimulus], "Ann")
    return Review((replace(item, decision=Decision.REJECT),))


def require_that(holds: bool, failure: str) -> None:
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
    """Check that rejected items are removed and kept trials stay; counts fillers that can stay."""
    rejected = review.rejected
    reviewed = {item.item_id: item for item in review.decisions if item.kind is ItemKind.TRIAL}
    kept_trials = {i: t for i, t in reviewed.items() if not review.rejects(t)}
    # A rejected trial of a triplet rejects all sentences of the triplet
    rejected_words = {s.words for t in review.decisions if review.rejects(t) for s in t.sentences}
    uses = Counter(text for t in trials for text in (t.sentence_1.bare, t.sentence_2.bare))
    # Sentences to draw; natural sentences of synthetic pairs are not available
    natural_texts = {s.bare for s in natural} - {t.source.bare for t in trials if t.source}
    n_kept: Counter[tuple[str, int]] = Counter()  # kept trials by (condition, group)
    for trial in trials:
        trial_id = trial.trial_id
        require_that(not rejected & {trial_id, trial.source_id}, f"{trial_id} was rejected")
        item = kept_trials.get(trial_id)
        is_same = item is not None and item.sentences == (trial.sentence_1, trial.sentence_2)
        if item is not None and is_same and item.group == trial.group:
            n_kept[trial.condition, trial.group] += 1
        elif trial.condition in FILLERS:
            texts = [
                s.text for s in (trial.sentence_1, trial.sentence_2) if s.words in rejected_words
            ]
            require_that(not texts, f"{trial_id} has a sentence of a rejected item: {texts}")
    # A random or catch trial can stay if its sentences are still natural and no other trial
    # uses them
    design_ids = {trial.trial_id for trial in trials}
    n_possible: Counter[tuple[str, int]] = Counter()
    for trial_id, item in kept_trials.items():
        drawn_sentences = item.sentences[: 1 if item.condition == Condition.CATCH else 2]
        is_unused = all(uses[s.bare] == (trial_id in design_ids) for s in item.sentences)
        are_natural = all(s.bare in natural_texts for s in drawn_sentences)
        if is_unused and item.group <= groups and are_natural:
            n_possible[item.condition, item.group] += 1
    for condition, needs in zip(FILLERS, (random_per_group, catch_per_group), strict=True):
        for group in range(1, groups + 1):
            n_actual = n_kept[condition, group]
            n_achievable = min(needs, n_possible[condition, group])
            require_that(
                n_actual >= n_achievable,
                f"group {group} keeps {n_actual} {condition} trials, and could {n_achievable}",
            )


def groups_of_trials(trials: Iterable[Trial]) -> set[tuple[str, int]]:
    return {(trial.trial_id, trial.group) for trial in trials}


@settings(max_examples=examples(15))
@given(st.sets(st.integers(0, len(BEFORE.trials) - 1), max_size=3))
def test_items_that_were_not_rejected_stay(drawn: set[int]) -> None:
    """Witness: new stimuli replace rejected ones, so all others can stay."""
    rejected = {BEFORE.trials[i].trial_id for i in drawn}
    review = review_trials(BEFORE.trials, rejected)
    revised = design_with(review.rejected, seed=2, review=review)
    rejected_ids = review.rejected
    kept_trials = [t for t in BEFORE.trials if not rejected_ids & {t.trial_id, t.source_id}]
    assert groups_of_trials(kept_trials) <= groups_of_trials(revised.trials)
    assert not revised.changed
    assert len(revised.trials) == len(BEFORE.trials)
    assert not rejected_ids & {t.trial_id for t in revised.trials}
    # A rejected trial of a triplet rejects the sentences of all its trials
    rejected_trials = [t for t in BEFORE.trials if rejected_ids & {t.trial_id, t.source_id}]
    rejected_sentences = {s for t in rejected_trials for s in (t.sentence_1, t.sentence_2)}
    new_fillers = [t for t in revised.trials if t.condition in FILLERS and t not in kept_trials]
    assert not rejected_sentences & {s for t in new_fillers for s in (t.sentence_1, t.sentence_2)}


def test_without_rejections_the_design_stays() -> None:
    revised = design_with(seed=7, review=review_trials(BEFORE.trials, set()))
    assert revised.trials == BEFORE.trials
    assert not revised.changed


def test_other_sizes_keep_as_many_trials_as_possible() -> None:
    review = review_trials(BEFORE.trials, set())
    revised = design_with(seed=7, review=review, groups=3, random_per_group=1, catch_per_group=3)
    for condition, per_group in ((Condition.RANDOM_NATURAL, 1), (Condition.CATCH, 2)):
        fillers = [t for t in revised.trials if t.condition == condition]
        assert len(groups_of_trials(fillers) & groups_of_trials(BEFORE.trials)) == 3 * per_group
    # Six groups of half the size: groups 1 to 3 keep half of their trials
    more_groups = design_with(seed=7, review=review, groups=6)
    targeted = [t for t in BEFORE.trials if t.condition not in FILLERS]
    kept = groups_of_trials(targeted) & groups_of_trials(more_groups.trials)
    assert len(kept) == len(targeted) // 2
    assert {i.item_id for i in more_groups.changed} == {
        name for name, _ in groups_of_trials(BEFORE.trials) - groups_of_trials(more_groups.trials)
    }


def test_random_pair_with_a_sentence_of_a_new_triplet_is_removed() -> None:
    random = next(t for t in BEFORE.trials if t.condition == Condition.RANDOM_NATURAL)
    triplets = [replace(t, natural=random.sentence_2) if not i else t
            for i, t in enumerate(select_per_pair(TRIPLETS, set()))]  # fmt: skip
    triplets[0] = replace(triplets[0], triplet_id="triplet-new")
    revised = design_with(triplets=triplets, review=review_trials(BEFORE.trials, set()))
    assert random.trial_id not in {t.trial_id for t in revised.trials}
    assert len(revised.changed) == 1 + 3


def test_random_pair_with_a_natural_source_sentence_is_removed() -> None:
    """Witness: a search for the pair. Without twins, no other trial has the natural sentence."""
    earlier = design_with(twins=False)
    review = review_trials(earlier.trials, set())
    random = next(t for t in earlier.trials if t.condition == Condition.RANDOM_NATURAL)
    first, *others = select_per_pair(TRIPLETS, set())
    triplets = [replace(first, triplet_id="triplet-new", natural=random.sentence_2), *others]
    revised = design_with(twins=False, triplets=triplets, review=review)
    sentences = {s for t in revised.trials for s in (t.sentence_1, t.sentence_2)}
    assert random.sentence_2 not in sentences
    assert len(revised.changed) == 1 + 1
    trials = [*revised.trials]
    index = next(i for i, t in enumerate(trials) if t.condition == Condition.RANDOM_NATURAL)
    trials[index] = replace(trials[index], sentence_1=random.sentence_2)
    with pytest.raises(VerificationError, match="is also the natural sentence of a triplet"):
        verify_design(
            trials, select_per_pair(PAIRS, set()), triplets, NATURAL, twins=False, **SIZES
        )


def test_last_file_decides_the_group_of_a_trial() -> None:
    second = design_with(seed=5)
    designs = (BEFORE, second)
    rows = tuple(row for d in designs for row in review_trials(d.trials, set()).decisions)
    reviews = Review(rows, (0, len(BEFORE.trials)))
    assert groups_of_trials(second.trials) <= groups_of_trials(design_with(review=reviews).trials)


def test_three_rounds_change_rejected_items_only() -> None:
    """Each round rejects one item: a random pair, a pair and a triplet."""
    current, rows = BEFORE, list[ReviewedItem]()
    first_rows: list[int] = []
    conditions = (Condition.RANDOM_NATURAL, Condition.NATURAL_CONTROVERSIAL)
    for condition in (*conditions, Condition.SYNTHETIC_SYNTHETIC):
        rejected = next(t for t in current.trials if t.condition == condition)
        first_rows.append(len(rows))
        rows += review_trials(current.trials, {rejected.trial_id}).decisions
        review = Review(tuple(rows), tuple(first_rows))
        revised = design_with(review.rejected, seed=len(rows), review=review)
        rejected_ids = {rejected.trial_id, rejected.source_id or "none"}
        kept_trials = [t for t in current.trials if not rejected_ids & {t.trial_id, t.source_id}]
        assert groups_of_trials(kept_trials) <= groups_of_trials(revised.trials)
        assert not review.rejected & {t.trial_id for t in revised.trials}
        current = revised


def test_error_for_rejected_stimuli_names_the_command() -> None:
    for stimulus, command in ((PAIRS[0], "select natural"), (TRIPLETS[3], "select triplets")):
        rejected = {t.trial_id for t in BEFORE.trials if t.source_id == identify(stimulus)}
        for review in (reject(stimulus), review_trials(BEFORE.trials, rejected)):
            with pytest.raises(InputError, match=f"were rejected.*'contstim {command} --review"):
                design_with(review=review)


def test_error_counts_missing_sentences() -> None:
    catch = next(t for t in BEFORE.trials if t.condition == Condition.CATCH)
    fillers = [t for t in BEFORE.trials if t.condition in FILLERS]
    used = {s for t in fillers for s in (t.sentence_1, t.sentence_2)}
    review = review_trials(BEFORE.trials, {catch.trial_id})
    with pytest.raises(InfeasibleError, match=r"needs 0 for random pairs.* and 1 for catch"):
        design_with(natural=[s for s in NATURAL if s in used], review=review)


def test_sentences_of_rejected_pairs_are_not_drawn_as_fillers() -> None:
    """Also with another end mark; the rejected sentences and just enough others are available."""
    pair = PAIRS[0]
    review = reject(pair)
    assert pair.sentence_1 is not None
    sentences = [Sentence(pair.sentence_1.words, "!"), *NATURAL[:18]]
    revised = design_with([pair.trial_id], natural=sentences, review=review)
    words = {s.words for t in revised.trials for s in (t.sentence_1, t.sentence_2)}
    assert pair.sentence_1.words not in words
