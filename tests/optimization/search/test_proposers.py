"""Proposers: the best word for models with exact scores, and only improvements for all models."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.optimization.search.proposers import ScreeningProposer
from contstim.optimization.search.recipes import GOLAN2023, RECIPES, Recipe
from contstim.words.sentence import Sentence
from tests.examples import examples
from tests.optimization.search.toys import NATURAL, WORDS, ExactRanking, TableModel, make_search

KINDS = ("exact", "estimate", "bound")


def make_table(seed: int, kind: str) -> TableModel:
    return TableModel(seed, kind, draft_error=2.0 if kind == "estimate" else None)


@settings(max_examples=examples(10))
@given(seeds=st.tuples(st.integers(0, 999), st.integers(1000, 1999)), position=st.integers(0, 3))
def test_screening_equals_ranking_on_exact_models(seeds: tuple[int, int], position: int) -> None:
    """Witness: the best of the whole vocabulary in a plain loop."""
    pair = TableModel(seeds[0]), TableModel(seeds[1])
    proposed = make_search(*pair).propose(ScreeningProposer(), position)
    assert proposed == make_search(*pair).propose(ExactRanking(), position)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("accept", KINDS)
@pytest.mark.parametrize("reject", KINDS)
def test_steps_improve_exact_scores(accept: str, reject: str, recipe: Recipe) -> None:
    """Property of newly computed scores, for models of every kind."""
    steps = 0
    for seed in range(2):
        pair = make_table(seed, accept), make_table(seed + 100, reject)
        search = make_search(*pair)
        result = search.climb(recipe.proposer, seed, perturbation=recipe.perturbation)
        for step in result.steps:
            assert pair[0].score(step.sentence) >= pair[0].score(NATURAL)
            expected = [m.score(step.sentence) for m in pair]
            assert step.log_probs.tolist() == pytest.approx(expected, abs=1e-9)
        first_round = [NATURAL, *(s.sentence for s in result.steps if s.round == 0)]
        losses = [pair[1].score(s) for s in first_round]
        assert losses == sorted(losses, reverse=True)
        assert pair[1].score(result.sentence) <= losses[-1]
        steps += len(result.steps)
    assert steps > 3


def test_words_with_a_bound_below_the_floor_are_not_scored() -> None:
    """Property of newly computed bounds."""
    n_scored = 0
    for seed in range(10):
        accept, reject = make_table(seed, "bound"), make_table(seed + 100, "estimate")
        search = make_search(accept, reject)
        accept.scored_sentences.clear()
        search.propose(ScreeningProposer(), 2)
        for sentence in set(accept.scored_sentences) - {NATURAL}:
            assert accept.score(sentence, 3) >= accept.score(NATURAL)
            n_scored += 1
    assert n_scored


def test_rejected_candidates_are_not_scored_by_the_second_model() -> None:
    """Property: a score is nan exactly if the accept model rejected the sentence."""
    n_rejected = 0
    for seed in range(20):
        accept, reject = make_table(seed, "estimate"), make_table(seed + 100, "estimate")
        search = make_search(accept, reject)
        search.climb(ScreeningProposer(min_expected_improvement=0.0), 0)
        for evaluation in search.evaluator.evaluations:
            is_rejected = accept.score(evaluation.sentence) < accept.score(NATURAL)
            assert np.isnan(evaluation.log_probs[1]) == is_rejected
            n_rejected += is_rejected
    assert n_rejected


def test_accurate_drafts_reduce_the_number_of_evaluations() -> None:
    """Witness: the counts of exact evaluations with accurate and with useless drafts."""

    def count_evaluations(error: float) -> int:
        total = 0
        for seed in range(10):
            pair = (TableModel(seed, "estimate", error), TableModel(seed + 100, "estimate", error))
            search = make_search(*pair)
            search.climb(ScreeningProposer(min_draft_passes=32), 0)
            total += len(search.evaluator.evaluations)
        return total

    assert count_evaluations(0.0) < count_evaluations(20.0)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_scores_of_drafts_are_treated_as_estimates(recipe: Recipe) -> None:
    """Property of newly computed scores, with drafts that present their own scores as exact."""
    steps = 0
    for seed in range(5):
        pair = TableModel(seed, "exact", 4.0), TableModel(seed + 100, "exact", 4.0)
        for step in make_search(*pair).climb(recipe.proposer, seed).steps:
            assert step.log_probs.tolist() == [m.score(step.sentence) for m in pair]
            steps += 1
    assert steps


FEW = {"max_examples": examples(3)}
Scores = dict[Sentence, float]


class Transcription:
    """The rules of the paper for one position; every number is recomputed from the toy's scores.

    Where the paper is ambiguous, the published code decides: extreme words are scored by their own
    model, any improvement is taken, and each nat below the floor costs 1e5 nats of predicted loss.
    """

    def __init__(self, accept: TableModel, reject: TableModel) -> None:
        self.models = (accept, reject)
        self.floor = accept.score(NATURAL)
        self.evaluated: set[Sentence] = set()

    def is_better(self, sentence: Sentence, current: Sentence) -> bool:
        accept, reject = self.models
        is_lower = reject.score(sentence) < reject.score(current)
        return accept.score(sentence) >= self.floor and is_lower

    def candidates(self, sentence: Sentence, position: int) -> list[Sentence]:
        sentences = []
        for word in WORDS.initial if position == 0 else WORDS.inner:
            other_words = [w.lower() for i, w in enumerate(sentence.words) if i != position]
            repeats = word.lower() in other_words and word.lower() != "a"
            if word != sentence.words[position] and not repeats:
                sentences.append(sentence.replace(position, word))
        return [s for s in sentences if self.is_likely(s, position, sentences)]

    def is_likely(self, sentence: Sentence, position: int, sentences: list[Sentence]) -> bool:
        readers = [m for m in self.models if m.says == "bound"]

        def min_log_prob(s: Sentence) -> float:
            return min(m.score(s, position + 1) - m.score(s, position) for m in readers)

        if not readers:
            return True
        threshold = -10
        while sum(min_log_prob(s) >= threshold for s in sentences) < min(10, len(sentences)):
            threshold -= 5
        return min_log_prob(sentence) >= threshold

    def propose(self, sentence: Sentence, position: int) -> Sentence | None:
        sentences = self.candidates(sentence, position)
        if not sentences:
            return None
        known_scores: list[Scores] = []  # by model
        for model in self.models:
            numbers = {s: model.number(s.words[position]) for s in (sentence, *sentences)}
            ends = (max(numbers, key=numbers.__getitem__), min(numbers, key=numbers.__getitem__))
            scored_sentences = (sentence, *(ends if model.says == "estimate" else sentences))
            known_scores.append({s: model.score(s) for s in dict.fromkeys(scored_sentences)})
            self.evaluated |= {*ends} - {sentence} if model.says == "estimate" else set()
        for attempt in range(6):
            scored = [s for s in sentences if all(s in scores for scores in known_scores)]
            better = [s for s in scored if self.is_better(s, sentence)]
            if better:
                return min(better, key=known_scores[1].__getitem__)
            unscored = [s for s in sentences if s not in scored]
            if attempt == 5 or not unscored:
                return None
            chosen = min(unscored, key=lambda s: self.predicted_loss(s, known_scores, position))
            for model, scores in zip(self.models, known_scores, strict=True):
                scores[chosen] = model.score(chosen)
            self.evaluated.add(chosen)
        raise AssertionError

    def predicted_loss(
        self, sentence: Sentence, known_scores: list[Scores], position: int
    ) -> float:
        accept, reject = (
            self.predict(model, sentence, scores, position)
            for model, scores in zip(self.models, known_scores, strict=True)
        )
        return reject + 1e5 * max(0.0, self.floor - accept)

    def predict(
        self, model: TableModel, sentence: Sentence, known_scores: Scores, position: int
    ) -> float:
        if sentence in known_scores:
            return known_scores[sentence]
        x, y = ([model.number(s.words[position]) for s in known_scores], [*known_scores.values()])
        slope, offset = np.polyfit(x, y, 1)
        if slope < 0:
            slope, offset = 0, np.mean(y)
        return float(slope * model.number(sentence.words[position]) + offset)

    def climb(self, seed: int) -> list[Sentence]:
        rng = np.random.default_rng(seed)
        sentence, path, failures = NATURAL, [], 0
        for _ in count():
            for position in rng.permutation(len(NATURAL)).tolist():
                proposed = self.propose(sentence, position)
                failures = 0 if proposed else failures + 1
                if proposed:
                    sentence = proposed
                    path.append(proposed)
                if failures == len(NATURAL):
                    return path
        raise AssertionError


@pytest.mark.parametrize("accept", ["exact", "estimate", "bound"])
@pytest.mark.parametrize("reject", ["exact", "estimate", "bound"])
@settings(**FEW)  # type: ignore[arg-type]
@given(models=st.tuples(st.integers(0, 999), st.integers(1000, 1999)), seed=st.integers(0, 99))
def test_every_step_equals_the_published_rules(
    accept: str, reject: str, models: tuple[int, int], seed: int
) -> None:
    """Witness: the transcription above, for all combinations of models."""
    pair = TableModel(models[0], accept), TableModel(models[1], reject)
    search = make_search(*pair)
    result = search.climb(GOLAN2023.proposer, seed)
    rules = Transcription(*pair)
    assert [step.sentence for step in result.steps] == rules.climb(seed)
    if "estimate" in (accept, reject):
        assert {e.sentence for e in search.evaluator.evaluations} == rules.evaluated
