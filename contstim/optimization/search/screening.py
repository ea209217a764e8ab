"""Estimates of every word at a position, and their calibration during a search.

Example: `The dog barks` has -20 nats under the accept model, and -18 nats under the reject model.
The -20 nats are the floor: a new sentence must have at least this log-probability under the accept
model. The loss is the log-probability under the reject model. Screening estimates the
log-probability of the sentence with each word in place of `dog`. Before any calibration, the
standard deviation of these estimates is 2 nats:

                       dog      cat     idea
    accept (row 0)     -20    -20.5      -26
    reject (row 1)     -18      -21      -27

`cat` reaches the floor with probability .4, and lowers the loss by 3.06 nats on average. Its
expected improvement is .4 · 3.06 = 1.2 nats. `idea` reaches the floor only with probability .001,
so its expected improvement is 0.01 nats. A draft (a cheaper model) scores `cat`. This gives a
better estimate with a smaller standard deviation. If the expected improvement is still large
enough, `cat` is scored exactly.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.black_box import BlackBoxEstimates, SentenceRegression

if TYPE_CHECKING:
    from contstim.files.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.objectives import Objective


# Stages of estimates: the cheapest estimates of all words, and drafts of a few words
SCREEN, DRAFT = 0, 1
FIRST_ERRORS = (2.0, 0.5)  # initial standard deviation of each stage, nats
_MIN_WORDS = 4  # for fewer words, exact scores are as good as drafts


class PositionEstimates:
    """Expected log-probabilities of the words at a position, under each model of the search.

    Initially, the expected log-probabilities are the cheapest estimates. If upper bounds show that
    a word cannot be better, it is excluded permanently. The methods also update the calibrations in
    the search state: regression lines that correct estimates.

    Attributes:
        mean: expected log-probability of the sentence with each word, (n_models, n_words), nats.
        spread: standard deviation of the error of `mean`, (n_models, n_words), nats; 0 if exact.
        refined: mask of estimates that are exact or from a draft, (n_models, n_words).
        open: mask of allowed words that no bound or exact score excludes, (n_words,).
    """

    def __init__(self, position: Position, objective: Objective, state: SearchState) -> None:
        self._position, self._objective, self._state = position, objective, state
        self._evaluator = evaluator = objective.evaluator
        shape = (len(evaluator.models), len(position.words))
        self.mean, self.spread = np.zeros(shape), np.zeros(shape)
        self.refined = np.zeros(shape, np.bool_)
        # Estimated differences from the current word, nats, by stage
        self._differences = [np.full(shape, np.nan) for _ in FIRST_ERRORS]
        bounds = np.empty(shape)
        self._black_boxes: dict[int, BlackBoxEstimates] = {}
        current = position.column
        for number, model in enumerate(evaluator.models):
            if model.is_black_box:
                box = BlackBoxEstimates(number, position, evaluator, state.regressions[number])
                self._black_boxes[number] = box
                self.mean[number], self.spread[number] = box.predict()
                self.refined[number], bounds[number] = box.refined, np.inf
                continue
            screening = evaluator.screen(number, position)
            bounds[number] = screening.upper_bound
            if screening.complete:  # exact scores of all words need no calibration
                self.mean[number], self.refined[number] = screening.exact, True
                continue
            # mean = current exact score + calibrated difference of the estimates, at most the bound
            differences = screening.estimate - screening.estimate[current]
            self._set_expected(number, slice(None), differences, SCREEN)
            mean = self.mean[number]
            np.minimum(mean, screening.upper_bound, out=mean)
            is_exact = ~np.isnan(screening.exact)
            mean[is_exact] = screening.exact[is_exact]
            self.spread[number, is_exact] = 0
            self.refined[number] = is_exact
        exact = np.where(self.spread == 0, self.mean, np.nan)
        promising = objective.promising(exact, bounds, position.current.loss)
        self.open: BoolArray = position.allowed & promising

    def most_promising(
        self, among: BoolArray, limit: int, loss: float, min_expected_improvement: float
    ) -> IntArray:
        """Return the result of `most_improving` for these estimates."""
        return most_improving(
            self._objective, loss, self.mean, self.spread, among, limit, min_expected_improvement
        )

    def refine(self, passes: float) -> BoolArray:
        """Refine the estimates of the most promising words, the cheapest model first.

        `passes` is the maximum number of sequences that each model may process for this.

        Returns:
            Mask of the open words that may be scored exactly now, (n_words,). The estimates of
            these words are refined under all models. A model is ignored if `passes` suffice
            for fewer than `_MIN_WORDS` words.
        """
        # Index of a model with unrefined words → passes for a word. A draft takes about two passes
        # for each word of the sentence
        costs = {}
        for number in np.flatnonzero((self.open & ~self.refined).any(axis=1)).tolist():
            guess = self._evaluator.exact_passes[number]
            if self._evaluator.models[number].draft() is not None:
                guess = 2.0 * len(self._position.sentence)
            costs[number] = self._state.expected_cost(number, guess)
        ready: BoolArray = self.open.copy()
        for number in sorted(costs, key=costs.__getitem__):
            limit = int(passes / costs[number])
            if limit >= _MIN_WORDS:
                chosen = self.most_promising(self.open, limit, self._position.current.loss, 0.0)
                self.refine_under(number, chosen)
                ready &= self.refined[number]
        return ready

    def refine_under(self, number: int, columns: IntArray) -> None:
        """Refine the estimates of some words under one model, if they are not refined yet.

        Use scores by the model's draft. A model without a draft has cheap exact scores; use these.
        """
        columns = columns[~self.refined[number, columns]]
        if not len(columns):
            return
        position, evaluator = self._position, self._evaluator
        words = [position.words[i] for i in columns.tolist()]
        passes = evaluator.tallies[number].total.rows
        box = self._black_boxes.get(number)
        draft = evaluator.models[number].draft()
        if draft is None:
            log_probs = evaluator.replacement_log_probs(number, position, words)
            differences = log_probs - position.current.log_probs[number]
            self.mean[number, columns], self.spread[number, columns] = log_probs, 0
        else:
            # Also draft the current word, because estimates are differences from it
            with evaluator.count_cost(number):
                log_probs = draft.replacement_scores(
                    position.sentence, position.index, [*words, position.word]
                )
            differences = log_probs[:-1] - log_probs[-1]
            if box is None:
                self._set_expected(number, columns, differences, DRAFT)
            else:
                box.drafted[columns] = log_probs[:-1]
                self.mean[number], self.spread[number] = box.predict()
        self.refined[number, columns] = True
        self._update_calibration(number, columns, differences, SCREEN)
        passes = evaluator.tallies[number].total.rows - passes
        self._state.record_cost(number, passes, len(words))

    def calibrate(self, columns: IntArray, exact: FloatArray, *, improved: bool) -> None:
        """Update the calibration of drafts, and count a batch of exact scores.

        `exact` are log-probabilities of the words `columns`, (n_models, n_columns), nats; nan if
        not scored. `improved` is True if a word of the batch is better than the best sentence
        before this batch.
        """
        self._state.record_batch(improved=improved)
        for number, scores in enumerate(exact):
            if number in self._black_boxes:
                box = self._black_boxes[number]
                box.learn(columns, scores)
                self.mean[number], self.spread[number] = box.predict()
                continue
            differences = scores - self._position.current.log_probs[number]
            self._update_calibration(number, columns, differences, DRAFT)

    def _set_expected(
        self, number: int, columns: IntArray | slice, differences: FloatArray, stage: int
    ) -> None:
        # Predict differences from the score with the current word. An error in the score of the
        # other words of the sentence is in both scores, so it cancels
        calibration = self._state.calibrations[number][stage]
        current = self._position.current.log_probs[number]
        expected = calibration.predict(differences)
        expected += current
        self.mean[number, columns] = expected
        self.spread[number, columns] = calibration.spread
        self._differences[stage][number, columns] = differences

    def _update_calibration(
        self, number: int, columns: IntArray, outcomes: FloatArray, stage: int
    ) -> None:
        estimated = self._differences[stage][number, columns]
        self._state.calibrations[number][stage].update(estimated, outcomes)


class SearchState:
    """State of a search: random numbers, and calibrations and costs of its models' estimates.

    Attributes:
        rng: generator of all random numbers of the search.
        calibrations: calibrations by model and stage.
        regressions: for each model, a regression that predicts scores of sentences. It is used only
            if the model is a black box, which scores only whole sentences.
    """

    def __init__(self, n_models: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.calibrations = [list(map(Calibration, FIRST_ERRORS)) for _ in range(n_models)]
        self.regressions = [SentenceRegression() for _ in range(n_models)]
        self._passes, self._words = [0] * n_models, [0] * n_models  # for refined estimates
        self._improvements = self._batches = 0

    def expected_cost(self, number: int, guess: float) -> float:
        """Return the expected passes of a model for a refined estimate of one word, at least 1.

        `guess` is the prior number of passes, with the weight of four words.
        """
        passes = self._passes[number] + 4 * guess
        return max(1.0, passes / (self._words[number] + 4))

    def record_cost(self, number: int, passes: int, words: int) -> None:
        """Add the passes and the words of a refinement under a model."""
        self._passes[number] += passes
        self._words[number] += words

    def batch_size(self, limit: int) -> int:
        """Return the number of words in the next exact batch: (batches + 2) / (improvements + 2).

        `batches` counts batches so far, and `improvements` those with a better word. The result is
        rounded, and at most `limit`.
        """
        size = round((self._batches + 2) / (self._improvements + 2))
        return int(np.clip(size, 1, limit))

    def record_batch(self, *, improved: bool) -> None:
        """Count a batch of exact scores, and whether it had a better word."""
        self._improvements += improved
        self._batches += 1


class Calibration:
    """Regression line that predicts an exact difference y from an estimated difference x.

    Both are differences between the log-probabilities of two sentences. The line is fitted to all
    pairs (x, y) so far, with a ridge prior towards y = x.

    Args:
        spread: prior standard deviation of the residuals, nats.
    """

    _OFFSET, _SLOPE, _SPREAD = 4.0, 100.0, 6.0  # weights of the priors, as numbers of pairs

    def __init__(self, spread: float) -> None:
        # Normal equations of y = offset + slope * x: moments @ (offset, slope) = products
        self._moments = np.diag([self._OFFSET, self._SLOPE])  # second moments of (1, x)
        self._products = np.array([0.0, self._SLOPE])  # products of (1, x) with y
        self._squares = self._SPREAD * spread**2
        self._n = self._SPREAD

    def predict(self, x: FloatArray) -> FloatArray:
        """Return expected exact differences for estimated differences x, (n,), nats."""
        offset, slope = np.linalg.solve(self._moments, self._products)
        expected: FloatArray = slope * x
        expected += offset
        return expected

    @property
    def spread(self) -> float:
        """Standard deviation of the residuals, nats."""
        return float(np.sqrt(self._squares / self._n))

    def update(self, x: FloatArray, y: FloatArray) -> None:
        """Add pairs of differences, (n,) each, nats; ignore pairs that are not finite."""
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        # Prediction errors of the line before it is fitted to these pairs
        residuals = y - self.predict(x)
        design = np.stack([np.ones(len(x)), x])  # (2, n): a column (1, x) for each pair
        self._moments = self._moments + design @ design.T
        self._products = self._products + design @ y
        self._squares += float(residuals @ residuals)
        self._n += len(x)


_SAMPLES = 16  # antithetic pairs of draws for an expected improvement
_MIN_WORDS_TO_FILTER = 2048  # filtering fewer words saves little time
_ROUNDING = 1e-9  # relative rounding error of a mean of equal numbers
_BATCH_SIZE = 4096  # maximum number of improvements computed at once, to fit into a CPU cache


def most_improving(
    objective: Objective,
    loss: float,
    mean: FloatArray,
    spread: FloatArray,
    among: BoolArray,
    limit: int,
    min_expected_improvement: float,
) -> IntArray:
    """Return columns of the words with the largest expected improvement, best first.

    `mean` and `spread` are means and standard deviations of log-probabilities, (n_models, n_words),
    nats. At most `limit` words of the mask `among`, (n_words,), are returned. For each returned
    word, the expected decrease from `loss` is above `min_expected_improvement`, nats.
    """

    def compute_expected(words: IntArray) -> FloatArray:
        estimates = mean.take(words, axis=1), spread.take(words, axis=1)
        return expected_improvement(objective, loss, *estimates)

    candidates = np.flatnonzero(among)
    if len(candidates) > _MIN_WORDS_TO_FILTER:
        # For speed, exclude most words before computing expected improvements. The upper bound of a
        # word is its improvement with the most favourable error under every model
        signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
        favourable = signs * np.abs(_draw_normal(len(mean))).max() * spread
        favourable += mean
        bounds = _compute_improvement(objective, loss, favourable)
        candidates = np.flatnonzero(among & (bounds > min_expected_improvement))
        n_first = 4 * limit + 64
        if len(candidates) > max(n_first, _MIN_WORDS_TO_FILTER):
            # Compute expected improvements of the words that would be best if `mean` were exact.
            # Exclude words whose upper bound is below the `limit`-th best of these improvements
            at_means = _compute_improvement(objective, loss, mean.take(candidates, axis=1))
            first = candidates[np.argpartition(at_means, -n_first)[-n_first:]]
            least = np.partition(compute_expected(first), -limit)[-limit]
            candidates = candidates[bounds[candidates] >= least * (1 - _ROUNDING)]
    improvement = compute_expected(candidates)
    order = np.lexsort((candidates, -improvement))[:limit]  # ties: first word first
    return candidates[order[improvement[order] > min_expected_improvement]]


def expected_improvement(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return the expected decrease of the loss, (n_words,), nats; 0 for infeasible words.

    The expectation is over independent normal errors of the means (constrained expected
    improvement, Gardner et al. 2014). For the arguments, see `most_improving`.
    """
    expected = _compute_improvement(objective, loss, mean)
    uncertain = np.flatnonzero(spread.any(axis=0))
    if not len(uncertain):
        return expected
    # (n_models, 1, n_uncertain); errors are (n_models, n_draws, 1). All words have the same errors,
    # so that chance favours no word
    mean, spread = mean[:, None, uncertain], spread[:, None, uncertain]
    draws = _draw_normal(len(mean))
    total = np.zeros(len(uncertain))
    batch_size = max(1, _BATCH_SIZE // len(uncertain))
    for start in range(0, len(draws), batch_size):
        errors = draws[start : start + batch_size].T[:, :, None]
        log_probs = (mean + errors * spread).reshape(len(mean), -1)
        improvements = _compute_improvement(objective, loss, log_probs)
        for improvement in improvements.reshape(-1, len(uncertain)):
            total += improvement
    expected[uncertain] = total / len(draws)
    return expected


def _compute_improvement(objective: Objective, loss: float, log_probs: FloatArray) -> FloatArray:
    improvement: FloatArray = np.maximum(loss - objective.loss(log_probs), 0.0)
    improvement[~objective.feasible(log_probs)] = 0.0
    return improvement


@lru_cache(maxsize=8)
def _draw_normal(n_models: int) -> FloatArray:
    """Return antithetic normal draws, (2 * _SAMPLES, n_models)."""
    half = np.random.default_rng(0).standard_normal((_SAMPLES, n_models))
    return np.concatenate([half, -half])
