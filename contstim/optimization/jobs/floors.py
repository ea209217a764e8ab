"""Floors of plausibility.

A floor is the lowest log-probability that a natural sentence may have under a model. There is one
floor for each model and each number of words. Searches between two models skip a natural sentence
if it is below the floor of one of the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, ClassVar

from contstim.jobs.model_workers import work_off
from contstim.jobs.worker_context import WorkerTask
from contstim.optimization.jobs.tasks import SearchContext, describe_words, digest
from contstim.optimization.search.opponents import MAX_SENTENCES, pooled_sd, scores_of
from contstim.wording import grouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contstim.jobs.pool import Pool
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.reporter import Reporter
    from contstim.store.triplets import TripletStore
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

MAX_REFERENCE_SENTENCES = 1_000
"""Maximum number of natural sentences of each length whose scores determine a floor.

A masked model scores these sentences in minutes, not hours. The limit costs little precision. For
example, a floor that should be above 25 % of all natural sentences is above 25 ± 1.4 % of them
(standard error).
"""

_SENTENCES_PER_TASK = 200

Floors = dict[str, dict[int, float]]
"""Model → number of words → lowest plausible log-probability, nats."""


@dataclass(frozen=True)
class ScoringTask(WorkerTask[SearchContext]):
    """Score sentences; see `scores_of`."""

    model: str
    sentences: tuple[Sentence, ...]
    text: ClassVar[str] = "Scoring natural sentences"

    def perform(self, context: SearchContext) -> dict[Sentence, float]:
        """Return the scores of the sentences that the model can score."""
        (model,) = context.scorers((self.model,))
        return scores_of(model, self.sentences)


@dataclass(frozen=True)
class NaturalScores:
    """Scores of a study's natural sentences, with their floors and standard deviations.

    The store keeps floors and standard deviations. The stored values are used again if a stored
    search began from one of the natural sentences. So these values, and the results of searches
    that depend on them, do not change if sentences are added or removed later.

    Attributes:
        profiles: specification of a model → facts about the model.
        sentences: natural sentences of the study.
        store: store of the study's results.
        workers: processes that load models and score sentences.
    """

    profiles: Mapping[str, ModelProfile]
    sentences: Sequence[Sentence]
    store: TripletStore
    workers: Pool

    @cached_property
    def _keys(self) -> dict[str, tuple[str, str]]:
        """Model → fingerprint of its scores, and a digest of the words that a search may use."""
        return {
            model: (profile.convention.fingerprint, describe_words(profile.words))
            for model, profile in self.profiles.items()
        }

    @cached_property
    def _resumed(self) -> bool:
        return not self.store.naturals().isdisjoint(s.text for s in self.sentences)

    def floors(self, quantile: float, reporter: Reporter) -> Floors:
        """Return the floors of plausibility; workers compute the floors that are not stored.

        The floors are this quantile of the log-probabilities of natural sentences; see `floors_of`.
        If `quantile` is 0, the result is empty.
        """
        if not quantile:
            return {}
        floors: Floors = {}
        missing: dict[str, list[Sentence]] = {}
        for model, profile in self.profiles.items():
            floors[model] = self.store.floors(*self._keys[model], quantile) if self._resumed else {}
            reference = reference_sentences(self.sentences, profile.words)
            if new := [s for s in reference if len(s) not in floors[model]]:
                reporter.say(
                    f"Scoring {len(new):,} natural sentences under {model} to find its lowest "
                    "plausible scores."
                )
                missing[model] = new
        for model, scores in self._score(missing).items():
            computed = floors_of(scores, quantile)
            self.store.keep_floors(*self._keys[model], quantile, computed)
            floors[model] |= computed
        return floors

    def sds(self) -> dict[str, float]:
        """Return the standard deviation of each model's scores of natural sentences.

        If the scores of all models are in nats, the result is empty.

        Raises:
            ModelError: see `pooled_sd`.
        """
        if all(profile.convention.is_log_probability for profile in self.profiles.values()):
            return {}
        sds: dict[str, float] = {}
        missing: dict[str, Sequence[Sentence]] = {}
        for model, profile in self.profiles.items():
            stored = self.store.natural_sd(*self._keys[model]) if self._resumed else None
            if stored is not None:
                sds[model] = stored
            else:
                reference = reference_sentences(self.sentences, profile.words)
                missing[model] = reference[:: -(-len(reference) // MAX_SENTENCES) or 1]
        for model, scores in self._score(missing).items():
            sds[model] = pooled_sd(model, scores)
            self.store.keep_natural_sd(*self._keys[model], sds[model])
        return sds

    def _score(
        self, sentences: Mapping[str, Sequence[Sentence]]
    ) -> dict[str, dict[Sentence, float]]:
        """Let workers score sentences; return model → sentence → score.

        `sentences` maps each model to its sentences. Sentences that the model cannot score are
        omitted from the result.
        """
        size = _SENTENCES_PER_TASK
        tasks = [
            ScoringTask(model, tuple(of_model[start : start + size]))
            for model, of_model in sentences.items()
            for start in range(0, len(of_model), size)
        ]
        scores: dict[str, dict[Sentence, float]] = {model: {} for model in sentences}
        work_off(self.workers, tasks, lambda task, new: scores[task.model].update(new), {})
        return scores


def reference_sentences(
    sentences: Iterable[Sentence], words: Vocabulary | None
) -> tuple[Sentence, ...]:
    """Return the natural sentences whose scores determine floors.

    For each number of words, at most `MAX_REFERENCE_SENTENCES` sentences are chosen, by a hash of
    their texts. So the order of `sentences` does not matter. Sentences that contain a word outside
    `words` are never chosen; None allows all words.
    """
    known = [s for s in dict.fromkeys(sentences) if not (words and words.missing_words(s))]
    in_random_order = sorted(known, key=lambda sentence: digest([sentence.text]))
    by_length = grouped((len(sentence), sentence) for sentence in in_random_order)
    return tuple(
        s for _, group in sorted(by_length.items()) for s in group[:MAX_REFERENCE_SENTENCES]
    )


def floors_of(scores: Mapping[Sentence, float], quantile: float) -> dict[int, float]:
    """Return the floors of one model, nats: number of words → floor.

    For N sentences of equal length, the floor is the log-probability with rank `quantile` * N,
    rounded up. The lowest log-probability has rank 1.
    """
    floors = {}
    by_length = grouped((len(sentence), log_prob) for sentence, log_prob in scores.items())
    for n_words, log_probs in sorted(by_length.items()):
        # Subtract 1e-9, because a product can exceed a whole number by a rounding error:
        # .28 * 25 > 7
        rank = max(1, ceil(quantile * len(log_probs) - 1e-9))
        # Do not interpolate, since this is impossible between -inf and a number
        floors[n_words] = float(sorted(log_probs)[rank - 1])
    return floors
