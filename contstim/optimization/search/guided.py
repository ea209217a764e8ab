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

from contstim.optimization.search.proposals import Proposer, best
from contstim.optimization.search.visit import Visit

if TYPE_CHECKING:
    from contstim.optimization.search.search import Place, Scored, Search


@dataclass(frozen=True)
class Guided(Proposer):
    """Our way to find a word, whatever mixture of models takes part.

    Attributes:
        share: of the passes that one exact score under all models takes, what a visit spends on
            sharper estimates under each model.
        least: passes that it spends on these however little exact scores take.
        effort: of the drafts; see `LanguageModel.draft`.
        worth: the least expected gain, nats, for which a word is scored exactly.
        patience: exact evaluations without gain after which the position is given up.
        most: how many words are scored exactly at once, at most.
    """

    share: float = 0.25
    least: int = 32
    effort: int = 1
    worth: float = 0.5
    patience: int = 5
    most: int = 8

    def propose(self, place: Place, search: Search) -> Scored | None:
        """See `Proposer.propose`."""
        visit = Visit(place, search)
        if visit.sharp.all():  # nothing is estimated
            log_probs = np.where(visit.open, visit.belief.mean, np.nan)
            found = best(place, search, visit.words, log_probs)
            if found is not None:
                search.record(place, found.sentence, found.log_probs)
            return found
        open_ = visit.sharpen(self.share, self.least, self.effort)
        log_probs = np.full(visit.belief.mean.shape, np.nan)
        found = None
        failures = 0
        while failures < self.patience:
            loss = (found or place.now).loss
            size = search.experience.batch(self.most)
            chosen = visit.most_promising(open_, size, loss, self.worth)
            if not len(chosen):
                break
            open_[chosen] = False
            names = [visit.words[i] for i in chosen.tolist()]
            log_probs[:, chosen] = search.evaluate(place, names, lazily=True)
            visit.learn(chosen, log_probs[:, chosen])
            better = best(place, search, visit.words, log_probs)
            gained = better is not None and better.loss < loss
            search.experience.remember(gained=gained)
            failures = 0 if gained else failures + len(chosen)
            found = better
        return found
