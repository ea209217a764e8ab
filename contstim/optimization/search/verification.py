"""Checks before a search begins, and checks from scratch when it has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.models.base import FLOAT32, require_language_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.climb import Climb
    from contstim.optimization.search.constraints import Candidates
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective
    from contstim.sentence import Sentence

NEEDS_LOG_PROBABILITIES = "A search for controversial sentences"

_MIN_TOLERANCE = 1e-4  # nats; how far any score may differ between batches


def check_models(
    accept: Sequence[LanguageModel],
    reject: Sequence[LanguageModel],
    judges: Sequence[LanguageModel] = (),
) -> None:
    """Refuse models that cannot disagree, and scores that are not log-probabilities.

    Raises:
        ModelError: there is no accept or no reject model, one model is to do both, or the scores of
            one are not log-probabilities, which the floors and losses of all objectives are about.
        InputError: two models have the same name.
    """
    if not accept or not reject:
        raise ModelError("A search needs at least one accept model and one reject model.")
    for model in (*accept, *reject, *judges):
        require_language_model(model, NEEDS_LOG_PROBABILITIES)
    for accepting in accept:
        for rejecting in reject:
            if accepting.convention.fingerprint == rejecting.convention.fingerprint:
                raise ModelError(
                    f"{accepting.name} and {rejecting.name} are the same model: they can never "
                    f"disagree."
                )
    names = [model.name for model in (*accept, *reject, *judges)]
    if len(set(names)) < len(names):
        raise InputError(f"Two of the models have one name: {', '.join(names)}.")


def check_input(candidates: Candidates, seed: int) -> None:
    """Refuse a natural sentence that a search cannot start from, and a negative seed.

    Raises:
        InputError: the seed is negative.
        SentenceError: the sentence has fewer than two words.
        VocabularyError: a word is not in the vocabulary, all positions are fixed, or at one that is
            not no other word may stand.
    """
    natural, vocabulary = candidates.natural, candidates.vocabulary
    if seed < 0:
        raise InputError(f"The seed must not be negative, but is {seed}.")
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
    if not candidates.positions:
        raise VocabularyError(f"All positions of {natural.text!r} are fixed.")
    for index in candidates.positions:
        if not candidates.allowed(natural, index).any():
            raise VocabularyError(
                f"No word of the vocabulary may replace {natural.words[index]!r}, word "
                f"{index + 1} of {natural.text!r}, under the constraints given. Fix "
                f"that position, loosen them, or give more words."
            )


def natural_log_probs(evaluator: Evaluator, natural: Sentence) -> tuple[float, ...]:
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
    return tuple(scores)


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


class InFloat32(NamedTuple):
    """Start and objective that a result is judged by where a model computes in less than float32.

    Attributes:
        start: log-probabilities of the start, (n_models,), nats.
        objective: the search's, with limits from these.
    """

    start: FloatArray
    objective: Objective

    @property
    def loss(self) -> float:
        """Of the start."""
        return float(self.objective.loss(self.start[:, None])[0])

    def improves(self, log_probs: FloatArray) -> bool:
        """True if log-probabilities (n_models,) keep the constraint and have a lower loss."""
        column = log_probs[:, None]
        lower = self.objective.loss(column)[0] < self.loss
        return bool(lower and self.objective.feasible(column)[0])


def verify(
    climb: Climb,
    candidates: Candidates,
    objective: Objective,
    evaluator: Evaluator,
    in_float32: InFloat32 | None = None,
) -> Climb:
    """The climb with scores computed from scratch, on which every constraint is checked.

    A result that keeps a constraint by less than the scores' rounding may break it when it is
    scored alone; then the best earlier sentence that keeps all of them is the result.

    Args:
        climb: how the search went.
        candidates: what the words must keep.
        objective: what was minimised.
        evaluator: scores exactly.
        in_float32: where a model computes in less than float32, what decides instead: scores of the
            start and of the result are then float32 ones.

    Raises:
        VerificationError: scores differ by more than rounding, or a constraint is broken.
        ModelError: the memory does not hold a model in float32.
    """
    earlier = sorted(climb.steps, key=lambda step: step.loss)
    # The result, and then, by loss, the steps that were better than the start.
    results = [(climb.sentence, climb.log_probs)]
    results += [(step.sentence, step.log_probs) for step in earlier if step.loss < climb.start_loss]
    if in_float32 is not None:
        climb = replace(climb, start_log_probs=in_float32.start, start_loss=in_float32.loss)
    for sentence, log_probs in results:
        if sentence == climb.start:
            break
        rescored = _rescore(sentence, log_probs, evaluator, candidates.broken(sentence))
        if in_float32 is None:
            holds = bool(objective.feasible(rescored[:, None])[0])
        else:
            rescored = evaluator.float32_log_probs(sentence)
            holds = in_float32.improves(rescored)
        if holds:
            return replace(climb, sentence=sentence, log_probs=rescored)
    # Nothing holds, or nothing was found: the result is the start.
    rescored = climb.start_log_probs
    if in_float32 is None:
        rescored = _rescore(climb.start, rescored, evaluator, [])
    return replace(climb, sentence=climb.start, log_probs=rescored)


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
