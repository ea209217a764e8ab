"""Checks before a search begins, and checks of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contstim.errors import (
    InputError,
    ModelError,
    SentenceError,
    VerificationError,
    VocabularyError,
)
from contstim.models.base import Scorer, require_language_model
from contstim.optimization.search.constraints import Candidates, fixed, no_repeats
from contstim.optimization.search.opponents import Opponent
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from contstim.files.arrays import FloatArray
    from contstim.optimization.search.climb import Climb
    from contstim.optimization.search.constraints import Constraint
    from contstim.optimization.search.evaluator import Evaluator
    from contstim.optimization.search.few_changes import ExpectedGains
    from contstim.optimization.search.objectives import Objective, ScoredSentence

    Models = Scorer | str | Sequence[Scorer | str]

_MIN_TOLERANCE = 1e-4  # nats; smaller differences of a score between batches are rounding errors


@dataclass(frozen=True)
class Problem:
    """Models, natural sentence and words of a search, after the checks of `prepare`.

    Attributes:
        roles: role of each model. All `accept` come first, then all `reject`, then all `judge`.
        units: for each model, the difference between scores that counts as one nat. It is 1 for
            log-probabilities in nats.
        in_sds: whether accept and reject models are compared in standard deviations.
        gains: see `FewChangesSearch`.
    """

    models: tuple[Scorer, ...]
    roles: tuple[str, ...]
    candidates: Candidates
    units: tuple[float, ...]
    in_sds: bool
    gains: ExpectedGains = field(default_factory=dict)


def prepare(
    accept: Models,
    reject: Models,
    natural: Sentence | str,
    vocabulary: Vocabulary,
    constraints: Sequence[Constraint],
    seed: int,
    judges: Models = (),
    sds: Mapping[str, float] | None = None,
) -> Problem:
    """Load the models of a search, and check the models, the natural sentence and the words.

    For the arguments, see `synthesize`.

    Raises:
        ModelError: if there is no accept or no reject model, or an accept and a reject model cannot
            disagree. Also if scores are not log-probabilities and there are no `sds`.
        InputError: if an argument is invalid, a judge is also an accept or reject model, `sds`
            lacks a model, or two models have the same name.
        SentenceError: if the natural sentence has fewer than two words.
        VocabularyError: if a word of the natural sentence is not in the vocabulary, or none of its
            words can be replaced. Without `constraints`, it is also raised if a single word cannot
            be replaced.
    """
    accepts, rejects, panel = load(accept), load(reject), load(judges)
    if not accepts or not rejects:
        raise ModelError("A search needs at least one accept model and one reject model.")
    scorers = (*accepts, *rejects, *panel)
    for pair in product(accepts, rejects):
        refuse_equal_order(*map(order_of, pair))
    compared = {model.convention.fingerprint: model.name for model in (*accepts, *rejects)}
    for judge in panel:
        if (name := compared.get(judge.convention.fingerprint)) is not None:
            raise InputError(
                f"`judge` must be a model outside the comparison, got {judge.name}, which is "
                f"{name}. Name another model."
            )
    names = [model.name for model in scorers]
    if len(set(names)) < len(names):
        raise InputError(f"Models must have different names, got {', '.join(names)}.")
    if seed < 0:
        raise InputError(f"seed must be 0 or more, not {seed}.")
    if sds and (missing := [m.name for m in (*accepts, *rejects) if m.name not in sds]):
        raise InputError(
            f"`sds` must have every accept and reject model, got none for {', '.join(missing)}."
        )
    models = [
        Opponent(scorer, sds[scorer.name])
        if sds and scorer.name in sds
        else require_language_model(scorer, "A search for controversial sentences")
        for scorer in scorers
    ]
    units = tuple(model.unit if isinstance(model, Opponent) else 1.0 for model in models)
    roles = ("accept",) * len(accepts) + ("reject",) * len(rejects) + ("judge",) * len(panel)
    candidates = _make_candidates(as_sentence(natural), vocabulary, constraints)
    return Problem(tuple(models), roles, candidates, units, bool(sds))


class ModelOrder(NamedTuple):
    """How a model orders sentences, for `refuse_equal_order`.

    Attributes:
        model: name of the model.
        fingerprint: fingerprint of the model's convention.
        order: see `Scorer.order_fingerprint`.
    """

    model: str
    fingerprint: str
    order: str


def order_of(scorer: Scorer) -> ModelOrder:
    """Return how a model orders sentences."""
    return ModelOrder(scorer.name, scorer.convention.fingerprint, scorer.order_fingerprint)


def refuse_equal_order(*orders: ModelOrder) -> None:
    """Check that every two models can rank sentences of equal length differently.

    Raises:
        ModelError: if two models cannot, for instance because they are the same model.
    """
    for one, other in combinations(orders, 2):
        if one.order == other.order:
            what = "rank all sentences of equal length in the same order"
            if one.fingerprint == other.fingerprint:
                what = "are the same model"
            raise ModelError(
                f"{one.model} and {other.model} {what}: they can never disagree. Use other models "
                "or transforms."
            )


def load(models: Models) -> tuple[Scorer, ...]:
    """Return the models, in order. Load each model that is given as a specification.

    Raises:
        InputError: if an argument is neither a model nor a specification.
        ModelError: if a model cannot be loaded.
    """
    from contstim.models.catalog import load_scorer

    sequence = (models,) if isinstance(models, str | Scorer) else models
    if not isinstance(sequence, Sequence) or not all(isinstance(m, str | Scorer) for m in sequence):
        raise InputError(
            "A model must be a result of load_model or a specification such as "
            f"'kenlm:trigram.arpa', got {models!r}."
        )
    return tuple(load_scorer(model) if isinstance(model, str) else model for model in sequence)


def as_sentence(natural: Sentence | str) -> Sentence:
    """Return a natural sentence; parse it if it is a text.

    Raises:
        InputError: if it is neither a text nor a sentence.
    """
    if not isinstance(natural, str | Sentence):
        raise InputError(f"A natural sentence must be a text or a Sentence, not {natural!r}.")
    return Sentence.parse(natural) if isinstance(natural, str) else natural


def _make_candidates(
    natural: Sentence, vocabulary: Vocabulary, constraints: Sequence[Constraint]
) -> Candidates:
    if not isinstance(vocabulary, Vocabulary):
        raise InputError(f"The words must be a Vocabulary (Vocabulary.load), got {vocabulary!r}.")
    if len(natural) < 2:
        raise SentenceError(f"{natural.text!r} has one word, but a search needs at least two.")
    missing = vocabulary.missing_words(natural)
    if missing:
        raise VocabularyError(
            f"{natural.text!r} has words that the models' shared vocabulary lacks at their "
            f"positions: {', '.join(missing)}. Choose another sentence, or add these words to the "
            "vocabulary if every model knows them."
        )
    candidates = Candidates(vocabulary, natural, (no_repeats(vocabulary.repeatable), *constraints))
    if not candidates.positions:
        raise VocabularyError(f"All positions of {natural.text!r} are fixed.")
    blocked = candidates.blocked
    if blocked and not constraints:
        raise VocabularyError(
            f"No word of the vocabulary may replace {natural.words[blocked[0]]!r}, word "
            f"{blocked[0] + 1} of {natural.text!r}. Use a larger vocabulary."
        )
    if len(blocked) == len(candidates.positions):
        raise VocabularyError(
            f"No word of the vocabulary may replace any word of {natural.text!r} under the "
            "constraints. Loosen them, or use a larger vocabulary."
        )
    return replace(candidates, constraints=(*candidates.constraints, fixed(blocked)))


def natural_log_probs(evaluator: Evaluator, natural: Sentence) -> list[float]:
    """Return log-probabilities of the natural sentence, one for each model, nats.

    Raises:
        ModelError: if one of them is -inf.
    """
    scores: list[float] = evaluator.log_probs(natural).tolist()
    for model, score in zip(evaluator.models, scores, strict=True):
        if score == -np.inf:
            raise ModelError(
                f"{model.name} gives {natural.text!r} probability zero, so no sentence can be less "
                "likely, and every sentence would be acceptable. Choose another natural sentence."
            )
    return scores


def reaches_floor(log_prob: float, floor: float, tolerance: float) -> bool:
    """Return True if a score is at or above a floor (a minimum score), within rounding errors.

    `tolerance` is the maximum relative difference of a score between batches.
    """
    return log_prob >= floor - max(_MIN_TOLERANCE, tolerance * abs(floor))


def verify(
    climb: Climb,
    results: Sequence[ScoredSentence],
    candidates: Candidates,
    objective: Objective,
    in_float32: tuple[Objective, ScoredSentence] | None = None,
    enough: float = 0.0,
) -> Climb:
    """Score a result again, check all constraints, and return the climb with the new scores.

    `results` are possible results, best first. Their scores are from batches. For the new scores,
    each sentence is scored alone, so their rounding errors are different. If the new scores of a
    sentence violate a limit of the objective, the next sentence of `results` is tried. If all
    sentences fail, the result is the start.

    The loss must decrease by at least `enough` nats. If a model computes with less precision than
    float32, `in_float32` is the objective and the start, both with float32 scores. They replace
    `objective` and the start of the climb.

    Raises:
        VerificationError: if scores differ by more than rounding, or a constraint on words is
            violated.
        ModelError: if a model in float32 does not fit into memory.
    """
    evaluator = objective.evaluator
    objective, start = in_float32 or (objective, climb.start)
    climb = replace(climb, start=start)
    for result in results:
        sentence = result.sentence
        if sentence == start.sentence:
            break
        faults = candidates.broken(sentence)
        rescored = _rescore(sentence, result.log_probs, evaluator, faults)
        if in_float32 is not None:
            rescored = evaluator.float32_log_probs(sentence)
        drop = start.loss - objective.assess(sentence, rescored).loss
        is_better = in_float32 is None or drop > 0
        is_enough = is_better and not drop < enough - _MIN_TOLERANCE
        if is_enough and objective.feasible(rescored[:, None])[0]:
            return replace(climb, sentence=sentence, log_probs=rescored)
    # No sentence passes the checks
    rescored = start.log_probs
    if in_float32 is None:
        rescored = _rescore(start.sentence, rescored, evaluator, [])
    return replace(climb, sentence=start.sentence, log_probs=rescored)


def _rescore(
    sentence: Sentence, log_probs: FloatArray, evaluator: Evaluator, faults: list[str]
) -> FloatArray:
    """Return scores of a sentence that is scored alone and without the cache, (n_models,), nats.

    `log_probs` are the earlier scores. `faults` describe violated constraints on words.

    Raises:
        VerificationError: if the new scores differ from the earlier scores by more than rounding
            errors, or there are faults.
    """
    rescored = evaluator.log_probs(sentence, afresh=True)
    tolerances = np.array([model.convention.tolerance for model in evaluator.models])
    if not np.isclose(rescored, log_probs, rtol=tolerances, atol=_MIN_TOLERANCE).all():
        faults = [*faults, f"its scores are {rescored}, not {log_probs}"]
    if faults:
        raise VerificationError(f"{sentence.text!r} failed its check: {'; '.join(faults)}.")
    return rescored
