"""Tasks of workers: inspect a model, search for a triplet."""

from __future__ import annotations

import hashlib
import json
from copy import copy
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from math import isnan
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ContstimError, ModelError
from contstim.jobs.worker_context import WorkerTask
from contstim.models.base import ROUNDING
from contstim.models.costs import Cost, Tally, counting
from contstim.models.merging import merged
from contstim.models.transforms import UnknownWords, unknown_words
from contstim.optimization.jobs.context import SearchContext
from contstim.optimization.search.constraints import Candidates, Capitals, Fixed, NoRepeats
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.search.verification import computes_coarsely, reaches_floor
from contstim.store.triplets import JobState, Outcome, Searched, Trail

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.arrays import FloatArray
    from contstim.models.base import Convention
    from contstim.models.training_text import TrainingText
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.search.constraints import Constraint
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


SEEDS = 3
"""How many seeds a search is tried with, at most, while it finds nothing."""

VERSION = 1
"""Number of the way to search, to be raised when the same search finds another result."""


@dataclass(frozen=True)
class ModelProfile:
    """Facts about a model for the scheduling process, which does not load it.

    Attributes:
        convention: how its scores come about.
        words: those that it lets a search use; None where every word will do.
        training_text: the sentences that it was trained on; None where they are not known.
        is_black_box: see `LanguageModel.is_black_box`.
        unknown: the words of the natural sentences that it does not know; None where nobody asked.
    """

    convention: Convention
    words: Vocabulary | None
    training_text: TrainingText | None = None
    is_black_box: bool = False
    unknown: UnknownWords | None = None


@dataclass(frozen=True)
class InspectionTask(WorkerTask[SearchContext]):
    """Load a model and describe it.

    Attributes:
        model: its specification.
        sentences: the natural sentences of the study.
    """

    model: str
    sentences: tuple[Sentence, ...] = ()

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

    def perform(self, context: SearchContext) -> dict[Sentence, float]:
        """Log-probabilities, nats, of those sentences that the model can score."""
        (model,) = context.models((self.model,))
        reasons = model.unscorable(self.sentences)
        some = [s for s, reason in zip(self.sentences, reasons, strict=True) if reason is None]
        coarse = computes_coarsely((model,))
        scores = model.float32_log_probs(some) if coarse else model.log_probs(some)
        return dict(zip(some, scores.tolist(), strict=True))


