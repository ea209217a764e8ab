"""Our way to find a word: right where models are exact, and never wrong where they are not."""

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
from tests.optimization.search.toys import NATURAL, WORDS, ExactRanking, TableModel, search_for

KINDS = ("exact", "estimate", "bound")


def model(seed: int, kind: str) -> TableModel:
    return TableModel(seed, kind, draft_error=2.0 if kind == "estimate" else None)


@settings(max_examples=examples(10))
@given(seeds=st.tuples(st.integers(0, 999), st.integers(1000, 1999)), position=st.integers(0, 3))
def test_on_exact_models_it_finds_what_ranking_finds(seeds: tuple[int, int], position: int) -> None:
    """Witness: the best of the whole vocabulary in a plain loop."""
    pair = TableModel(seeds[0]), TableModel(seeds[1])
    ours = search_for(*pair).propose(ScreeningProposer(), position)
    assert ours == search_for(*pair).propose(ExactRanking(), position)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("accept", KINDS)
@pytest.mark.parametrize("reject", KINDS)
def test_every_step_is_an_improvement_on_exact_scores(
    accept: str, reject: str, recipe: Recipe
) -> None:
    """Property on scores computed afresh, whatever the models know."""
    steps = 0
    for seed in range(2):
        pair = model(seed, accept), model(seed + 100, reject)
        search = search_for(*pair)
        found = search.climb(recipe.proposer, seed, perturbation=recipe.perturbation)
        for step in found.steps:
            assert pair[0].score(step.sentence) >= pair[0].score(NATURAL)
            told = [m.score(step.sentence) for m in pair]
            assert step.log_probs.tolist() == pytest.approx(told, abs=1e-9)
        before = [NATURAL, *(s.sentence for s in found.steps if s.round == 0)]
        losses = [pair[1].score(s) for s in before]
        assert losses == sorted(losses, reverse=True)
        assert pair[1].score(found.sentence) <= losses[-1]
        steps += len(found.steps)
    assert steps > 3


def test_words_whose_upper_bound_is_below_the_floor_are_never_scored() -> None:
    """Property, with bounds computed afresh."""
    scored = 0
    for seed in range(10):
        accept, reject = model(seed, "bound"), model(seed + 100, "estimate")
        search = search_for(accept, reject)
        accept.scored_sentences.clear()
        search.propose(ScreeningProposer(), 2)
        for sentence in set(accept.scored_sentences) - {NATURAL}:
            assert accept.score(sentence, 3) >= accept.score(NATURAL)
            scored += 1
    assert scored


def test_candidates_that_the_first_model_rules_out_cost_the_second_nothing() -> None:
    """Property of the evaluations: nan only where the accept model had said no."""
    left_out = 0
    for seed in range(20):
        accept, reject = model(seed, "estimate"), model(seed + 100, "estimate")
        search = search_for(accept, reject)
        search.climb(ScreeningProposer(min_expected_improvement=0.0), 0)
        for evaluation in search.evaluator.evaluations:
            said_no = accept.score(evaluation.sentence) < accept.score(NATURAL)
            assert np.isnan(evaluation.log_probs[1]) == said_no
            left_out += said_no
    assert left_out


def test_drafts_that_tell_more_let_fewer_words_be_scored_exactly() -> None:
    """Witness: the counts of exact evaluations under honest and under useless drafts."""

    def evaluations(error: float) -> int:
        total = 0
        for seed in range(10):
            pair = (TableModel(seed, "estimate", error), TableModel(seed + 100, "estimate", error))
            search = search_for(*pair)
            search.climb(ScreeningProposer(min_draft_passes=32), 0)
            total += len(search.evaluator.evaluations)
        return total

    assert evaluations(0.0) < evaluations(20.0)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_what_a_draft_says_is_an_estimate_even_where_it_says_it_knows(recipe: Recipe) -> None:
    """Property on scores computed afresh, with drafts that pass their own scores off as exact."""
    steps = 0
    for seed in range(5):
        pair = TableModel(seed, "exact", 4.0), TableModel(seed + 100, "exact", 4.0)
        for step in search_for(*pair).climb(recipe.proposer, seed).steps:
            assert step.log_probs.tolist() == [m.score(step.sentence) for m in pair]
            steps += 1
    assert steps


FEW = {"max_examples": examples(3)}


