"""Exact scores under the models of one search: each is computed once, counted, and written down.

What is minimised is the objective's matter, and which words are scored the proposer's.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.models.base import Replacements
from contstim.models.costs import Cost, Tally, counting
from contstim.models.merging import alone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.constraints import Position
    from contstim.words.sentence import Sentence


_CACHE_SIZE = 50_000  # exact scores remembered of each model


@dataclass(frozen=True)
class ScoredCandidate:
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


class Evaluator:
    """The models of a search, their exact scores so far, and what these and all else have cost.

    Models are called by their number, the row of their log-probabilities.

    Args:
        models: in the order of all log-probabilities.

    Attributes:
        evaluations: every candidate that was chosen to be scored exactly, in order.
        tallies: what each model computed, drafts included.
        exact_passes: how many passes each model took to score the first sentence.
    """

    def __init__(self, models: tuple[LanguageModel, ...]) -> None:
        self.models = models
        # A search goes by what its models cost, so that equal seeds give equal searches only where
        # nothing is left over of what was read before.
        for model in models:
            model.forget_prefixes()
        self.evaluations: list[ScoredCandidate] = []
        self.tallies: tuple[Tally, ...] = tuple(Tally() for _ in models)
        self.exact_passes = [0.0] * len(models)
        self._scores: tuple[dict[Sentence, float], ...] = tuple({} for _ in models)

    @property
    def cost(self) -> Cost:
        """Cost of all models together so far."""
        return sum((tally.total for tally in self.tallies), Cost())

    @property
    def costs(self) -> dict[str, Cost]:
        """Cost of each model so far, by its name."""
        pairs = zip(self.models, self.tallies, strict=True)
        return {model.name: tally.total for model, tally in pairs}

    @contextmanager
    def counted(self, number: int) -> Iterator[LanguageModel]:
        """A model; what it or a draft of it computes within the `with` is counted as its own."""
        with counting(self.tallies[number]):
            yield self.models[number]

    def log_prob(self, number: int, sentence: Sentence) -> float:
        """One model's exact log-probability of a sentence, scored alone, nats."""
        scores = self._scores[number]
        if sentence not in scores:
            passes = self.tallies[number].total.rows
            # The same whatever other searches run beside this one
            with self.counted(number) as model, alone():
                scores[sentence] = float(model.log_probs([sentence])[0])
            passes = self.tallies[number].total.rows - passes
            # The first sentence tells; later ones are as long.
            self.exact_passes[number] = self.exact_passes[number] or float(passes)
        return scores[sentence]

    def known_log_prob(self, number: int, sentence: Sentence) -> float:
        """Exact log-probability of a sentence scored before under one model, nats; else nan."""
        return self._scores[number].get(sentence, np.nan)

    def log_probs(self, sentence: Sentence, *, afresh: bool = False) -> FloatArray:
        """Exact log-probabilities of a sentence, scored alone, (n_models,), nats.

        Args:
            sentence: what to score.
            afresh: even if it has been scored before.
        """
        if afresh:
            for scores in self._scores:
                scores.pop(sentence, None)
        return np.array([self.log_prob(number, sentence) for number in range(len(self.models))])

    def float32_log_probs(self, sentence: Sentence) -> FloatArray:
        """The same with the weights of all models as float32 numbers, (n_models,), nats."""
        log_probs = np.empty(len(self.models))
        for number in range(len(self.models)):
            with self.counted(number) as model:
                log_probs[number] = model.float32_log_probs([sentence])[0]
        return log_probs

    def screen(self, number: int, position: Position) -> Replacements:
        """Scores of all words at a position that a model gives for the least work."""
        with self.counted(number) as model:
            draft = model.draft(0)
            source = draft or model
            screening = source.replacements(position.sentence, position.index, position.words)
        if draft is None:
            return screening
        # A draft's scores and bounds are not the model's own: they are estimates and nothing else.
        n_words = len(position.words)
        return Replacements(np.full(n_words, np.nan), screening.estimate, np.full(n_words, np.inf))

    def replacement_log_probs(
        self, number: int, position: Position, words: Sequence[str]
    ) -> FloatArray:
        """One model's exact log-probabilities of the sentence with each word, (n_words,), nats."""
        # Only words that have not been scored here before pass through the model, all at once.
        cache = self._scores[number]
        sentences = [position.replace(word) for word in words]
        scores = np.array([cache.get(sentence, np.nan) for sentence in sentences])
        new = np.flatnonzero(np.isnan(scores)).tolist()
        if new:
            new_words = [words[i] for i in new]
            with self.counted(number) as model:
                scores[new] = model.replacement_log_probs(
                    position.sentence, position.index, new_words
                )
            if len(cache) + len(new) > _CACHE_SIZE:
                cache.clear()
            cache.update((sentences[i], float(scores[i])) for i in new)
        return scores

    def evaluate(
        self,
        position: Position,
        words: Sequence[str],
        promising: Callable[[FloatArray], BoolArray] | None = None,
    ) -> FloatArray:
        """All models' exact log-probabilities, (n_models, n_words), nats; they are recorded.

        Args:
            position: where the words would stand.
            words: the candidates.
            promising: which words, (n_words,), the next model is still to score, given the
                scores so far, (n_models, n_words), nan where there are none; None for all words.
        """
        log_probs = np.full((len(self.models), len(words)), np.nan)
        for number in range(len(self.models)):
            # The first model scores all; each further one what is still promising after that.
            wanted = np.ones(len(words), np.bool_) if promising is None else promising(log_probs)
            chosen = [word for word, is_wanted in zip(words, wanted, strict=True) if is_wanted]
            log_probs[number, wanted] = self.replacement_log_probs(number, position, chosen)
        for word, scores in zip(words, log_probs.T, strict=True):
            self.record(position.visit, position.index, position.replace(word), scores)
        return log_probs

    def record(self, visit: int, index: int, sentence: Sentence, log_probs: FloatArray) -> None:
        """Write down a sentence with a candidate at a 0-based position.

        Args:
            visit: see `ScoredCandidate`.
            index: the position.
            sentence: with the candidate in place.
            log_probs: exact ones, (n_models,), nats or nan.
        """
        word = sentence.words[index]
        self.evaluations.append(ScoredCandidate(visit, index, word, sentence, log_probs.copy()))
