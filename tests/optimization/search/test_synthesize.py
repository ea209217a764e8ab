"""Whole searches: sentences, triplets and pairs. Witnesses: newly computed scores."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.files.arrays import FloatArray
from contstim.models.base import Replacements
from contstim.models.ngram.adapter import NgramModel
from contstim.models.ngram.training import train_ngram
from contstim.optimization.search import synthesize as synthesis
from contstim.optimization.search.recipes import GOLAN2023, RECIPES, Recipe
from contstim.optimization.search.restarts import SINGLE
from contstim.optimization.search.synthesize import synthesize, synthesize_pair, synthesize_triplet
from contstim.optimization.search.verification import Problem
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary
from tests.optimization.search.toys import NATURAL, WORDS, TableModel


class OptimisticModel(TableModel):
    """Overestimates the log-probability of every word by three nats."""

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        accurate = super().replacements(sentence, position, words)
        return Replacements.all_exact(accurate.exact + 3)


class ImpossibleModel(TableModel):
    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        del sentence, stop
        return -np.inf


@pytest.fixture
def words(english: list[Sentence]) -> Vocabulary:
    return Vocabulary.from_sentences(english, min_count=10)


@pytest.fixture
def naturals(unseen: list[Sentence], words: Vocabulary) -> list[Sentence]:
    return [s for s in unseen if not words.missing_words(s)]


@pytest.fixture
def natural(naturals: list[Sentence]) -> Sentence:
    return naturals[0]


def test_results_satisfy_the_constraint_and_reduce_the_loss(
    bigram: NgramModel, trigram: NgramModel, words: Vocabulary, naturals: list[Sentence]
) -> None:
    """Witness: both sentences scored again by KenLM."""
    drops = []
    for natural in naturals[:2]:
        result = synthesize(trigram, bigram, natural, words, seed=1, restarts=SINGLE)
        accepted, rejected = (m.log_probs([natural, result.synthetic]) for m in (trigram, bigram))
        assert accepted[1] >= accepted[0]
        assert rejected[1] < rejected[0] or result.synthetic == natural
        assert result.natural_log_probs == (accepted[0], rejected[0])
        assert result.log_probs == (accepted[1], rejected[1])
        drops.append(rejected[0] - rejected[1])
    assert min(drops) > 1


def test_a_triplets_numbers_follow_equation_4(
    bigram: NgramModel, trigram: NgramModel, words: Vocabulary, natural: Sentence
) -> None:
    """Witness: Eq. 4 with newly computed scores; model_1 rejects synthetic_1."""
    triplet, _, _ = synthesize_triplet(bigram, trigram, natural, words, recipe=GOLAN2023)
    texts = (triplet.natural, triplet.synthetic_1, triplet.synthetic_2)
    n, s1, s2 = np.stack([m.log_probs([*texts]) for m in (bigram, trigram)]).T
    assert triplet.controversiality == pytest.approx(n[0] - s1[0] + n[1] - s2[1])
    assert np.array_equal([s1 < n, s2 < n], [[True, False], [False, True]])
    assert triplet.log_prob_synthetic_1_model_2 == s1[1]
    assert triplet.log_prob_synthetic_2_model_1 == s2[0]


def test_unusable_input_is_refused(
    bigram: NgramModel, trigram: NgramModel, trained: Path, words: Vocabulary, natural: Sentence
) -> None:
    with pytest.raises(SentenceError, match="one word"):
        synthesize(trigram, bigram, Sentence.parse("Hello"), words)
    with pytest.raises(VocabularyError, match="xylograph"):
        synthesize(trigram, bigram, natural.replace(1, "xylograph"), words)
    copy = NgramModel(trained / "2gram.arpa", name="another name")
    with pytest.raises(ModelError, match="the same model"):
        synthesize(copy, bigram, natural, words)
    for accept, reject in ((ImpossibleModel(1), bigram), (bigram, ImpossibleModel(1))):
        with pytest.raises(ModelError, match="probability zero"):
            synthesize(accept, reject, natural, words)
    with pytest.raises(ModelError, match="at least one accept model"):
        synthesize([], bigram, natural, words)
    namesake = NgramModel(trained / "4gram.arpa", "3-gram")
    with pytest.raises(InputError, match="must have different names"):
        synthesize([trigram, namesake], bigram, natural, words)
    with pytest.raises(InputError, match="`few_changes`"):
        synthesize(trigram, bigram, natural, words, judges=TableModel(1))
    with pytest.raises(InputError, match="outside the comparison"):
        synthesize(trigram, bigram, natural, words, judges=copy)
    with pytest.raises(InputError, match="must have different names"):
        synthesize(trigram, bigram, natural, words, judges=namesake)
    with pytest.raises(InputError, match="seed must be 0 or more, not -1"):
        synthesize(trigram, bigram, natural, words, seed=-1)


def test_wrong_replacement_scores_fail_the_final_check() -> None:
    """The final check scores the result again."""
    with pytest.raises(VerificationError, match="failed its check"):
        synthesize(OptimisticModel(1), TableModel(2), NATURAL, WORDS)


@pytest.fixture
def fourgram(trained: Path) -> NgramModel:
    return NgramModel(trained / "4gram.arpa", name="4-gram")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_one_model_is_compared_with_several(
    bigram: NgramModel,
    trigram: NgramModel,
    fourgram: NgramModel,
    words: Vocabulary,
    naturals: list[Sentence],
    recipe: Recipe,
) -> None:
    """Witness: newly computed scores; one model rejects and two accept, and the reverse."""
    natural, options = naturals[0], dict[str, Any](recipe=recipe, restarts=SINGLE)
    forward = synthesize([trigram, fourgram], bigram, natural, words, **options)
    for model in (trigram, fourgram):
        scores = model.log_probs([natural, forward.synthetic])
        assert scores[1] >= scores[0]
    scores = bigram.log_probs([natural, forward.synthetic])
    assert scores[0] - scores[1] > 2
    assert (forward.accept, forward.reject) == ("3-gram & 4-gram", "2-gram")
    assert forward.log_probs[2] == scores[1]
    backward = synthesize(bigram, [trigram, fourgram], natural, words, **options)
    scores = bigram.log_probs([natural, backward.synthetic])
    assert scores[1] >= scores[0]
    for model in (trigram, fourgram):
        scores = model.log_probs([natural, backward.synthetic])
        assert scores[1] <= scores[0]


GERMAN = """
der alte Mann liest ein gutes Buch
die kleine Frau öffnet eine schwere Tür
das müde Kind hört ein schönes Märchen
der große Hund frißt einen süßen Apfel
die alte Frau schließt das große Fenster
ein kleines Mädchen trägt den schweren Korb
der müde Bäcker verkauft das süße Brot
eine große Straße führt über den alten Fluß
das gute Kind grüßt die müde Bäuerin
der kleine Vogel baut ein rundes Nest
""".strip().splitlines()


@pytest.mark.parametrize("n_words", [3, 12, pytest.param(20, marks=pytest.mark.slow)])
def test_searches_work_in_other_languages_and_at_all_lengths(tmp_path: Path, n_words: int) -> None:
    """Witness: KenLM's scores of German sentences with umlauts, 3 to 20 words long."""
    rng = np.random.default_rng(n_words)
    lines = [" ".join(rng.permutation(GERMAN).tolist()).split() for _ in range(40)]
    text = [Sentence((line[0].title(), *line[1:n_words])) for line in lines]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in (1, 2):
            train_ngram(text, order, tmp_path / f"{order}.arpa")
    unigram, bigram = (NgramModel(tmp_path / f"{order}.arpa") for order in (1, 2))
    vocabulary = Vocabulary.from_sentences(text)
    result = synthesize(unigram, bigram, text[0], vocabulary)
    accept, reject = (m.log_probs([text[0], result.synthetic]) for m in (unigram, bigram))
    assert accept[1] >= accept[0]
    assert reject[1] < reject[0]
    assert len(result.synthetic) == n_words


