"""Sufficient disagreement with few new words, then the likeliest sentence.

The search looks for a sentence that the reject model finds less likely than the natural one by a
required number of nats. It keeps as many of the natural sentence's words as possible:

    one new word     The invention is more than one day old     4.1 nats
    two new words    The invention is more than one week old    5.7 nats: enough
                     The letter is more than one week old       5.2 nats, likelier: the result

For each number of new words, the search continues from the best sentences with one new word less.
Nats beyond the required number do not count. Among sentences that reach it, the search maximises
the log-probability under the accepting models. The best sentences by number of new words are the
*frontier*, which shows the gain of each further word.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, compress
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.items.reviews import changed_positions
from contstim.optimization.search.climb import Climb, Step, climb
from contstim.optimization.search.constraints import Candidates, max_changes
from contstim.optimization.search.objectives import Objective, ScoredSentence
from contstim.options import Help, check_ranges
from contstim.words.sentence import Sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contstim.files.arrays import BoolArray, FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.recipes import Recipe


@dataclass(frozen=True)
class FewChanges:
    """Goal of a search for few new words.

    Attributes:
        enough: required decrease of the loss, nats.
        max_changes: maximum number of new words; None for half of the sentence's words.

    Raises:
        InputError: if a number is out of range.
    """

    enough: Annotated[float, Help("Nats.", at_least=0)]
    max_changes: Annotated[int | None, Help("Words.", at_least=1)] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if not 0 < self.enough < inf:
            raise InputError(f"enough must be a number above 0, not {self.enough:g}.")


ENOUGH = "it reached the nats asked for, and no likelier sentence with as few new words was found"
TOO_FEW = "no sentence with so many of the natural words was found that reaches the nats asked for"
"""Reasons why such a search ended, as messages for the user."""

_BEAM = 96  # sentences in the beam at each price
_PRICES = (1.0, 8.0)  # prices of a nat below the floor, nats
_RISING_PRICES = (1.0, 2.0, 8.0)  # prices of successive climbs
_MAX_SHARE_NEW = 0.5  # default maximum share of new words


@dataclass(frozen=True)
class FrontierPoint:
    """The best sentence with a given number of new words.

    It has the lowest loss, or is the likeliest of those with sufficient disagreement.

    Attributes:
        changed: number of new words.
        sentence: sentence with the new words.
        log_probs: log-probabilities of the sentence, (n_models,), nats.
        drop: loss of the natural sentence minus loss of this sentence, nats.
    """

    changed: int
    sentence: Sentence
    log_probs: FloatArray
    drop: float


@dataclass(frozen=True)
class EnoughObjective(Objective):
    """Objective that maximises likelihood once the loss has reached a target.

    The likelihood is that under all accepting models, the fluency model included.

    Attributes:
        target: loss that is low enough, nats.
        price: price of a nat below the floor, nats; 0 to require the floor. With a price, all
            scored sentences are feasible, so that climbs and new starts may go below the floor.
    """

    target: float = 0.0
    price: float = 0.0

    def full_loss(self, log_probs: FloatArray) -> FloatArray:
        """Return the loss without a target, (n_sentences,), nats."""
        return super().loss(log_probs)

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """Return the loss or, below the target, the target minus the margins, (n_sentences,), nats.

        The price of the shortfall is added.
        """
        loss = self.full_loss(log_probs)
        margin = np.zeros(len(loss))
        for values, floor in self.margins(log_probs):
            gain = np.zeros(len(loss))
            # Without a finite floor there is no margin
            np.subtract(values, floor, out=gain, where=(values > floor) & np.isfinite(floor))
            margin += gain
        loss = np.where(loss <= self.target, self.target - margin, loss)
        return loss + self.price * self.shortfall(log_probs) if self.price else loss

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Return a mask of sentences that may be accepted, (n_sentences,); see `price`."""
        if not self.price:
            return super().feasible(log_probs)
        scored: BoolArray = np.logical_and.reduce(~np.isnan(log_probs))
        return scored


