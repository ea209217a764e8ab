"""Toy models with every kind of knowledge: exact, estimated, bounded, drafted, or lying."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from contstim.arrays import BoolArray, FloatArray
from contstim.models.base import Convention, LanguageModel, Replacements
from contstim.models.costs import count
from contstim.optimization.search.climb import Climb, climb
from contstim.optimization.search.constraints import Candidates, Constraint, NoRepeats, Position
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import AcceptReject, Objective, ScoredSentence
from contstim.optimization.search.proposers import Proposer
from contstim.optimization.search.screening import SearchState
from contstim.sentence import Sentence
from contstim.vocabulary import Vocabulary

WORDS = Vocabulary(
    tuple("A B C D E F".split()),
    tuple("a b c d e f g h i j k l m n o p q r s t u v w x y z".split()),
    frozenset({"a"}),
)
NATURAL = Sentence(("A", "b", "c", "d"))


class TableModel(LanguageModel):
    """Each word and each pair of neighbours has a number drawn from a seed; their sum is the score.

    What it says of replacements: everything (`exact`), the words' own numbers (`estimate`), or the
    sum over the words up to the position (`bound`), as a model that reads from left to right would.
    `draft` gives it a draft whose scores are off by up to `draft_error`.
    """

    def __init__(self, seed: int, says: str = "exact", draft_error: float | None = None) -> None:
        self.name = f"table {seed} {says}"
        self.seed, self.says, self.draft_error = seed, says, draft_error
        self.asked: list[Sentence] = []

    @property
    def convention(self) -> Convention:
        return Convention("table", "", False, f"table-{self.seed}-{self.says}-{self.draft_error}")

    def number(self, *words: str) -> float:
        digest = hashlib.sha256(f"{self.seed} {words}".encode()).digest()
        return -10 * int.from_bytes(digest[:4], "big") / 2**32

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        words = sentence.words[:stop]
        pairs = pairwise(words)
        return sum(map(self.number, words)) + sum(self.number(*pair) / 3 for pair in pairs)

    def log_probs(self, sentences: Sequence[Sentence]) -> FloatArray:
        self.asked += sentences
        count(len(sentences), sum(map(len, sentences)))
        return np.array([self.score(sentence) for sentence in sentences])

    def replacements(self, sentence: Sentence, position: int, words: Sequence[str]) -> Replacements:
        changed = [sentence.replace(position, word) for word in words]
        unknown = np.full(len(words), np.nan)
        if self.says == "exact":
            return Replacements.all_exact(np.array([self.score(s) for s in changed]))
        count(1, len(sentence))
        if self.says == "estimate":
            own = np.array([self.number(word) for word in words])
            return Replacements(unknown, own, np.full(len(words), np.inf))
        bound = np.array([self.score(s, position + 1) for s in changed])
        return Replacements(unknown, bound, bound, prefix_log_prob=self.score(sentence, position))

    def replacement_log_probs(
        self, sentence: Sentence, position: int, words: Sequence[str]
    ) -> FloatArray:
        return self.log_probs([sentence.replace(position, word) for word in words])

    def draft(self, effort: int = 1) -> LanguageModel | None:
        return None if self.draft_error is None else _Draft(self, effort)

    def knows(self, words: Sequence[str]) -> BoolArray:
        return np.ones(len(words), bool)

    def vocabulary(self, min_count: int) -> None:
        del min_count


class _Draft(TableModel):
    def __init__(self, model: TableModel, effort: int) -> None:
        super().__init__(model.seed, model.says)
        self.error = (model.draft_error or 0.0) / (1 + effort)

    def score(self, sentence: Sentence, stop: int | None = None) -> float:
        error = self.number("draft", *sentence.words) / 5 + 1  # -1 to 1
        return super().score(sentence, stop) + error * self.error


@dataclass(frozen=True)
class ToySearch:
    """A search for the published objective, of which a test can take single steps."""

    candidates: Candidates
    objective: AcceptReject
    evaluator: Evaluator

    def at(self, index: int) -> Position:
        """The first visit, of that position of the natural sentence."""
        natural = self.candidates.natural
        scored = self.objective.assess(natural, self.evaluator.log_probs(natural))
        return self.candidates.at(scored, index, visit=1)

    def propose(self, proposer: Proposer, index: int) -> Sentence | None:
        """What is proposed there."""
        state = proposer.start(self.evaluator)
        better = proposer.propose(self.at(index), self.objective, self.evaluator, state)
        return None if better is None else better.sentence

    def climb(self, proposer: Proposer, seed: int, **options: Any) -> Climb:
        """A climb from the natural sentence."""
        start, rng = self.candidates.natural, np.random.default_rng(seed)
        return climb(
            start, self.candidates, self.objective, self.evaluator, proposer, rng=rng, **options
        )


def search_for(
    accept: LanguageModel,
    reject: LanguageModel,
    natural: Sentence = NATURAL,
    vocabulary: Vocabulary = WORDS,
    constraints: tuple[Constraint, ...] = (),
) -> ToySearch:
    """A search for the published objective."""
    objective = AcceptReject((accept, reject), float(accept.log_probs([natural])[0]))
    rules = (NoRepeats(vocabulary.repeatable), *constraints)
    candidates = Candidates(vocabulary, natural, rules)
    return ToySearch(candidates, objective, Evaluator((accept, reject)))


class ExactRanking(Proposer):
    """The best of all words in a plain loop, each sentence scored by the models themselves."""

    def propose(
        self, position: Position, objective: Objective, evaluator: Evaluator, state: SearchState
    ) -> ScoredSentence | None:
        del state
        best = position.current
        for word, allowed in zip(position.words, position.allowed, strict=True):
            if allowed:
                sentence = position.replace(word)
                log_probs = np.array([m.log_probs([sentence])[0] for m in evaluator.models])
                scored = objective.assess(sentence, log_probs)
                if objective.feasible(log_probs[:, None])[0] and scored.loss < best.loss:
                    best = scored
        return None if best is position.current else best
