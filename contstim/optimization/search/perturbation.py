"""New starts for a climb that has settled: its best sentence, perturbed (iterated local search).

A settled sentence mostly stands just above the floor. So some of its words are replaced by others
that stay above it and that the accepting models like better than the rejecting ones do, even where
the reject model then finds the sentence likelier: the room so gained above the floor, the slack, is
for the next round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.objectives import ScoredSentence
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from contstim.arrays import IntArray
    from contstim.optimization.search.constraints import Candidates, Position
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.screening import SearchState


class Perturbation(ABC):
    """A way to make a new start.

    Attributes:
        patience: rounds without gain after which the search ends.
    """

    patience: int

    @abstractmethod
    def perturb(
        self,
        best: ScoredSentence,
        candidates: Candidates,
        objective: Objective,
        evaluator: Evaluator,
        state: SearchState,
        rng: np.random.Generator,
    ) -> ScoredSentence | None:
        """A sentence that keeps the constraint, exactly scored; None to end the search.

        Args:
            best: the best sentence so far.
            candidates: the words that may stand at each position.
            objective: what to minimise and to keep.
            evaluator: scores exactly.
            state: what the proposer has learned; this may add to it.
            rng: for what is left to chance.
        """


@dataclass(frozen=True)
class SlackPerturbation(Perturbation):
    """Replace a few words by those with the largest expected slack.

    Attributes:
        max_words: how many are replaced at most.
        max_drafts: for how many words of a position a draft is asked.
        draft_covers: how much work a draft is; see `LanguageModel.draft`.
        patience: see `Perturbation`.
        tries: sentences that are scored to find a start which keeps the constraint.
    """

    max_words: int = 3
    max_drafts: int = 8
    draft_covers: int = 1
    patience: int = 4
    tries: int = 4

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
        for _ in range(self.tries):
            perturbed = best
            n_words = int(rng.integers(1, self.max_words + 1))
            for index in rng.permutation(candidates.positions)[:n_words].tolist():
                position = candidates.at(perturbed, index)
                estimates = PositionEstimates(position, objective, evaluator, state)
                perturbed = self._replace(position, objective, estimates)
            if perturbed.sentence == best.sentence:
                continue
            # Its scores were expected ones. Now exact ones, until it is clear that the constraint
            # is broken; which loss they make does not matter.
            log_probs = np.full(len(evaluator.models), np.nan)
            for number in range(len(evaluator.models)):
                log_probs[number] = evaluator.log_prob(number, perturbed.sentence)
                if not objective.promising(log_probs[:, None], np.inf, np.inf)[0]:
                    break
            else:
                return objective.assess(perturbed.sentence, log_probs)
        return None

    def _replace(
        self, position: Position, objective: Objective, estimates: PositionEstimates
    ) -> ScoredSentence:
        """The sentence with the word of most slack among those expected to keep the constraint.

        Its log-probabilities are expected ones, not exact, and its loss is not its own.
        """
        columns = np.flatnonzero(position.allowed)
        columns = self._slackest(objective, estimates, columns)
        for number in range(len(estimates.mean)):
            estimates.refine_under(number, columns, self.draft_covers)
        columns = self._slackest(objective, estimates, columns)
        if not len(columns):
            return position.current
        sentence = position.replace(position.words[columns[0]])
        return ScoredSentence(sentence, estimates.mean[:, columns[0]], position.current.loss)

    def _slackest(
        self, objective: Objective, estimates: PositionEstimates, columns: IntArray
    ) -> IntArray:
        mean, spread = estimates.mean[:, columns], estimates.spread[:, columns]
        # A word is to keep the constraint even where accepting models err by one spread.
        cautious = mean - np.array(objective.accepting)[:, None] * spread
        feasible = objective.feasible(cautious)
        columns, slack = columns[feasible], objective.slack(mean[:, feasible])
        if len(slack) > self.max_drafts:  # few remain to be sorted
            high = slack >= np.partition(slack, -self.max_drafts)[-self.max_drafts]
            columns, slack = columns[high], slack[high]
        order = np.argsort(-slack, kind="stable")
        slackest: IntArray = columns[order[: self.max_drafts]]
        return slackest
