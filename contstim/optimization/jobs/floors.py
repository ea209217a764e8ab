"""Floors of plausibility: lowest log-probabilities of a study's sentences, by number of words."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from contstim.jobs.model_workers import work_off
from contstim.jobs.worker_context import WorkerTask
from contstim.optimization.jobs.tasks import SearchContext, describe_words
from contstim.optimization.search.opponents import MAX_SENTENCES, pooled_sd
from contstim.optimization.search.verification import computes_coarsely

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.jobs.pool import Pool
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.reporter import Reporter
    from contstim.store.triplets import TripletStore
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

MAX_REFERENCE_SENTENCES = 1_000
"""Maximum number of natural sentences of each length whose scores determine a floor.

A masked model scores these sentences in minutes, not hours. At the first quartile, the standard
error of the quantile is 1.4 %.
"""

_SENTENCES_PER_TASK = 200
_SD = -1.0  # the store keeps standard deviations as floors with this quantile and 0 words

Floors = dict[str, dict[int, float]]
"""Model → number of words → lowest plausible log-probability, nats."""


@dataclass(frozen=True)
class ScoringTask(WorkerTask[SearchContext]):
    """Score sentences, with float32 weights if the model computes in half precision."""

    model: str
    sentences: tuple[Sentence, ...]
    text: ClassVar[str] = "Scoring natural sentences"

    def perform(self, context: SearchContext) -> dict[Sentence, float]:
        """Return the scores of the sentences that the model can score."""
        (model,) = context.scorers((self.model,))
        reasons = model.unscorable(self.sentences)
        scorable = [s for s, reason in zip(self.sentences, reasons, strict=True) if reason is None]
        coarse = computes_coarsely((model,))
        scores = model.float32_scores(scorable) if coarse else model.scores(scorable)
        return dict(zip(scorable, scores.tolist(), strict=True))


def find_floors(
    question: SearchQuestion,
    profiles: Mapping[str, ModelProfile],
    models: Sequence[str],
    sentences: Sequence[Sentence],
    store: TripletStore,
    workers: Pool,
    reporter: Reporter,
) -> Floors:
    """Return stored floors of plausibility, and floors that workers compute.

    Stored floors are used if a stored search began from one of the sentences. So floors, and
    results that depend on them, stay the same if sentences are added or removed later.
    """
    quantile = question.floor_quantile
    goes_on = not store.naturals().isdisjoint(sentence.text for sentence in sentences)
    floors: Floors = {}
    keys: dict[str, tuple[str, str, float]] = {}
    tasks: list[ScoringTask] = []
    for model in models if quantile else ():
        profile = profiles[model]
        keys[model] = (profile.convention.fingerprint, describe_words(profile.words), quantile)
        floors[model] = store.floors(*keys[model]) if goes_on else {}
        reference = reference_sentences(sentences, profile.words)
        new = tuple(sentence for sentence in reference if len(sentence) not in floors[model])
        if new:
            reporter.say(f"Scoring {len(new):,} natural sentences under {model} for its floor.")
        starts = range(0, len(new), _SENTENCES_PER_TASK)
        tasks += [ScoringTask(model, new[i : i + _SENTENCES_PER_TASK]) for i in starts]
    scores: defaultdict[str, dict[Sentence, float]] = defaultdict(dict)
    work_off(workers, tasks, lambda task, result: scores[task.model].update(result), {})
    for model, scores_of_model in scores.items():
        computed = floors_of(scores_of_model, quantile)
        store.keep_floors(*keys[model], computed)
        floors[model] |= computed
    return floors


def find_sds(
    profiles: Mapping[str, ModelProfile],
    models: Sequence[str],
    sentences: Sequence[Sentence],
    store: TripletStore,
    workers: Pool,
) -> dict[str, float]:
    """Return the standard deviation of each model's scores of natural sentences.

    Stored values are used under the same condition as in `find_floors`. If all units are nats, the
    result is empty.

    Raises:
        ModelError: see `pooled_sd`.
    """
    if all(profiles[model].convention.is_log_probability for model in models):
        return {}
    goes_on = not store.naturals().isdisjoint(sentence.text for sentence in sentences)
    sds: dict[str, float] = {}
    tasks: list[ScoringTask] = []
    for model in models:
        key = profiles[model].convention.fingerprint, describe_words(profiles[model].words)
        stored = store.floors(*key, _SD) if goes_on else {}
        if stored:
            sds[model] = stored[0]
        else:
            reference = reference_sentences(sentences, profiles[model].words)
            tasks.append(ScoringTask(model, reference[:: -(-len(reference) // MAX_SENTENCES) or 1]))

    def keep(task: ScoringTask, scores: dict[Sentence, float]) -> None:
        profile = profiles[task.model]
        sd = sds[task.model] = pooled_sd(task.model, [*scores], np.array([*scores.values()]))
        key = profile.convention.fingerprint, describe_words(profile.words)
        store.keep_floors(*key, _SD, {0: sd})

    work_off(workers, tasks, keep, {})
    return sds


def reference_sentences(
    sentences: Iterable[Sentence], words: Vocabulary | None
) -> tuple[Sentence, ...]:
    """Return the natural sentences whose scores determine floors.

    At most `MAX_REFERENCE_SENTENCES` of each length are chosen by a hash of their texts. So the
    order of `sentences` does not matter. `words` are the words that the model knows; None for
    all.
    """

    def random_key(sentence: Sentence) -> str:
        return hashlib.sha256(sentence.text.encode()).hexdigest()

    by_length: defaultdict[int, list[Sentence]] = defaultdict(list)
    for sentence in sorted(dict.fromkeys(sentences), key=random_key):
        chosen = by_length[len(sentence)]
        if len(chosen) < MAX_REFERENCE_SENTENCES and not (words and words.missing_words(sentence)):
            chosen.append(sentence)
    return tuple(s for _, chosen in sorted(by_length.items()) for s in chosen)


def floors_of(scores: Mapping[Sentence, float], quantile: float) -> dict[int, float]:
    """Return number of words → floor, nats.

    For N sentences of equal length, the floor is the log-probability with rank `quantile` * N,
    rounded up. The lowest log-probability has rank 1.
    """
    by_length: defaultdict[int, list[float]] = defaultdict(list)
    for sentence, score in scores.items():
        by_length[len(sentence)].append(score)
    floors = {}
    for n_words, log_probs in sorted(by_length.items()):
        # With rounding errors, .28 * 25 is slightly above 7
        rank = max(1, ceil(quantile * len(log_probs) - 1e-9))
        # Without interpolation, which is impossible between -inf and a number
        floors[n_words] = float(sorted(log_probs)[rank - 1])
    return floors
