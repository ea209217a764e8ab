"""What is checked before a search begins, and what is checked from scratch when it has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.models.base import LanguageModel
    from contstim.optimization.candidates import Candidates
    from contstim.optimization.climb import Climb
    from contstim.optimization.search import Search
    from contstim.sentence import Sentence

NEEDS_LOG_PROBABILITIES = "A search for controversial sentences"

_RELATIVE, _ABSOLUTE = 1e-6, 1e-4  # how far float32 scores may differ between batches


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


def natural_log_probs(search: Search) -> tuple[float, ...]:
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


def verified(found: Climb, search: Search) -> Climb:
    """The climb with scores computed from scratch, on which every constraint is checked.

    A result that keeps a constraint by less than the scores' rounding may break it when it is
    scored alone; then the best earlier sentence that keeps all of them is the result.

    Raises:
        VerificationError: scores differ by more than rounding, or a constraint is broken.
    """
    steps = sorted(found.steps, key=lambda step: step.loss)
    ways = [(found.sentence, found.log_probs)]
    ways += [(step.sentence, step.log_probs) for step in steps if step.loss < found.start_loss]
    for sentence, log_probs in [*ways, (found.start, found.start_log_probs)]:
        again = search.log_probs(sentence, afresh=True)
        broken = search.candidates.broken(sentence) if sentence != found.start else []
        if not np.allclose(again, log_probs, rtol=_RELATIVE, atol=_ABSOLUTE):
            broken.append(f"its scores are {again}, not {log_probs}")
        if broken:
            raise VerificationError(f"{sentence.text!r} failed its check: {'; '.join(broken)}.")
        if sentence == found.start or search.objective.feasible(again[:, None])[0]:
            return replace(found, sentence=sentence, log_probs=again)
    raise AssertionError("the start is always there")
