"""Proposal of better words at a position: the interface, and our own strategy.

`ScreeningProposer` asks cheap questions first. All words are screened, estimated by what costs
least; the promising ones are scored by drafts, models that cost a fraction, or exactly where a
model has no draft because exact scores are cheap; the best of these are scored exactly under all
models. Each stage is calibrated by what came out at the next, for as long as the search lasts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates, SearchState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import BoolArray, FloatArray
    from contstim.optimization.search.constraints import Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective


class Proposer(ABC):
    """A way to look for a better word.

    It is frozen; what it learns on the way is in the state that it starts, and goes on with. A
    strategy with a memory of another kind starts a subclass of `SearchState`.
    """

    def start(self, evaluator: Evaluator, rng: np.random.Generator) -> SearchState:
        """The state at the beginning of a search: nothing is learned yet.

        Args:
            evaluator: of the search.
            rng: for what the strategy leaves to chance.
        """
        return SearchState(len(evaluator.models), rng)

    @abstractmethod
    def propose(
        self, position: Position, objective: Objective, evaluator: Evaluator, state: SearchState
    ) -> ScoredSentence | None:
        """The sentence with another word, an exactly lower loss, and the constraint kept, or None.

        Args:
            position: the sentence as it stands, and the words that may be put there.
            objective: what to minimise and to keep.
            evaluator: scores exactly.
            state: what has been learned so far, to which this visit may add; its `rng` decides
                what is left to chance.
        """


def best_word(
    position: Position, objective: Objective, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """The sentence with the word of lowest loss among those that improve on the position.

    Of equally good words the first; None where no word is an improvement.

    Args:
        position: what to improve on.
        objective: what to minimise and to keep.
        words: the candidates.
        log_probs: exact, (n_models, n_words), nats; nan where not known or ruled out.
    """
    losses = objective.loss(log_probs)
    eligible = ~np.isnan(log_probs).any(axis=0) & objective.feasible(log_probs)
    eligible &= losses < position.current.loss
    if not eligible.any():
        return None
    best = int(np.argmin(np.where(eligible, losses, np.inf)))
    return ScoredSentence(position.replace(words[best]), log_probs[:, best], float(losses[best]))


def rank_exactly(
    position: Position,
    objective: Objective,
    evaluator: Evaluator,
    words: Sequence[str],
    log_probs: FloatArray,
) -> ScoredSentence | None:
    """The best word where exact scores of all words are there already; it alone is recorded."""
    better = best_word(position, objective, words, log_probs)
    if better is not None:
        evaluator.record(position.visit, position.index, better.sentence, better.log_probs)
    return better


@dataclass(frozen=True)
class ScreeningProposer(Proposer):
    """Screen all words, draft the promising ones, score the best exactly, with any mix of models.

    Attributes:
        draft_share: of the passes that one exact score under all models takes, what a visit spends
            on drafts under each model.
        min_draft_passes: passes that it spends on these however little exact scores take.
        draft_covers: how much work a draft is; see `LanguageModel.draft`.
        min_expected_improvement: nats, above which a word is scored exactly.
        patience: exact evaluations without gain after which the position is given up.
        max_batch: how many words are scored exactly at once, at most.
    """

    draft_share: float = 0.25
    min_draft_passes: int = 16
    draft_covers: int = 1
    min_expected_improvement: float = 0.5
    patience: int = 5
    max_batch: int = 8

    def propose(
        self, position: Position, objective: Objective, evaluator: Evaluator, state: SearchState
    ) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        # Screen all words. Where every model tells exact scores, as n-gram models do, that is all.
        words = position.words
        estimates = PositionEstimates(position, objective, evaluator, state)
        if not estimates.spread.any():
            log_probs = np.where(estimates.open, estimates.mean, np.nan)
            return rank_exactly(position, objective, evaluator, words, log_probs)

        # Draft the promising ones. The longer exact scores take, the more drafts are worth.
        passes = max(self.min_draft_passes, self.draft_share * sum(evaluator.exact_passes))
        ready = estimates.refine(passes, self.draft_covers)

        # Score the best exactly, until they promise too little or several in a row were no better.
        # Of a batch, the next model scores only what the ones before have not ruled out.
        def promising(log_probs: FloatArray) -> BoolArray:
            return objective.promising(log_probs, np.inf, position.current.loss)

        log_probs = np.full(estimates.mean.shape, np.nan)  # (n_models, n_words), exact or nan
        better = None
        failures = 0
        while failures < self.patience:
            loss = (better or position.current).loss
            chosen = estimates.next_batch(
                ready, self.max_batch, loss, self.min_expected_improvement
            )
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
