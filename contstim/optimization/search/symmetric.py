"""A pair of synthetic sentences on which two models disagree as much as possible."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import VerificationError
from contstim.models.costs import Cost
from contstim.optimization.search.climb import Climb, Step, climb
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.objectives import PairObjective
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SearchResult, SearchSummary, best_of
from contstim.optimization.search.verification import (
    check_floor,
    computes_coarsely,
    natural_log_probs,
    prepare,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contstim.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.constraints import Candidates, Constraint
    from contstim.optimization.search.recipes import Recipe
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, repr=False)
class SymmetricPair(SearchResult):
    """Two sentences: model_1 finds sentence_2 likelier, model_2 finds sentence_1 likelier.

    The loss of its searches is the disagreement, negated.

    Attributes:
        models: the names of model_1, model_2, and the model of fluency if there is one.
        sentence_1: the one that model_1 rejects.
        sentence_2: the one that model_2 rejects.
        log_probs: of sentence_1 and sentence_2 (columns) under each of `models` (rows), nats.
        climbs: of sentence_1, sentence_2, sentence_1 again, and so on; of several searches, those
            of the best.
    """

    models: tuple[str, ...]
    sentence_1: Sentence
    sentence_2: Sentence
    log_probs: tuple[tuple[float, float], ...]
    climbs: tuple[Climb, ...]

    def __repr__(self) -> str:
        sides = f"{self.models[0]} prefers {self.sentence_2.text!r}, {self.models[1]} "
        return f"<SymmetricPair of {self.natural.text!r}: {sides}{self.sentence_1.text!r}>"

    @property
    def changed(self) -> bool:
        """True if the search found anything: two different sentences."""
        return self.sentence_1 != self.sentence_2

    @property
    def disagreement(self) -> float:
        """The difference of the two models' log-ratios of the sentences, nats; not below zero."""
        (first_1, second_1), (first_2, second_2) = self.log_probs[:2]
        return (second_1 - first_1) + (first_2 - second_2)

    @property
    def facts(self) -> dict[str, Any]:
        """See `SearchResult.facts`; with every accepted step."""
        names = self.models
        first, second = zip(*self.log_probs, strict=True)
        # The first model of a climb is the one that is to prefer its sentence.
        turned = (names[1], names[0], *names[2:])
        return {
            "changed": self.changed,
            **super().facts,
            "model_1": names[0],
            "model_2": names[1],
            "sentence_1": self.sentence_1.text,
            "sentence_2": self.sentence_2.text,
            "log_probs_sentence_1": dict(zip(names, first, strict=True)),
            "log_probs_sentence_2": dict(zip(names, second, strict=True)),
            "disagreement": self.disagreement,
            "climbs": [
                climb.facts(names if turn % 2 else turned) for turn, climb in enumerate(self.climbs)
            ],
        }


