"""Which word to put at a position: ways to find a better one. Here the exact one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError
from contstim.optimization.search.evaluator import ScoredSentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.optimization.search.evaluator import Evaluator, Position


class Proposer(ABC):
    """A way to find a better word for a position."""

    @abstractmethod
    def propose(self, place: Position, search: Evaluator) -> ScoredSentence | None:
        """The sentence with another word, an exactly lower loss, and the constraint kept, or None.

        Raises:
            ModelError: a model cannot tell what this way of proposing needs.
        """


@dataclass(frozen=True)
class ExactRanking(Proposer):
    """The best of all candidates, for models that know every replacement exactly.

    Of several equally good words, the first in the vocabulary.
    """

    def propose(self, place: Position, search: Evaluator) -> ScoredSentence | None:
        """See `Proposer.propose`."""
        words = search.candidates.words(place.position)
        known = []
        for number in range(len(search.models)):
            with search.asking(number) as model:
                replacements = model.replacements(place.sentence, place.position, words)
            if not replacements.complete:
                raise ModelError(
                    f"{model.name} does not know every replacement exactly, which ranking the "
                    f"whole vocabulary needs."
                )
            known.append(replacements.exact)
        log_probs = np.stack(known)
        log_probs[:, ~search.candidates.allowed(place.sentence, place.position)] = np.nan
        found = best(place, search, words, log_probs)
        if found is not None:
            search.record(place, found.sentence, found.log_probs)
        return found


def best(
    place: Position, search: Evaluator, words: Sequence[str], log_probs: FloatArray
) -> ScoredSentence | None:
    """The first of the words with the lowest loss among those that improve on the place.

    Args:
        place: what to improve on.
        search: its objective decides.
        words: the candidates.
        log_probs: exact, (n_models, n_words), nats; nan where not known or ruled out.
    """
    known = ~np.isnan(log_probs).any(axis=0)
    losses = search.objective.loss(log_probs)
    eligible = known & search.objective.feasible(log_probs) & (losses < place.now.loss)
    if not eligible.any():
        return None
    first = int(np.argmin(np.where(eligible, losses, np.inf)))
    changed = place.sentence.replace(place.position, words[first])
    return ScoredSentence(changed, log_probs[:, first], float(losses[first]))
