"""Candidate sentences that were scored exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contstim.arrays import FloatArray
    from contstim.sentence import Sentence


@dataclass(frozen=True)
class Evaluation:
    """A candidate that was scored exactly.

    Attributes:
        visit: during which visit of a position, from 1.
        position: 0-based.
        word: the candidate.
        sentence: the sentence with the candidate in place.
        log_probs: (n_models,) in the objective's order, nats; nan for models that were not asked
            because the others' scores had ruled the candidate out.
    """

    visit: int
    position: int
    word: str
    sentence: Sentence
    log_probs: FloatArray
