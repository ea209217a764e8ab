"""New starts from below the floor: the floor gets a price that rises until it holds again.

Replacing one word at a time, a climb cannot cross a sentence that misses the floor, and a settled
sentence has few others next to it that keep it. So for a while the floor is not kept but paid for:
what a climb minimises is

    loss + price * shortfall          in nats; the shortfall is 0 at the floor and above

With a low price it goes where the reject model finds sentences unlikely, far below the floor; with
each higher price it comes back a little, until at the last it pays to keep the floor. Where all
models tell exact scores, two words next to each other are replaced at once besides: to an n-gram
model most words are good or bad only beside their neighbours.

An example, with a floor of -20 nats. `The dog sleeps` has a loss of -18 and stands at the floor.
The prices 0.5, 1 and 2 lead to

    price    sentence            accept    loss    loss + price * shortfall
    0.5      The idea sleeps        -26     -27    -27 + 0.5 * 6 = -24
    1        The idea barks         -24     -25    -25 + 1 * 4   = -21
    2        The cat barks          -20     -22    -22

which is 4 nats better than where it began, though both words had to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.climb import climb
from contstim.optimization.search.objectives import Objective, ScoredSentence
from contstim.optimization.search.perturbation import Perturbation

if TYPE_CHECKING:
    from contstim.arrays import FloatArray
    from contstim.optimization.search.constraints import Candidates, Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.proposers import Proposer
    from contstim.optimization.search.screening import SearchState

_ROUNDING = 1e-9  # nats; what two words gain at least, so that rounding is no gain


class Priced(Objective):
    """An objective whose constraint may be missed at a price.

    Args:
        objective: whose loss and constraint these are.
        price: nats for each nat by which a sentence misses the constraint.
    """

    def __init__(self, objective: Objective, price: float) -> None:
        self.models, self.accepting = objective.models, objective.accepting
        self._objective, self._price = objective, price

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """The loss and the price of what is missed, (n_sentences,), nats."""
        shortfall = self._objective.shortfall(log_probs)
        with np.errstate(invalid="ignore"):  # -inf + inf: impossible under both models
            priced = self._objective.loss(log_probs) + self._price * shortfall
        return np.where(np.isnan(priced) & ~np.isnan(log_probs).any(axis=0), np.inf, priced)

    def shortfall(self, log_probs: FloatArray) -> FloatArray:
        """Nothing, (n_sentences,); nan for a sentence with a score that is nan."""
        shortfall: FloatArray = np.where(np.isnan(log_probs).any(axis=0), np.nan, 0.0)
        return shortfall


@dataclass(frozen=True)
class Oscillation(Perturbation):
    """Climb from the best sentence at a low price for the floor, then at higher ones.

    Attributes:
        proposer: how a better word is looked for at each price.
        otherwise: makes the start where prices lead back to the best sentence, or nowhere.
        lowest: the price of a round is drawn between this and the next, nats for each nat.
        highest: see `lowest`.
        rises: by what the price is multiplied, from climb to climb.
        first_words: so many of the best words at a position are tried with every word after
            them, where all models tell exact scores without a pass.
        patience: see `Perturbation`.
        tries: rounds that may end below the floor, or where they began.
    """

    proposer: Proposer
    otherwise: Perturbation
    lowest: float = 0.2
    highest: float = 1.0
    rises: tuple[float, ...] = (1.0, 2.0, 4.0, 16.0)
    first_words: int = 8
    patience: int = 8
    tries: int = 2

    def perturb(
        self,
        best: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        evaluator: Evaluator,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """See `Perturbation.perturb`."""
        free = all(model.reports_passes for model in evaluator.models)
        free = free and not any(evaluator.exact_passes)
        for _ in range(self.tries):
            price = rng.uniform(self.lowest, self.highest)
            current: ScoredSentence | None = best
            for rise in self.rises:
                priced = Priced(objective, price * rise)
                # Single words until none is better, then two at once, then single words again
                while current is not None:
                    settled = climb(
                        current.sentence,
                        candidates,
                        priced,
                        evaluator,
                        self.proposer,
                        rng=rng,
                        state=state,
                    )
                    start = priced.assess(settled.sentence, settled.log_probs)
                    current = (
                        self._pair(start, candidates, priced, evaluator, rng) if free else None
                    )
                current = start
            if current is None or current.sentence == best.sentence:
                continue
            if objective.feasible(current.log_probs[:, None])[0]:
                return objective.assess(current.sentence, current.log_probs)
        return self.otherwise.perturb(best, candidates, objective, evaluator, state, rng)

    def _pair(
        self,
        current: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        evaluator: Evaluator,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """The sentence with two neighbours replaced by a better pair; None where none was found."""
        for index in rng.permutation(candidates.positions).tolist():
            if index + 1 not in candidates.positions:
                continue
            firsts = candidates.at(current, index)
            losses, log_probs = _ranked(firsts, objective, evaluator)
            some = np.argsort(losses, kind="stable")[: self.first_words]
            best: ScoredSentence | None = None
            lowest = current.loss - _ROUNDING
            for column in some[np.isfinite(losses[some])].tolist():
                sentence = firsts.replace(firsts.words[column])
                first = ScoredSentence(sentence, log_probs[:, column], float(losses[column]))
                seconds = candidates.at(first, index + 1)
                of_pairs, scores = _ranked(seconds, objective, evaluator)
                second = int(np.argmin(of_pairs))
                if of_pairs[second] < lowest:
                    lowest = float(of_pairs[second])
                    both = seconds.replace(seconds.words[second])
                    best = ScoredSentence(both, scores[:, second], lowest)
            if best is not None:
                return best
        return None


def _ranked(
    position: Position, objective: Objective, evaluator: Evaluator
) -> tuple[FloatArray, FloatArray]:
    """Losses, (n_words,), inf where not allowed, and exact scores, (n_models, n_words), nats."""
    numbers = range(len(evaluator.models))
    log_probs = np.stack([evaluator.screen(number, position).exact for number in numbers])
    losses = objective.loss(log_probs)
    return np.where(position.allowed & ~np.isnan(losses), losses, np.inf), log_probs
