"""Plausibility floors, judges and word constraints in the searches of a study."""

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
from contstim.optimization.search.opponents import natural_sds
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store import Store
from contstim.store.triplets import Result, TripletStore
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.jobs.studies import Study


@pytest.fixture
def pair_study(study: Study) -> Study:
    return study.with_values(models=study.models[:2])


def load_ngram(specification: str) -> NgramModel:
    return NgramModel(specification.removeprefix("kenlm:"), specification)


def test_sentences_satisfy_the_questions_constraints(pair_study: Study, tmp_path: Path) -> None:
    limited = pair_study.with_values(
        fix=("the", "1"), max_changes=2, exclude=("is", "WAS"), same_length=6
    )
    results = limited.find(tmp_path / "limits.sqlite")
    assert len(results.triplets) + len(results.unchanged) == 2
    for triplet in (*results.triplets, *results.unchanged):
        natural = triplet.natural
        for sentence in (triplet.synthetic_1, triplet.synthetic_2):
            positions = [p for p in range(len(natural)) if sentence.words[p] != natural.words[p]]
            assert len(positions) <= 2
            assert 1 not in positions
            assert not any(natural.words[p].lower() == "the" for p in positions)
            assert abs(len(sentence.text) - len(natural.text)) <= 6
        assert not {"is", "was"} & {word.lower() for word in natural.words}
    n_excluded = results.pairs[0].reasons.get("contains an excluded word", 0)
    assert results.pairs[0].inadmissible == n_excluded


@given(
    st.lists(st.floats(-50, -1) | st.just(-np.inf), min_size=1, max_size=30), st.floats(0.01, 0.99)
)
def test_floors_are_quantiles_of_natural_scores(scores: list[float], quantile: float) -> None:
    """Witness: a count for each score."""
    sentences = {Sentence((f"w{i}", "x")): score for i, score in enumerate(scores)}
    (floor,) = floors_of(sentences, quantile).values()
    candidates = [s for s in scores if sum(t <= s for t in scores) >= quantile * len(scores) - 1e-9]
    assert floor == min(candidates)


def test_rounding_does_not_raise_a_floor_by_one_rank() -> None:
    """In floating point, 0.28 * 25 is above 7; the sentences 0 to 6 are seven."""
    scores = {Sentence((f"w{i}", "x")): float(i) for i in range(25)}
    assert floors_of(scores, 0.28) == {2: 6.0}


def test_reference_sentences_are_limited_and_ignore_order() -> None:
    many = [Sentence((f"w{i}", "x")) for i in range(MAX_REFERENCE_SENTENCES + 200)]
    longer = [Sentence((f"w{i}", "x", "y")) for i in range(3)]
    chosen = reference_sentences([*many, *longer], None)
    assert set(longer) < set(chosen)
    assert len(chosen) == MAX_REFERENCE_SENTENCES + 3
    assert reference_sentences([*longer, *many[::-1], *many], None)[:9] == chosen[:9]
    words = Vocabulary(("w0", "w1"), ("x",))
    assert set(reference_sentences(many, words)) == {*many[:2]}


def expected_floors(specification: str, study: Study, quantile: float) -> dict[int, float]:
    """Return the quantile of the natural sentences' scores for each length, by sorting."""
    judge = load_ngram(specification)
    floors = {}
    for n_words in {len(s) for s in study.sentences}:
        sentences = {s for s in study.sentences if len(s) == n_words}
        scores = sorted(judge.log_probs([*sentences]))
        floors[n_words] = scores[int(np.ceil(quantile * len(scores))) - 1]
    return floors


