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
from contstim.optimization.search.objectives import AgainstOther, WithFloor
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SearchResult, best_of, history_of_one
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
    from contstim.optimization.search.objectives import Objective
    from contstim.optimization.search.recipes import Recipe
    from contstim.optimization.search.restarts import SearchBudget, SearchSummary
    from contstim.optimization.search.verification import Judges
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, repr=False)
class SymmetricPair(SearchResult):
    """Two sentences: model_1 finds sentence_2 likelier, model_2 finds sentence_1 likelier.

    The loss of its searches is the disagreement, negated.

    Attributes:
        model_1: its name.
        model_2: its name.
        sentence_1: the one that model_1 rejects.
        sentence_2: the one that model_2 rejects.
        log_probs: of sentence_1 and sentence_2 (columns) under model_1, model_2 and the model of
            fluency if there is one (rows), nats.
        climbs: of sentence_1, sentence_2, sentence_1 again, and so on; of several searches, those
            of the best.
        fluency: the name of the model of fluency; empty where there is none.
    """

    model_1: str
    model_2: str
    sentence_1: Sentence
    sentence_2: Sentence
    log_probs: tuple[tuple[float, float], ...]
    climbs: tuple[Climb, ...]
    fluency: str = ""

    def __repr__(self) -> str:
        sides = f"{self.model_1} prefers {self.sentence_2.text!r}, {self.model_2} "
        return f"<SymmetricPair of {self.natural.text!r}: {sides}{self.sentence_1.text!r}>"

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in the order of the rows of log-probabilities."""
        return (self.model_1, self.model_2, *filter(None, (self.fluency,)))

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
            "model_1": self.model_1,
            "model_2": self.model_2,
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
    firsts, seconds, judges, candidates = prepare(
        model_1, model_2, natural, vocabulary, constraints, fluency, seed
    )
    models = (firsts[0], seconds[0])
    search = partial(_search, models, judges, candidates, recipe, on_step)
    every = (*models, *(judge for judge, _ in judges))
    return best_of(search, every, seed, restarts or recipe.restarts, on_restart)


def _search(
    models: tuple[LanguageModel, LanguageModel],
    judges: Judges,
    candidates: Candidates,
    recipe: Recipe,
    on_step: Callable[[Step], None] | None,
    seed: int,
) -> SymmetricPair:
    """A single search; see `synthesize_pair`."""
    natural, judging = candidates.natural, [judge for judge, _ in judges]
    # Side 0 is sentence_1, which model_2 is to prefer; side 1 is sentence_2, which model_1 is to
    # prefer. The models of a side: first the one that is to prefer its sentence, last the judge.
    evaluators = [Evaluator((models[1 - side], models[side], *judging)) for side in (0, 1)]
    rng = np.random.default_rng(seed)
    states = [recipe.proposer.start(evaluator, rng.spawn(1)[0]) for evaluator in evaluators]
    _, scores = (natural_log_probs(evaluator, natural) for evaluator in evaluators)  # of side 1
    for judge in judges:
        check_floor(*judge, natural, scores[-1])
    # (model_1, model_2, judge if any) × (sentence_1, sentence_2)
    log_probs = np.stack([scores, scores], axis=1)
    sentences = [natural, natural]
    climbs: list[Climb] = []
    while len(climbs) < 2 or any(turn.sentence != turn.start for turn in climbs[-2:]):
        side = len(climbs) % 2
        # The side's models among the rows of log_probs
        rows = [1 - side, side, *range(2, len(log_probs))]
        preferred, rejected = log_probs[rows[:2], 1 - side].tolist()
        objective: Objective = AgainstOther((models[1 - side], models[side]), (preferred, rejected))
        for judge in judges:
            objective = WithFloor(objective, *judge)
        result = climb(
            sentences[side],
            candidates,
            objective,
            evaluators[side],
            recipe.proposer,
            rng=rng,
            state=states[side],
            perturbation=recipe.perturbation,
            on_step=on_step,
        )
        climbs.append(verify(result, candidates, objective, evaluators[side]))
        sentences[side] = climbs[-1].sentence
        log_probs[rows, side] = climbs[-1].log_probs
    if computes_coarsely((*models, *judging)):
        log_probs = _in_float32(evaluators[0], sentences, judges)
    (a, b), (c, d) = log_probs[:2].tolist()
    costs = {
        m.name: sum((e.costs[m.name] for e in evaluators), Cost()) for m in (*models, *judging)
    }
    visits = sum(turn.visits for turn in climbs)
    return SymmetricPair(
        model_1=models[0].name,
        model_2=models[1].name,
        natural=natural,
        sentence_1=sentences[0],
        sentence_2=sentences[1],
        log_probs=tuple((first, second) for first, second in log_probs.tolist()),
        climbs=tuple(climbs),
        recipe=recipe.name,
        costs=costs,
        history=history_of_one(seed, a - b + d - c, visits, costs),
        fluency="".join(judge.name for judge in judging),
    )


def _in_float32(
    evaluator: Evaluator,
    sentences: Sequence[Sentence],
    judges: Judges,
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
    is_fluent = all((log_probs[2] >= floor).all() for _, floor in judges)
    if second_1 < first_1 or first_2 < second_2 or not is_fluent:
        fault = "a model prefers the wrong sentence" if is_fluent else "one is below the floor"
        raise VerificationError(
            f"{sentences[0].text!r} and {sentences[1].text!r} are a pair only in the precision of "
            f"the search: scored in float32, {fault}. Search with the `dtype` float32."
        )
    return log_probs
