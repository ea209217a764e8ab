"""Enough disagreement with few changes, and then the likeliest sentence.

The search is for a sentence that the reject model finds a number of nats less likely than the
natural one, and it is to keep as many of the natural sentence's words as can be:

    one new word     The invention is more than one day old     4.1 nats
    two new words    The invention is more than one week old    5.7 nats: enough
                     The letter is more than one week old       5.2 nats, likelier: the result

For each number of new words, the search goes on from the best sentences with one word less. What is
gained beyond enough nats does not count; from there on what is minimised is how unlikely the
accepting models find the sentence. The best sentences by their number of new words are the
*frontier*: what a further word is worth.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, compress
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from contstim.errors import InputError
from contstim.items.reviews import differing
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
    """Goal of a search that keeps the natural sentence's words.

    Attributes:
        enough: nats by which the loss is to fall.
        max_changes: how many words may be new; None for half of the sentence's.

    Raises:
        InputError: a number is out of range.
    """

    enough: Annotated[float, Help("Nats.", at_least=0)]
    max_changes: Annotated[int | None, Help("Words.", at_least=1)] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if not 0 < self.enough < inf:
            raise InputError(f"enough must be a number above 0, not {self.enough:g}.")


ENOUGH = "it reached the nats asked for, and no likelier sentence with as few new words was found"
TOO_FEW = "no sentence with so many of the natural words was found that reaches the nats asked for"
"""Why such a search ended, as the user reads it."""

_BEAM = 96  # sentences that are gone on from, at each price
_PRICES = (1.0, 8.0)  # of a nat below the floor, nats
_RISING_PRICES = (1.0, 2.0, 8.0)  # the same of climbs, one after the other
_NEW = 0.5  # share of the words that may be new, where nothing else is asked for


@dataclass(frozen=True)
class FrontierPoint:
    """The best sentence that was found with a number of new words.

    It is the one that is worth most nats, and where these are enough, the likeliest of those.

    Attributes:
        changed: the number of new words.
        sentence: the sentence.
        log_probs: its log-probabilities, (n_models,), nats.
        drop: nats by which it lowers the loss, that of the natural sentence less its own.
    """

    changed: int
    sentence: Sentence
    log_probs: FloatArray
    drop: float


@dataclass(frozen=True)
class EnoughObjective(Objective):
    """Objective of which a loss below a target is enough, and then likelihood counts.

    The likelihood is that under all models that accept, one that judges fluency among them.

    Attributes:
        target: the loss that is low enough, nats.
        price: of a nat below the floor, nats; 0 where the floor is to be kept. Where it has a
            price, all that is scored is feasible, so that climbs and new starts may go below it.
    """

    target: float = 0.0
    price: float = 0.0

    def full_loss(self, log_probs: FloatArray) -> FloatArray:
        """The loss whatever the target, (n_sentences,), nats."""
        return super().loss(log_probs)

    def loss(self, log_probs: FloatArray) -> FloatArray:
        """The loss above the target; from there on the target less the room above the floors.

        Where a nat below the floor has a price, with what that comes to.
        """
        loss = self.full_loss(log_probs)
        room = np.zeros(len(loss))
        for values, floor in self.margins(log_probs):
            gain = np.zeros(len(loss))
            # Above no floor at all there is no room to measure
            np.subtract(values, floor, out=gain, where=(values > floor) & np.isfinite(floor))
            room += gain
        loss = np.where(loss <= self.target, self.target - room, loss)
        return loss + self.price * self.shortfall(log_probs) if self.price else loss

    def feasible(self, log_probs: FloatArray) -> BoolArray:
        """Mask of sentences that may be taken, (n_sentences,); see `price`."""
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
    """Reach enough nats with as few new words as possible, then the likeliest sentence.

    Args:
        candidates: the words that may stand at each position, and the natural sentence.
        objective: what to minimise and to keep, and what scores exactly.
        recipe: proposes words and makes new starts.
        goal: how many nats are enough, and how many words may be new.
        rng: decides the order of positions, and what else is left to chance.
        on_step: told of each accepted step.

    Returns:
        The climbs as one, which ends with the sentence that reaches enough nats, or with the
        natural one; and the frontier, without numbers of words that bring no further nat.
    """
    natural = candidates.natural
    start = objective.assess(natural, objective.evaluator.log_probs(natural))
    likeliest = EnoughObjective(
        objective.evaluator, objective.accepting, objective.limits, start.loss - goal.enough
    )
    most = min(goal.max_changes or int(len(natural) * _NEW), len(candidates.positions))
    if tries_all_words(objective.evaluator.models):
        levels = _by_beam(candidates, likeliest, most, on_step)
    else:
        levels = _by_climbs(candidates, likeliest, recipe, most, rng, on_step)
    best: dict[int, Step] = {}  # by the number of new words
    frontier: list[FrontierPoint] = []
    steps: list[Step] = []
    visits = seen = 0
    for steps, visits in levels:
        for step in steps[seen:]:
            changed = len(differing(natural, step.sentence))
            if likeliest.feasible(step.log_probs[:, None])[0] and (
                changed not in best or step.loss < best[changed].loss
            ):
                best[changed] = step
        seen = len(steps)
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
    """True if a search between models tries all words, and so leaves nothing to chance."""
    return all(model.cheap_replacements for model in models)


_Level: TypeAlias = tuple[list[Step], int]
"""All steps up to a number of new words, and the number of visits."""


def _by_climbs(
    candidates: Candidates,
    objective: EnoughObjective,
    recipe: Recipe,
    most: int,
    rng: np.random.Generator,
    on_step: Callable[[Step], None] | None,
) -> Iterator[_Level]:
    """For each number of new words a climb from where that with one word less ended.

    It begins with the best word of all positions, where a climb takes the first better one. Where
    no number is enough, climbs with the most new words go below the floor and come back, at rising
    prices; only these are perturbed.
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

    rounds = [(changes, 0.0) for changes in range(1, most + 1)]
    for changes, price in [*rounds, *((most, price) for price in _RISING_PRICES)]:
        limited = replace(candidates, constraints=(*candidates.constraints, max_changes(changes)))
        aim = replace(objective, price=price)
        current = aim.assess(current.sentence, current.log_probs)
        places = [limited.at(current, i, n) for n, i in enumerate(limited.positions, visits + 1)]
        visits += len(places)
        proposed = [(place, proposer.propose(place, aim, state)) for place in places]
        better = [(place, after) for place, after in proposed if after is not None]
        if better:
            place, current = min(better, key=lambda pair: pair[1].loss)
            accept(_step(place.index, place.sentence, current, visits, round_, evaluator))

        def accept_later(step: Step, before: int = visits, first: int = round_) -> None:
            accept(replace(step, visit=step.visit + before, round=step.round + first))

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


