"""The search loop: visit positions, replace words by better words, stop if no word is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from contstim.optimization.search.objectives import ScoredSentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.costs import Cost
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.perturbation import Perturbation
    from contstim.optimization.search.proposers import Proposer
    from contstim.optimization.search.screening import SearchState
    from contstim.words.sentence import Sentence


SETTLED = "no better word was found at as many positions in a row as can be changed"
UNCHANGED = "no word at any position made the models disagree more"
EXHAUSTED = "no better sentence was found from here, nor from the starts made by perturbing it"
"""Reasons why a climb (one run of the search loop) ended, as messages for the user."""


@dataclass(frozen=True)
class Step(ScoredSentence):
    """One accepted replacement, or a new start that is better than the best sentence so far.

    A start is the first sentence of a round; see `climb`.

    Attributes:
        position: 0-based position of the new word. If a new start has several new words, this is
            the position of the last new word.
        visit: number of visited positions so far, including `position`.
        round: 0 for steps from the first start, 1 for steps from the second start, and so on.
    """

    position: int
    old: str
    new: str
    visit: int
    round: int
    cost: Cost


@dataclass(frozen=True)
class Climb:
    """A finished run of the search loop.

    Attributes:
        steps: accepted steps of all rounds.
        log_probs: log-probabilities of the best sentence, (n_models,), nats.
    """

    start: ScoredSentence
    steps: tuple[Step, ...]
    sentence: Sentence
    log_probs: FloatArray
    visits: int
    end: str

    @property
    def best_first(self) -> list[ScoredSentence]:
        """The result, followed by the sentences of all steps with a lower loss than `start`.

        The sentences of the steps are sorted by loss, the lowest first.
        """
        best = ScoredSentence(self.sentence, self.log_probs, -inf)
        better = [step for step in self.steps if step.loss < self.start.loss]
        return [best, *sorted(better, key=lambda step: step.loss)]

    def in_units(self, units: FloatArray) -> Climb:
        """Return the climb with scores multiplied by `units`: one factor per model, (n_models,)."""
        return replace(
            self,
            start=self.start.in_units(units),
            steps=tuple(step.in_units(units) for step in self.steps),
            log_probs=self.log_probs * units,
        )

    def facts(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the accepted steps as plain values for JSON."""
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
    state: SearchState,
    *,
    perturbation: Perturbation | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Climb:
    """Improve a sentence word by word (Golan et al. 2023, Methods).

    The climb consists of rounds. Each round ends when no other word is better at any position. Then
    `perturbation` changes the best sentence, and the changed sentence is the start of the next
    round. Without a perturbation, there is a single round. `on_step` is called with each accepted
    step. `state` contains the random generator and calibrations of estimates. It is a new state, or
    the final state of an earlier climb with the same models. The climb updates this state.
    """
    evaluator = objective.evaluator
    # `best` is the best sentence of all earlier rounds
    first = best = current = objective.assess(start, evaluator.log_probs(start))
    steps: list[Step] = []
    failed: set[tuple[Sentence, int]] = set()
    visits = rounds_without_gain = 0

    def accept(last: ScoredSentence, better: ScoredSentence, index: int, round_: int) -> None:
        old, new = (scored.sentence.words[index] for scored in (last, better))
        fields = (index, old, new, visits, round_, evaluator.cost)
        steps.append(Step(better.sentence, better.log_probs, better.loss, *fields))
        if on_step is not None:
            on_step(steps[-1])

    for round_ in count():
        # Visit positions in random cycles, each position once per cycle. A visit fails if it finds
        # no better word. Stop if the last n visits failed, where n is the number of positions that
        # can change. If an earlier visit to this position failed with the current sentence, the
        # visit fails without a new proposal
        cycle: list[int] = []
        failures_in_a_row = 0
        while failures_in_a_row < len(candidates.positions):
            cycle = cycle or state.rng.permutation(candidates.positions).tolist()
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
        # No word is better. Perturb the best sentence so far, and continue from the new sentence
        if current.loss < best.loss:
            best, rounds_without_gain = current, 0
        else:
            rounds_without_gain += 1
        if perturbation is None or rounds_without_gain >= perturbation.patience:
            break
        restart = perturbation.perturb(best, candidates, objective, state)
        if restart is None:
            break
        # The new start itself may be better than the best sentence
        if restart.loss < best.loss:
            pairs = zip(best.sentence.words, restart.sentence.words, strict=True)
            index = max(index for index, (old, new) in enumerate(pairs) if old != new)
            evaluator.record(visits, index, restart.sentence, restart.log_probs)
            accept(best, restart, index, round_ + 1)
        current = restart
    unsuccessful = SETTLED if perturbation is None else EXHAUSTED
    end = UNCHANGED if best is first else unsuccessful
    return Climb(first, tuple(steps), best.sentence, best.log_probs, visits, end)
