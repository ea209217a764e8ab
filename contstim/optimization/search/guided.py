"""Proposals that sharpen cheap knowledge step by step, and score exactly only what still promises.

At each visit every word is estimated by what costs least. The most promising words are then scored
by drafts, models that cost a fraction, or exactly where a model has no draft because exact scores
are cheap. At last the best of these are scored exactly under all models. At each stage, what was
expected is compared with what came out, for as long as the search lasts, so that expectations are
honest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.optimization.search.proposers import Proposer, best
from contstim.optimization.search.screening import PositionEstimates

if TYPE_CHECKING:
    from contstim.optimization.search.evaluator import Evaluator, Position, ScoredSentence


@dataclass(frozen=True)
class ScreeningProposer(Proposer):
    """Our way to find a word, whatever mixture of models takes part.

    Attributes:
        draft_share: of the passes that one exact score under all models takes, what a visit
            spends on sharper estimates under each model.
        min_draft_passes: passes that it spends on these however little exact scores take.
        draft_covers: of the drafts; see `LanguageModel.draft`.
        min_expected_improvement: the least expected gain, nats, for which a word is scored exactly.
        patience: exact evaluations without gain after which the position is given up.
        max_batch: how many words are scored exactly at once, at most.
    """

    draft_share: float = 0.25
    min_draft_passes: int = 32
    draft_covers: int = 1
    min_expected_improvement: float = 0.5
    patience: int = 5
    max_batch: int = 8

    def propose(self, place: Position, search: Evaluator) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        visit = PositionEstimates(place, search)
        if visit.sharp.all():  # nothing is estimated
            log_probs = np.where(visit.open, visit.belief.mean, np.nan)
            found = best(place, search, visit.words, log_probs)
            if found is not None:
                search.record(place, found.sentence, found.log_probs)
            return found
        open_ = visit.refine(self.draft_share, self.min_draft_passes, self.draft_covers)
        log_probs = np.full(visit.belief.mean.shape, np.nan)
        found = None
        failures = 0
        while failures < self.patience:
            loss = (found or place.now).loss
            size = search.experience.batch(self.max_batch)
            chosen = visit.most_promising(open_, size, loss, self.min_expected_improvement)
            if not len(chosen):
                break
            open_[chosen] = False
            names = [visit.words[i] for i in chosen.tolist()]
            log_probs[:, chosen] = search.evaluate(place, names, lazily=True)
            visit.calibrate(chosen, log_probs[:, chosen])
            better = best(place, search, visit.words, log_probs)
            gained = better is not None and better.loss < loss
            search.experience.remember(gained=gained)
            failures = 0 if gained else failures + len(chosen)
            found = better
        return found
