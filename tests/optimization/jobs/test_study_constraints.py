"""Constraints and floors of studies; what a single search keeps is tested with the search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError, StoreError
from contstim.jobs import LocalExecutor, ProcessExecutor
from contstim.models.loading import Loading
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.plan import SynthesisPlan, seed_for
from contstim.optimization.jobs.plausibility import (
    MOST_SENTENCES,
    Plausibility,
    floors_of,
    reference_sentences,
)
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.search_context import SearchContext
from contstim.optimization.jobs.tasks import SEEDS, Judge, TripletTask
from contstim.optimization.jobs.triplets import find_triplets
from contstim.optimization.search.constraints import WordLimits
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.sentence import Sentence
from contstim.store import JobState, Outcome, Store, TripletStore
from contstim.vocabulary import Vocabulary

Changed = Callable[..., SynthesisPlan]


def find(study: SynthesisPlan, path: Path, executor: Any = None, **options: Any) -> TripletResults:
    context = SearchContext(
        Loading(device="cpu"), vocabulary=study.vocabulary, allow_unknown=study.allow_unknown
    )
    with Store(path) as store:
        return find_triplets(study, store, executor or LocalExecutor(), context, **options)


@pytest.fixture
def two(changed: Changed, study: SynthesisPlan) -> Callable[..., SynthesisPlan]:
    """The study with two models and two triplets, and other values."""
    return lambda **values: changed(**{"models": study.models[:2], "per_pair": 2, **values})


def model(specification: str) -> NgramModel:
    return NgramModel(specification.removeprefix("kenlm:"), specification)


def test_every_sentence_keeps_what_the_plan_says(two: Changed, tmp_path: Path) -> None:
    limits = WordLimits(
        fix=("the", "1"), max_changes=2, exclude=frozenset({"is", "was"}), same_length=6
    )
    results = find(two(limits=limits), tmp_path / "limits.sqlite")
    assert len(results.triplets) + len(results.unchanged) == 2
    for triplet in (*results.triplets, *results.unchanged):
        natural = triplet.natural
        for sentence in (triplet.synthetic_1, triplet.synthetic_2):
            new = [p for p in range(len(natural)) if sentence.words[p] != natural.words[p]]
            assert len(new) <= 2
            assert 1 not in new
            assert not any(natural.words[p].lower() == "the" for p in new)
            assert abs(len(sentence.text) - len(natural.text)) <= 6
        assert not {"is", "was"} & {word.lower() for word in natural.words}
    excluded = results.pairs[0].reasons.get("holds an excluded word", 0)
    assert results.pairs[0].inadmissible == excluded


def test_settings_name_constraints_and_a_store_of_before_has_none(
    two: Changed, tmp_path: Path
) -> None:
    path = tmp_path / "settled.sqlite"
    before = find(two(), path)
    with Store(path) as store:
        settings = TripletStore(store).settings()
    assert not {"capitals", "plausible", "exclude", "fix"} & {*settings}
    # Whatever is usual by now, a store of before goes on without
    plan = two().with_defaults(settings, capitals=None, plausible=None)
    assert plan == two()
    assert find(plan, path) == before
    new = two(recipe="default").with_defaults({}, capitals=None, plausible=None)
    assert (new.capitals, new.plausible) == (True, Plausibility(0.25))
    published = two().with_defaults({}, capitals=None, plausible=None)
    assert (published.capitals, published.plausible) == (False, Plausibility())
    for values, difference in (
        ({"limits": WordLimits(max_changes=2)}, r"max changes: \(none\) → 2"),
        ({"limits": WordLimits(fix=("the",))}, r"fix: \(none\) → the"),
        ({"capitals": True}, r"capitals: \(none\) → only where they may stand"),
        ({"plausible": Plausibility(0.1)}, r"plausible: \(none\) → 0.1"),
    ):
        with pytest.raises(StoreError, match=difference):
            find(two(**values), path)
    with pytest.raises(InputError, match="no sentence has such a word or position"):
        two(limits=WordLimits(fix=("xylograph",)))


@given(
    st.lists(st.floats(-50, -1) | st.just(-np.inf), min_size=1, max_size=30),
    st.floats(0.01, 0.99),
)
def test_a_floor_is_the_least_score_that_enough_sentences_do_not_exceed(
    scores: list[float], quantile: float
) -> None:
    """Witness: counting."""
    sentences = {Sentence((f"w{i}", "x")): score for i, score in enumerate(scores)}
    (floor,) = floors_of(sentences, quantile).values()
    enough = [s for s in scores if sum(t <= s for t in scores) >= quantile * len(scores) - 1e-9]
    assert floor == min(enough)


def test_a_floor_is_not_a_rank_too_high_where_a_product_is_rounded_up() -> None:
    """In floating point .28 x 25 is more than 7; the sentences 0 to 6 are seven."""
    scores = {Sentence((f"w{i}", "x")): float(i) for i in range(25)}
    assert floors_of(scores, 0.28) == {2: 6.0}


def test_reference_sentences_do_not_depend_on_the_order_and_are_a_thousand_at_most() -> None:
    many = [Sentence((f"w{i}", "x")) for i in range(MOST_SENTENCES + 200)]
    longer = [Sentence((f"w{i}", "x", "y")) for i in range(3)]
    chosen = reference_sentences([*many, *longer], None)
    assert set(longer) < set(chosen)
    assert len(chosen) == MOST_SENTENCES + 3
    assert reference_sentences([*longer, *many[::-1], *many], None)[:9] == chosen[:9]
    words = Vocabulary(("w0", "w1"), ("x",))
    assert set(reference_sentences(many, words)) == {*many[:2]}


def floors_by_hand(specification: str, plan: SynthesisPlan, quantile: float) -> dict[int, float]:
    """The sorted scores of all natural sentences of each length, and the one at the quantile."""
    judge = model(specification)
    floors = {}
    for n_words in {len(s) for s in plan.sentences}:
        usable = {s for s in plan.sentences if len(s) == n_words}
        scores = sorted(judge.log_probs([*usable]))
        floors[n_words] = scores[int(np.ceil(quantile * len(scores))) - 1]
    return floors


def test_natural_sentences_below_the_quantile_make_room_for_the_next(
    two: Changed, tmp_path: Path
) -> None:
    """Witness: quantiles by hand, and the order in which a study without a floor takes them."""
    plan = two(plausible=Plausibility(0.5), per_pair=3)
    results = find(plan, tmp_path / "floor.sqlite")
    floors = {name: floors_by_hand(name, plan, 0.5) for name in plan.models}
    assert results.floors == floors
    order = find(two(per_pair=12), tmp_path / "order.sqlite")
    with Store(tmp_path / "order.sqlite") as store:
        naturals = [Sentence.parse(job.natural) for job in TripletStore(store).jobs()]
    high = [
        s
        for s in naturals
        if all(model(name).log_probs([s])[0] >= floors[name][len(s)] for name in plan.models)
    ]
    found = [t.natural for t in results.triplets + results.unchanged]
    assert set(found) == set(high[:3])
    assert results.pairs[0].reasons == {
        "below the floor of plausibility": naturals.index(high[2]) - 2
    }
    # The sentences that stay have the triplets that they have without a floor
    before = {t.natural: t for t in order.triplets}
    assert all(before[t.natural] == t for t in results.triplets)
    again = find(plan, tmp_path / "floor.sqlite")
    assert again == results


def test_a_judge_finds_every_sentence_plausible(
    two: Changed, study: SynthesisPlan, tmp_path: Path, words: Vocabulary
) -> None:
    """Witness: one call of `synthesize_triplet` each, and scores computed afresh."""
    judge = study.models[2]
    plan = two(plausible=Plausibility(0.25, judge))
    results = find(plan, tmp_path / "judge.sqlite")
    floors = floors_by_hand(judge, plan, 0.25)
    assert results.floors == {judge: floors}
    fourgram = model(judge)
    first, second = map(model, plan.models)
    fingerprints = (first.convention.fingerprint, second.convention.fingerprint)
    for triplet in results.triplets:
        floor = results.floors[judge][len(triplet.natural)]
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        assert min(fourgram.log_probs([*sentences])) >= floor
        seed = seed_for(5, fingerprints, triplet.natural.text)
        expected, *_ = synthesize_triplet(
            first,
            second,
            triplet.natural,
            words,
            recipe=recipe_named(plan.recipe),
            fluency=(fourgram, floor),
            seed=seed,
            seeds=SEEDS,
            restarts=plan.restarts,
        )
        assert triplet == expected
    assert results.judge == fourgram.convention
    # The same floor in nats, given by hand; and three workers find the same
    fluent = two(fluency=(judge, results.floors[judge][8]))
    assert find(fluent, tmp_path / "fluent.sqlite").triplets == results.triplets
    assert find(plan, tmp_path / "three.sqlite", ProcessExecutor(3)) == results


def test_a_judge_of_fluency_leaves_the_floors_of_the_models(two: Changed, tmp_path: Path) -> None:
    """Witness: the study without the judge, who accepts everything."""
    plan = two(plausible=Plausibility(0.5), per_pair=3)
    expected = find(plan, tmp_path / "models.sqlite")
    assert expected.pairs[0].inadmissible
    both = replace(plan, fluency=(plan.models[0], -1e3))
    results = find(both, tmp_path / "both.sqlite")
    assert results.floors == expected.floors
    assert results.pairs[0].reasons == expected.pairs[0].reasons
    naturals = {t.natural for t in expected.triplets + expected.unchanged}
    assert {t.natural for t in results.triplets + results.unchanged} == naturals


@pytest.mark.parametrize("by_judge", [False, True])
def test_a_sentence_is_not_below_a_floor_that_is_its_own_score_but_for_rounding(
    two: Changed, words: Vocabulary, by_judge: bool
) -> None:
    plan = two(per_pair=1)
    natural = plan.sentences[0]
    models = [model(name) for name in plan.models]
    first, second = (m.convention.fingerprint for m in models)
    scores = [float(m.log_probs([natural])[0]) for m in models]

    def state(above: float) -> JobState:
        floors = (scores[0] + above, scores[1] + above)
        task = TripletTask(
            (plan.models[0], plan.models[1]),
            (first, second),
            0,
            natural,
            seed=1,
            recipe="default",
            judge=Judge(plan.models[0], first, floors[0]) if by_judge else None,
            floors=None if by_judge else floors,
            restarts=plan.restarts,
        )
        outcome: Outcome = task.perform(SearchContext(Loading(device="cpu"), vocabulary=words))
        return outcome.state

    assert state(2e-5) is JobState.FOUND
    assert state(1e-2) is JobState.INADMISSIBLE


def test_a_judge_may_be_one_of_the_models(two: Changed, tmp_path: Path) -> None:
    """The sentence that it rejects does not fall below its floor either."""
    plan = two(plausible=Plausibility(0.1, two().models[0]))
    results = find(plan, tmp_path / "same.sqlite")
    assert results.triplets
    floors = results.floors[plan.models[0]]
    free = {t.natural: t for t in find(two(), tmp_path / "free.sqlite").triplets}
    for triplet in results.triplets:
        assert triplet.log_prob_synthetic_1_model_1 >= floors[len(triplet.natural)]
        if triplet.natural in free:
            lowest = free[triplet.natural].log_prob_synthetic_1_model_1
            assert lowest <= triplet.log_prob_synthetic_1_model_1


def test_floors_are_computed_once(
    two: Changed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contstim.optimization.jobs.tasks import ScoringTask

    plan = two(plausible=Plausibility(0.25))
    results = find(plan, tmp_path / "once.sqlite")
    monkeypatch.setattr(ScoringTask, "perform", lambda *_: pytest.fail("scored again"))
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    assert find(plan, tmp_path / "once.sqlite") == results


@pytest.mark.parametrize(
    ("text", "message"),
    [("0.5x", "has no quantile"), ("hf:gpt2", "has no quantile"), ("1", "from 0 to below 1")],
)
def test_floors_that_are_not_quantiles_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Plausibility.parse(text)


@pytest.mark.parametrize("text", ["none", "0.25", "kenlm:a.arpa:0.1", "hf:gpt2@chain:0.05"])
def test_floors_are_written_as_they_are_read(text: str) -> None:
    assert str(Plausibility.parse(text)) == text
