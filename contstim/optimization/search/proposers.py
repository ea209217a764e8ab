"""Proposal of better words at a position: the interface, our strategy, and the published one.

A visit is one attempt to improve the word at one position.

`ScreeningProposer` works in three stages:

1. Screen all words with the cheapest estimates.
2. Score the promising words with drafts. A draft is a cheaper scorer that estimates a model's
   scores. A model with cheap exact scores has no draft, so it scores the promising words exactly.
3. Score the best of the promising words exactly under all models.

The results of each stage calibrate the estimates of the previous stage.

`RegressionProposer` is the published strategy (Golan et al. 2023, Methods, Eq. 3). At each visit,
it scores a few words exactly. It fits a regression line that predicts exact log-probabilities from
estimates. It scores the word with the best prediction and fits the line again. It stops after five
words, or earlier if a word is better than the current word.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import Replacements
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.screening import SearchState


class Proposer(ABC):
    """A strategy to find a better word.

    A proposer is a frozen dataclass. The search state stores all values that change.
    """

    @abstractmethod
    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """Return a feasible sentence with another word and a lower exact loss, or None.

        A visit may update the search state.
        """


def best_word(
    position: Position, objective: Objective, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """Return the feasible sentence with the lowest loss; None if no loss is below the current loss.

    Ties are resolved in favour of the first word. Log-probabilities are exact, (n_models,
    n_words), nats; nan if the score is unknown or the word is excluded.
    """
    losses = objective.loss(log_probs)
    eligible = ~np.isnan(log_probs).any(axis=0) & objective.feasible(log_probs)
    eligible &= losses < position.current.loss
    if not eligible.any():
        return None
    best = int(np.argmin(np.where(eligible, losses, np.inf)))
    return ScoredSentence(position.replace(words[best]), log_probs[:, best], float(losses[best]))


def rank_exactly(
    position: Position, objective: Objective, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """Return the result of `best_word`, and record it."""
    better, evaluator = best_word(position, objective, words, log_probs), objective.evaluator
    if better is not None:
        evaluator.record(position.visit, position.index, better.sentence, better.log_probs)
    return better


@dataclass(frozen=True)
class ScreeningProposer(Proposer):
    """The default strategy: screen all words, draft promising words, score the best words exactly.

    Attributes:
        draft_share: maximum number of passes (sequences that a network processes) of one model's
            drafts in one visit, divided by the number of passes that one exact score takes under
            all models together. For example, if an exact score takes 100 passes in total and the
            share is 0.25, the drafts of each model may take 25 passes.
        min_draft_passes: number of passes that the drafts may take even if `draft_share` allows
            fewer passes.
        min_expected_improvement: words whose expected decrease of the loss is larger than this are
            scored exactly, nats.
        patience: number of exact scores in a row without gain after which the visit ends.
        max_batch: maximum number of words scored exactly in a batch.
    """

    draft_share: float = 0.25
    min_draft_passes: int = 16
    min_expected_improvement: float = 0.5
    patience: int = 5
    max_batch: int = 8

    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """Return a better sentence or None; see `Proposer.propose`."""
        words, evaluator = position.words, objective.evaluator
        estimates = PositionEstimates(position, objective, state)
        if not estimates.spread.any():  # all scores are exact, as between n-gram models
            log_probs = np.where(estimates.open, estimates.mean, np.nan)
            return rank_exactly(position, objective, words, log_probs)

        passes = max(self.min_draft_passes, self.draft_share * sum(evaluator.exact_passes))
        ready = estimates.refine(passes)

        # Score the best words exactly, until expected improvements are too small, or `patience`
        # words in a row are no better. Each model scores only words that no earlier model excluded
        def promising(log_probs: FloatArray) -> BoolArray:
            return objective.promising(log_probs, np.inf, position.current.loss)

        log_probs = np.full(estimates.mean.shape, np.nan)  # (n_models, n_words), exact or nan
        better = None
        failures = 0
        while failures < self.patience:
            loss = (better or position.current).loss
            limit = state.batch_size(self.max_batch)
            chosen = estimates.most_promising(ready, limit, loss, self.min_expected_improvement)
            if not len(chosen):
                break
            ready[chosen] = False
            names = [words[i] for i in chosen.tolist()]
            log_probs[:, chosen] = evaluator.evaluate(position, names, promising)
            better = best_word(position, objective, words, log_probs)
            improved = better is not None and better.loss < loss
            estimates.calibrate(chosen, log_probs[:, chosen], improved=improved)
            failures = 0 if improved else failures + len(chosen)
        return better


@dataclass(frozen=True)
class RegressionProposer(Proposer):
    """The published strategy; models with exact scores of all words need no regression.

    Attributes:
        threshold: minimum of log p(candidate word | words before it), nats, under each
            left-to-right model. These models score exactly all words that reach the threshold.
        threshold_step: decrease of the threshold, repeated while too few words reach it, nats.
        min_candidates: number of words that must reach the threshold.
        patience: maximum number of words that are scored exactly because their predicted loss is
            the lowest. If none of these words lowers the loss, the visit finds no better word.
        penalty: added loss for each nat by which a prediction violates the constraint.
    """

    # Differences from the publication:
    # * The paper compares the threshold with the log-probability of a word's first token. We use
    #   the log-probability of the whole word by the model's scoring rule, if it is already known.
    # * The published code applies the threshold only to GPT-2, and scores all words for RNN and
    #   LSTM. We apply it to all left-to-right models.
    threshold: float = -10.0
    threshold_step: float = 5.0
    # * For `min_candidates`, the published code counts tokens that begin a word. We count words
    #   that are allowed at the position.
    min_candidates: int = 10
    # * Our lines have no negative slope: a higher estimate never predicts a lower score.
    # * We score up to five predicted words. The published code counts only words that are no better
    #   than an earlier word, and stops after six such words in a row.
    patience: int = 5
    # A violation outweighs any loss, so words that are predicted to be feasible come first
    penalty: float = 1e5

    def propose(
        self, position: Position, objective: Objective, state: SearchState
    ) -> ScoredSentence | None:
        """Return a better sentence or None; see `Proposer.propose`."""
        del state  # each visit fits new lines
        # Candidates are the words that reach the threshold under every left-to-right model. Rows of
        # arrays are models, columns are candidates
        evaluator = objective.evaluator
        screenings = [evaluator.screen(number, position) for number in range(len(evaluator.models))]
        chosen = self._select_likely(screenings, position.allowed)
        words = [position.words[i] for i in np.flatnonzero(chosen)]
        exact = np.stack([screening.exact[chosen] for screening in screenings])
        for number, screening in enumerate(screenings):
            if screening.is_left_to_right and np.isnan(exact[number]).any():
                exact[number] = evaluator.replacement_log_probs(number, position, words)
        if not np.isnan(exact).any():
            return rank_exactly(position, objective, words, exact)

        # Fit a line for each model without exact scores. The line starts with three points: the
        # candidates with the highest and the lowest estimate, and the current word
        current_column = position.column
        estimates = np.stack([screening.estimate[chosen] for screening in screenings])
        current = np.array([screening.estimate[current_column] for screening in screenings])
        extremes = _find_extremes(exact, estimates, current)
        for number, column in extremes:
            scores = evaluator.replacement_log_probs(number, position, [words[column]])
            exact[number, column] = scores[0]
        for column in dict.fromkeys(column for _, column in extremes):
            sentence = position.replace(words[column])
            evaluator.record(position.visit, position.index, sentence, exact[:, column])

        # While no scored word is better, score the word with the best prediction
        better = best_word(position, objective, words, exact)
        for _ in range(self.patience):
            scored = ~np.isnan(exact).any(axis=0)
            if better is not None or scored.all():
                break
            # Sort unscored words by predicted loss, penalty included; scored words come last
            predicted = _predict(exact, estimates, position.current.log_probs, current)
            with np.errstate(invalid="ignore"):  # -inf + inf
                losses = objective.loss(predicted) + self.penalty * objective.shortfall(predicted)
            losses = np.where(np.isnan(losses), np.inf, losses)
            column = int(np.lexsort((losses, scored))[0])
            exact[:, [column]] = evaluator.evaluate(position, [words[column]])
            better = best_word(position, objective, words, exact)
        return better

    def _select_likely(self, screenings: list[Replacements], allowed: BoolArray) -> BoolArray:
        """Return a mask of allowed words that reach the threshold, (n_words,)."""
        networks = [r for r in screenings if r.is_left_to_right and not r.complete]
        if not networks:
            return allowed
        conditional = [screening.upper_bound - screening.prefix_log_prob for screening in networks]
        minima: FloatArray = np.min(conditional, axis=0)
        threshold, lowest = self.threshold, minima[allowed & np.isfinite(minima)].min(initial=0.0)
        while (allowed & (minima >= threshold)).sum() < self.min_candidates and threshold > lowest:
            threshold -= self.threshold_step
        return allowed & (minima >= threshold)


def _find_extremes(
    exact: FloatArray, estimates: FloatArray, current: FloatArray
) -> list[tuple[int, int]]:
    """For each model without exact scores, find the words with the highest and the lowest estimate.

    Return (row, column) of these words. The current word is omitted, because its score is
    known. `current` are estimates of the current word, (n_models,); other arrays are (n_models,
    n_words).
    """
    extremes = []
    for number in np.flatnonzero(np.isnan(exact).any(axis=1)).tolist():
        highest, lowest = int(estimates[number].argmax()), int(estimates[number].argmin())
        extremes += [(number, highest)] * bool(estimates[number, highest] > current[number])
        extremes += [(number, lowest)] * bool(estimates[number, lowest] < current[number])
    return extremes


def _predict(
    exact: FloatArray, estimates: FloatArray, current_exact: FloatArray, current: FloatArray
) -> FloatArray:
    """Return log-probabilities, (n_models, n_words), nats: exact, or predicted by fitted lines.

    Lines are least-squares fits. Negative slopes are replaced by 0. `exact` is nan if unknown.
    `current_exact` and `current` are the score and the estimate of the current word, (n_models,).
    """
    predicted = exact.copy()
    for number, (scores, estimated) in enumerate(zip(exact, estimates, strict=True)):
        unscored = np.isnan(scores)
        # Points of the line: the scored words and the current word
        x = np.append(estimated[~unscored], current[number])
        y = np.append(scores[~unscored], current_exact[number])
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        if not len(x):  # without a line, use the estimates
            predicted[number, unscored] = estimated[unscored]
            continue
        centred = x - x.mean()
        squares = float(centred @ centred)
        slope = max(0.0, float(centred @ y) / squares) if squares > 0 else 1.0
        predicted[number, unscored] = y.mean() + slope * (estimated[unscored] - x.mean())
    return predicted
