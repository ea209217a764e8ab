"""Proposals for models that only estimate: exact scores regressed on estimates, visit by visit.

Golan et al. (2023), Methods, Eq. 3. At each visit a line is fitted to the exact log-probabilities
of a few words on their estimates, and refitted after each further exact score; the word with the
lowest predicted loss is scored next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.proposals import Proposer, best

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import Replacements
    from contstim.optimization.search import Place, Scored, Search


@dataclass(frozen=True)
class RegressionGuided(Proposer):
    """The published way to find a word; models that are exact take part as they are.

    Attributes:
        threshold: under models that read from left to right, the least log-probability, nats, of a
            candidate given the words before it; all that reach it are scored exactly.
        lowered: by how much the threshold falls, nats, while too few candidates reach it.
        fewest: how many are enough.
        patience: exact evaluations without gain after which the position is given up.
    """

    threshold: float = -10.0
    lowered: float = 5.0
    fewest: int = 10
    patience: int = 5

    def propose(self, place: Place, search: Search) -> Scored | None:
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
            search.record(place, found)
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
        self, place: Place, search: Search, names: list[str], lines: _Lines
    ) -> Scored | None:
        def evaluate(number: int) -> None:
            lines.exact[:, [number]] = search.evaluate(place, [names[number]])

        for number in lines.extremes():
            evaluate(number)
        for _ in range(self.patience):
            predicted = lines.predict()
            losses = search.objective.loss(predicted)
            eligible = np.logical_and(search.objective.feasible(predicted), ~lines.evaluated)
            eligible &= losses < place.now.loss
            if not eligible.any():
                break
            evaluate(int(np.argmin(np.where(eligible, losses, np.inf))))
            found = best(place, search, names, lines.exact)
            if found is not None:
                return found
        return None


def _ask(number: int, place: Place, search: Search, words: tuple[str, ...]) -> Replacements:
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
    place: Place

    @property
    def evaluated(self) -> BoolArray:
        """Which words all models have scored, (n_words,)."""
        done: BoolArray = np.all(~np.isnan(self.exact), axis=0)
        return done

    def extremes(self) -> list[int]:
        """The words with the highest and the lowest estimate of each model that only estimates."""
        unknown = np.flatnonzero(np.isnan(self.exact).any(axis=1))
        ends = [
            end for i in unknown for end in (self.estimates[i].argmax(), self.estimates[i].argmin())
        ]
        return list(dict.fromkeys(int(end) for end in ends))

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
