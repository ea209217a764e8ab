"""Limit on how rare a sentence may be to a model: no rarer than a share of natural ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from math import ceil
from typing import TYPE_CHECKING

from contstim.jobs.model_workers import work_off
from contstim.optimization.jobs.tasks import ScoringTask, describe_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.jobs.pool import Pool
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.reporter import Reporter
    from contstim.sentence import Sentence
    from contstim.store.triplets import TripletStore
    from contstim.vocabulary import Vocabulary

MOST_SENTENCES = 1_000
"""Natural sentences of each number of words whose scores make a floor, at most.

The share of all natural sentences below the floor then has a standard error of 1.4 % at the first
quartile, and a masked model scores them in minutes and not in hours.
"""

_SENTENCES_PER_TASK = 200

Floors = dict[str, dict[int, float]]
"""Of each model, by the number of words: the least log-probability, nats."""


def find_floors(
    question: SearchQuestion,
    profiles: Mapping[str, ModelProfile],
    models: Sequence[str],
    sentences: Sequence[Sentence],
    store: TripletStore,
    workers: Pool,
    reporter: Reporter,
    *,
    goes_on: bool,
) -> Floors:
    """The floors of plausibility: those that are kept, and those that workers compute.

    A study that goes on keeps its floors, whatever sentences it has now, but for new lengths. So
    does one that goes on on another machine, which would round otherwise.
    """
    named, quantile = question.plausibility
    floors: Floors = {}
    keys: dict[str, tuple[str, str, float]] = {}
    tasks: list[ScoringTask] = []
    for model in () if not quantile else models if named is None else (named.specification,):
        profile = profiles[model]
        keys[model] = (profile.convention.fingerprint, describe_words(profile.words), quantile)
        floors[model] = store.floors(*keys[model]) if goes_on else {}
        reference = reference_sentences(sentences, profile.words)
        some = [sentence for sentence in reference if len(sentence) not in floors[model]]
        if some:
            reporter.say(f"Scoring {len(some):,} natural sentences under {model} for its floor.")
        starts = range(0, len(some), _SENTENCES_PER_TASK)
        tasks += [ScoringTask(model, tuple(some[i : i + _SENTENCES_PER_TASK])) for i in starts]
    scores: defaultdict[str, dict[Sentence, float]] = defaultdict(dict)
    work_off(workers, tasks, lambda task, told: scores[task.model].update(told), {})
    for model, of_model in scores.items():
        computed = floors_of(of_model, quantile)
        store.keep_floors(*keys[model], computed)
        floors[model] |= computed
    return floors


def reference_sentences(
    sentences: Iterable[Sentence], words: Vocabulary | None
) -> tuple[Sentence, ...]:
    """The natural sentences whose scores make floors, a thousand of each number of words.

    They are drawn by their texts alone, so that the order in which they are given does not matter.

    Args:
        sentences: all natural sentences.
        words: those that the model knows where they stand; None for all.
    """

    def random_key(sentence: Sentence) -> str:
        return hashlib.sha256(sentence.text.encode()).hexdigest()

    by_length: defaultdict[int, list[Sentence]] = defaultdict(list)
    for sentence in sorted(dict.fromkeys(sentences), key=random_key):
        some = by_length[len(sentence)]
        if len(some) < MOST_SENTENCES and not (words and words.missing(sentence)):
            some.append(sentence)
    return tuple(s for _, some in sorted(by_length.items()) for s in some)


def floors_of(scores: Mapping[Sentence, float], quantile: float) -> dict[int, float]:
    """The floor for each number of words, nats.

    It is the log-probability of a natural sentence: the least one that at least the share
    `quantile` of the sentences with so many words do not exceed.

    Args:
        scores: log-probabilities of natural sentences, nats.
        quantile: between 0 and 1.
    """
    by_length: defaultdict[int, list[float]] = defaultdict(list)
    for sentence, score in scores.items():
        by_length[len(sentence)].append(score)
    floors = {}
    for n_words, some in sorted(by_length.items()):
        # How many sentences do not exceed it: .28 of 25 are 7, and a little more in floating point.
        rank = max(1, ceil(quantile * len(some) - 1e-9))
        # Not interpolated: between -inf and a number there is nothing.
        floors[n_words] = float(sorted(some)[rank - 1])
    return floors