def climb_by_changes(
    candidates: Candidates,
    objective: Objective,
    recipe: Recipe,
    goal: FewChanges,
    *,
    rng: np.random.Generator,
    on_step: Callable[[Step], None] | None = None,
) -> tuple[Climb, tuple[FrontierPoint, ...]]:
    """Find the likeliest sentence that reaches the goal with as few new words as possible.

    Args:
        candidates: words allowed at each position, and the natural sentence.
        objective: loss, constraint and evaluator.
        recipe: recipe with the proposer and the perturbation.
        goal: required nats and maximum number of new words.
        rng: random generator for the order of positions and all other random choices.
        on_step: callback, called with each accepted step.

    Returns:
        All climbs as one, which ends with the sentence that reaches the goal or with the natural
        sentence; and the frontier, without numbers of words that do not lower the loss further.
    """
    natural = candidates.natural
    start = objective.assess(natural, objective.evaluator.log_probs(natural))
    likeliest = EnoughObjective(
        objective.evaluator, objective.accepting, objective.limits, start.loss - goal.enough
    )
    max_new = min(goal.max_changes or int(len(natural) * _MAX_SHARE_NEW), len(candidates.positions))
    if tries_all_words(objective.evaluator.models):
        levels = _search_by_beam(candidates, likeliest, max_new, on_step)
    else:
        levels = _search_by_climbs(candidates, likeliest, recipe, max_new, rng, on_step)
    best: dict[int, Step] = {}  # by number of new words
    frontier: list[FrontierPoint] = []
    steps: list[Step] = []
    visits = n_seen = 0
    for steps, visits in levels:
        for step in steps[n_seen:]:
            changed = len(changed_positions(natural, step.sentence))
            if likeliest.feasible(step.log_probs[:, None])[0] and (
                changed not in best or step.loss < best[changed].loss
            ):
                best[changed] = step
        n_seen = len(steps)
        frontier = []
        for changed, step in sorted(best.items(), key=itemgetter(0)):
            drop = start.loss - objective.assess(step.sentence, step.log_probs).loss
            if drop > (frontier[-1].drop if frontier else 0.0):
                frontier.append(FrontierPoint(changed, step.sentence, step.log_probs, drop))
            if drop >= goal.enough:
                end = step.sentence, step.log_probs, visits, ENOUGH
                return Climb(start, tuple(steps), *end), tuple(frontier)
    return Climb(start, tuple(steps), natural, start.log_probs, visits, TOO_FEW), tuple(frontier)


def tries_all_words(models: Iterable[LanguageModel]) -> bool:
    """Return True if a search between these models tries all words and so is deterministic."""
    return all(model.cheap_replacements for model in models)


_Level: TypeAlias = tuple[list[Step], int]
"""All steps up to a number of new words, and the number of visits so far."""


def _search_by_climbs(
    candidates: Candidates,
    objective: EnoughObjective,
    recipe: Recipe,
    max_new: int,
    rng: np.random.Generator,
    on_step: Callable[[Step], None] | None,
) -> Iterator[_Level]:
    """Yield levels from one climb per number of new words, each from the end of the last.

    Each climb begins with the best word of all positions; after that, it accepts the first better
    word. If no number of new words suffices, climbs with the maximum number go below the floor
    and return at rising prices. Only these climbs are perturbed.
    """
    natural, evaluator, proposer = candidates.natural, objective.evaluator, recipe.proposer
    state = proposer.start(evaluator, rng.spawn(1)[0])
    current = objective.assess(natural, evaluator.log_probs(natural))
    steps: list[Step] = []
    visits = round_ = 0

    def accept(step: Step) -> None:
        steps.append(replace(step, loss=objective.assess(step.sentence, step.log_probs).loss))
        if on_step is not None:
            on_step(steps[-1])

    rounds = [(changes, 0.0) for changes in range(1, max_new + 1)]
    for changes, price in [*rounds, *((max_new, price) for price in _RISING_PRICES)]:
        limited = replace(candidates, constraints=(*candidates.constraints, max_changes(changes)))
        aim = replace(objective, price=price)
        current = aim.assess(current.sentence, current.log_probs)
        visited = [limited.at(current, i, n) for n, i in enumerate(limited.positions, visits + 1)]
        visits += len(visited)
        proposals = [(position, proposer.propose(position, aim, state)) for position in visited]
        better = [(position, scored) for position, scored in proposals if scored is not None]
        if better:
            position, current = min(better, key=lambda pair: pair[1].loss)
            accept(
                _make_step(position.index, position.sentence, current, visits, round_, evaluator)
            )

        def accept_later(step: Step, n_visits: int = visits, first_round: int = round_) -> None:
            accept(replace(step, visit=step.visit + n_visits, round=step.round + first_round))

        climbed = climb(
            *(current.sentence, limited, aim, proposer),
            rng=rng,
            state=state,
            perturbation=recipe.perturbation if price else None,
            on_step=accept_later,
        )
        visits += climbed.visits
        current = objective.assess(climbed.sentence, climbed.log_probs)
        round_ = max([round_, *(step.round for step in steps)]) + 1
        yield steps, visits