def _by_beam(
    candidates: Candidates,
    objective: EnoughObjective,
    most: int,
    on_step: Callable[[Step], None] | None,
) -> Iterator[_Level]:
    """For each number of new words the best of all words after the best sentences with one less.

    For models that score all words of a position exactly at next to no cost. Sentences below the
    floor are kept as well: a further word may bring them back. They are ranked by the loss and what
    they miss of the floor, at two prices a nat.
    """
    natural, evaluator = candidates.natural, objective.evaluator
    best = objective.assess(natural, evaluator.log_probs(natural))
    beam = [natural]
    steps: list[Step] = []
    visits = 0
    for changes in range(1, most + 1):
        cheapest = [_Cheapest(price) for price in _PRICES]
        for sentence in beam:
            new, log_probs = _every_change(sentence, candidates, evaluator)
            visits += len(candidates.positions) - (changes - 1)
            if not new:
                continue
            losses = np.where(objective.feasible(log_probs), objective.loss(log_probs), np.inf)
            least = int(losses.argmin())
            if losses[least] < best.loss:
                index, word = new[least]
                better = sentence.replace(index, word)
                best = ScoredSentence(better, log_probs[:, least], float(losses[least]))
                evaluator.record(visits, index, better, best.log_probs)
                steps.append(_step(index, sentence, best, visits, changes - 1, evaluator))
                if on_step is not None:
                    on_step(steps[-1])
            loss, shortfall = objective.full_loss(log_probs), objective.shortfall(log_probs)
            # Of impossible sentences no price says which is nearer to the floor
            loss = np.where(np.isfinite(loss), loss, np.inf)
            for ranked in cheapest:
                ranked.add(sentence, new, loss + ranked.price * shortfall)
        chosen = dict.fromkeys(chain.from_iterable(ranked.best for ranked in cheapest))
        beam = [Sentence(words, natural.end) for words in chosen]
        yield steps, visits


def _every_change(
    sentence: Sentence, candidates: Candidates, evaluator: Evaluator
) -> tuple[list[tuple[int, str]], FloatArray]:
    """All sentences with one new word more.

    Returns:
        The 0-based position and the new word of each, and log-probabilities, (n_models,
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
        each = []
        for number in range(len(evaluator.models)):
            with evaluator.counted(number) as model:
                each.append(model.replacement_log_probs(sentence, index, words)[allowed])
        log_probs.append(np.stack(each))
    return new, np.concatenate(log_probs, axis=1) if new else np.empty((len(evaluator.models), 0))


@dataclass
class _Cheapest:
    """The sentences that cost least: their loss, and a price of what they miss of the floor.

    Attributes:
        price: of a nat below the floor, nats.
    """

    price: float
    _costs: dict[tuple[str, ...], float] = field(default_factory=dict)  # by a sentence's words
    _most: float = np.finfo(np.float64).max

    def add(self, sentence: Sentence, new: Sequence[tuple[int, str]], costs: FloatArray) -> None:
        """Add the sentence with each of some words at 0-based positions, (n_words,) costs."""
        words, columns = sentence.words, np.flatnonzero(costs <= self._most)
        for column in columns[np.argsort(costs[columns], kind="stable")[:_BEAM]].tolist():
            index, word = new[column]
            self._costs[*words[:index], word, *words[index + 1 :]] = float(costs[column])
        if len(self._costs) > 4 * _BEAM:
            self._costs = self.best
            self._most = max(self._costs.values())

    @property
    def best(self) -> dict[tuple[str, ...], float]:
        """The words of these sentences, and what each costs."""
        return dict(sorted(self._costs.items(), key=itemgetter(1))[:_BEAM])


def _step(
    index: int,
    before: Sentence,
    after: ScoredSentence,
    visits: int,
    round_: int,
    evaluator: Evaluator,
) -> Step:
    """The step that puts a word in at a 0-based position."""
    old, new = before.words[index], after.sentence.words[index]
    told = after.sentence, after.log_probs, after.loss
    return Step(index, old, new, *told, visits, round_, evaluator.cost)