class Transcription:
    """The rules of the paper for one position, every number computed anew from the toy's scores.

    Where the paper leaves a choice, its published code decides: extremes are scored under their own
    model, one that is a gain is taken, and a nat below the floor costs 1e5 of a prediction's loss.
    """

    def __init__(self, accept: TableModel, reject: TableModel) -> None:
        self.models = (accept, reject)
        self.floor = accept.score(NATURAL)
        self.evaluated: set[Sentence] = set()

    def better(self, sentence: Sentence, than: Sentence) -> bool:
        accept, reject = self.models
        return accept.score(sentence) >= self.floor and reject.score(sentence) < reject.score(than)

    def candidates(self, sentence: Sentence, position: int) -> list[Sentence]:
        found = []
        for word in WORDS.initial if position == 0 else WORDS.inner:
            rest = [w.lower() for i, w in enumerate(sentence.words) if i != position]
            if word != sentence.words[position] and (
                word.lower() not in rest or word.lower() == "a"
            ):
                found.append(sentence.replace(position, word))
        return [s for s in found if self.likely(s, position, found)]

    def likely(self, sentence: Sentence, position: int, every: list[Sentence]) -> bool:
        readers = [m for m in self.models if m.says == "bound"]

        def least(s: Sentence) -> float:
            return min(m.score(s, position + 1) - m.score(s, position) for m in readers)

        if not readers:
            return True
        threshold = -10
        while sum(least(s) >= threshold for s in every) < min(10, len(every)):
            threshold -= 5
        return least(sentence) >= threshold

    def propose(self, sentence: Sentence, position: int) -> Sentence | None:
        every = self.candidates(sentence, position)
        if not every:
            return None
        known: list[dict[Sentence, float]] = []  # of each model
        for model in self.models:
            own = {s: model.number(s.words[position]) for s in (sentence, *every)}
            ends = (max(own, key=own.__getitem__), min(own, key=own.__getitem__))
            some = (sentence, *(ends if model.says == "estimate" else every))
            known.append({s: model.score(s) for s in dict.fromkeys(some)})
            self.evaluated |= {*ends} - {sentence} if model.says == "estimate" else set()
        for attempt in range(6):
            scored = [s for s in every if all(s in scores for scores in known)]
            better = [s for s in scored if self.better(s, sentence)]
            if better:
                return min(better, key=known[1].__getitem__)
            rest = [s for s in every if s not in scored]
            if attempt == 5 or not rest:
                return None
            chosen = min(rest, key=lambda s: self.predicted_loss(s, known, position))
            for model, scores in zip(self.models, known, strict=True):
                scores[chosen] = model.score(chosen)
            self.evaluated.add(chosen)
        raise AssertionError

    def predicted_loss(
        self, sentence: Sentence, known: list[dict[Sentence, float]], position: int
    ) -> float:
        accept, reject = (
            self.predict(model, sentence, scores, position)
            for model, scores in zip(self.models, known, strict=True)
        )
        return reject + 1e5 * max(0.0, self.floor - accept)

    def predict(
        self, model: TableModel, sentence: Sentence, known: dict[Sentence, float], position: int
    ) -> float:
        if sentence in known:
            return known[sentence]
        x, y = [model.number(s.words[position]) for s in known], [*known.values()]
        slope, offset = np.polyfit(x, y, 1)
        if slope < 0:
            slope, offset = 0, np.mean(y)
        return float(slope * model.number(sentence.words[position]) + offset)

    def climb(self, seed: int) -> list[Sentence]:
        rng = np.random.default_rng(seed)
        sentence, path, failures = NATURAL, [], 0
        for _ in count():
            for position in rng.permutation(len(NATURAL)).tolist():
                found = self.propose(sentence, position)
                failures = 0 if found else failures + 1
                if found:
                    sentence = found
                    path.append(found)
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
    """Witness: the transcription above; models of every kind in any mixture."""
    pair = TableModel(models[0], accept), TableModel(models[1], reject)
    search = search_for(*pair)
    found = search.climb(GOLAN2023.proposer, seed)
    rules = Transcription(*pair)
    assert [step.sentence for step in found.steps] == rules.climb(seed)
    if "estimate" in (accept, reject):
        assert {e.sentence for e in search.evaluator.evaluations} == rules.evaluated
