"""The published way to look for a better word: exact scores regressed on estimates.

Golan et al. (2023), Methods, Eq. 3. At each visit a line is fitted to the exact log-probabilities
of a few words on their estimates. If none of these words is a gain, the word with the best
prediction is scored, and the line is refitted, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.proposers import Proposer, best_word, rank_exactly

if TYPE_CHECKING:
    from contstim.arrays import BoolArray, FloatArray
    from contstim.models.base import Replacements
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective, ScoredSentence
    from contstim.optimization.search.screening import SearchState


@dataclass(frozen=True)
class RegressionProposer(Proposer):
    """The published strategy; models that are exact take part as they are.

    Attributes:
        threshold: under models that read from left to right, the least log-probability, nats, of a
            candidate given the words before it; all that reach it are scored exactly.
        threshold_step: by how much the threshold falls, nats, while too few candidates reach it.
        min_candidates: how many are enough.
        patience: predictions without gain after which the position is given up.
        penalty: what a nat by which a prediction misses the constraint adds to its loss.
    """

    threshold: float = -10.0
    threshold_step: float = 5.0
    min_candidates: int = 10
    patience: int = 5
    penalty: float = 1e5

    def propose(
        self, position: Position, objective: Objective, evaluator: Evaluator, state: SearchState
    ) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        del state  # lines are fitted anew at every visit
        # Candidates are the words that every left-to-right model finds likely enough after those
        # before them; such models then score them all exactly. Rows of arrays are models, columns
        # candidates.
        screenings = [evaluator.screen(number, position) for number in range(len(evaluator.models))]
        chosen = self._likely_enough(screenings, position.allowed)
        words = [position.words[i] for i in np.flatnonzero(chosen)]
        exact = np.stack([screening.exact[chosen] for screening in screenings])
        for number, screening in enumerate(screenings):
            if screening.is_left_to_right and np.isnan(exact[number]).any():
                exact[number] = evaluator.replacement_log_probs(number, position, words)
        if not np.isnan(exact).any():
            return rank_exactly(position, objective, evaluator, words, exact)

        # Lines for the models that only estimate begin with three points: the candidates with the
        # highest and the lowest estimate, and the word that stands there (column `here`).
        here = position.column
        lines = _Lines(
            exact,
            estimates=np.stack([screening.estimate[chosen] for screening in screenings]),
            current_exact=position.current.log_probs,
            current_estimates=np.array([screening.estimate[here] for screening in screenings]),
        )
        extremes = lines.extremes()
        for number, column in extremes:
            scores = evaluator.replacement_log_probs(number, position, [words[column]])
            exact[number, column] = scores[0]
        for column in dict.fromkeys(column for _, column in extremes):
            sentence = position.replace(words[column])
            evaluator.record(position.visit, position.index, sentence, exact[:, column])

        # While none of the scored words is a gain, score the one with the best prediction. `lines`
        # holds the same array `exact`, so that each score moves its lines.
        better = best_word(position, objective, words, exact)
        for _ in range(self.patience):
            scored = ~np.isnan(exact).any(axis=0)
            if better is not None or scored.all():
                break
            # Words that are scored come last, the others by predicted loss, penalty included.
            predicted = lines.predict()
            with np.errstate(invalid="ignore"):  # -inf + inf
                losses = objective.loss(predicted) + self.penalty * objective.shortfall(predicted)
            losses = np.where(np.isnan(losses), np.inf, losses)
            column = int(np.lexsort((losses, scored))[0])
            exact[:, [column]] = evaluator.evaluate(position, [words[column]])
            better = best_word(position, objective, words, exact)
        return better

    def _likely_enough(self, screenings: list[Replacements], allowed: BoolArray) -> BoolArray:
        """The allowed words that every left-to-right model finds likely enough, (n_words,)."""
        # Log-probabilities of the words given those before them, under each of these models.
        conditional = [
            r.upper_bound - r.prefix_log_prob
            for r in screenings
            if r.is_left_to_right and not r.complete
        ]
        if not conditional:
            return allowed
        least: FloatArray = np.min(conditional, axis=0)
        threshold, lowest = self.threshold, least[allowed & np.isfinite(least)].min(initial=0.0)
        while (allowed & (least >= threshold)).sum() < self.min_candidates and threshold > lowest:
            threshold -= self.threshold_step
        return allowed & (least >= threshold)


@dataclass(frozen=True, eq=False)
class _Lines:
    """A line for each model that only estimates: exact log-probabilities on estimates.

    Attributes:
        exact: (n_models, n_words), nats, nan where not known; filled in as words are scored.
        estimates: (n_models, n_words).
        current_exact: of the sentence as it stands, (n_models,), nats.
        current_estimates: of the word that stands there, (n_models,).
    """

    exact: FloatArray
    estimates: FloatArray
    current_exact: FloatArray
    current_estimates: FloatArray

    def extremes(self) -> list[tuple[int, int]]:
        """The words with the highest and the lowest estimate under each model that only estimates.

        Pairs of row and column. Where the word that stands there is itself the extreme, its exact
        score is known and no other takes its place.
        """
        extremes = []
        for number in np.flatnonzero(np.isnan(self.exact).any(axis=1)).tolist():
            current, estimates = self.current_estimates[number], self.estimates[number]
            highest, lowest = int(estimates.argmax()), int(estimates.argmin())
            extremes += [(number, highest)] * bool(estimates[highest] > current)
            extremes += [(number, lowest)] * bool(estimates[lowest] < current)
        return extremes

    def predict(self) -> FloatArray:
        """Log-probabilities, (n_models, n_words): exact ones, and points of the fitted lines.

        Lines are least-squares fits, and never fall: a higher estimate predicts no lower score.
        """
        predicted = self.exact.copy()
        for number, (exact, estimates) in enumerate(zip(self.exact, self.estimates, strict=True)):
            unscored = np.isnan(exact)
            # Points of the line: the words scored so far, and the one that stands there.
            x = np.append(estimates[~unscored], self.current_estimates[number])
            y = np.append(exact[~unscored], self.current_exact[number])
            finite = np.isfinite(x) & np.isfinite(y)
            x, y = x[finite], y[finite]
            if not len(x):  # nothing to fit: estimates are taken as they are
                predicted[number, unscored] = estimates[unscored]
                continue
            centred = x - x.mean()
            squares = float(centred @ centred)
            slope = max(0.0, float(centred @ y) / squares) if squares > 0 else 1.0
            predicted[number, unscored] = y.mean() + slope * (estimates[unscored] - x.mean())
        return predicted
