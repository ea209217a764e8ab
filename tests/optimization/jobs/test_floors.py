"""Floors of plausibility, judges, and limits on words in searches of a whole study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contstim.errors import InputError
from contstim.jobs import LocalExecutor
from contstim.jobs.pool import worker_pool
from contstim.models.catalog import load_scorer
from contstim.models.ngram.adapter import NgramModel
from contstim.optimization.jobs.floors import (
    MAX_REFERENCE_SENTENCES,
    NaturalScores,
    ScoringTask,
    floors_of,
    reference_sentences,
)
from contstim.optimization.jobs.tasks import InspectionTask, TripletTask
from contstim.optimization.search.opponents import natural_sd
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store import Outcome, Store
from contstim.store.triplets import Result, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import Study


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


def test_standard_deviations_are_those_of_a_sample_and_stay(
    two: Study, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: `natural_sd` of at most 200 sentences, scored in this process."""
    slor = f"kenlm:{trained}/2gram.arpa+slor:{trained}/1gram.arpa"
    names = (slor, two.models[1])
    profiles = {name: InspectionTask(name).perform(two.context) for name in names}
    sentences, n = two.sentences, len(two.sentences)

    def find(sentences: Sequence[Sentence], *models: str) -> dict[str, float]:
        chosen = {name: profiles[name] for name in models}
        executor = LocalExecutor()
        with Store(tmp_path / "sds.sqlite") as store, worker_pool(executor, two.context) as pool:
            return NaturalScores(chosen, sentences, TripletStore(store), pool).sds()

    assert find(sentences, two.models[1]) == {}
    sample = reference_sentences(sentences, two.vocabulary)[:: -(-n // 200)]
    expected = {name: natural_sd(load_scorer(name), sample) for name in names}
    assert find(sentences, *names) == pytest.approx(expected)
    # Without a stored search from one of the sentences, the values are computed again
    assert find(sentences[::2], *names) != pytest.approx(expected)
    assert find(sentences, *names) == pytest.approx(expected)
    text = sentences[0].text
    with Store(tmp_path / "sds.sqlite") as store:
        result = Result(0, *names, text, "inadmissible", "a reason", None, 0, 0, 0)
        TripletStore(store).keep("key", result, ())
    monkeypatch.setattr(ScoringTask, "perform", lambda *_: pytest.fail("scored again"))
    assert find(sentences[::2], *names) == pytest.approx(expected)


@pytest.mark.slow
def test_natural_sentences_below_the_quantile_make_room_for_the_next_and_floors_stay(
    two: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: quantiles by hand, and scores of the natural sentences of triplets."""
    path, plausible = tmp_path / "floor.sqlite", two.but(recipe="default", frame="none", per_pair=1)
    results = plausible.find(path)
    floors = {name: floors_by_hand(name, two, 0.25) for name in two.models}
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


def test_judge_outside_the_pair_chooses(
    two: Study, study: Study, tmp_path: Path, words: Vocabulary
) -> None:
    """Witness: one call of `synthesize_triplet` each, and scores computed afresh."""
    judge = study.models[2]
    judged = two.but(recipe="default", restarts=None, enough=1.0, judge=(f"four={judge}",))
    results = judged.find(tmp_path / "judge.sqlite")
    assert results.floors == {}
    fourgram, (first, second) = model(judge), map(model, two.models)
    assert results.triplets
    n_judged = n_refused = 0
    for triplet in (*results.triplets, *results.unchanged):
        question = judged.question
        expected, *syntheses = synthesize_triplet(
            first,
            second,
            triplet.natural,
            words,
            judges=fourgram,
            constraints=question.constraints(triplet.natural, every_fix=False),
            few_changes=question.few_changes,
        )
        assert triplet == expected
        scores = fourgram.log_probs([*triplet.sentences])
        drops = [triplet.judge_drop_1, triplet.judge_drop_2]
        assert drops == pytest.approx(scores[0] - scores[1:])
        for synthesis in syntheses:
            assert synthesis.choice is not None
            n_judged += synthesis.choice.judged
            n_refused += sum(synthesis.choice.refused.values())
    assert results.judges == {"four": fourgram.convention}
    assert n_judged
    assert results.refused == {"four": n_refused / n_judged}
    assert judged.but(enough=200.0).find(tmp_path / "vain.sqlite").refused == {}
    own = judged.but(judge=(two.models[0],))
    with pytest.raises(InputError, match="outside the pair"):
        own.find(tmp_path / "own.sqlite")


def test_other_causal_transformers_judge_by_default_and_new_ones_do_not(
    two: Study, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    """A panel of the models outside each pair, which the first run decides."""
    causal = tuple(f"hf:{tiny_checkpoint(name)}" for name in ("gpt2", "llama"))
    few = two.but(recipe="default", restarts=None, enough=0.5, per_pair=1, max_scored=20)
    first = few.but(models=(*two.models, causal[0]))
    results = first.find(tmp_path / "panel.sqlite")
    assert [*results.judges] == [causal[0]]
    (of_ngrams,) = [t for t in results.triplets if {t.model_1, t.model_2} == {*two.models}]
    assert of_ngrams.judge_drop_1 is not None
    assert all(
        t.judge_drop_1 is None for t in results.triplets if causal[0] in (t.model_1, t.model_2)
    )
    grown = first.but(models=(*first.models, causal[1])).find(tmp_path / "panel.sqlite")
    assert [*grown.judges] == [causal[0]]
    assert of_ngrams in grown.triplets


def test_a_sentence_is_not_below_a_floor_that_is_its_own_score_but_for_rounding(
    two: Study,
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
            floors=floors,
        )
        outcome: Outcome = task.perform(two.context)
        return outcome.state

    assert state(2e-5) == "found"
    assert state(1e-2) == "inadmissible"