def test_evaluations_and_costs_are_complete() -> None:
    """Property: evaluations equal the models' calls, and costs increase from step to step."""
    accept, reject = (TableModel(seed, "estimate", 1.0) for seed in (3, 4))
    result = synthesize(accept, reject, NATURAL, WORDS)
    scored = {evaluation.sentence for evaluation in result.evaluations}
    assert {step.sentence for step in result.climb.steps} <= scored
    assert [e.visit for e in result.evaluations] == sorted(e.visit for e in result.evaluations)
    for model in (accept, reject):
        calls = model.scored_sentences
        assert len(calls) - 1 == len(set(calls))  # the final check scores the result again
        assert result.costs[model.name].rows > len(scored)
    rows = [step.cost.rows for step in result.climb.steps]
    assert rows == sorted(rows)


class RoundingModel(TableModel):
    """Alone, every sentence but the natural one scores 1e-5 nats lower than in a batch."""

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        is_single = len(sentences) == 1 and sentences[0] != NATURAL
        return super().log_probs(sentences) - 1e-5 * is_single


def test_constraints_hold_without_rounding_errors() -> None:
    """Property: scored alone, like the floor, every result reaches it."""
    for seed in range(10):
        accept, reject = RoundingModel(seed, "estimate"), TableModel(seed + 50)
        result = synthesize(accept, reject, NATURAL, WORDS, recipe=GOLAN2023)
        scores = [accept.log_probs([sentence])[0] for sentence in (NATURAL, result.synthetic)]
        assert scores[1] >= scores[0]


FEW_WORDS = Vocabulary(tuple("AEF"), tuple("bcdg"), frozenset())


