"""Facts about one model, measured on sentences that `contstim.english` generates."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Convention, Scorer
    from contstim.words.sentence import Sentence

N_SENTENCES = 50
"""Number of generated sentences for the facts about a model."""

MAX_SECONDS = 20.0
"""Seconds after which no further block of sentences is scored."""

WORSE_CONTEXT = 3.0
"""A warning is given if another context raises the mean score of sentences by more nats than this.

The context is the text that a model reads before a sentence.
"""


@dataclass(frozen=True)
class ModelOverview:
    """Facts about one model.

    Attributes:
        n_parameters: number of weights, or of n-grams; None if unknown.
        contexts: result of `context_scores`; empty if the model reads no context.
        n_sentences: number of scored sentences, at most `N_SENTENCES`; see `MAX_SECONDS`.
        mean: mean score of these sentences, in the unit of the model.
        n_better: number of sentences whose score is higher than that of the same words in a
            shuffled order.
        n_words: number of distinct words of the sentences.
        unknown: words that the model does not know.
        speed: sentences per second.
    """

    n_parameters: int | None
    convention: Convention
    contexts: Mapping[Convention, float]
    n_sentences: int
    mean: float
    n_better: int
    n_words: int
    unknown: tuple[str, ...]
    speed: float


def model_overview(scorer: Scorer) -> ModelOverview:
    """Score generated sentences: as they are, with shuffled words, and after other contexts.

    A context is the text that the model reads before a sentence.

    Raises:
        ModelError: if the model can score none of the sentences; see also `Scorer.scores`.
    """
    sentences = scorable_sentences(scorer, N_SENTENCES)
    scorer.scores(sentences[:1])  # warm-up, because a network's first call is slower
    scores, seconds = score_within(scorer, sentences, MAX_SECONDS)
    sentences = sentences[: len(scores)]
    n_better = int((scores > scorer.scores([_shuffle(sentence) for sentence in sentences])).sum())
    words = tuple(dict.fromkeys(word for sentence in sentences for word in sentence.words))
    pairs = zip(words, scorer.knows(words), strict=True)
    return ModelOverview(
        n_parameters=scorer.n_parameters(),
        convention=scorer.convention,
        contexts=context_scores(scorer, sentences),
        n_sentences=len(sentences),
        mean=float(scores.mean()),
        n_better=n_better,
        n_words=len(words),
        unknown=tuple(word for word, is_known in pairs if not is_known),
        speed=len(scores) / seconds,
    )


def score_within(
    scorer: Scorer, sentences: Sequence[Sentence], seconds: float
) -> tuple[FloatArray, float]:
    """Score the first sentences until `seconds` have elapsed.

    Returns:
        The scores, and the elapsed seconds.
    """
    blocks: list[FloatArray] = []
    began, done, size = perf_counter(), 0, 2
    while done < len(sentences) and perf_counter() - began < seconds:
        blocks.append(scorer.scores(sentences[done : done + size]))
        done, size = done + size, 2 * size
    return np.concatenate(blocks), perf_counter() - began


def scorable_sentences(scorer: Scorer, n: int) -> list[Sentence]:
    """Generate n sentences, and return the sentences that the model can score.

    Raises:
        ModelError: if the model can score none of the sentences.
    """
    from contstim.english import generate

    sentences = generate(n, seed=0)
    reasons = scorer.unscorable(sentences)
    scorable = [s for s, reason in zip(sentences, reasons, strict=True) if reason is None]
    if not scorable:
        raise ModelError(f"{scorer.name} can score no sentence: {reasons[0]}")
    return scorable


def context_scores(
    scorer: Scorer, sentences: Sequence[Sentence], *, seconds: float = float("inf")
) -> dict[Convention, float]:
    """Return the mean score of sentences after each candidate context, the best context first.

    Keys are conventions of the model, each with one of the contexts. A convention describes how a
    model scores a sentence. The current context of the model and the default context are
    candidates, too. The first two contexts are always scored. After `seconds`, no other context is
    scored.
    """
    scores: dict[Convention, float] = {}
    began, candidates = perf_counter(), scorer.candidate_contexts()
    # The model's own context, the default context, and other candidates
    for number, text in enumerate((None, None, *candidates) if candidates else ()):
        if len(scores) > 1 and perf_counter() - began > seconds:
            break
        try:
            variant = scorer.with_context(text) if number else scorer
        except ModelError:  # for example, the network has no embedding of a token
            continue
        if variant.convention.context_tokens not in {c.context_tokens for c in scores}:
            scores[variant.convention] = float(variant.scores(sentences).mean())
    return dict(sorted(scores.items(), key=lambda score: -score[1]))


def context_gain(scorer: Scorer, *, n: int, seconds: float) -> dict[str, Any] | None:
    """Compare a model's context with other contexts; return None if the model reads no context.

    For the comparison, `n` sentences are generated; sentences that the model cannot score are not
    used. `context_scores` describes `seconds`.

    Returns:
        `own`: context of the model. `best`: context with the highest mean score. `nats`: mean score
        of a sentence with `best` minus mean score with `own`.

    Raises:
        ModelError: see `model_overview`.
    """
    if not scorer.candidate_contexts():
        return None
    scores = context_scores(scorer, scorable_sentences(scorer, n), seconds=seconds)
    best, own = next(iter(scores)), scorer.convention
    return {"own": own.context, "best": best.context, "nats": scores[best] - scores[own]}


def context_caution(specification: str, *, own: str, best: str, nats: float) -> str:
    """Return a warning if `nats` exceeds `WORSE_CONTEXT`, otherwise an empty text.

    The arguments come from `context_gain`.
    """
    if nats <= WORSE_CONTEXT:
        return ""
    return (
        f"sentences are {nats:.1f} nats more likely after {best!r} than after {own!r}, the context "
        "of the model. Set `context` for the model in [models], or compare contexts with: "
        f"contstim models {specification}"
    )


def _shuffle(sentence: Sentence) -> Sentence:
    """Shuffle the words until their order differs, unless all words are identical."""
    words, rng = list(sentence.words), random.Random(0)
    while tuple(words) == sentence.words and len(set(words)) > 1:
        rng.shuffle(words)
    return replace(sentence, words=tuple(words))