@dataclass(frozen=True)
class Judge:
    """A further model, and the least log-probability that it must give a task's sentences.

    Attributes:
        model: its specification.
        fingerprint: what the model was when the job began.
        floor: nats.
    """

    model: str
    fingerprint: str
    floor: float


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
        judge: a further model that every sentence must please.
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
    judge: Judge | None = None
    floors: tuple[float, float] | None = None
    capped: frozenset[str] = frozenset()

    @property
    def seed(self) -> int:
        """Number from which all chance follows, from what is searched and nothing else."""
        # A sign that no text holds stands between the parts, so that no two lists read alike.
        parts = (str(self.question.seed), *self.fingerprints, self.natural.text)
        return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:7])

    @cached_property
    def searched(self) -> Searched:
        """All that decides the outcome, as a store knows it."""
        facts = {
            "version": VERSION,
            "models": self.models,
            "fingerprints": self.fingerprints,
            "natural": self.natural.text,
            "words": self.words,
            "judge": None if self.judge is None else astuple(self.judge),
            "floors": self.floors,
            **self.question.key,
        }
        excluded = frozenset(map(str.lower, self.question.exclude))
        base = digest([json.dumps(facts, sort_keys=True)])
        key = digest([base, *sorted(excluded | self.capped)])
        return Searched(self.models, self.natural, base, excluded, key)

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
        judges = () if self.judge is None else (self.judge,)
        # A judge that is one of the two models is loaded once.
        names = tuple(dict.fromkeys((*self.models, *(judge.model for judge in judges))))
        loaded = dict(zip(names, context.models(names), strict=True))
        models = [loaded[name] for name in self.models]
        fingerprints = {judge.model: judge.fingerprint for judge in judges}
        fingerprints |= dict(zip(self.models, self.fingerprints, strict=True))
        # Files may have been overwritten since, and scores of two models must not share a name.
        for name, model in loaded.items():
            if model.convention.fingerprint != fingerprints[name]:
                raise ModelError(f"{model.name} has changed since the job began; start it again.")

        limits = [(loaded[judge.model], judge.floor) for judge in judges]
        limits += zip(models, self.floors or (), strict=False)
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
                return Outcome(
                    JobState.INADMISSIBLE,
                    f"below the floor of plausibility: {model.name} gives it {log_prob:.2f} nats, "
                    f"and the floor for {len(self.natural)} words is {floor:.2f}",
                )
        vocabulary = context.words(names)
        constraints = self._constraints(vocabulary)
        # Without constraints, a position where no word fits is the user's vocabulary's fault.
        if constraints:
            candidates = Candidates(
                vocabulary, self.natural, (NoRepeats(vocabulary.repeatable), *constraints)
            )
            blocked = [
                p for p in candidates.positions if not candidates.allowed(self.natural, p).any()
            ]
            if len(blocked) == len(candidates.positions):
                return Outcome(
                    JobState.INADMISSIBLE,
                    "nothing may be put in: the constraints allow no other word at any position",
                )
            constraints = (*constraints, Fixed(frozenset(blocked)))

        fluency = None
        if self.judge is not None:
            judge_model = loaded[self.judge.model]
            if self.judge.model in self.models:
                # Its second role has a name of its own; weights and caches are shared.
                judge_model = copy(judge_model)
                judge_model.name = f"{judge_model.name} (judge)"
            fluency = (judge_model, self.judge.floor)
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
                    fluency=fluency,
                    seed=self.seed,
                    seeds=SEEDS,
                    restarts=self.question.budget,
                )
        except ContstimError:
            # Whether the sentence is to blame is asked only where a search has failed.
            for model in loaded.values():
                if model.log_probs([self.natural])[0] == -np.inf:
                    return Outcome(JobState.INADMISSIBLE, f"{model.name} gives it probability zero")
            raise
        return Outcome(
            JobState.FOUND,
            triplet.alike,
            triplet,
            tuple(map(_trail, syntheses)),
            wall_seconds=perf_counter() - began - tally.others_seconds,
            network_seconds=tally.seconds,
        )

    def _constraints(self, vocabulary: Vocabulary) -> tuple[Constraint, ...]:
        limits = replace(self.question, exclude=(*self.question.exclude, *self.capped))
        constraints = limits.constraints(self.natural, every_fix=False)
        if self.question.capitals == "rules":
            capitals = Capitals.of(vocabulary)
            if capitals.capitalised or capitals.small:
                constraints = (*constraints, capitals)
        return constraints


def _trail(synthesis: Synthesis) -> Trail:
    """The way to one synthetic sentence, as plain values for the database."""
    climb = synthesis.climb
    return Trail(
        synthesis.accept,
        synthesis.reject,
        climb.visits,
        climb.end.value,
        {name: (cost.rows, cost.tokens, cost.calls) for name, cost in synthesis.costs.items()},
        tuple(
            (s.round, s.visit, s.position, s.old, s.new, s.sentence.text, *_two(s.log_probs))
            for s in climb.steps
        ),
        tuple(
            (e.visit, e.position, e.word, e.sentence.text, *_known(e.log_probs))
            for e in synthesis.evaluations
        ),
        tuple(
            (s.seed, s.loss, s.gain, s.visits, total.rows, total.tokens)
            for s in synthesis.history.searches
            for total in (sum(s.costs.values(), Cost()),)
        ),
    )


def _two(log_probs: FloatArray) -> tuple[float, float]:
    """Of the accept and the reject model, nats."""
    accept, reject = log_probs.tolist()[:2]
    return accept, reject


def _known(log_probs: FloatArray) -> tuple[float | None, float | None]:
    """The same; None for a model that was not asked."""
    accept, reject = (None if isnan(score) else score for score in _two(log_probs))
    return accept, reject


def describe_words(words: Vocabulary | None) -> str:
    """A digest of words that a search may use; None for all."""
    if words is None:
        return "all"
    return digest(map(" ".join, (words.initial, words.inner, sorted(words.repeatable))))


def digest(texts: Iterable[str]) -> str:
    """A text by which texts are known again."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
