"""What one search knows: its objective and words, all exact scores so far, and what they cost."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.costs import Cost, Tally, counting
from contstim.optimization.search.experience import SearchState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.candidates import Candidates
    from contstim.optimization.search.objectives import Objective
    from contstim.sentence import Sentence


_REMEMBERED = 50_000  # exact scores kept of each model


@dataclass(frozen=True)
class Evaluation:
    """A candidate that was scored exactly.

    Attributes:
        visit: during which visit of a position, from 1.
        position: 0-based.
        word: the candidate.
        sentence: the sentence with the candidate in place.
        log_probs: (n_models,) in the objective's order, nats; nan for models that were not asked,
            because the others' scores had ruled the candidate out or a line was fitted to one
            model's scores alone.
    """

    visit: int
    position: int
    word: str
    sentence: Sentence
    log_probs: FloatArray


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its exact log-probabilities, (n_models,), nats, and the loss they make."""

    sentence: Sentence
    log_probs: FloatArray
    loss: float


@dataclass(frozen=True)
class Position:
    """A position of a sentence, where a better word is looked for.

    Attributes:
        now: the sentence as it stands.
        position: 0-based.
        visit: the visit's number, from 1.
    """

    now: ScoredSentence
    position: int
    visit: int

    @property
    def sentence(self) -> Sentence:
        """The sentence as it stands."""
        return self.now.sentence

    @property
    def word(self) -> str:
        """The word that stands there."""
        return self.now.sentence.words[self.position]


class Evaluator:
    """Models, an objective, the candidates, and exact scores, each of which is computed once.

    Args:
        models: in the order of all log-probabilities.
        candidates: the words.

    Attributes:
        objective: what to minimise and to keep; see `aim`.
        evaluations: every candidate that was chosen to be scored exactly, in order.
        tallies: what each model computed, drafts included.
        experience: what the search has learned of its models.
        exact_rows: passes that each model took to score the first sentence.
    """

    objective: Objective

    def __init__(self, models: tuple[LanguageModel, ...], candidates: Candidates) -> None:
        self.models = models
        self.candidates = candidates
        self.evaluations: list[Evaluation] = []
        self.tallies: tuple[Tally, ...] = tuple(Tally() for _ in self.models)
        self.experience = SearchState()
        self.exact_rows = [0.0] * len(models)
        self._known: tuple[dict[Sentence, float], ...] = tuple({} for _ in self.models)

    def aim(self, objective: Objective) -> Evaluator:
        """Begin, or go on, with an objective over these models; what is known stays known."""
        self.objective = objective
        return self

    @property
    def cost(self) -> Cost:
        """What all models together computed so far."""
        return sum((tally.total for tally in self.tallies), Cost())

    @property
    def costs(self) -> dict[str, Cost]:
        """What each model computed so far, by its name."""
        pairs = zip(self.models, self.tallies, strict=True)
        return {model.name: tally.total for model, tally in pairs}

    @contextmanager
    def asking(self, number: int) -> Iterator[LanguageModel]:
        """The model of that number; what it or a draft of it computes is counted as its own."""
        with counting(self.tallies[number]):
            yield self.models[number]

    def score(self, sentence: Sentence) -> ScoredSentence:
        """A sentence under all models, exactly."""
        log_probs = self.log_probs(sentence)
        return ScoredSentence(
            sentence, log_probs, float(self.objective.loss(log_probs[:, None])[0])
        )

    def log_probs(self, sentence: Sentence, *, afresh: bool = False) -> FloatArray:
        """Exact log-probabilities of a sentence, scored alone, (n_models,), nats.

        Args:
            sentence: what to score.
            afresh: even if it has been scored before.
        """
        if afresh:
            for known in self._known:
                known.pop(sentence, None)
        return np.array([self._score(number, sentence) for number in range(len(self.models))])

    def float32_log_probs(self, sentence: Sentence) -> FloatArray:
        """The same with the weights of all models as float32 numbers, (n_models,), nats."""
        scores = np.empty(len(self.models))
        for number in range(len(self.models)):
            with self.asking(number) as model:
                scores[number] = model.float32_log_probs([sentence])[0]
        return scores

    def score_feasible(self, sentence: Sentence) -> ScoredSentence | None:
        """The same, or None as soon as it is clear that the constraint does not hold."""
        log_probs = np.full((len(self.models), 1), np.nan)
        unbounded = np.full(log_probs.shape, np.inf)
        for number in range(len(self.models)):
            log_probs[number] = self._score(number, sentence)
            if not self.objective.promising(log_probs, unbounded, np.inf)[0]:
                return None
        return self.score(sentence)

    def _score(self, number: int, sentence: Sentence) -> float:
        known = self._known[number]
        if sentence not in known:
            before = self.tallies[number].total.rows
            with self.asking(number) as model:
                known[sentence] = float(model.log_probs([sentence])[0])
            rows = self.tallies[number].total.rows - before
            self.exact_rows[number] = self.exact_rows[number] or float(rows)
        return known[sentence]

    def exact(self, number: int, place: Position, words: Sequence[str]) -> FloatArray:
        """One model's exact log-probabilities of the sentence with each word, (n_words,), nats."""
        known = self._known[number]
        rewritten = [place.sentence.replace(place.position, word) for word in words]
        scores = np.array([known.get(changed, np.nan) for changed in rewritten])
        new = np.flatnonzero(np.isnan(scores)).tolist()
        if new:
            with self.asking(number) as model:
                asked = [words[i] for i in new]
                scores[new] = model.replacement_log_probs(place.sentence, place.position, asked)
            if len(known) + len(new) > _REMEMBERED:
                known.clear()
            known.update((rewritten[i], float(scores[i])) for i in new)
        return scores

    def evaluate(
        self, place: Position, words: Sequence[str], *, lazily: bool = False
    ) -> FloatArray:
        """All models' exact log-probabilities, (n_models, n_words), nats; they are recorded.

        Args:
            place: where the words would stand.
            words: the candidates.
            lazily: leave out (nan) what candidates that earlier models ruled out would cost.
        """
        log_probs = np.full((len(self.models), len(words)), np.nan)
        unbounded = np.full(log_probs.shape, np.inf)
        for number in range(len(self.models)):
            asked = list(range(len(words)))
            if lazily:
                promising = self.objective.promising(log_probs, unbounded, place.now.loss)
                asked = np.flatnonzero(promising).tolist()
            log_probs[number, asked] = self.exact(number, place, [words[i] for i in asked])
        for word, scores in zip(words, log_probs.T, strict=True):
            changed = place.sentence.replace(place.position, word)
            self.record(place, changed, scores)
        return log_probs

    def record(self, place: Position, changed: Sentence, log_probs: FloatArray) -> None:
        """Keep a candidate and its exact log-probabilities, (n_models,), nats; nan if not asked."""
        word = changed.words[place.position]
        found = Evaluation(place.visit, place.position, word, changed, log_probs.copy())
        self.evaluations.append(found)