def synthesize_pair(
    model_1: LanguageModel | str,
    model_2: LanguageModel | str,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    constraints: Sequence[Constraint] = (),
    fluency: tuple[LanguageModel | str, float] | None = None,
    seed: int = 0,
    restarts: SearchBudget | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> SymmetricPair:
    """Change both sentences of a pair until two models disagree about them as much as possible.

    The difference of log-ratios, log p(s1|m2)/p(s2|m2) - log p(s1|m1)/p(s2|m1), is maximised
    directly, each model preferring its own sentence. Both begin as the natural sentence; they are
    changed in turns, each given the other, until neither changes any more. Unlike in
    `synthesize`, the natural sentence is no floor: both may become less likely to both models.

    Raises what `synthesize` raises; see there for the arguments.
    """
    models, _, floors, candidates = prepare(
        model_1, model_2, natural, vocabulary, constraints, fluency, seed
    )
    search = partial(_search, models, floors, candidates, recipe, on_step)
    return best_of(search, models, seed, restarts or recipe.restarts, on_restart)


def _search(
    models: tuple[LanguageModel, ...],
    floors: tuple[float, ...],
    candidates: Candidates,
    recipe: Recipe,
    on_step: Callable[[Step], None] | None,
    seed: int,
) -> SymmetricPair:
    """A single search; see `synthesize_pair`."""
    natural, judges = candidates.natural, models[2:]
    # Side 0 is sentence_1, which model_2 is to prefer; side 1 is sentence_2, which model_1 is to
    # prefer. The models of a side: first the one that is to prefer its sentence, last the judge.
    evaluators = [Evaluator((models[1 - side], models[side], *judges)) for side in (0, 1)]
    rng = np.random.default_rng(seed)
    states = [recipe.proposer.start(evaluator, rng.spawn(1)[0]) for evaluator in evaluators]
    _, scores = (natural_log_probs(evaluator, natural) for evaluator in evaluators)  # of side 1
    for judge, floor in zip(judges, floors, strict=True):
        check_floor(judge, floor, natural, scores[-1])
    # (model_1, model_2, judge if any) × (sentence_1, sentence_2)
    log_probs = np.stack([scores, scores], axis=1)
    sentences = [natural, natural]
    climbs: list[Climb] = []
    while len(climbs) < 2 or any(turn.sentence != turn.start.sentence for turn in climbs[-2:]):
        side = len(climbs) % 2
        evaluator = evaluators[side]
        # The side's models among the rows of log_probs
        rows = [1 - side, side, *range(2, len(log_probs))]
        accepting = tuple(row != side for row in rows)
        limits = (*log_probs[rows[:2], 1 - side].tolist(), *floors)
        objective = PairObjective(evaluator.models, accepting, limits)
        result = climb(
            sentences[side],
            candidates,
            objective,
            evaluator,
            recipe.proposer,
            rng=rng,
            state=states[side],
            perturbation=recipe.perturbation,
            on_step=on_step,
        )
        climbs.append(verify(result, candidates, objective, evaluator))
        sentences[side] = climbs[-1].sentence
        log_probs[rows, side] = climbs[-1].log_probs
    if computes_coarsely(models):
        log_probs = _in_float32(evaluators[0], sentences, floors)
    (a, b), (c, d) = log_probs[:2].tolist()
    costs = {m.name: sum((e.costs[m.name] for e in evaluators), Cost()) for m in models}
    visits = sum(turn.visits for turn in climbs)
    return SymmetricPair(
        natural=natural,
        recipe=recipe.name,
        costs=costs,
        searches=(SearchSummary(0, seed, a - b + d - c, 0.0, visits, costs),),
        models=tuple(model.name for model in models),
        sentence_1=sentences[0],
        sentence_2=sentences[1],
        log_probs=tuple((first, second) for first, second in log_probs.tolist()),
        climbs=tuple(climbs),
    )


def _in_float32(
    evaluator: Evaluator, sentences: Sequence[Sentence], floors: Sequence[float]
) -> FloatArray:
    """Float32 log-probabilities, (models, sentences), nats, by which each model prefers its own.

    Raises:
        VerificationError: in these scores one of the models does not, or a sentence is below the
            floor of fluency.
    """
    columns = [evaluator.float32_log_probs(sentence) for sentence in sentences]
    log_probs = np.stack(columns, axis=1)
    log_probs[[0, 1]] = log_probs[[1, 0]]  # side 0's evaluator has model_2 first
    (first_1, second_1), (first_2, second_2) = log_probs[:2]
    is_fluent = all((log_probs[2] >= floor).all() for floor in floors)
    if second_1 < first_1 or first_2 < second_2 or not is_fluent:
        fault = "a model prefers the wrong sentence" if is_fluent else "one is below the floor"
        raise VerificationError(
            f"{sentences[0].text!r} and {sentences[1].text!r} are a pair only in the precision of "
            f"the search: scored in float32, {fault}. Search with the `dtype` float32."
        )
    return log_probs
