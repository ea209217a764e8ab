"""Synthesis of controversial sentences: a single sentence, a triplet, or a symmetric pair.

A single sentence is accepted by one model (at least as likely as the natural sentence), and
rejected by another model (as unlikely as possible). A triplet is a natural sentence and two
synthetic sentences; each of two models rejects one synthetic sentence and accepts the other. A
symmetric pair is two synthetic sentences; each of two models prefers a different sentence.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import InputError, VerificationError
from contstim.items.stimuli import Triplet, content_id
from contstim.models.base import computes_coarsely
from contstim.models.costs import Cost
from contstim.optimization.search.climb import Climb, Step, climb
from contstim.optimization.search.evaluator import Evaluator
from contstim.optimization.search.few_changes import TOO_FEW, FewChangesSearch
from contstim.optimization.search.objectives import Objective, PairObjective
from contstim.optimization.search.opponents import NATS_PER_SD
from contstim.optimization.search.recipes import DEFAULT
from contstim.optimization.search.restarts import SINGLE, SearchResult, SearchSummary, best_of
from contstim.optimization.search.screening import SearchState
from contstim.optimization.search.verification import (
    as_sentence,
    load,
    natural_log_probs,
    prepare,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Scorer
    from contstim.optimization.search.constraints import Constraint
    from contstim.optimization.search.evaluator import ScoredCandidate
    from contstim.optimization.search.few_changes import Choice, ExpectedGains, FewChanges
    from contstim.optimization.search.recipes import Recipe
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.optimization.search.verification import Models, Problem
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True, repr=False)
class Synthesis(SearchResult):
    """A sentence that one model accepts and another rejects, and the steps of its search.

    Log-probabilities are in nats. If the unit of a scorer is not nats, its scores are in this unit,
    and the losses in `searches` are in tenths of a standard deviation. After several searches, the
    steps and the evaluations are from the best search.

    Attributes:
        evaluations: exactly scored candidates, in order. If all models score all words of a
            position exactly, only the accepted word is listed.
        roles: role of each model. All `accept` come first, then all `reject`, then all `judge`.
        choice: in a search for few new words, how the sentence was chosen; otherwise None.
    """

    climb: Climb
    evaluations: tuple[ScoredCandidate, ...]
    roles: tuple[str, ...]
    choice: Choice | None = None

    def __repr__(self) -> str:
        result = repr(self.synthetic.text) if self.changed else "nothing"
        sides = f"{self.accept} accepts, {self.reject} rejects"
        return f"<Synthesis of {self.natural.text!r}: {result}; {sides}>"

    @property
    def accept(self) -> str:
        """Name of the accept model; several names are joined by ` & `."""
        return self.names("accept")

    @property
    def reject(self) -> str:
        """Name of the reject model; several names are joined by ` & `."""
        return self.names("reject")

    @property
    def judge_drop(self) -> float | None:
        """Mean of log p(natural) - log p(synthetic) over the judges, nats; None without judges."""
        triples = zip(self.roles, self.natural_log_probs, self.log_probs, strict=True)
        drops = [natural - score for role, natural, score in triples if role == "judge"]
        return fmean(drops) if drops else None

    def names(self, role: str) -> str:
        """Return the names of the models with a role; several names are joined by ` & `."""
        pairs = zip(self.models, self.roles, strict=True)
        return " & ".join(name for name, role_of_model in pairs if role_of_model == role)

    @property
    def synthetic(self) -> Sentence:
        """Synthetic sentence."""
        return self.climb.sentence

    @property
    def changed(self) -> bool:
        """True if the search found a sentence other than the natural one."""
        return self.synthetic != self.natural

    @property
    def natural_log_probs(self) -> tuple[float, ...]:
        """Log-probabilities of the natural sentence under each of `models`."""
        return tuple(self.climb.start.log_probs.tolist())

    @property
    def log_probs(self) -> tuple[float, ...]:
        """Log-probabilities of the synthetic sentence under each of `models`."""
        return tuple(self.climb.log_probs.tolist())

    @property
    def facts(self) -> dict[str, Any]:
        """Result, costs and accepted steps as plain values for JSON."""
        names = self.roles if len(set(self.roles)) == len(self.roles) else self.models
        return {
            "accept": self.accept,
            "reject": self.reject,
            "synthetic": self.synthetic.text,
            "changed": self.changed,
            **super().facts,
            "log_probs_natural": dict(zip(names, self.natural_log_probs, strict=True)),
            "log_probs_synthetic": dict(zip(names, self.log_probs, strict=True)),
            **({} if self.choice is None else asdict(self.choice)),
            **self.climb.facts(names),
        }


def synthesize(
    accept: Models,
    reject: Models,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    constraints: Sequence[Constraint] = (),
    judges: Models = (),
    sds: Mapping[str, float] | None = None,
    seed: int = 0,
    restarts: SearchBudget | None = None,
    few_changes: FewChanges | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> Synthesis:
    """Replace words until one model rejects a sentence that the other still accepts.

    With several reject models, the search minimises the maximum of log p(result) - log p(natural)
    over these models (Golan et al. 2023, Eq. 2). At the end, the result is scored again, and all
    constraints are checked. This final check uses float32 scores, even if a model computes with
    less precision during the search.

    Args:
        accept: one or several models, or specifications such as `kenlm:trigram.arpa`. Each model
            must find the result at least as likely as the natural sentence.
        reject: one or several models that should find the result as unlikely as possible.
        natural: natural sentence or its text; its words must be in the vocabulary.
        vocabulary: allowed words; see `contstim.models.vocabularies.shared_vocabulary`. Only words
            in `vocabulary.repeatable` may occur twice.
        recipe: search method.
        constraints: further constraints on words.
        judges: further models, which choose the result among sentences with few new words. They
            need `few_changes`.
        sds: name of each accept and reject model → standard deviation of its scores of natural
            sentences (`opponents.natural_sds`). It is needed if the unit of a scorer is not nats.
            The unit of `few_changes.enough` is then a standard deviation.
        seed: seed of the order of positions and of all random choices.
        restarts: budget of searches with different seeds; the best result is returned. None means
            the budget of the recipe.
        few_changes: goal of a search for few new words; None to minimise the loss. If the search
            does not reach the goal, the result is the natural sentence.
        on_step: callback for each accepted step.
        on_restart: callback after each search that is followed by another search.

    Raises:
        ModelError, SentenceError, VocabularyError, InputError: see `prepare` in
            `contstim.optimization.search.verification`.
        ModelError: if a model gives the natural sentence probability zero.
        InputError: if there are judges without `few_changes`, or `few_changes` with a budget for
            several searches.
        VerificationError: if the final check finds a violated constraint.
    """
    problem = prepare(accept, reject, natural, vocabulary, constraints, seed, judges, sds)
    return _solve(problem, recipe, seed, restarts, few_changes, on_step, on_restart)


def _solve(
    problem: Problem,
    recipe: Recipe,
    seed: int,
    restarts: SearchBudget | None,
    few_changes: FewChanges | None,
    on_step: Callable[[Step], None] | None = None,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> Synthesis:
    if few_changes is not None and restarts not in (None, SINGLE):
        raise InputError("A search with `few_changes` is a single search: leave out `restarts`.")
    if problem.in_sds and recipe.name != DEFAULT.name:
        raise InputError(
            f"The recipe {recipe.name} needs log-probabilities in nats. Use the recipe "
            f"{DEFAULT.name}, or language models without a transform."
        )
    if few_changes is not None and problem.in_sds:
        few_changes = replace(few_changes, enough=few_changes.enough * NATS_PER_SD)
    if few_changes is None:
        if "judge" in problem.roles:
            raise InputError(
                "`judges` need `few_changes`, because they choose among its sentences."
            )
        recipe = recipe.between(problem.models)
    search = partial(_search, problem, recipe, few_changes, on_step)
    budget = restarts or (recipe.restarts if few_changes is None else SINGLE)
    return best_of(search, problem.models, seed, budget, on_restart)


def _search(
    problem: Problem,
    recipe: Recipe,
    few_changes: FewChanges | None,
    on_step: Callable[[Step], None] | None,
    seed: int,
) -> Synthesis:
    models, roles, candidates = problem.models, problem.roles, problem.candidates
    units = np.array(problem.units)

    # The limits are scores of the natural sentence; a judge accepts every sentence
    def make_objective(scores: list[float]) -> Objective:
        pairs = zip(scores, roles, strict=True)
        limits = [-np.inf if role == "judge" else score for score, role in pairs]
        if roles[:2] == ("accept", "reject") and "reject" not in roles[2:]:
            limits[1] = 0.0  # the loss is then the log-probability under the only reject model
        accepting = tuple(role != "reject" for role in roles)
        return Objective(evaluator, accepting, tuple(limits))

    natural, evaluator = candidates.natural, Evaluator(models)
    scores = natural_log_probs(evaluator, natural)
    objective = final_objective = make_objective(scores)
    in_float32 = None
    if computes_coarsely(models):
        start = evaluator.float32_log_probs(natural)
        final_objective = make_objective(start.tolist())
        in_float32 = final_objective, final_objective.assess(natural, start)
    choice = None
    if few_changes is None:
        result = climb(
            natural,
            candidates,
            objective,
            recipe.proposer,
            SearchState(len(models), np.random.default_rng(seed)),
            perturbation=recipe.perturbation,
            on_step=on_step and (lambda step: on_step(step.in_units(units))),
        )
        result = verify(result, result.best_first, candidates, objective, in_float32)
    else:
        search = FewChangesSearch(
            candidates, objective, few_changes, roles.count("judge"), problem.gains
        )
        result, ranked, choice = search.run()
        result = verify(result, ranked, candidates, objective, in_float32, few_changes.enough)
        if not ranked or result.sentence != ranked[0].sentence:  # the best one failed its check
            choice = replace(choice, minimal=False)
        if result.sentence == natural:
            result = replace(result, end=TOO_FEW)
    loss, costs = final_objective.assess(result.sentence, result.log_probs).loss, evaluator.costs
    return Synthesis(
        natural=natural,
        recipe=recipe.name,
        costs=costs,
        searches=(SearchSummary(0, seed, loss, 0.0, result.visits, costs),),
        climb=result.in_units(units),
        evaluations=tuple(
            replace(tried, log_probs=tried.log_probs * units) for tried in evaluator.evaluations
        ),
        models=tuple(model.name for model in models),
        roles=roles,
        units=tuple(model.convention.unit for model in models),
        choice=choice,
    )


def synthesize_triplet(
    model_1: Scorer | str,
    model_2: Scorer | str,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    constraints: Sequence[Constraint] = (),
    judges: Models = (),
    sds: Mapping[str, float] | None = None,
    seed: int = 0,
    seeds: int = 1,
    restarts: SearchBudget | None = None,
    few_changes: FewChanges | None = None,
) -> tuple[Triplet, Synthesis, Synthesis]:
    """Search for both synthetic sentences of a triplet.

    Model m1 rejects synthetic_1 (s1), and model m2 rejects synthetic_2 (s2). The controversiality
    is log p(n|m1)/p(s1|m1) + log p(n|m2)/p(s2|m2), nats (Golan et al. 2023, Eq. 4). Here, n is the
    natural sentence. With `sds`, the controversiality is the sum of `Triplet.drops`. If a search
    finds nothing, or both searches find the same sentence, `Triplet.distinct` is False. For errors,
    see `synthesize`.

    Each of the two searches tries up to `seeds` seeds: seed, seed + 1 and so on. It tries the next
    seed if it finds nothing. The second search also tries the next seed if it finds the sentence of
    the first search. Costs include all seeds. Searches for few new words use one seed. For all
    other arguments, see `synthesize`.
    """
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, got {seeds}.")
    (model_1,), (model_2,), natural = load(model_1), load(model_2), as_sentence(natural)
    judges = load(judges)
    if few_changes is not None:
        seeds = 1
    syntheses: list[Synthesis] = []
    gains: ExpectedGains = {}
    for accept, reject in ((model_2, model_1), (model_1, model_2)):
        problem = prepare(accept, reject, natural, vocabulary, constraints, seed, judges, sds)
        problem = replace(problem, gains=gains)
        # A result must differ from the natural sentence, and the second result from the first
        excluded = {natural, *(synthesis.synthetic for synthesis in syntheses)}
        costs: dict[str, Cost] = {}
        for seed_tried in range(seed, seed + seeds):
            synthesis = _solve(problem, recipe, seed_tried, restarts, few_changes)
            costs = {name: costs.get(name, Cost()) + c for name, c in synthesis.costs.items()}
            if synthesis.synthetic not in excluded:
                break
        syntheses.append(replace(synthesis, costs=costs))
    first, second = syntheses
    # Scores of a search are in the order accept model, reject model, judges
    natural_2, natural_1 = first.natural_log_probs[:2]
    accepted_1, rejected_1 = first.log_probs[:2]
    accepted_2, rejected_2 = second.log_probs[:2]
    scores = (natural_1, natural_2, rejected_1, accepted_1, accepted_2, rejected_2)
    controversiality = natural_1 - rejected_1 + natural_2 - rejected_2
    sentences = (natural, first.synthetic, second.synthetic)
    names = (model_1.name, model_2.name)
    name = content_id("triplet", *names, *sentences)
    drops = (first.judge_drop, second.judge_drop)
    triplet = Triplet(name, *names, *sentences, *scores, controversiality, *drops)
    if sds:
        (unit_1, unit_2), (sd_1, sd_2) = second.units[:2], (sds[name] for name in names)
        triplet = replace(triplet, sd_1=sd_1, sd_2=sd_2, unit_1=unit_1, unit_2=unit_2)
        triplet = replace(triplet, controversiality=sum(triplet.drops))
    return triplet, first, second


@dataclass(frozen=True, kw_only=True, repr=False)
class SymmetricPair(SearchResult):
    """Two sentences: model_1 finds sentence_2 likelier, model_2 finds sentence_1 likelier.

    Attributes:
        sentence_1: sentence that model_1 rejects.
        sentence_2: sentence that model_2 rejects.
        log_probs: log-probabilities, nats; rows are `models`, columns are sentence_1 and
            sentence_2.
        climbs: climbs (runs of the search loop) of the best search, alternately of sentence_1 and
            sentence_2.
    """

    sentence_1: Sentence
    sentence_2: Sentence
    log_probs: tuple[tuple[float, float], ...]
    climbs: tuple[Climb, ...]

    def __repr__(self) -> str:
        sides = f"{self.models[0]} prefers {self.sentence_2.text!r}, {self.models[1]} "
        return f"<SymmetricPair of {self.natural.text!r}: {sides}{self.sentence_1.text!r}>"

    @property
    def changed(self) -> bool:
        """True if the search found two different sentences."""
        return self.sentence_1 != self.sentence_2

    @property
    def disagreement(self) -> float:
        """Disagreement log p(s2|m1)/p(s1|m1) + log p(s1|m2)/p(s2|m2), nats; at least 0.

        The loss of the searches is the negative disagreement.
        """
        (first_1, second_1), (first_2, second_2) = self.log_probs
        return (second_1 - first_1) + (first_2 - second_2)

    @property
    def facts(self) -> dict[str, Any]:
        """Result, costs and accepted steps as plain values for JSON."""
        names = self.models
        first, second = zip(*self.log_probs, strict=True)
        # In each climb, the first model should prefer the sentence that the climb changes
        names_reversed = (names[1], names[0])
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
                climb.facts(names if turn % 2 else names_reversed)
                for turn, climb in enumerate(self.climbs)
            ],
        }


def synthesize_pair(
    model_1: Scorer | str,
    model_2: Scorer | str,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    *,
    recipe: Recipe = DEFAULT,
    constraints: Sequence[Constraint] = (),
    seed: int = 0,
    restarts: SearchBudget | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_restart: Callable[[SearchSummary], None] | None = None,
) -> SymmetricPair:
    """Replace words of two sentences until two models disagree about them as much as possible.

    The search maximises log p(s1|m2)/p(s2|m2) - log p(s1|m1)/p(s2|m1), where m2 prefers s1 and m1
    prefers s2. Both sentences start as the natural sentence. The search changes s1 and s2 in turns,
    until neither sentence changes any more. Unlike in `synthesize`, both sentences may become less
    likely than the natural sentence under both models.

    For arguments and errors, see `synthesize`.
    """
    problem = prepare(model_1, model_2, natural, vocabulary, constraints, seed)
    search = partial(_search_pair, problem, recipe, on_step)
    return best_of(search, problem.models, seed, restarts or recipe.restarts, on_restart)


def _search_pair(
    problem: Problem, recipe: Recipe, on_step: Callable[[Step], None] | None, seed: int
) -> SymmetricPair:
    models, candidates = problem.models, problem.candidates
    natural = candidates.natural
    # Side 0 is sentence_1, which model_2 should prefer. Side 1 is sentence_2, which model_1 should
    # prefer. Each side has an evaluator; its first model is the one that should prefer the sentence
    evaluators = [Evaluator((models[1 - side], models[side])) for side in (0, 1)]
    rng = np.random.default_rng(seed)
    states = [SearchState(len(models), rng) for _ in evaluators]
    _, scores = (
        natural_log_probs(evaluator, natural) for evaluator in evaluators
    )  # model_1, model_2
    # Rows: model_1, model_2. Columns: sentence_1, sentence_2
    log_probs = np.stack([scores, scores], axis=1)
    sentences = [natural, natural]
    climbs: list[Climb] = []
    while len(climbs) < 2 or any(turn.sentence != turn.start.sentence for turn in climbs[-2:]):
        side = len(climbs) % 2
        evaluator = evaluators[side]
        rows = [1 - side, side]
        limits = tuple(log_probs[rows, 1 - side].tolist())
        objective = PairObjective(evaluator, (True, False), limits)
        result = climb(
            sentences[side],
            candidates,
            objective,
            recipe.proposer,
            states[side],
            perturbation=recipe.perturbation,
            on_step=on_step,
        )
        climbs.append(verify(result, result.best_first, candidates, objective))
        sentences[side] = climbs[-1].sentence
        log_probs[rows, side] = climbs[-1].log_probs
    if computes_coarsely(models):
        log_probs = _float32_log_probs(evaluators[0], sentences)
    (a, b), (c, d) = log_probs.tolist()
    costs = {m.name: sum((e.costs[m.name] for e in evaluators), Cost()) for m in models}
    visits = sum(turn.visits for turn in climbs)
    return SymmetricPair(
        natural=natural,
        recipe=recipe.name,
        costs=costs,
        searches=(SearchSummary(0, seed, a - b + d - c, 0.0, visits, costs),),
        models=tuple(model.name for model in models),
        units=tuple(model.convention.unit for model in models),
        sentence_1=sentences[0],
        sentence_2=sentences[1],
        log_probs=tuple((first, second) for first, second in log_probs.tolist()),
        climbs=tuple(climbs),
    )


def _float32_log_probs(evaluator: Evaluator, sentences: Sequence[Sentence]) -> FloatArray:
    """Return float32 log-probabilities, (n_models, n_sentences), nats.

    Raises:
        VerificationError: if a model prefers the wrong sentence.
    """
    columns = [evaluator.float32_log_probs(sentence) for sentence in sentences]
    log_probs = np.stack(columns, axis=1)
    log_probs[[0, 1]] = log_probs[[1, 0]]  # side 0's evaluator has model_2 first
    (first_1, second_1), (first_2, second_2) = log_probs
    if second_1 < first_1 or first_2 < second_2:
        raise VerificationError(
            f"{sentences[0].text!r} and {sentences[1].text!r} are a pair only in the precision of "
            "the search. In float32, a model prefers the wrong sentence. Search with the `dtype` "
            "float32."
        )
    return log_probs