def test_unsuccessful_searches_are_retried_with_other_seeds() -> None:
    """Witness: `synthesize` with each seed by itself; costs are those of all searches."""
    accept, reject = TableModel(197), TableModel(697)
    natural = Sentence(("A", "b", "c", "d"))
    results = [synthesize(accept, reject, natural, FEW_WORDS, seed=seed) for seed in range(2)]
    assert [single.changed for single in results] == [False, True]
    unchanged, _, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS)
    assert unchanged.synthetic_1 == natural
    assert "table 697 exact should reject is the natural sentence" in unchanged.equality_note
    triplet, first, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS, seeds=3)
    assert triplet.synthetic_1 == results[1].synthetic
    for name, cost in first.costs.items():
        assert cost == results[0].costs[name] + results[1].costs[name]
    later_triplet, _, _ = synthesize_triplet(reject, accept, natural, FEW_WORDS, seed=1, seeds=3)
    assert later_triplet.synthetic_1 == triplet.synthetic_1
    with pytest.raises(InputError, match="seeds must be at least 1, got 0"):
        synthesize_triplet(reject, accept, natural, FEW_WORDS, seeds=0)


def test_synthetic_sentences_of_a_triplet_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the second direction is searched again, with the next seed."""
    natural, repeated, different = (Sentence(("A", "b", "c", word)) for word in "dge")
    calls: list[tuple[str, int]] = []
    original_solve = synthesis._solve

    def fake_solve(problem: Problem, recipe: Recipe, seed: int, *arguments: Any) -> Any:
        calls.append((problem.models[0].name, seed))
        solution = original_solve(problem, recipe, seed, *arguments)
        sentence = different if seed == 6 else repeated
        return replace(solution, climb=replace(solution.climb, sentence=sentence))

    monkeypatch.setattr(synthesis, "_solve", fake_solve)
    models = TableModel(1), TableModel(2)
    triplet, _, _ = synthesize_triplet(*models, natural, FEW_WORDS, seed=5, seeds=3)
    assert calls == [(models[1].name, 5), (models[0].name, 5), (models[0].name, 6)]
    assert (triplet.synthetic_1, triplet.synthetic_2) == (repeated, different)
    assert triplet.equality_note == ""
    single_seed_triplet, _, _ = synthesize_triplet(*models, natural, FEW_WORDS, seed=5)
    assert single_seed_triplet.equality_note == "both models should reject the same sentence"


def test_the_facts_of_a_synthesis_survive_json() -> None:
    """Witness: the models' scores of the sentences in the JSON."""
    accept, reject = TableModel(1), TableModel(51)
    facts = json.loads(json.dumps(synthesize(accept, reject, NATURAL, WORDS).facts))
    synthetic = Sentence.parse(facts["synthetic"])
    assert facts["changed"]
    assert facts["log_probs_natural"]["accept"] == accept.score(NATURAL)
    scores = {"accept": accept.score(synthetic), "reject": reject.score(synthetic)}
    assert facts["log_probs_synthetic"] == scores
    assert facts["steps"][-1]["sentence"] == facts["synthetic"]
    assert set(facts["costs"]) == {accept.name, reject.name}


def test_models_and_the_sentence_may_be_texts(trained: Path, english: list[Sentence]) -> None:
    """Witness: the same search between loaded models."""
    words = Vocabulary.from_sentences(english, min_count=8)
    text = next(s.text for s in english if not words.missing_words(s))
    accept_text, reject_text = (f"kenlm:{trained}/{n}gram.arpa" for n in (2, 3))
    result = synthesize(accept_text, reject_text, text, words, recipe=RECIPES["golan2023"])
    accept, reject = (NgramModel(trained / f"{n}gram.arpa") for n in (2, 3))
    expected = synthesize(accept, reject, Sentence.parse(text), words, recipe=RECIPES["golan2023"])
    assert (result.synthetic, result.log_probs) == (expected.synthetic, expected.log_probs)
    assert f"{result.synthetic.text!r}; {accept_text} accepts" in repr(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((7, TableModel(1), NATURAL, WORDS), "A model must be a result of load_model.*got 7"),
        ((TableModel(0), None, NATURAL, WORDS), "'kenlm:trigram.arpa', got None"),
        ((TableModel(0), TableModel(1), 7, WORDS), "must be a text or a Sentence, not 7"),
        ((TableModel(0), TableModel(1), NATURAL, ["a"]), r"must be a Vocabulary.*got \['a'\]"),
    ],
)
def test_error_names_the_expected_type(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthesize(*arguments)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_pairs_are_optimal_for_single_replacements(recipe: object) -> None:
    """Witness: all single replacements in plain loops, with newly computed scores."""
    for seed in range(3):
        models = TableModel(seed), TableModel(seed + 50)
        pair = synthesize_pair(*models, NATURAL, WORDS, recipe=recipe)  # type: ignore[arg-type]
        sentences = [pair.sentence_1, pair.sentence_2]
        (a, b), (c, d) = ([m.score(s) for s in sentences] for m in models)
        assert pair.log_probs == ((a, b), (c, d))
        assert b >= a
        assert c >= d
        assert pair.disagreement == pytest.approx(b - a + c - d)
        for position in range(4):
            for word in WORDS.at(position):
                changed = pair.sentence_1.replace(position, word)
                lowered = [w.lower() for w in changed.words if w.lower() != "a"]
                if len(set(lowered)) < len(lowered):
                    continue
                first, second = (m.score(changed) for m in models)
                allowed = b >= first and second >= d
                assert not allowed or b - first + second - d <= pair.disagreement + 1e-9