def test_standard_deviations_come_from_a_sample_and_persist(
    pair_study: Study, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witness: `natural_sds` of at most 200 sentences, scored in this process."""
    slor = f"kenlm:{trained}/2gram.arpa+slor:{trained}/1gram.arpa"
    names = (slor, pair_study.models[1])
    profiles = {name: InspectionTask(name).perform(pair_study.context) for name in names}
    sentences, n = pair_study.sentences, len(pair_study.sentences)

    def find(sentences: Sequence[Sentence], *models: str) -> dict[str, float]:
        selected = {name: profiles[name] for name in models}
        pool = worker_pool(LocalExecutor(), pair_study.context)
        with Store(tmp_path / "sds.sqlite") as store, pool as workers:
            return NaturalScores(selected, sentences, TripletStore(store), workers).sds()

    assert find(sentences, pair_study.models[1]) == {}
    sample = reference_sentences(sentences, pair_study.vocabulary)[:: -(-n // 200)]
    expected = natural_sds([*map(load_scorer, names)], sample)
    assert find(sentences, *names) == pytest.approx(expected)
    # Without a stored search for one of the sentences, the values are recomputed
    assert find(sentences[::2], *names) != pytest.approx(expected)
    assert find(sentences, *names) == pytest.approx(expected)
    text = sentences[0].text
    with Store(tmp_path / "sds.sqlite") as store:
        result = Result(0, *names, text, "inadmissible", "a reason", None, 0, 0, 0)
        TripletStore(store).keep("key", result)
    monkeypatch.setattr(ScoringTask, "perform", lambda *_: pytest.fail("scored again"))
    assert find(sentences[::2], *names) == pytest.approx(expected)


@pytest.mark.slow
def test_sentences_below_floors_are_skipped_and_floors_persist(
    pair_study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Witnesses: quantiles by sorting, and scores of the triplets' natural sentences."""
    path = tmp_path / "floor.sqlite"
    plausible = pair_study.with_values(recipe="default", frame="none", per_pair=1)
    results = plausible.find(path)
    floors = {name: expected_floors(name, pair_study, 0.25) for name in pair_study.models}
    assert results.floors == floors
    assert results.pairs[0].reasons.keys() <= {"below the floor of plausibility"}
    for triplet in results.triplets:
        for name in pair_study.models:
            natural = triplet.natural
            assert load_ngram(name).log_probs([natural])[0] >= floors[name][len(natural)]
    monkeypatch.setattr(ScoringTask, "perform", lambda *_: pytest.fail("scored again"))
    monkeypatch.setattr(TripletTask, "perform", lambda *_: pytest.fail("searched again"))
    # Without stored floors, other sentences would give other floors
    texts = {result.natural for result in results.searches}
    unsearched = [s for s in pair_study.sentences if s.text not in texts]
    fewer = tuple(s for s in pair_study.sentences if s.text in texts or s in unsearched[::2])
    assert plausible.with_values(sentences=fewer).find(path).triplets == results.triplets
    assert plausible.with_values(sentences=fewer).find(path).floors == floors


def test_a_judge_outside_the_pair_selects(
    pair_study: Study, study: Study, tmp_path: Path, words: Vocabulary
) -> None:
    """Witness: one call of `synthesize_triplet` per triplet, and newly computed scores."""
    judge = study.models[2]
    judged_study = pair_study.with_values(
        recipe="default", restarts=None, enough=1.0, judge=(f"four={judge}",)
    )
    results = judged_study.find(tmp_path / "judge.sqlite")
    assert results.floors == {}
    fourgram, (first, second) = load_ngram(judge), map(load_ngram, pair_study.models)
    assert results.triplets
    n_judged = n_refused = 0
    for triplet in (*results.triplets, *results.unchanged):
        question = judged_study.question
        expected, *syntheses = synthesize_triplet(
            *(first, second, triplet.natural, words),
            judges=fourgram,
            constraints=question.constraints(triplet.natural, every_fix=False),
            few_changes=question.few_changes(),
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
    assert judged_study.with_values(enough=200.0).find(tmp_path / "vain.sqlite").refused == {}
    circular = judged_study.with_values(judge=(pair_study.models[0],))
    with pytest.raises(InputError, match="outside the pair"):
        circular.find(tmp_path / "own.sqlite")


def test_causal_models_of_the_first_run_judge_by_default(
    pair_study: Study, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    """By default, a pair's judges are the causal models outside it; the first run fixes them."""
    causal = tuple(f"hf:{tiny_checkpoint(name)}" for name in ("gpt2", "llama"))
    small_study = pair_study.with_values(
        recipe="default", restarts=None, enough=0.5, per_pair=1, max_scored=20
    )
    first = small_study.with_values(models=(*pair_study.models, causal[0]))
    results = first.find(tmp_path / "panel.sqlite")
    assert [*results.judges] == [causal[0]]
    (ngrams,) = [t for t in results.triplets if {t.model_1, t.model_2} == {*pair_study.models}]
    others = [t for t in results.triplets if causal[0] in (t.model_1, t.model_2)]
    assert ngrams.judge_drop_1 is not None
    assert all(t.judge_drop_1 is None for t in others)
    grown = first.with_values(models=(*first.models, causal[1])).find(tmp_path / "panel.sqlite")
    assert [*grown.judges] == [causal[0]]
    assert ngrams in grown.triplets


def test_rounding_puts_no_sentence_below_its_own_floor(pair_study: Study) -> None:
    natural, (name_1, name_2) = pair_study.sentences[0], pair_study.models
    models = load_ngram(name_1), load_ngram(name_2)
    prints = models[0].convention.fingerprint, models[1].convention.fingerprint
    scores = [float(m.log_probs([natural])[0]) for m in models]

    def search_state(margin: float) -> str:
        floors = (scores[0] + margin, scores[1] + margin)
        question, names = pair_study.question, (name_1, name_2)
        task = TripletTask(question, names, prints, natural, "words", floors=floors)
        return str(task.perform(pair_study.context).state)

    assert search_state(2e-5) == "found"
    assert search_state(1e-2) == "inadmissible"
