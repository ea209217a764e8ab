"""Estimates of every word at a position, and what a search learns in order to improve them.

An example. The accept model gives `The dog barks` -20 nats, which is its floor, the reject model
-18. Screening the second position tells how much likelier each word makes the sentence than `dog`
does, which comes to these means, all with a spread of 2 nats while nothing has been learned:

                       dog      cat     idea
    accept (row 0)     -20    -20.5      -26
    reject (row 1)     -18      -21      -27

`cat` would lower the loss by about 3.1 nats on average and reaches the floor with a chance of .4:
its expected improvement is 1.2 nats. `idea` would lower it by 9, but reaches the floor with a
chance of .001: 0.01 nats. So `cat` is drafted, which replaces its mean and its spread by better
ones, and is scored exactly if it still promises enough.

Another example. Under the accept model a word's log-probability is expected half a nat above the
floor, under the reject model 3 nats below the loss, both with a spread of 2 nats. The word keeps
the constraint with a chance of .6 and then lowers the loss by 3.06 nats on average: its expected
improvement is 1.8 nats.

Expected improvements are means over 32 draws of errors, for each of some 20,000 words at a
position. No word is expected to improve more than it would with the most favourable of all errors
drawn. So of a few hundred words, those that improve most at their means, the best bound the others:
only words that could reach these are looked at one by one.
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


# Stages that estimates come from: for all words at once, from the least work, and for a few words,
# from a draft of the model
SCREEN, DRAFT = 0, 1
FIRST_ERRORS = (2.0, 0.5)  # that are expected of each stage at first, nats
_MIN_WORDS = 4  # to draft fewer words is no better than to score them exactly


class PositionEstimates:
    """Expected log-probabilities of the words at a position, under each model of the search.

    It begins with estimates of all words from the least work, and with true upper bounds, which
    rule words out for good. Rows of all arrays are models, columns words.

    Args:
        position: the sentence as it stands, and the words.
        objective: decides which words promise something; its models are asked.
        state: calibrates the estimates, and learns from what they come to.

    Attributes:
        mean: what is expected of the whole sentence with each word, (n_models, n_words), nats.
        spread: its standard deviation, (n_models, n_words), nats; 0 where the mean is exact.
        refined: what is known better than from screening, (n_models, n_words).
        open: which words are allowed and not ruled out by a bound or an exact score, (n_words,).
    """

    def __init__(self, position: Position, objective: Objective, state: SearchState) -> None:
        self._position, self._objective, self._state = position, objective, state
        self._evaluator = evaluator = objective.evaluator
        shape = (len(evaluator.models), len(position.words))
        self.mean, self.spread = np.zeros(shape), np.zeros(shape)
        self.refined = np.zeros(shape, np.bool_)
        # Estimated differences from the word that stands there, by the stage they came from.
        self._differences = [np.full(shape, np.nan) for _ in FIRST_ERRORS]
        bounds = np.empty(shape)
        # Where only scores of whole sentences are known, estimates are made in another way
        self._black_boxes: dict[int, BlackBoxEstimates] = {}
        here = position.column  # the column of the word that stands there
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
            # A word is expected to differ from the one that stands there as their estimates do, but
            # to be no better than its bound.
            differences = screening.estimate - screening.estimate[here]
            self._expect(number, slice(None), differences, SCREEN)
            mean = self.mean[number]
            np.minimum(mean, screening.upper_bound, out=mean)
            is_exact = ~np.isnan(screening.exact)
            mean[is_exact] = screening.exact[is_exact]
            self.spread[number, is_exact] = 0
            self.refined[number] = is_exact
        exact = np.where(self.spread == 0, self.mean, np.nan)  # what was told exactly
        promising = objective.promising(exact, bounds, position.current.loss)
        self.open: BoolArray = position.allowed & promising

    def most_promising(
        self, among: BoolArray, limit: int, loss: float, min_expected_improvement: float
    ) -> IntArray:
        """Columns of the words with the largest expected improvement on a loss, best first.

        Args:
            among: which words to choose from, (n_words,).
            limit: how many, at most.
            loss: to improve on.
            min_expected_improvement: nats, which all of them exceed.
        """
        return most_improving(
            self._objective, loss, self.mean, self.spread, among, limit, min_expected_improvement
        )

    def refine(self, passes: float, draft_covers: int) -> BoolArray:
        """Refine the estimates of the most promising words, the cheapest model first.

        Args:
            passes: how many to spend under each model.
            draft_covers: how much work a draft is.

        Returns:
            Which words may be scored exactly now, (n_words,): the open ones that have been refined
            under every model whose passes sufficed for a few.
        """
        # Models with something left to refine among the open words, and what a word costs there. A
        # draft takes about two passes a word of the sentence, the word that stands there included.
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
                # A model's turn comes with what the cheaper ones have just told.
                chosen = self.most_promising(self.open, limit, self._position.current.loss, 0.0)
                self.refine_under(number, chosen, draft_covers)
                ready &= self.refined[number]
        return ready

    def refine_under(self, number: int, columns: IntArray, draft_covers: int) -> None:
        """Refine the estimates of some words under one model, where that has not been done yet.

        By a draft of the model, or by exact scores where it has none since these cost little.
        """
        columns = columns[~self.refined[number, columns]]
        if not len(columns):
            return
        # Scores of the draft are calibrated; exact ones are the mean itself, without a spread. Both
        # show how good the screening was.
        position, evaluator = self._position, self._evaluator
        words = [position.words[i] for i in columns.tolist()]
        passes = evaluator.tallies[number].total.rows
        box = self._black_boxes.get(number)
        draft = evaluator.models[number].draft(draft_covers)
        if draft is None:
            log_probs = evaluator.replacement_log_probs(number, position, words)
            differences = log_probs - position.current.log_probs[number]
            self.mean[number, columns], self.spread[number, columns] = log_probs, 0
        else:
            # The word that stands there is drafted too: estimates count as differences from it.
            with evaluator.counted(number):
                log_probs = draft.replacement_log_probs(
                    position.sentence, position.index, [*words, position.word]
                )
            differences = log_probs[:-1] - log_probs[-1]
            if box is None:
                self._expect(number, columns, differences, DRAFT)
            else:
                box.drafted[columns] = log_probs[:-1]
                self.mean[number], self.spread[number] = box.predict()
        self.refined[number, columns] = True
        self._compare(number, columns, differences, SCREEN)
        passes = evaluator.tallies[number].total.rows - passes
        self._state.record_cost(number, passes, len(words))

    def calibrate(self, columns: IntArray, exact: FloatArray, *, improved: bool) -> None:
        """Learn from a batch of exact scores how good drafts were, and whether batches pay.

        Args:
            columns: the words of the batch.
            exact: their log-probabilities, (n_models, n_columns), nats; nan where not asked.
            improved: whether one of them was a better word.
        """
        self._state.record_batch(improved=improved)
        for number, scores in enumerate(exact):
            if number in self._black_boxes:
                box = self._black_boxes[number]
                box.learn(columns, scores)
                self.mean[number], self.spread[number] = box.predict()
                continue
            differences = scores - self._position.current.log_probs[number]
            self._compare(number, columns, differences, DRAFT)

    def _expect(
        self, number: int, columns: IntArray | slice, differences: FloatArray, stage: int
    ) -> None:
        # All estimates count as differences from the word that stands there, whose exact score is
        # known: what they get wrong about the rest of the sentence cancels.
        calibration = self._state.calibrations[number][stage]
        current = self._position.current.log_probs[number]
        expected = calibration.predict(differences)
        expected += current
        self.mean[number, columns] = expected
        self.spread[number, columns] = calibration.spread
        self._differences[stage][number, columns] = differences

    def _compare(self, number: int, columns: IntArray, outcomes: FloatArray, stage: int) -> None:
        estimated = self._differences[stage][number, columns]
        self._state.calibrations[number][stage].update(estimated, outcomes)


class SearchState:
    """State of a search: how good its models' estimates have been, and what they cost.

    Args:
        n_models: of the search; they are called by their number.
        rng: for what a strategy leaves to chance.

    Attributes:
        calibrations: of each model's estimates of each stage, by what they come to.
        regressions: of scores on sentences, under each model that is a black box.
    """

    def __init__(self, n_models: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self.calibrations = [list(map(Calibration, FIRST_ERRORS)) for _ in range(n_models)]
        self.regressions = [SentenceRegression() for _ in range(n_models)]
        self._passes, self._words = [0] * n_models, [0] * n_models  # spent on refined estimates
        self._improvements = self._batches = 0

    def expected_cost(self, number: int, guess: float) -> float:
        """Passes that a refined estimate of one word takes under a model, 1 or more.

        Args:
            number: the model's.
            guess: what to expect at first; weighs as much as four words.
        """
        passes = self._passes[number] + 4 * guess
        return max(1.0, passes / (self._words[number] + 4))

    def record_cost(self, number: int, passes: int, words: int) -> None:
        """Remember how many passes a model took to refine so many words."""
        self._passes[number] += passes
        self._words[number] += words

    def batch_size(self, limit: int) -> int:
        """Number of words to score exactly at once: as many batches as an improvement has taken.

        It begins at one word, as if two batches had brought two improvements.
        """
        size = round((self._batches + 2) / (self._improvements + 2))
        return int(np.clip(size, 1, limit))

    def record_batch(self, *, improved: bool) -> None:
        """Count a batch of exact scores, and whether it held a better word."""
        self._improvements += improved
        self._batches += 1


class Calibration:
    """Relation of differences between estimates to differences between what they estimate.

    A line fitted to all pairs observed so far, with a ridge prior towards y = x, and the spread of
    the residuals around it.

    Args:
        spread: the residuals' standard deviation, nats, expected before anything is observed.
    """

    _OFFSET, _SLOPE, _SPREAD = 4.0, 100.0, 6.0  # weights of the priors, in pairs

    def __init__(self, spread: float) -> None:
        # The normal equations of y = offset + slope * x: moments @ (offset, slope) = products.
        self._moments = np.diag([self._OFFSET, self._SLOPE])  # of (1, x)
        self._products = np.array([0.0, self._SLOPE])  # of (1, x) with y
        self._squares = self._SPREAD * spread**2
        self._n = self._SPREAD

    def predict(self, x: FloatArray) -> FloatArray:
        """Differences to expect for estimated ones, (n,), nats."""
        offset, slope = np.linalg.solve(self._moments, self._products)
        expected: FloatArray = slope * x
        expected += offset
        return expected

    @property
    def spread(self) -> float:
        """The standard deviation around what is expected, nats."""
        return float(np.sqrt(self._squares / self._n))

    def update(self, x: FloatArray, y: FloatArray) -> None:
        """Add pairs of differences, (n,) each, nats; those that are not finite tell nothing."""
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        # Residuals are those before the line is fitted to these pairs as well: what it would have
        # been off by, had it been asked.
        residuals = y - self.predict(x)
        design = np.stack([np.ones(len(x)), x])  # (2, n): a column (1, x) for each pair
        self._moments = self._moments + design @ design.T
        self._products = self._products + design @ y
        self._squares += float(residuals @ residuals)
        self._n += len(x)


_SAMPLES = 16  # pairs of opposite draws from which an expected improvement is computed
_FEW = 2048  # words, of which it would save little to leave some out
_SLACK = 1e-9  # a share, by which a mean of equal numbers may be above them
_AT_ONCE = 4096  # improvements, which stay in a processor's cache


def most_improving(
    objective: Objective,
    loss: float,
    mean: FloatArray,
    spread: FloatArray,
    among: BoolArray,
    limit: int,
    min_expected_improvement: float,
) -> IntArray:
    """Columns of the words with the largest expected improvement on a loss, best first.

    Args:
        objective: what to minimise and to keep.
        loss: to improve on.
        mean: of each word's log-probabilities, (n_models, n_words), nats.
        spread: their standard deviations, (n_models, n_words), nats.
        among: which words to choose from, (n_words,).
        limit: how many words, at most.
        min_expected_improvement: nats, which all of them exceed.
    """

    def expected(words: IntArray) -> FloatArray:
        of_words = mean.take(words, axis=1), spread.take(words, axis=1)
        return expected_improvement(objective, loss, *of_words)

    candidates = np.flatnonzero(among)
    if len(candidates) > _FEW:
        # What words improve where every model errs in their favour by the largest error drawn
        signs = np.where(objective.accepting, 1.0, -1.0)[:, None]
        favourable = signs * np.abs(_normal_draws(len(mean))).max() * spread
        favourable += mean
        most = _improvement(objective, loss, favourable)
        candidates = np.flatnonzero(among & (most > min_expected_improvement))
        n_first = 4 * limit + 64
        if len(candidates) > max(n_first, _FEW):
            # The least of the `limit` best among some is what all others have to reach
            at_means = _improvement(objective, loss, mean.take(candidates, axis=1))
            first = candidates[np.argpartition(at_means, -n_first)[-n_first:]]
            least = np.partition(expected(first), -limit)[-limit]
            candidates = candidates[most[candidates] >= least * (1 - _SLACK)]
    improvement = expected(candidates)
    order = np.lexsort((candidates, -improvement))[:limit]  # of equal ones, the first word first
    return candidates[order[improvement[order] > min_expected_improvement]]


def expected_improvement(
    objective: Objective, loss: float, mean: FloatArray, spread: FloatArray
) -> FloatArray:
    """By how much words are expected to lower the loss while they keep the constraint, (n_words,).

    The expectation is over independent normal errors of the means (Gardner et al. 2014, constrained
    expected improvement).

    Args:
        objective: what to minimise and to keep.
        loss: to improve on.
        mean: of each word's log-probabilities, (n_models, n_words), nats.
        spread: their standard deviations, (n_models, n_words), nats.
    """
    expected = _improvement(objective, loss, mean)
    uncertain = np.flatnonzero(spread.any(axis=0))  # the means of other words are exact
    if not len(uncertain):
        return expected
    # (n_models, 1, n_uncertain), beside which errors are (n_models, n_draws, 1): the same for all
    # words, so that luck favours none of them
    mean, spread = mean[:, None, uncertain], spread[:, None, uncertain]
    draws = _normal_draws(len(mean))
    total = np.zeros(len(uncertain))
    at_once = max(1, _AT_ONCE // len(uncertain))
    for start in range(0, len(draws), at_once):
        errors = draws[start : start + at_once].T[:, :, None]
        log_probs = (mean + errors * spread).reshape(len(mean), -1)
        for improvement in _improvement(objective, loss, log_probs).reshape(-1, len(uncertain)):
            total += improvement
    expected[uncertain] = total / len(draws)
    return expected


def _improvement(objective: Objective, loss: float, log_probs: FloatArray) -> FloatArray:
    improvement: FloatArray = np.maximum(loss - objective.loss(log_probs), 0.0)
    improvement[~objective.feasible(log_probs)] = 0.0
    return improvement


@lru_cache(maxsize=8)
def _normal_draws(n_models: int) -> FloatArray:
    """(2 * _SAMPLES, n_models), in opposite pairs, the same for all words."""
    half = np.random.default_rng(0).standard_normal((_SAMPLES, n_models))
    return np.concatenate([half, -half])
