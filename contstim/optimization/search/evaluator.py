"""Exact scores under the models of one search, with a cache, costs and a log.

An exact score is a score under the model's own scoring rule, not an estimate.
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
    from contstim.models.base import Scorer
    from contstim.optimization.search.constraints import Position
    from contstim.words.sentence import Sentence


_CACHE_SIZE = 50_000  # maximum number of cached exact scores of each model


@dataclass(frozen=True)
class ScoredCandidate:
    """A candidate (a sentence with a new word at a position) that was scored exactly.

    Attributes:
        visit: number of positions that the search has visited so far, including `position`.
        log_probs: log-probabilities, (n_models,), nats. The value is nan for a model that did not
            score the sentence, for example because another model had excluded the candidate.
    """

    visit: int
    position: int
    word: str
    sentence: Sentence
    log_probs: FloatArray


class Evaluator:
    """The models of a search, their exact scores so far, and their costs.

    Args:
        models: models of the search. The number of a model is its index in `models`, and its row in
            arrays of log-probabilities.

    Attributes:
        evaluations: exactly scored candidates, in order.
        tallies: computations of each model, including those of its draft. A draft is a cheaper
            model that estimates the model's scores.
        exact_passes: number of passes through the network that each model needed to score the first
            sentence exactly.
    """

    def __init__(self, models: tuple[Scorer, ...]) -> None:
        self.models = models
        # Searches with equal seeds must have equal results. The result depends on the costs of the
        # models. Cached prefixes (beginnings of sentences) of earlier searches would reduce these
        # costs
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
    def count_cost(self, number: int) -> Iterator[Scorer]:
        """Yield the model with this number. Add the cost of its computations to its tally.

        The computations of the model's draft also count.
        """
        with counting(self.tallies[number]):
            yield self.models[number]

    def log_prob(self, number: int, sentence: Sentence) -> float:
        """Return one model's exact log-probability of a sentence, nats.

        If the score is not cached, it is computed in a batch without other sentences.
        """
        scores = self._scores[number]
        if sentence not in scores:
            passes = self.tallies[number].total.rows
            # Calls of concurrent searches may be merged into one batch, and rounding errors of a
            # score depend on its batch. `alone` prevents merging
            with self.count_cost(number) as model, alone():
                scores[sentence] = float(model.scores([sentence])[0])
            passes = self.tallies[number].total.rows - passes
            # All sentences of a search have equally many words. So the passes for the first
            # sentence represent the passes for any sentence
            self.exact_passes[number] = self.exact_passes[number] or float(passes)
        return scores[sentence]

    def known_log_prob(self, number: int, sentence: Sentence) -> float:
        """Return one model's cached exact log-probability of a sentence, nats, or nan."""
        return self._scores[number].get(sentence, np.nan)

    def log_probs(self, sentence: Sentence, *, afresh: bool = False) -> FloatArray:
        """Return exact log-probabilities of a sentence, (n_models,), nats; see `log_prob`.

        With `afresh`, score the sentence again even if its scores are cached.
        """
        if afresh:
            for scores in self._scores:
                scores.pop(sentence, None)
        return np.array([self.log_prob(number, sentence) for number in range(len(self.models))])

    def float32_log_probs(self, sentence: Sentence) -> FloatArray:
        """Return log-probabilities computed with float32 weights, (n_models,), nats."""
        log_probs = np.empty(len(self.models))
        for number in range(len(self.models)):
            with self.count_cost(number) as model:
                log_probs[number] = model.float32_scores([sentence])[0]
        return log_probs

    def score_sentences(
        self, number: int, sentences: Sequence[Sentence], position: Position | None = None
    ) -> FloatArray:
        """Return one model's exact log-probabilities of sentences, (n_sentences,), nats.

        Sentences without a cached score are scored by one call of the model. If all sentences
        differ from the current sentence of a `Position` only at this position, pass this `Position`
        as `position`. The model then scores the sentences as replacements of one word.
        """
        cache = self._scores[number]
        scores = np.array([cache.get(sentence, np.nan) for sentence in sentences])
        missing = np.flatnonzero(np.isnan(scores)).tolist()
        if missing:
            new = [sentences[i] for i in missing]
            with self.count_cost(number) as model:
                if position is None:
                    new_scores = model.scores(new)
                else:
                    index = position.index
                    words = [sentence.words[index] for sentence in new]
                    new_scores = model.replacement_scores(position.sentence, index, words)
            scores[missing] = new_scores
            if len(cache) + len(new) > _CACHE_SIZE:
                cache.clear()
            cache.update(zip(new, new_scores.tolist(), strict=True))
        return scores

    def screen(self, number: int, position: Position) -> Replacements:
        """Return estimates and bounds of one model's scores with each word at a position.

        The estimates are the cheapest ones: if the model has a draft, its cheapest draft computes
        them.
        """
        with self.count_cost(number) as model:
            draft = model.draft(0)
            source = draft or model
            screening = source.replacements(position.sentence, position.index, position.words)
        if draft is None:
            return screening
        # The draft's exact scores and bounds are not valid for the model itself
        n_words = len(position.words)
        return Replacements(np.full(n_words, np.nan), screening.estimate, np.full(n_words, np.inf))

    def replacement_log_probs(
        self, number: int, position: Position, words: Sequence[str]
    ) -> FloatArray:
        """Return one model's exact log-probabilities with each new word, (n_words,), nats."""
        return self.score_sentences(number, [position.replace(word) for word in words], position)

    def evaluate(
        self,
        position: Position,
        words: Sequence[str],
        promising: Callable[[FloatArray], BoolArray] | None = None,
    ) -> FloatArray:
        """Return all models' exact log-probabilities with each word, (n_models, n_words), nats.

        Also record these log-probabilities. The function `promising` receives the scores so far,
        (n_models, n_words), nan if unknown. It returns a mask of the words that the next model
        scores, (n_words,). If `promising` is None, every model scores all words.
        """
        log_probs = np.full((len(self.models), len(words)), np.nan)
        for number in range(len(self.models)):
            # Each model scores only words that are promising given the scores of earlier models
            mask = np.ones(len(words), np.bool_) if promising is None else promising(log_probs)
            chosen = [word for word, is_chosen in zip(words, mask, strict=True) if is_chosen]
            log_probs[number, mask] = self.replacement_log_probs(number, position, chosen)
        for word, scores in zip(words, log_probs.T, strict=True):
            self.record(position.visit, position.index, position.replace(word), scores)
        return log_probs

    def record(self, visit: int, index: int, sentence: Sentence, log_probs: FloatArray) -> None:
        """Record the candidate at the 0-based position `index`; see `ScoredCandidate`."""
        word = sentence.words[index]
        self.evaluations.append(ScoredCandidate(visit, index, word, sentence, log_probs.copy()))
