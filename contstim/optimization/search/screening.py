"""One visit of a position: what is believed of every word there, sharpened step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.belief import Belief
from contstim.optimization.search.experience import Stage

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray, IntArray
    from contstim.optimization.search.evaluator import Evaluator, Position


_FEW = 4  # words; to sharpen fewer is no better than to score them exactly


class PositionEstimates:
    """Beliefs about the words that may stand at a place.

    It begins with estimates of all words from the least work, and with true bounds that rule words
    out. Estimates count as differences from the word that stands there, whose exact score is known.

    Args:
        place: the position.
        search: its models are asked, and its experience is used and grows.

    Attributes:
        words: all words of the vocabulary for the position.
        open: which of them may stand there and may still improve on the place, (n_words,).
        sharp: what is known better than from the first estimates, (n_models, n_words).
        belief: of log-probabilities.
    """

    def __init__(self, place: Position, search: Evaluator) -> None:
        self._place, self._search = place, search
        self.words = search.candidates.words(place.position)
        shape = (len(search.models), len(self.words))
        self.open: BoolArray = search.candidates.allowed(place.sentence, place.position)
        self.sharp = np.zeros(shape, np.bool_)
        self.belief = Belief(*shape)
        self._estimated = {stage: np.full(shape, np.nan) for stage in Stage}
        bounds = np.full(shape, np.inf)
        for number in range(len(search.models)):
            bounds[number] = self._screen(number)
        exact = np.where(self.sharp, self.belief.mean, np.nan)
        self.open &= search.objective.promising(exact, bounds, place.now.loss)

    def _screen(self, number: int) -> FloatArray:
        """The first estimates of one model, and its upper bounds, (n_words,)."""
        place = self._place
        with self._search.asking(number) as model:
            source = model.draft(0) or model
            known = source.replacements(place.sentence, place.position, self.words)
        if known.complete:
            self.sharp[number], self.belief.mean[number] = True, known.exact
            return known.exact
        differences = known.estimate - known.estimate[self.words.index(place.word)]
        self._believe(number, np.arange(len(self.words)), differences, Stage.SCREEN)
        if source is not model:
            return np.full(len(self.words), np.inf)
        mean = np.minimum(self.belief.mean[number], known.upper_bound)
        self.sharp[number] = ~np.isnan(known.exact)
        self.belief.mean[number] = np.where(self.sharp[number], known.exact, mean)
        self.belief.spread[number, self.sharp[number]] = 0
        return known.upper_bound

    def most_promising(self, among: BoolArray, most: int, loss: float, worth: float) -> IntArray:
        """The words that are expected to lower a loss most, by more than `worth`, best first."""
        words = np.flatnonzero(among)
        promise = self.belief.expected_improvement(self._search.objective, loss, words)
        order = np.argsort(-promise, kind="stable")[:most]
        chosen: IntArray = words[order[promise[order] > worth]]
        return chosen

    def refine(self, share: float, least: float, effort: int) -> BoolArray:
        """Know the most promising words better, the cheapest model first, as far as that pays.

        By a draft of the model or, where exact scores cost little, by these.

        Args:
            share: of the passes that one exact score under all models takes, to spend on each.
            least: passes to spend on each model however little exact scores take.
            effort: of the drafts.

        Returns:
            Which words may be scored exactly now: the open ones, sharpened where models allow.
        """
        ready: BoolArray = self.open.copy()
        rows = max(least, share * sum(self._search.exact_rows))
        unsure = np.flatnonzero(~self.sharp[:, self.open].all(axis=1)).tolist()
        for number in sorted(unsure, key=self._expected_cost):
            width = int(rows / self._expected_cost(number))
            if width >= _FEW:
                chosen = self.most_promising(self.open, width, self._place.now.loss, 0.0)
                self.refine_under(number, chosen, effort)
                ready &= self.sharp[number]
        return ready

    def _expected_cost(self, number: int) -> float:
        model, exact = self._search.models[number], self._search.exact_rows[number]
        guess = exact if model.draft() is None else 2.0 * len(self._place.sentence)
        return self._search.experience.expected_cost(number, guess)

    def refine_under(self, number: int, chosen: IntArray, effort: int) -> None:
        """Know some words better under one model, where that has not been done yet."""
        chosen = chosen[~self.sharp[number, chosen]]
        if len(chosen):
            self._refine_under(number, chosen, effort)

    def _refine_under(self, number: int, chosen: IntArray, effort: int) -> None:
        place, experience = self._place, self._search.experience
        before = self._search.tallies[number].total.rows
        names = [self.words[i] for i in chosen.tolist()]
        with self._search.asking(number) as model:
            draft = model.draft(effort)
            if draft is None:
                exact = self._search.exact(number, place, names)
            else:
                asked = [*names, place.word]
                drafted = draft.replacement_log_probs(place.sentence, place.position, asked)
        if draft is None:
            differences = exact - place.now.log_probs[number]
            self.belief.mean[number, chosen], self.belief.spread[number, chosen] = exact, 0
        else:
            differences = drafted[:-1] - drafted[-1]
            self._believe(number, chosen, differences, Stage.DRAFT)
        self.sharp[number, chosen] = True
        self._compare(number, chosen, differences, Stage.SCREEN)
        experience.record_cost(number, self._search.tallies[number].total.rows - before, len(names))

    def calibrate(self, chosen: IntArray, exact: FloatArray) -> None:
        """Compare drafts with what came out, (n_models, k), nats; nan where nothing did."""
        for number, scores in enumerate(exact):
            differences = scores - self._place.now.log_probs[number]
            self._compare(number, chosen, differences, Stage.DRAFT)

    def _believe(self, number: int, words: IntArray, differences: FloatArray, stage: Stage) -> None:
        calibration = self._search.experience.calibration(number, stage)
        expected = self._place.now.log_probs[number] + calibration.predict(differences)
        self.belief.mean[number, words] = expected
        self.belief.spread[number, words] = calibration.spread
        self._estimated[stage][number, words] = differences

    def _compare(self, number: int, words: IntArray, came_out: FloatArray, stage: Stage) -> None:
        expected = self._estimated[stage][number, words]
        self._search.experience.calibration(number, stage).calibrate(expected, came_out)
