"""What is checked before a search begins, and what is checked from scratch when it has ended."""

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
from contstim.models.base import FLOAT32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.arrays import FloatArray
    from contstim.models.base import LanguageModel
    from contstim.optimization.search.candidates import Candidates
    from contstim.optimization.search.climb import Climb
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.objectives import Objective
    from contstim.sentence import Sentence

NEEDS_LOG_PROBABILITIES = "A search for controversial sentences"

_LEAST = 1e-4  # nats; how far any score may differ between batches


def check_models(
    accept: Sequence[LanguageModel],
    reject: Sequence[LanguageModel],
    judge: Sequence[LanguageModel] = (),
) -> None:
    """Refuse models that cannot disagree, and scores that are not log-probabilities.

    Raises:
        ModelError: there is no accept or no reject model, one model is to do both, or the scores of
            one are not log-probabilities, which the floors and losses of all objectives are about.
        InputError: two models have the same name.
    """
    if not accept or not reject:
        raise ModelError("A search needs at least one accept model and one reject model.")
    for model in (*accept, *reject, *judge):
        model.convention.require_log_probability(model.name, NEEDS_LOG_PROBABILITIES)
    for one in accept:
        for other in reject:
            if one.convention.fingerprint == other.convention.fingerprint:
                raise ModelError(
                    f"{one.name} and {other.name} are the same model: they can never disagree."
                )
    names = [model.name for model in (*accept, *reject, *judge)]
    if len(set(names)) < len(names):
        raise InputError(f"Two of the models have one name: {', '.join(names)}.")


def check_input(candidates: Candidates, seed: int) -> None:
    """Refuse a natural sentence that a search cannot start from, and a negative seed.

    Raises:
        InputError: the seed is negative.
        SentenceError: the sentence has fewer than two words.
        VocabularyError: a word is not in the vocabulary, or at some position none may replace it.
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
    candidates.check()


def natural_log_probs(search: Evaluator) -> tuple[float, ...]:
    """Of the natural sentence under each model, nats.

    Raises:
        ModelError: one of them is minus infinity.
    """
    natural = search.candidates.natural
    scores: list[float] = search.log_probs(natural).tolist()
    for model, score in zip(search.models, scores, strict=True):
        if score == -np.inf:
            raise ModelError(
                f"{model.name} gives {natural.text!r} probability zero, so that no sentence can be "
                f"less likely and every sentence would be acceptable. Choose another natural "
                f"sentence."
            )
    return tuple(scores)


def check_floor(model: LanguageModel, natural: Sentence, score: float, floor: float) -> None:
    """Refuse a floor that the natural sentence does not reach.

    Raises:
        InputError: says by how much.
    """
    if not score >= floor:
        raise InputError(
            f"{model.name} gives {natural.text!r} {score:.2f} nats, below the floor of {floor:g}. "
            f"Lower the floor, or choose another natural sentence."
        )


class InFloat32(NamedTuple):
    """What a search is judged by where a model computes in less than float32.

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
        """Whether log-probabilities (n_models,) keep the constraint and have a lower loss."""
        column = log_probs[:, None]
        lower = self.objective.loss(column)[0] < self.loss
        return bool(lower and self.objective.feasible(column)[0])


def computes_coarsely(models: Sequence[LanguageModel]) -> bool:
    """Whether one of the models computes in less than float32."""
    return any(model.convention.precision != FLOAT32 for model in models)


def verified(found: Climb, search: Evaluator, precise: InFloat32 | None = None) -> Climb:
    """The climb with scores computed from scratch, on which every constraint is checked.

    A result that keeps a constraint by less than the scores' rounding may break it when it is
    scored alone; then the best earlier sentence that keeps all of them is the result.

    Args:
        found: how the search went.
        search: which models took part, and what it minimised.
        precise: where a model computes in less than float32, what decides instead: scores of the
            start and of the result are then float32 ones.

    Raises:
        VerificationError: scores differ by more than rounding, or a constraint is broken.
        ModelError: the memory does not hold a model in float32.
    """
    steps = sorted(found.steps, key=lambda step: step.loss)
    ways = [(found.sentence, found.log_probs)]
    ways += [(step.sentence, step.log_probs) for step in steps if step.loss < found.start_loss]
    if precise is not None:
        found = replace(found, start_log_probs=precise.start, start_loss=precise.loss)
    for sentence, log_probs in ways:
        if sentence == found.start:
            break
        again = _scored_again(sentence, log_probs, search, search.candidates.broken(sentence))
        if precise is None:
            kept = bool(search.objective.feasible(again[:, None])[0])
        else:
            again = search.float32_log_probs(sentence)
            kept = precise.improves(again)
        if kept:
            return replace(found, sentence=sentence, log_probs=again)
    again = found.start_log_probs
    if precise is None:
        again = _scored_again(found.start, again, search, [])
    return replace(found, sentence=found.start, log_probs=again)


def _scored_again(
    sentence: Sentence, log_probs: FloatArray, search: Evaluator, broken: list[str]
) -> FloatArray:
    """Exact log-probabilities from scratch, (n_models,), nats.

    Raises:
        VerificationError: they differ by more than rounding, or something was broken anyway.
    """
    again = search.log_probs(sentence, afresh=True)
    tolerances = np.array([model.convention.tolerance for model in search.models])
    if not np.isclose(again, log_probs, rtol=tolerances, atol=_LEAST).all():
        broken = [*broken, f"its scores are {again}, not {log_probs}"]
    if broken:
        raise VerificationError(f"{sentence.text!r} failed its check: {'; '.join(broken)}.")
    return again
