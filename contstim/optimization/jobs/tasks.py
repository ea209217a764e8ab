"""Tasks of workers, and where they are done: inspect a model, score for floors, search."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, isnan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contstim.errors import ContstimError, ModelError, VocabularyError
from contstim.jobs.model_workers import work_off
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from contstim.models.base import ROUNDING
from contstim.models.costs import Cost, Tally, counting
from contstim.models.merging import merged
from contstim.models.transforms import UnknownWords, unknown_words
from contstim.models.vocabularies import DEFAULT_MIN_COUNT, default_vocabulary
from contstim.optimization.search.constraints import Candidates, capitals, no_repeats
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.search.verification import computes_coarsely, reaches_floor
from contstim.store.triplets import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.files.arrays import FloatArray
    from contstim.jobs.pool import Pool
    from contstim.models.base import Convention, LanguageModel
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.search.constraints import Constraint
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.reporter import Reporter
    from contstim.store.triplets import TripletStore
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary


SEEDS = 3
"""How many seeds a search is tried with, at most, while it finds nothing."""

VERSION = 5
"""Number of the way to search, to be raised when the same search finds another result.

So it does with another table of English tags.
"""


@dataclass
class SearchContext(WorkerContext):
    """A worker's options and models, and the words of searches between them.

    Attributes:
        vocabulary: words to use; None for those frequent in the models' own training text.
        allow_unknown: also use words that a word-level model cannot tell.
    """

    vocabulary: Vocabulary | None = None
    allow_unknown: bool = False
    _words: dict[tuple[str, ...], Vocabulary] = field(default_factory=dict, init=False)

    def words(self, names: tuple[str, ...]) -> Vocabulary:
        """The words that a search between two models, and a judge if any, may use.

        Raises:
            VocabularyError: there is none.
        """
        if names not in self._words:
            usable = tuple(self.usable_words(model) for model in self.models(names))
            # Of one pair only: a worker mostly stays with a pair, and vocabularies are large.
            self._words = {names: shared_words(names, usable)}
        return self._words[names]

    def usable_words(self, model: LanguageModel) -> Vocabulary | None:
        """The words that a model lets a search use; None where every word will do.

        Raises:
            VocabularyError: the model knows none of the words.
            ModelError: the model's counts, which are its own words, are not at hand.
        """
        if self.vocabulary is None:
            return model.vocabulary(DEFAULT_MIN_COUNT)
        return self.vocabulary if self.allow_unknown else self.vocabulary.restrict(model.knows)[0]


def shared_words(models: tuple[str, ...], words: tuple[Vocabulary | None, ...]) -> Vocabulary:
    """Usable words that models have in common; the embedded English where any word will do.

    Args:
        models: the models' names.
        words: what `SearchContext.usable_words` says of each.

    Raises:
        VocabularyError: nothing, for the start of a sentence or elsewhere.
    """
    # Models that take any word do not count; where both do, the embedded English is the limit.
    first, *others = [v for v in words if v is not None] or [default_vocabulary(())]
    for place, words_there in (
        ("start a sentence", [set(v.initial) for v in (first, *others)]),
        ("follow another", [set(v.inner) for v in (first, *others)]),
    ):
        if not set.intersection(*words_there):
            raise VocabularyError(
                f"No word of the vocabulary that may {place} is known to "
                f"{'both' if len(models) == 2 else 'all of'} {' and '.join(models)}. Give a "
                f"vocabulary in the models' language and case."
            )
    for other in others:
        first = first.intersect(other)
    return first


@dataclass(frozen=True)
class ModelProfile:
    """Facts about a model for the scheduling process, which does not load it.

    Attributes:
        convention: how its scores come about.
        words: those that it lets a search use; None where every word will do.
        training_text: the sentences that it was trained on; None where they are not known.
        is_black_box: see `LanguageModel.is_black_box`.
        unknown: about the words of the natural sentences that it does not know.
    """

    convention: Convention
    words: Vocabulary | None
    training_text: Path | None = None
    is_black_box: bool = False
    unknown: UnknownWords = ("", False)


@dataclass(frozen=True)
class InspectionTask(WorkerTask[SearchContext]):
    """Load a model and describe it.

    Attributes:
        model: its specification.
        sentences: the natural sentences of the study.
    """

    model: str
    sentences: tuple[Sentence, ...] = ()
    text: ClassVar[str] = "Loading the model"

    def perform(self, context: SearchContext) -> ModelProfile:
        """See `WorkerTask.perform`."""
        (model,) = context.models((self.model,))
        return ModelProfile(
            model.convention,
            context.usable_words(model),
            model.training_text,
            model.is_black_box,
            unknown_words(model, self.sentences),
        )


@dataclass(frozen=True)
class ScoringTask(WorkerTask[SearchContext]):
    """Score sentences, where need be with weights as float32 numbers.

    Attributes:
        model: its specification.
        sentences: what to score.
    """

    model: str
    sentences: tuple[Sentence, ...]
    text: ClassVar[str] = "Scoring for the floor of plausibility"

    def perform(self, context: SearchContext) -> dict[Sentence, float]:
        """Log-probabilities, nats, of those sentences that the model can score."""
        (model,) = context.models((self.model,))
        reasons = model.unscorable(self.sentences)
        some = [s for s, reason in zip(self.sentences, reasons, strict=True) if reason is None]
        coarse = computes_coarsely((model,))
        scores = model.float32_log_probs(some) if coarse else model.log_probs(some)
        return dict(zip(some, scores.tolist(), strict=True))


@dataclass(frozen=True)
class TripletTask(WorkerTask[SearchContext]):
    """Search for the triplet of one natural sentence and two models.

    Attributes:
        question: of the study; `SearchQuestion.resolved`.
        models: their names.
        fingerprints: what the models were when the job began.
        slot: the sentence's number, from 0, among those assigned to the pair.
        natural: the sentence.
        words: a digest of those that the search may use.
        judge: a further model that every sentence must please, what it was when the job began, and
            the least log-probability, nats, that it must give.
        floors: the least log-probability that each of the two models must give the sentence that it
            accepts, and so the natural one, nats; None for none.
        capped: words, in lower case, that a cap on words keeps out.
    """

    question: SearchQuestion
    models: tuple[str, str]
    fingerprints: tuple[str, str]
    slot: int
    natural: Sentence
    words: str
    judge: tuple[str, str, float] | None = None
    floors: tuple[float, float] | None = None
    capped: frozenset[str] = frozenset()

    @property
    def seed(self) -> int:
        """Number from which all chance follows, from what is searched and nothing else."""
        # A sign that no text holds stands between the parts, so that no two lists read alike.
        parts = (str(self.question.seed), *self.fingerprints, self.natural.text)
        return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:7])

    @cached_property
    def base(self) -> str:
        """A digest of all that decides the outcome, but for the words that may not be put in."""
        facts = {
            "version": VERSION,
            "models": self.models,
            "fingerprints": self.fingerprints,
            "natural": self.natural.text,
            "words": self.words,
            "judge": self.judge,
            "floors": self.floors,
            **self.question.key,
        }
        return digest([json.dumps(facts, sort_keys=True)])

    @cached_property
    def key(self) -> str:
        """A digest of all that decides the outcome, words that a cap excludes among them."""
        return digest([self.base, *sorted(self.question.excluded | self.capped)])

    def perform(self, context: SearchContext) -> Outcome:
        """See `WorkerTask.perform`.

        A sentence that one of the models finds impossible, that is below a floor, or in which
        nothing may be changed is no failure, but inadmissible. A search that finds nothing is tried
        with further seeds, `SEEDS` in all; if all of them find nothing, the outcome's triplet is
        not distinct and its reason says so.

        Raises:
            ModelError: a model is no longer what it was when the job began.
            ContstimError: see `synthesize_triplet`.
        """
        loaded = self._load(context)
        models = [loaded[name] for name in self.models]
        limits = list(zip(models, self.floors or (), strict=False))
        if self.judge is not None:
            limits.insert(0, (loaded[self.judge[0]], self.judge[2]))
        vocabulary = context.words(tuple(loaded))
        constraints = self._constraints(vocabulary)
        reason = self._below_floor(limits)
        if constraints and not reason:
            rules = (no_repeats(vocabulary.repeatable), *constraints)
            candidates = Candidates(vocabulary, self.natural, rules)
            if len(candidates.blocked) == len(candidates.positions):
                reason = (
                    "nothing may be put in: the constraints allow no other word at any position"
                )
        if reason:
            return Outcome("inadmissible", reason)
        began = perf_counter()
        try:
            with counting(Tally()) as tally, merged():
                triplet, *syntheses = synthesize_triplet(
                    models[0],
                    models[1],
                    self.natural,
                    vocabulary,
                    recipe=recipe_named(self.question.recipe),
                    constraints=constraints,
                    fluency=self._fluency(loaded),
                    seed=self.seed,
                    seeds=SEEDS,
                    restarts=self.question.budget,
                    few_changes=self.question.few_changes,
                )
        except ContstimError:
            # Whether the sentence is to blame is asked only where a search has failed.
            for model in loaded.values():
                if model.log_probs([self.natural])[0] == -np.inf:
                    return Outcome("inadmissible", f"{model.name} gives it probability zero")
            raise
        reason, few_changes = triplet.alike, self.question.few_changes
        if few_changes is not None and not triplet.distinct:
            most = {s.reject: max((p.drop for p in s.frontier), default=0.0) for s in syntheses}
            nats = ", ".join(f"{drop:.1f} where {name} rejects" for name, drop in most.items())
            reason = f"few new words do not reach {few_changes.enough:g} nats: {nats}"
        return Outcome(
            "found",
            reason,
            triplet,
            tuple(map(trail_of, syntheses)),
            wall_seconds=perf_counter() - began - tally.others_seconds,
            network_seconds=tally.seconds,
        )

    def _load(self, context: SearchContext) -> dict[str, LanguageModel]:
        """The two models, and the judge; one that is both is loaded once."""
        fingerprints = dict(zip(self.models, self.fingerprints, strict=True))
        if self.judge is not None:
            fingerprints[self.judge[0]] = self.judge[1]
        loaded = dict(zip(fingerprints, context.models(tuple(fingerprints)), strict=True))
        # Files may have been overwritten since, and scores of two models must not share a name.
        for name, model in loaded.items():
            if model.convention.fingerprint != fingerprints[name]:
                raise ModelError(f"{model.name} has changed since the job began; start it again.")
        return loaded

    def _below_floor(self, limits: Iterable[tuple[LanguageModel, float]]) -> str:
        """Reason for which the natural sentence is below a floor, nats; empty where it is not."""
        for model, floor in limits:
            log_prob = float(model.log_probs([self.natural])[0])
            # The floor was computed in a batch, in which this very sentence may have been.
            high_enough = reaches_floor(log_prob, floor, model.convention.tolerance)
            if computes_coarsely((model,)):
                # A floor holds in float32, and the search must be able to start from the sentence.
                precise = float(model.float32_log_probs([self.natural])[0])
                high_enough = high_enough and reaches_floor(precise, floor, ROUNDING)
                log_prob = min(log_prob, precise)
            if not high_enough:
                return (
                    f"below the floor of plausibility: {model.name} gives it {log_prob:.2f} nats, "
                    f"and the floor for {len(self.natural)} words is {floor:.2f}"
                )
        return ""

    def _fluency(self, loaded: Mapping[str, LanguageModel]) -> tuple[LanguageModel, float] | None:
        if self.judge is None:
            return None
        name, _, floor = self.judge
        model = loaded[name]
        if name in self.models:
            # Its second role has a name of its own; weights and caches are shared.
            model = copy(model)
            model.name = f"{model.name} (judge)"
        return model, floor

    def _constraints(self, vocabulary: Vocabulary) -> tuple[Constraint, ...]:
        limits = replace(self.question, exclude=(*self.question.exclude, *self.capped))
        constraints = limits.constraints(self.natural, every_fix=False)
        rule = capitals(vocabulary) if self.question.capitals == "rules" else None
        return constraints if rule is None else (*constraints, rule)


def trail_of(synthesis: Synthesis) -> dict[str, Any]:
    """The way to one synthetic sentence, as plain values.

    Returns:
        accept, reject: the models' names.
        visits: how many positions were visited.
        ending: why the search ended.
        costs: (rows, tokens, calls) of each model's network, by its name.
        steps: (round, visit, position, old, new, sentence, log p accept, log p reject) of each
            accepted replacement, in order; nats. Within a round each begins where the one before
            ended; a new round begins from a changed copy of the best sentence so far, which is
            itself a step where it is better: of several new words the last is named.
        evaluations: (visit, position, word, sentence, log p accept, log p reject) of each candidate
            that was scored exactly, in order; None for a model that was not asked.
        frontier: (new words, drop, sentence, log p accept, log p reject) of the best sentence with
            each number of new words, where few changes were asked for.
        searches: (seed, loss, gain, visits, rows, tokens) of each search from the natural
            sentence, in order; all else is about the best of them, but for the costs, which are
            those of all.
    """
    climb = synthesis.climb
    searches = []
    for s in synthesis.searches:
        cost = sum(s.costs.values(), Cost())
        searches.append((s.seed, s.loss, s.gain, s.visits, cost.rows, cost.tokens))
    frontier = [
        (point.changed, point.drop, point.sentence.text, *_two(point.log_probs))
        for point in synthesis.frontier
    ]
    return {
        "accept": synthesis.accept,
        "reject": synthesis.reject,
        "visits": climb.visits,
        "ending": climb.end,
        "costs": {name: (c.rows, c.tokens, c.calls) for name, c in synthesis.costs.items()},
        "steps": [
            (s.round, s.visit, s.position, s.old, s.new, s.sentence.text, *_two(s.log_probs))
            for s in climb.steps
        ],
        "evaluations": [
            (e.visit, e.position, e.word, e.sentence.text, *_two(e.log_probs))
            for e in synthesis.evaluations
        ],
        "searches": searches,
        **({"frontier": frontier} if frontier else {}),
    }


def _two(log_probs: FloatArray) -> list[float | None]:
    """Of the accept and the reject model, nats; None for a model that was not asked."""
    return [None if isnan(score) else score for score in log_probs.tolist()[:2]]


def describe_words(words: Vocabulary | None) -> str:
    """A digest of words that a search may use; None for all."""
    if words is None:
        return "all"
    return digest(map(" ".join, (words.initial, words.inner, sorted(words.repeatable))))


def digest(texts: Iterable[str]) -> str:
    """A text by which texts are known again."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


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
