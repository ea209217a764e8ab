"""Proposals for models that only estimate: exact scores regressed on estimates, visit by visit.

Golan et al. (2023), Methods, Eq. 3. At each visit a line is fitted to the exact log-probabilities
of a few words on their estimates. If none of these words is a gain, the word with the best
prediction is scored, and the line is refitted, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.proposers import Proposer, best

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import Replacements
    from contstim.optimization.search.evaluator import Evaluator, Position, ScoredSentence


@dataclass(frozen=True)
class RegressionProposer(Proposer):
    """The published way to find a word; models that are exact take part as they are.

    Attributes:
        threshold: under models that read from left to right, the least log-probability, nats, of a
            candidate given the words before it; all that reach it are scored exactly.
        lowered: by how much the threshold falls, nats, while too few candidates reach it.
        fewest: how many are enough.
        patience: predictions without gain after which the position is given up.
        penalty: what a nat by which a prediction misses the constraint adds to its loss.
    """

    threshold: float = -10.0
    lowered: float = 5.0
    fewest: int = 10
    patience: int = 5
    penalty: float = 1e5

    def propose(self, place: Position, search: Evaluator) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        words = search.candidates.words(place.position)
        known = [_ask(number, place, search, words) for number in range(len(search.models))]
        chosen = self._reaching(known, search.candidates.allowed(place.sentence, place.position))
        names = [words[i] for i in np.flatnonzero(chosen)]
        exact = np.stack([replacements.exact[chosen] for replacements in known])
        for number, replacements in enumerate(known):
            if replacements.reads_on and np.isnan(exact[number]).any():
                exact[number] = search.exact(number, place, names)
        if np.isnan(exact).any():
            own = words.index(place.word)
            estimates = np.stack([r.estimate[chosen] for r in known])
            current = np.array([r.estimate[own] for r in known])
            return self._regress(place, search, names, _Lines(exact, estimates, current, place))
        found = best(place, search, names, exact)
        if found is not None:
            search.record(place, found.sentence, found.log_probs)
        return found

    def _reaching(self, known: list[Replacements], allowed: BoolArray) -> BoolArray:
        """The allowed words that every left-to-right model finds likely enough, (n_words,)."""
        conditional = [r.upper_bound - r.before for r in known if r.reads_on and not r.complete]
        if not conditional:
            return allowed
        least: FloatArray = np.min(conditional, axis=0)
        threshold, lowest = self.threshold, least[allowed & np.isfinite(least)].min(initial=0.0)
        while (allowed & (least >= threshold)).sum() < self.fewest and threshold > lowest:
            threshold -= self.lowered
        return allowed & (least >= threshold)

    def _regress(
        self, place: Position, search: Evaluator, names: list[str], lines: _Lines
    ) -> ScoredSentence | None:
        """Score the extremes, then the best predictions, until a word is a gain."""
        extremes = lines.extremes()
        for model, number in extremes:
            lines.exact[model, number] = search.exact(model, place, [names[number]])[0]
        for number in dict.fromkeys(number for _, number in extremes):
            changed = place.sentence.replace(place.position, names[number])
            search.record(place, changed, lines.exact[:, number])
        found = best(place, search, names, lines.exact)
        for _ in range(self.patience):
            if found is not None or lines.evaluated.all():
                break
            chosen = self._best_prediction(search, lines)
            lines.exact[:, [chosen]] = search.evaluate(place, [names[chosen]])
            found = best(place, search, names, lines.exact)
        return found

    def _best_prediction(self, search: Evaluator, lines: _Lines) -> int:
        """The word that is not yet scored with the lowest predicted loss, penalty included."""
        predicted = lines.predict()
        missed = search.objective.shortfall(predicted)
        with np.errstate(invalid="ignore"):  # -inf + inf
            losses = search.objective.loss(predicted) + self.penalty * missed
        losses = np.where(np.isnan(losses), np.inf, losses)
        return int(np.lexsort((losses, lines.evaluated))[0])


def _ask(number: int, place: Position, search: Evaluator, words: tuple[str, ...]) -> Replacements:
    with search.asking(number) as model:
        return (model.draft(0) or model).replacements(place.sentence, place.position, words)


@dataclass(frozen=True, eq=False)
class _Lines:
    """Exact log-probabilities of candidates where known, and estimates of all.

    Attributes:
        exact: (n_models, n_words), nats, nan where not known; filled in as words are scored.
        estimates: (n_models, n_words).
        current: the estimates of the word that stands there, (n_models,).
        place: it, and its exact log-probabilities.
    """

    exact: FloatArray
    estimates: FloatArray
    current: FloatArray
    place: Position

    @property
    def evaluated(self) -> BoolArray:
        """Which words all models have scored, (n_words,)."""
        done: BoolArray = np.all(~np.isnan(self.exact), axis=0)
        return done

    def extremes(self) -> list[tuple[int, int]]:
        """The words with the highest and the lowest estimate under each model that only estimates.

        Pairs of model and word. Where the word that stands there is itself the extreme, its exact
        score is known and no other takes its place.
        """
        ends = []
        for model in np.flatnonzero(np.isnan(self.exact).any(axis=1)).tolist():
            own, estimates = self.current[model], self.estimates[model]
            highest, lowest = int(estimates.argmax()), int(estimates.argmin())
            ends += [(model, highest)] * bool(estimates[highest] > own)
            ends += [(model, lowest)] * bool(estimates[lowest] < own)
        return ends

    def predict(self) -> FloatArray:
        """Log-probabilities, (n_models, n_words): exact ones, and points of the fitted lines."""
        predicted = self.exact.copy()
        for row, (exact, estimates) in enumerate(zip(self.exact, self.estimates, strict=True)):
            unknown = np.isnan(exact)
            if unknown.any():
                x = np.append(estimates[~unknown], self.current[row])
                y = np.append(exact[~unknown], self.place.now.log_probs[row])
                predicted[row, unknown] = _line(x, y, estimates[unknown])
        return predicted


def _line(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """The least-squares line through some points, at others; it never falls."""
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    if not len(x):
        return at
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = max(0.0, float(centred @ y) / spread) if spread > 0 else 1.0
    result: FloatArray = y.mean() + slope * (at - x.mean())
    return result
