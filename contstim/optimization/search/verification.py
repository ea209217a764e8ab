"""Checks before a search begins, and checks from scratch when it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.models.base import FLOAT32, Scorer, require_language_model
from contstim.optimization.search.constraints import Candidates, fixed, no_repeats
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.climb import Climb
    from contstim.optimization.search.constraints import Constraint
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective, ScoredSentence

    Models = LanguageModel | str | Sequence[LanguageModel | str]

NEEDS_LOG_PROBABILITIES = "A search for controversial sentences"

_MIN_TOLERANCE = 1e-4  # nats; how far any score may differ between batches


@dataclass(frozen=True)
class Problem:
    """A search, checked before it begins.

    Attributes:
        models: in the order of all log-probabilities.
        roles: what each of them does: `accept`, `reject` or `fluency`, in that order.
        floors: the least log-probability, nats, that a model of fluency must give; empty without
            one.
        candidates: the words, and the natural sentence.
    """

    models: tuple[LanguageModel, ...]
    roles: tuple[str, ...]
    floors: tuple[float, ...]
    candidates: Candidates


def prepare(
    accept: Models,
    reject: Models,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    constraints: Sequence[Constraint],
    fluency: tuple[LanguageModel | str, float] | None,
    seed: int,
) -> Problem:
    """Load the models of a search, and check them, its natural sentence and its words.

    Raises:
        ModelError: there is no accept or no reject model, one model is to do both, or the scores of
            one are not log-probabilities, which the floors and losses of all objectives are about.
        InputError: something is neither what a search takes nor a text that tells it, two models
            have the same name, or the seed is negative.
        SentenceError: the natural sentence has fewer than two words.
        VocabularyError: a word is not in the vocabulary, all positions are fixed, or no other word
            may stand at any; without constraints, at one of them.
    """
    accepts, rejects = load(accept), load(reject)
    judges, floors = ((), ()) if fluency is None else (load(fluency[0]), (fluency[1],))
    if not accepts or not rejects:
        raise ModelError("A search needs at least one accept model and one reject model.")
    models = (*accepts, *rejects, *judges)
    for model in models:
        require_language_model(model, NEEDS_LOG_PROBABILITIES)
    for accepting, rejecting in product(accepts, rejects):
        if accepting.convention.fingerprint == rejecting.convention.fingerprint:
            raise ModelError(
                f"{accepting.name} and {rejecting.name} are the same model: they can never "
                f"disagree."
            )
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise InputError(f"Two of the models have one name: {', '.join(names)}.")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, not {seed}.")
    roles = ("accept",) * len(accepts) + ("reject",) * len(rejects) + ("fluency",) * len(judges)
    candidates = _candidates(as_sentence(natural), vocabulary, constraints)
    return Problem(models, roles, floors, candidates)


def load(models: Models) -> tuple[LanguageModel, ...]:
    """Models, those loaded that are given by their specifications.

    Raises:
        InputError: something is no model.
        ModelError: one cannot be loaded.
    """
    from contstim.models.catalog import load_model

    given = (models,) if isinstance(models, str | Scorer) else models
    if not isinstance(given, Sequence) or not all(isinstance(m, str | Scorer) for m in given):
        raise InputError(
            f"A model must be what load_model returns, or a specification such as "
            f"'kenlm:trigram.arpa', not {models!r}."
        )
    return tuple(load_model(model) if isinstance(model, str) else model for model in given)


def as_sentence(natural: Sentence | str) -> Sentence:
    """A natural sentence, read if it is given as a text.

    Raises:
        InputError: it is neither.
    """
    if not isinstance(natural, str | Sentence):
        raise InputError(f"A natural sentence must be a text or a Sentence, not {natural!r}.")
    return Sentence.parse(natural) if isinstance(natural, str) else natural


def _candidates(
    natural: Sentence, vocabulary: Vocabulary, constraints: Sequence[Constraint]
) -> Candidates:
    if not isinstance(vocabulary, Vocabulary):
        raise InputError(
            f"The words must be a Vocabulary, as Vocabulary.load reads, not {vocabulary!r}."
        )
    if len(natural) < 2:
        raise SentenceError(
            f"{natural.text!r} has one word; a search needs two or more, so that something of the "
            f"natural sentence can stay."
        )
    missing = vocabulary.missing(natural)
    if missing:
        raise VocabularyError(
            f"{natural.text!r} has words that are not in the vocabulary shared by the models where "
            f"they stand: {', '.join(missing)}. Choose another sentence, or add them to the "
            f"vocabulary if every model knows them."
        )
    candidates = Candidates(vocabulary, natural, (no_repeats(vocabulary.repeatable), *constraints))
    if not candidates.positions:
        raise VocabularyError(f"All positions of {natural.text!r} are fixed.")
    blocked = candidates.blocked
    if blocked and not constraints:
        raise VocabularyError(
            f"No word of the vocabulary may replace {natural.words[blocked[0]]!r}, word "
            f"{blocked[0] + 1} of {natural.text!r}. Give more words."
        )
    if len(blocked) == len(candidates.positions):
        raise VocabularyError(
            f"No word of the vocabulary may replace any word of {natural.text!r} under the "
            f"constraints given. Loosen them, or give more words."
        )
    # Where constraints leave no other word, the natural sentence's stays
    return replace(candidates, constraints=(*candidates.constraints, fixed(blocked)))


def natural_log_probs(evaluator: Evaluator, natural: Sentence) -> list[float]:
    """Log-probabilities of the natural sentence, one for each model, nats.

    Raises:
        ModelError: one of them is minus infinity.
    """
    scores: list[float] = evaluator.log_probs(natural).tolist()
    for model, score in zip(evaluator.models, scores, strict=True):
        if score == -np.inf:
            raise ModelError(
                f"{model.name} gives {natural.text!r} probability zero, so that no sentence can be "
                f"less likely and every sentence would be acceptable. Choose another natural "
                f"sentence."
            )
    return scores


def reaches_floor(log_prob: float, floor: float, tolerance: float) -> bool:
    """True if a score is at or above a floor, or below it by no more than rounding.

    A floor may be the same sentence's score, computed in another batch.

    Args:
        log_prob: nats.
        floor: nats.
        tolerance: the share of a score by which it may differ between batches.
    """
    return log_prob >= floor - max(_MIN_TOLERANCE, tolerance * abs(floor))


def check_floor(judge: LanguageModel, floor: float, natural: Sentence, log_prob: float) -> None:
    """Refuse a natural sentence that is less likely than synthetic ones may be.

    Args:
        judge: the model of the floor.
        floor: the least log-probability that it may give, nats.
        natural: the sentence.
        log_prob: what it gives the sentence, nats.

    Raises:
        InputError: that is below the floor.
    """
    if not log_prob >= floor:
        raise InputError(
            f"{judge.name} gives {natural.text!r} {log_prob:.2f} nats, below the floor of "
            f"{floor:g}. Lower the floor, or choose another natural sentence."
        )


def computes_coarsely(models: Sequence[LanguageModel]) -> bool:
    """True if one of the models computes in less than float32."""
    return any(model.convention.precision != FLOAT32 for model in models)


def verify(
    climb: Climb,
    candidates: Candidates,
    objective: Objective,
    in_float32: tuple[Objective, ScoredSentence] | None = None,
    enough: float = 0.0,
) -> Climb:
    """The climb with scores computed from scratch, on which every constraint is checked.

    A result that keeps a constraint by less than the scores' rounding may break it when it is
    scored alone; then the best earlier sentence that keeps all of them is the result.

    Args:
        climb: how the search went.
        candidates: what the words must keep.
        objective: what was minimised, and what scores exactly.
        in_float32: where a model computes in less than float32, the objective that decides instead,
            and the start: its scores and those of the result are then float32 ones.
        enough: nats by which the loss of the result is to lie below that of the start.

    Raises:
        VerificationError: scores differ by more than rounding, or a constraint is broken.
        ModelError: the memory does not hold a model in float32.
    """
    evaluator = objective.evaluator
    earlier = sorted(climb.steps, key=lambda step: step.loss)
    # The result, and then, by loss, the steps that were better than the start.
    results = [(climb.sentence, climb.log_probs)]
    results += [(step.sentence, step.log_probs) for step in earlier if step.loss < climb.start.loss]
    if in_float32 is not None:
        objective, start = in_float32
        climb = replace(climb, start=start)
    start = climb.start
    for sentence, log_probs in results:
        if sentence == start.sentence:
            break
        rescored = _rescore(sentence, log_probs, evaluator, candidates.broken(sentence))
        if in_float32 is not None:
            rescored = evaluator.float32_log_probs(sentence)
            if not objective.assess(sentence, rescored).loss < start.loss:
                continue
        drop = objective.assess(start.sentence, start.log_probs).loss
        drop -= objective.assess(sentence, rescored).loss
        if objective.feasible(rescored[:, None])[0] and not drop < enough - _MIN_TOLERANCE:
            return replace(climb, sentence=sentence, log_probs=rescored)
    # Nothing holds, or nothing was found: the result is the start.
    rescored = start.log_probs
    if in_float32 is None:
        rescored = _rescore(start.sentence, rescored, evaluator, [])
    return replace(climb, sentence=start.sentence, log_probs=rescored)


def _rescore(
    sentence: Sentence, log_probs: FloatArray, evaluator: Evaluator, faults: list[str]
) -> FloatArray:
    """Exact log-probabilities from scratch, (n_models,), nats.

    Raises:
        VerificationError: they differ by more than rounding, or there are faults anyway.
    """
    rescored = evaluator.log_probs(sentence, afresh=True)
    tolerances = np.array([model.convention.tolerance for model in evaluator.models])
    if not np.isclose(rescored, log_probs, rtol=tolerances, atol=_MIN_TOLERANCE).all():
        faults = [*faults, f"its scores are {rescored}, not {log_probs}"]
    if faults:
        raise VerificationError(f"{sentence.text!r} failed its check: {'; '.join(faults)}.")
    return rescored
