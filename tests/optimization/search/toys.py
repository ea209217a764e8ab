"""Inputs for searches in tests: words, a sentence, and toy models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from contstim.models.base import LanguageModel
from contstim.optimization.search.climb import Climb, climb
from contstim.optimization.search.constraints import Candidates, Constraint, Position, no_repeats
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import Objective, ScoredSentence
from contstim.optimization.search.proposers import Proposer
from contstim.optimization.search.screening import SearchState
from contstim.testing import TableModel as TableModel
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

WORDS = Vocabulary(
    tuple("A B C D E F".split()),
    tuple("a b c d e f g h i j k l m n o p q r s t u v w x y z".split()),
    frozenset({"a"}),
)
NATURAL = Sentence(("A", "b", "c", "d"))


def published_objective(accept: LanguageModel, reject: LanguageModel, floor: float) -> Objective:
    return Objective(Evaluator((accept, reject)), (True, False), (floor, 0.0))


@dataclass(frozen=True)
class ToySearch:
    """A search for the published objective, in which tests can take single steps."""

    candidates: Candidates
    objective: Objective

    @property
    def evaluator(self) -> Evaluator:
        return self.objective.evaluator

    def at(self, index: int) -> Position:
        """Return the first visit to a position of the natural sentence."""
        natural = self.candidates.natural
        scored = self.objective.assess(natural, self.evaluator.log_probs(natural))
        return self.candidates.at(scored, index, visit=1)

    def propose(self, proposer: Proposer, index: int) -> Sentence | None:
        state = SearchState(len(self.evaluator.models), np.random.default_rng(0))
        better = proposer.propose(self.at(index), self.objective, state)
        return None if better is None else better.sentence

    def climb(self, proposer: Proposer, seed: int, **options: Any) -> Climb:
        state = SearchState(len(self.evaluator.models), np.random.default_rng(seed))
        start = self.candidates.natural
        return climb(start, self.candidates, self.objective, proposer, state, **options)


def make_search(
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence = NATURAL,
    vocabulary: Vocabulary = WORDS,
    constraints: tuple[Constraint, ...] = (),
) -> ToySearch:
    """Return a search for the published objective."""
    objective = published_objective(accept, reject, float(accept.log_probs([natural])[0]))
    rules = (no_repeats(vocabulary.repeatable), *constraints)
    candidates = Candidates(vocabulary, natural, rules)
    return ToySearch(candidates, objective)


class ExactRanking(Proposer):
    """Finds the best of all words in a plain loop, with each sentence scored by the models."""

    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        del state
        best = position.current
        for word, allowed in zip(position.words, position.allowed, strict=True):
            if allowed:
                sentence = position.replace(word)
                log_probs = np.array([m.scores([sentence])[0] for m in objective.evaluator.models])
                scored = objective.assess(sentence, log_probs)
                if objective.feasible(log_probs[:, None])[0] and scored.loss < best.loss:
                    best = scored
        return None if best is position.current else best
