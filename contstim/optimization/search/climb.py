"""The one search loop: visit positions, replace a word where that helps, stop when nothing does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING

from contstim.optimization.search.evaluator import Position, ScoredSentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np

    from contstim.arrays import FloatArray
    from contstim.models.costs import Cost
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.perturbation import Perturbation
    from contstim.optimization.search.proposers import Proposer
    from contstim.sentence import Sentence


class End(Enum):
    """Why a climb ended; the text is what the user reads."""

    SETTLED = "no better word was found at as many positions in a row as can be changed"
    UNCHANGED = "no word at any position made the models disagree more"
    EXHAUSTED = "no better sentence was found from here, nor from the starts it was shaken into"


@dataclass(frozen=True)
class Step:
    """One accepted replacement.

    Attributes:
        position: 0-based.
        old: the word that stood there.
        new: the word put there.
        sentence: the sentence with the new word.
        log_probs: (n_models,) of that sentence, in the objective's order, nats.
        loss: of that sentence.
        visit: how many positions had been visited by then, this one included.
        round: 0 on the way from the first start, 1 from the next one, and so on.
        cost: what all models together had computed by then.
    """

    position: int
    old: str
    new: str
    sentence: Sentence
    log_probs: FloatArray
    loss: float
    visit: int
    round: int
    cost: Cost


@dataclass(frozen=True)
class Climb:
    """A finished search.

    Attributes:
        start: where it started.
        start_log_probs: of the start, (n_models,), nats.
        start_loss: of the start.
        steps: each accepted step, of all rounds; one that begins a round after the first goes on
            from a shaken sentence.
        sentence: the best one found.
        log_probs: of the best sentence, (n_models,), nats.
        visits: how many positions were visited.
        end: why it ended.
    """

    start: Sentence
    start_log_probs: FloatArray
    start_loss: float
    steps: tuple[Step, ...]
    sentence: Sentence
    log_probs: FloatArray
    visits: int
    end: End


def climb(
    start: Sentence,
    search: Evaluator,
    proposer: Proposer,
    *,
    rng: np.random.Generator,
    perturbation: Perturbation | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Climb:
    """Improve a sentence word by word (Golan et al. 2023, Methods).

    Positions are visited in random cycles, each once before any twice. At each, the proposer looks
    for a word with a lower exact loss that keeps the constraint, and the word is taken. A round
    ends after as many positions in a row without one as can be changed; where the same sentence
    has failed before at a position, it counts as failed again without another look. Then the
    perturbation, if there is one, makes a new start of the best sentence so far.

    Args:
        start: where to begin.
        search: the objective, the words, and the exact scores known so far.
        proposer: how a word is found.
        rng: decides the order of positions, and what chance decides in the perturbation.
        perturbation: makes new starts; None for a single round.
        on_step: told of each accepted step as it happens.
    """
    first = best = now = search.score(start)
    steps: list[Step] = []
    visit = failures = 0
    failed: set[tuple[Sentence, int]] = set()
    for number in count():
        for visit, step in _settle(now, search, proposer, rng, visit, number, failed):  # noqa: B007, B020
            if step is not None:
                steps.append(step)
                now = ScoredSentence(step.sentence, step.log_probs, step.loss)
                if on_step is not None:
                    on_step(step)
        failures = 0 if now.loss < best.loss else failures + 1
        best = min(best, now, key=lambda scored: scored.loss)
        shaken = (
            None
            if perturbation is None
            else perturbation.perturb(best, search, rng, visit, failures)
        )
        if shaken is None:
            break
        now = shaken
    last = End.SETTLED if perturbation is None else End.EXHAUSTED
    end = End.UNCHANGED if best is first else last
    return Climb(
        start=start,
        start_log_probs=first.log_probs,
        start_loss=first.loss,
        steps=tuple(steps),
        sentence=best.sentence,
        log_probs=best.log_probs,
        visits=visit,
        end=end,
    )


def _settle(
    now: ScoredSentence,
    search: Evaluator,
    proposer: Proposer,
    rng: np.random.Generator,
    visit: int,
    number: int,
    failed: set[tuple[Sentence, int]],
) -> Iterator[tuple[int, Step | None]]:
    """One round: every visit's number, and the step taken there if there was one."""
    positions = search.candidates.positions
    in_a_row = 0
    for visit, position in enumerate(_cycles(positions, rng), start=visit + 1):  # noqa: B020
        place = Position(now, position, visit)
        known = (now.sentence, position) in failed
        found = None if known else proposer.propose(place, search)
        if found is None:
            failed.add((now.sentence, position))
            in_a_row += 1
            yield visit, None
        else:
            in_a_row = 0
            old, new = now.sentence.words[position], found.sentence.words[position]
            now = found
            yield (
                visit,
                Step(
                    position=position,
                    old=old,
                    new=new,
                    sentence=now.sentence,
                    log_probs=now.log_probs,
                    loss=now.loss,
                    visit=visit,
                    round=number,
                    cost=search.cost,
                ),
            )
        if in_a_row == len(positions):
            return


def _cycles(positions: tuple[int, ...], rng: np.random.Generator) -> Iterator[int]:
    while True:
        yield from rng.permutation(positions).tolist()