def _search_by_beam(
    candidates: Candidates,
    objective: EnoughObjective,
    max_new: int,
    on_step: Callable[[Step], None] | None,
) -> Iterator[_Level]:
    """Yield levels of a beam search, one for each number of new words.

    This is for models that score all words of a position exactly at almost no cost. The beam also
    has sentences below the floor, because a further word may satisfy it. It ranks sentences by
    loss plus price times shortfall, for two prices.
    """
    natural, evaluator = candidates.natural, objective.evaluator
    best = objective.assess(natural, evaluator.log_probs(natural))
    beam = [natural]
    steps: list[Step] = []
    visits = 0
    for changes in range(1, max_new + 1):
        beams = [_Beam(price) for price in _PRICES]
        for sentence in beam:
            new, log_probs = _score_changes(sentence, candidates, evaluator)
            visits += len(candidates.positions) - (changes - 1)
            if not new:
                continue
            losses = np.where(objective.feasible(log_probs), objective.loss(log_probs), np.inf)
            lowest = int(losses.argmin())
            if losses[lowest] < best.loss:
                index, word = new[lowest]
                better = sentence.replace(index, word)
                best = ScoredSentence(better, log_probs[:, lowest], float(losses[lowest]))
                evaluator.record(visits, index, better, best.log_probs)
                steps.append(_make_step(index, sentence, best, visits, changes - 1, evaluator))
                if on_step is not None:
                    on_step(steps[-1])
            loss, shortfall = objective.full_loss(log_probs), objective.shortfall(log_probs)
            # No price can rank impossible sentences
            loss = np.where(np.isfinite(loss), loss, np.inf)
            for priced in beams:
                priced.add(sentence, new, loss + priced.price * shortfall)
        chosen = dict.fromkeys(chain.from_iterable(priced.best for priced in beams))
        beam = [Sentence(words, natural.end) for words in chosen]
        yield steps, visits


def _score_changes(
    sentence: Sentence, candidates: Candidates, evaluator: Evaluator
) -> tuple[list[tuple[int, str]], FloatArray]:
    """Score all sentences with one more new word.

    Returns:
        0-based position and new word of each sentence, and log-probabilities, (n_models,
        n_sentences), nats.
    """
    new: list[tuple[int, str]] = []
    log_probs: list[FloatArray] = []
    for index in candidates.positions:
        if sentence.words[index] != candidates.natural.words[index]:
            continue
        words, allowed = candidates.possible[index], candidates.allowed_now(sentence, index)
        if not allowed.any():
            continue
        new += [(index, word) for word in compress(words, allowed)]
        rows = []
        for number in range(len(evaluator.models)):
            with evaluator.count_cost(number) as model:
                rows.append(model.replacement_log_probs(sentence, index, words)[allowed])
        log_probs.append(np.stack(rows))
    return new, np.concatenate(log_probs, axis=1) if new else np.empty((len(evaluator.models), 0))


@dataclass
class _Beam:
    """The sentences with the lowest costs: loss plus price times shortfall.

    Attributes:
        price: price of a nat below the floor, nats.
    """

    price: float
    _costs: dict[tuple[str, ...], float] = field(default_factory=dict)  # by words of a sentence
    _max_cost: float = np.finfo(np.float64).max

    def add(self, sentence: Sentence, new: Sequence[tuple[int, str]], costs: FloatArray) -> None:
        """Add the sentence with each new word at its 0-based position; costs are (n_words,)."""
        words, columns = sentence.words, np.flatnonzero(costs <= self._max_cost)
        for column in columns[np.argsort(costs[columns], kind="stable")[:_BEAM]].tolist():
            index, word = new[column]
            self._costs[*words[:index], word, *words[index + 1 :]] = float(costs[column])
        if len(self._costs) > 4 * _BEAM:
            self._costs = self.best
            self._max_cost = max(self._costs.values())

    @property
    def best(self) -> dict[tuple[str, ...], float]:
        """Costs of these sentences, by their words."""
        return dict(sorted(self._costs.items(), key=itemgetter(1))[:_BEAM])


def _make_step(
    index: int,
    previous: Sentence,
    accepted: ScoredSentence,
    visits: int,
    round_: int,
    evaluator: Evaluator,
) -> Step:
    """Return the step that replaces the word at a 0-based position."""
    old, new = previous.words[index], accepted.sentence.words[index]
    scores = accepted.sentence, accepted.log_probs, accepted.loss
    return Step(index, old, new, *scores, visits, round_, evaluator.cost)
