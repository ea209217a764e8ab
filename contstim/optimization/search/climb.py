"""The one search loop: visit positions, replace a word where that helps, stop when nothing does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from contstim.files.arrays import FloatArray
    from contstim.models.costs import Cost
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.objectives import Objective, ScoredSentence
    from contstim.optimization.search.perturbation import Perturbation
    from contstim.optimization.search.proposers import Proposer
    from contstim.optimization.search.screening import SearchState
    from contstim.words.sentence import Sentence


SETTLED = "no better word was found at as many positions in a row as can be changed"
UNCHANGED = "no word at any position made the models disagree more"
EXHAUSTED = "no better sentence was found from here, nor from the starts made by perturbing it"
"""Why a climb ended, as the user reads it."""


@dataclass(frozen=True)
class Step:
    """One accepted replacement, or a new start that is better than the best sentence before it.

    Attributes:
        position: 0-based; of a new start, which may change several words, the last of them.
        old: the word that stood there.
        new: the word put there.
        sentence: the sentence with the new word.
        log_probs: (n_models,) of that sentence, in the objective's order, nats.
        loss: of that sentence.
        visit: how many positions had been visited by then; that of a replacement is included.
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
        steps: each accepted step, of all rounds; the first step of a later round is a new start
            or goes on from one.
        sentence: the best sentence.
        log_probs: of the best sentence, (n_models,), nats.
        visits: how many positions were visited.
        end: why it ended.
    """

    start: ScoredSentence
    steps: tuple[Step, ...]
    sentence: Sentence
    log_probs: FloatArray
    visits: int
    end: str

    def facts(self, names: Sequence[str]) -> dict[str, Any]:
        """Every accepted step as plain values for JSON, log-probabilities by names of models."""
        return {
            "steps": [
                {
                    "visit": step.visit,
                    "start": step.round + 1,
                    "position": step.position,
                    "old": step.old,
                    "new": step.new,
                    "sentence": step.sentence.text,
                    "log_probs": dict(zip(names, step.log_probs.tolist(), strict=True)),
                }
                for step in self.steps
            ],
            "visits": self.visits,
            "end": self.end,
        }


def climb(
    start: Sentence,
    candidates: Candidates,
    objective: Objective,
    proposer: Proposer,
    *,
    rng: np.random.Generator,
    state: SearchState | None = None,
    perturbation: Perturbation | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Climb:
    """Improve a sentence word by word (Golan et al. 2023, Methods).

    Args:
        start: where to begin.
        candidates: the words that may stand at each position.
        objective: what to minimise and to keep; its evaluator has the scores known so far.
        proposer: how a better word is looked for.
        rng: decides the order of positions, and what proposer and perturbation leave to chance.
        state: what the proposer learned in an earlier climb with the evaluator, and goes on to
            learn; None to begin anew.
        perturbation: how new starts are made; None for a single round.
        on_step: told of each accepted step as it happens.
    """
    evaluator = objective.evaluator
    if state is None:
        # What a proposer draws does not change the order of positions.
        state = proposer.start(evaluator, rng.spawn(1)[0])
    # `current` is where the climb stands, `best` the best sentence of all rounds before this one.
    first = best = current = objective.assess(start, evaluator.log_probs(start))
    steps: list[Step] = []
    failed: set[tuple[Sentence, int]] = set()
    visits = rounds_without_gain = 0

    def accept(before: ScoredSentence, after: ScoredSentence, index: int, round_: int) -> None:
        old, new = (scored.sentence.words[index] for scored in (before, after))
        told = (after.sentence, after.log_probs, after.loss, visits, round_, evaluator.cost)
        steps.append(Step(index, old, new, *told))
        if on_step is not None:
            on_step(steps[-1])

    for round_ in count():
        # Positions come in random cycles, each once before any twice, until as many in a row as
        # can be changed have brought nothing. Where the same sentence has failed before at a
        # position, it counts as failed again without another look.
        cycle: list[int] = []
        failures_in_a_row = 0
        while failures_in_a_row < len(candidates.positions):
            cycle = cycle or rng.permutation(candidates.positions).tolist()
            index = cycle.pop(0)
            visits += 1
            better = None
            if (current.sentence, index) not in failed:
                position = candidates.at(current, index, visits)
                better = proposer.propose(position, objective, state)
            if better is None:
                failed.add((current.sentence, index))
                failures_in_a_row += 1
                continue
            accept(current, better, index, round_)
            current, failures_in_a_row = better, 0
        # Nothing better was found: go on from the best sentence so far, perturbed.
        if current.loss < best.loss:
            best, rounds_without_gain = current, 0
        else:
            rounds_without_gain += 1
        if perturbation is None or rounds_without_gain >= perturbation.patience:
            break
        restart = perturbation.perturb(best, candidates, objective, state, rng)
        if restart is None:
            break
        if restart.loss < best.loss:  # better as it is: the last of its new words is a step
            pairs = zip(best.sentence.words, restart.sentence.words, strict=True)
            index = max(index for index, (old, new) in enumerate(pairs) if old != new)
            evaluator.record(visits, index, restart.sentence, restart.log_probs)
            accept(best, restart, index, round_ + 1)
        current = restart
    last = SETTLED if perturbation is None else EXHAUSTED
    end = UNCHANGED if best is first else last
    return Climb(first, tuple(steps), best.sentence, best.log_probs, visits, end)
