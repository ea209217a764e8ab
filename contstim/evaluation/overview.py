"""Facts about one model on sentences of the embedded English: contexts, vocabulary and speed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contstim.files.arrays import FloatArray
    from contstim.models.base import Convention, Scorer
    from contstim.words.sentence import Sentence

N_SENTENCES = 50
"""Number of generated sentences for the facts about a model."""

MAX_SECONDS = 20.0
"""Seconds after which no further block of sentences is scored."""

WORSE_CONTEXT = 3.0
"""Nats per sentence that another context must gain to cause a warning."""


@dataclass(frozen=True)
class ContextScore:
    """Mean score of sentences after a context, the text that a model reads before a sentence.

    Attributes:
        text: context, in the notation of the option `context`.
        tokens: tokens of the context.
        mean: mean score of the sentences, in the unit of the model.
        is_read: whether this is the context that the model is set to read.
    """

    text: str
    tokens: tuple[str, ...]
    mean: float
    is_read: bool


@dataclass(frozen=True)
class ContextGain:
    """Gain in likelihood of sentences by the best context over the model's context.

    Attributes:
        own: the context that the model is set to read.
        best: the context with the highest mean score.
        nats: difference of the mean scores of a sentence; 0 if both are the same context.
    """

    own: str
    best: str
    nats: float

    def caution(self, specification: str) -> str:
        """Return a warning if the gain exceeds `WORSE_CONTEXT`; otherwise an empty text."""
        if self.nats <= WORSE_CONTEXT:
            return ""
        return (
            f"sentences are {self.nats:.1f} nats more likely after {self.best!r} than after "
            f"{self.own!r}, the context of the model. Set `context` for the model in "
            f"[models], or compare contexts with: contstim models {specification}"
        )


@dataclass(frozen=True)
class ModelOverview:
    """Facts about one model.

    Attributes:
        n_parameters: number of weights, or of n-grams; None if unknown.
        convention: scoring convention.
        contexts: scores by context, the best first; empty if the model reads no context.
        n_sentences: number of scored sentences, at most `N_SENTENCES`; fewer if the model is slow
            or cannot score some.
        mean: mean score of the scored sentences.
        n_better: number of sentences that score higher than the same words in random order.
        n_words: number of distinct words of the sentences.
        unknown: words that the model does not know.
        speed: sentences per second.
    """

    n_parameters: int | None
    convention: Convention
    contexts: tuple[ContextScore, ...]
    n_sentences: int
    mean: float
    n_better: int
    n_words: int
    unknown: tuple[str, ...]
    speed: float


def model_overview(scorer: Scorer) -> ModelOverview:
    """Score generated sentences with a model, also with shuffled words and after other contexts.

    Raises:
        ModelError: if the model can score none of the sentences; or see `Scorer.scores`.
    """
    sentences = scorable_sentences(scorer, N_SENTENCES)
    scorer.scores(sentences[:1])  # warm-up, because a network's first call is slower
    scores, seconds = _score_within(scorer, sentences, MAX_SECONDS)
    sentences = sentences[: len(scores)]
    shuffled = [_shuffle(sentence) for sentence in sentences]
    n_better = int((scores > scorer.scores(shuffled)).sum())
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


def _score_within(
    scorer: Scorer, sentences: Sequence[Sentence], seconds: float
) -> tuple[FloatArray, float]:
    """Score as many sentences as the time allows; return their scores and the seconds used."""
    blocks: list[FloatArray] = []
    began, done, size = perf_counter(), 0, 2
    while done < len(sentences) and perf_counter() - began < seconds:
        blocks.append(scorer.scores(sentences[done : done + size]))
        done, size = done + size, 2 * size
    return np.concatenate(blocks), perf_counter() - began


def scorable_sentences(scorer: Scorer, n: int) -> list[Sentence]:
    """Generate n sentences of the embedded English, and return those that a model can score.

    Raises:
        ModelError: if the model can score none of them.
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
) -> tuple[ContextScore, ...]:
    """Return the mean score of sentences after each candidate context, the best first.

    Args:
        scorer: the model; its current context and the default context are also candidates.
        sentences: sentences to score.
        seconds: time limit. At least two different contexts are scored regardless of it.
    """
    began, scores = perf_counter(), dict[tuple[str, ...], ContextScore]()
    candidates = scorer.candidate_contexts()
    # The current context, the default context (None) and the other candidates
    for number, text in enumerate((None, None, *candidates) if candidates else ()):
        if len(scores) > 1 and perf_counter() - began > seconds:
            break
        try:
            variant = scorer.with_context(text) if number else scorer
        except ModelError:  # for example, the network has no embedding of a token
            continue
        tokens = variant.convention.context_tokens
        if tokens not in scores:
            mean = float(variant.scores(sentences).mean())
            context = variant.convention.context
            scores[tokens] = ContextScore(context, tokens, mean, is_read=number == 0)
    return tuple(sorted(scores.values(), key=lambda score: -score.mean))


def context_gain(scorer: Scorer, *, n: int, seconds: float) -> ContextGain | None:
    """Compare a model's context with other contexts; None if the model reads no context.

    Args:
        scorer: the model.
        n: number of generated sentences to score.
        seconds: time limit; see `context_scores`.

    Raises:
        ModelError: see `model_overview`.
    """
    if not scorer.candidate_contexts():
        return None
    best, *alternatives = context_scores(scorer, scorable_sentences(scorer, n), seconds=seconds)
    current = next(score for score in (best, *alternatives) if score.is_read)
    return ContextGain(current.text, best.text, best.mean - current.mean)


def _shuffle(sentence: Sentence) -> Sentence:
    """Shuffle the words until their order differs, if they can be in another order."""
    words, rng = list(sentence.words), random.Random(0)
    while tuple(words) == sentence.words and len(set(words)) > 1:
        rng.shuffle(words)
    return replace(sentence, words=tuple(words))
