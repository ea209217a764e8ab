"""The published procedure, step by step against its rules written out in plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contstim.models.base import Replacements
from contstim.optimization.climb import climb
from contstim.optimization.recipes import GOLAN2023
from contstim.optimization.regression import RegressionGuided
from contstim.optimization.search import Place
from contstim.sentence import Sentence
from tests.optimization.toys import NATURAL, WORDS, TableModel, search_for

FEW = {"max_examples": 6}


class Transcription:
    """The rules of the paper for one position, every number computed anew from the toy's scores."""

    def __init__(self, accept: TableModel, reject: TableModel) -> None:
        self.models = (accept, reject)
        self.floor = accept.score(NATURAL)
        self.evaluated: list[Sentence] = []

    def better(self, sentence: Sentence, than: Sentence) -> bool:
        accept, reject = self.models
        return accept.score(sentence) >= self.floor and reject.score(sentence) < reject.score(than)

    def candidates(self, sentence: Sentence, position: int) -> list[Sentence]:
        found = []
        for word in WORDS.initial if position == 0 else WORDS.inner:
            rest = [w.lower() for i, w in enumerate(sentence.words) if i != position]
            if word != sentence.words[position] and (word.lower() not in rest or word == "a"):
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
        if all(model.says != "estimate" for model in self.models):
            better = [s for s in every if self.better(s, sentence)]
            return min(better, key=self.models[1].score, default=None)
        done: dict[Sentence, None] = {}
        for model in self.models:
            if model.says == "estimate":
                own = {s: model.number(s.words[position]) for s in every}
                done |= dict.fromkeys(
                    (max(own, key=own.__getitem__), min(own, key=own.__getitem__))
                )
        self.evaluated += done
        for _ in range(5):
            predicted = {
                s: [self.predict(m, s, [sentence, *done], position) for m in self.models]
                for s in every
                if s not in done
            }
            low = self.models[1].score(sentence)
            hopeful = [s for s, (a, r) in predicted.items() if a >= self.floor and r < low]
            if not hopeful:
                return None
            chosen = min(hopeful, key=lambda s: predicted[s][1])
            done[chosen] = None
            self.evaluated.append(chosen)
            better = [s for s in every if s in done and self.better(s, sentence)]
            if better:
                return min(better, key=self.models[1].score)
        return None

    def predict(
        self, model: TableModel, sentence: Sentence, known: list[Sentence], position: int
    ) -> float:
        if model.says != "estimate":
            return model.score(sentence)
        x = [model.number(s.words[position]) for s in known]
        slope, offset = np.polyfit(x, [model.score(s) for s in known], 1)
        if slope < 0:
            slope, offset = 0, np.mean([model.score(s) for s in known])
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
    found = climb(NATURAL, search, GOLAN2023.proposer, rng=np.random.default_rng(seed))
    assert [step.sentence for step in found.steps] == Transcription(*pair).climb(seed)


class Misled(TableModel):
    """Its estimates have nothing to do with its scores."""

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        known = super().replacements(sentence, position, words)
        noise = np.array([self.number("noise", word, word) for word in words])
        return Replacements(known.exact, 9 * noise, known.upper_bound)


class Trap(TableModel):
    """It estimates by the alphabet; `z`, far below all others, tilts the line that is fitted."""

    def number(self, *words: str) -> float:
        return -float(ord(words[0]))

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        del stop
        return {"c": -5.0, "z": -100.0}.get(sentence.words[2], 0.0)


class Gate(TableModel):
    """It accepts all words but `z`."""

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        del stop
        return -50.0 if sentence.words[2] == "z" else 0.0


def test_a_position_is_given_up_after_five_evaluations_without_gain() -> None:
    """Witness: by hand; the line promises much of `y`, `x`, `w` …, of which none is a gain."""
    search = search_for(Gate(0), Trap(1, "estimate"))
    found = RegressionGuided().propose(Place(search.score(NATURAL), 2, 1), search)
    assert found is None
    assert [e.word for e in search.evaluations] == ["a", "z", "y", "x", "w", "v", "u"]


def test_a_word_is_taken_on_its_exact_score_however_wrong_the_prediction() -> None:
    """Property on fresh scores, with estimates that tell nothing at all."""
    taken = 0
    for seed in range(30):
        accept, reject = Misled(seed, "estimate"), Misled(seed + 100, "estimate")
        search = search_for(accept, reject)
        found = RegressionGuided().propose(Place(search.score(NATURAL), 1, 1), search)
        if found is not None:
            taken += 1
            assert accept.score(found.sentence) >= accept.score(NATURAL)
            assert reject.score(found.sentence) < reject.score(NATURAL)
    assert taken


def test_both_models_are_asked_about_every_evaluated_candidate() -> None:
    search = search_for(TableModel(1, "estimate"), TableModel(2, "estimate"))
    climb(NATURAL, search, RegressionGuided(), rng=np.random.default_rng(0))
    assert search.evaluations
    for evaluation in search.evaluations:
        told = [model.score(evaluation.sentence) for model in search.models]  # type: ignore[attr-defined]
        assert evaluation.log_probs.tolist() == pytest.approx(told)
