"""The one search loop: visit positions, replace a word where that helps, stop when nothing does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contstim.arrays import FloatArray
    from contstim.optimization.objective import Objective
    from contstim.optimization.proposals import Proposer
    from contstim.sentence import Sentence


class End(Enum):
    """Why a climb ended; the text is what the user reads."""

    SETTLED = "no better word was found at as many positions in a row as the sentence has words"
    UNCHANGED = "no word at any position made the models disagree more"


@dataclass(frozen=True)
class Step:
    """One accepted replacement.

    Attributes:
        position: 0-based.
        old: the word that stood there.
        new: the word put there.
        sentence: the sentence with the new word.
        log_probs: (n_models,) of that sentence, in the objective's order, nats.
        visit: how many positions had been visited by then, this one included.
    """

    position: int
    old: str
    new: str
    sentence: Sentence
    log_probs: FloatArray
    visit: int


@dataclass(frozen=True)
class Climb:
    """A finished search: where it started, each accepted step, how many visits, why it ended."""

    start: Sentence
    start_log_probs: FloatArray
    steps: tuple[Step, ...]
    visits: int
    end: End

    @property
    def sentence(self) -> Sentence:
        """Where the search ended."""
        return self.steps[-1].sentence if self.steps else self.start

    @property
    def log_probs(self) -> FloatArray:
        """Log-probabilities of the last sentence, (n_models,), nats."""
        return self.steps[-1].log_probs if self.steps else self.start_log_probs


def climb(
    start: Sentence,
    objective: Objective,
    proposer: Proposer,
    *,
    rng: np.random.Generator,
    on_step: Callable[[Step], None] | None = None,
) -> Climb:
    """Improve a sentence word by word (Golan et al. 2023, Methods).

    Positions are visited in random cycles, each once before any twice. At each, the proposer looks
    for a word with a lower exact loss that keeps the constraint, and the word is taken. The climb
    ends after as many positions in a row without one as the sentence has words.

    Args:
        start: where to begin.
        objective: the loss and the constraint.
        proposer: how a word is found.
        rng: decides the order of positions.
        on_step: told of each accepted step as it happens.
    """
    sentence = start
    start_log_probs = np.array([model.log_probs([start])[0] for model in objective.models])
    loss = float(objective.loss(start_log_probs[:, None])[0])
    steps: list[Step] = []
    failures = 0
    for visit, position in enumerate(_cycles(len(start), rng), start=1):
        proposal = proposer.propose(sentence, position, loss, objective)
        if proposal is None:
            failures += 1
        else:
            failures = 0
            old, sentence = sentence.words[position], sentence.replace(position, proposal.word)
            loss = proposal.loss
            steps.append(Step(position, old, proposal.word, sentence, proposal.log_probs, visit))
            if on_step is not None:
                on_step(steps[-1])
        if failures == len(start):
            break
    end = End.SETTLED if steps else End.UNCHANGED
    return Climb(start, start_log_probs, tuple(steps), visit, end)


def _cycles(length: int, rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from rng.permutation(length).tolist()
