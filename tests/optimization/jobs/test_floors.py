"""Floors of plausibility, judges, and limits on words in searches of a whole study."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.floors import (
    MAX_REFERENCE_SENTENCES,
    ScoringTask,
    floors_of,
    reference_sentences,
)
from contstim.optimization.jobs.tasks import SEEDS, TripletTask
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store import Outcome
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import Study, seed_of


@pytest.fixture
def two(study: Study) -> Study:
    return study.but(models=study.models[:2])


def model(specification: str) -> NgramModel:
    return NgramModel(specification.removeprefix("kenlm:"), specification)


def test_every_sentence_keeps_what_the_question_says(two: Study, tmp_path: Path) -> None:
    limited = two.but(fix=("the", "1"), max_changes=2, exclude=("is", "WAS"), same_length=6)
    results = limited.find(tmp_path / "limits.sqlite")
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


@given(
    st.lists(st.floats(-50, -1) | st.just(-np.inf), min_size=1, max_size=30), st.floats(0.01, 0.99)
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
    many = [Sentence((f"w{i}", "x")) for i in range(MAX_REFERENCE_SENTENCES + 200)]
    longer = [Sentence((f"w{i}", "x", "y")) for i in range(3)]
    chosen = reference_sentences([*many, *longer], None)
    assert set(longer) < set(chosen)
    assert len(chosen) == MAX_REFERENCE_SENTENCES + 3
    assert reference_sentences([*longer, *many[::-1], *many], None)[:9] == chosen[:9]
    words = Vocabulary(("w0", "w1"), ("x",))
    assert set(reference_sentences(many, words)) == {*many[:2]}


def floors_by_hand(specification: str, study: Study, quantile: float) -> dict[int, float]:
    """The sorted scores of all natural sentences of each length, and the one at the quantile."""
    judge = model(specification)
    floors = {}
    for n_words in {len(s) for s in study.sentences}:
        usable = {s for s in study.sentences if len(s) == n_words}
        scores = sorted(judge.log_probs([*usable]))
        floors[n_words] = scores[int(np.ceil(quantile * len(scores))) - 1]
    return floors


def test_natural_sentences_below_the_quantile_make_room_for_the_next_and_floors_stay(
    two: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: quantiles by hand, and scores of the natural sentences of triplets."""
    path, plausible = tmp_path / "floor.sqlite", two.but(plausible="0.5")
    results = plausible.find(path)
    floors = {name: floors_by_hand(name, two, 0.5) for name in two.models}
    assert results.floors == floors
    assert results.pairs[0].reasons.keys() <= {"below the floor of plausibility"}
    for triplet in results.triplets:
        for name in two.models:
            natural = triplet.natural
            assert model(name).log_probs([natural])[0] >= floors[name][len(natural)]
    monkeypatch.setattr(ScoringTask, "perform", lambda *_: pytest.fail("scored again"))
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    # Other sentences would make other floors
    searched = {result.natural for result in results.searches}
    others = [s for s in two.sentences if s.text not in searched]
    fewer = tuple(s for s in two.sentences if s.text in searched or s in others[::2])
    assert plausible.but(sentences=fewer).find(path).triplets == results.triplets
    assert plausible.but(sentences=fewer).find(path).floors == floors


def test_a_judge_finds_every_sentence_plausible(
    two: Study, study: Study, tmp_path: Path, words: Vocabulary
) -> None:
    """Witness: one call of `synthesize_triplet` each, and scores computed afresh."""
    judge = study.models[2]
    judged = two.but(plausible=f"four={judge}:0.25")
    results = judged.find(tmp_path / "judge.sqlite")
    floors = floors_by_hand(judge, two, 0.25)
    assert results.floors == {"four": floors}
    fourgram = model(judge)
    first, second = map(model, two.models)
    for triplet in results.triplets:
        floor = floors[len(triplet.natural)]
        sentences = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
        assert min(fourgram.log_probs([*sentences])) >= floor
        expected, *_ = synthesize_triplet(
            first,
            second,
            triplet.natural,
            words,
            recipe=recipe_named("golan2023"),
            fluency=(fourgram, floor),
            seed=seed_of(5, (first, second), triplet.natural),
            seeds=SEEDS,
        )
        assert triplet == expected
    assert results.judge == fourgram.convention
    # One of the two models may be the judge
    own = two.but(plausible=f"{two.models[0]}:0.25").find(tmp_path / "own.sqlite")
    assert own.floors == {two.models[0]: floors_by_hand(two.models[0], two, 0.25)}


@pytest.mark.parametrize("by_judge", [False, True])
def test_a_sentence_is_not_below_a_floor_that_is_its_own_score_but_for_rounding(
    two: Study, by_judge: bool
) -> None:
    natural = two.sentences[0]
    models = [model(name) for name in two.models]
    first, second = (m.convention.fingerprint for m in models)
    scores = [float(m.log_probs([natural])[0]) for m in models]

    def state(above: float) -> str:
        floors = (scores[0] + above, scores[1] + above)
        task = TripletTask(
            two.question,
            (two.models[0], two.models[1]),
            (first, second),
            natural,
            "words",
            judge=(two.models[0], first, floors[0]) if by_judge else None,
            floors=None if by_judge else floors,
        )
        outcome: Outcome = task.perform(two.context)
        return outcome.state

    assert state(2e-5) == "found"
    assert state(1e-2) == "inadmissible"
