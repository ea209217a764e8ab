"""What workers do: inspect a model, search for a triplet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.errors import ContstimError, ModelError
from contstim.models.costs import Cost
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store.triplets import JobState, Outcome, Trail

if TYPE_CHECKING:
    from contstim.arrays import FloatArray
    from contstim.models.base import Convention
    from contstim.models.training_text import TrainingText
    from contstim.optimization.jobs.worker_context import WorkerContext
    from contstim.optimization.search.restarts import SearchBudget
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


SEEDS = 3
"""How many seeds a search is tried with, at most, while it finds nothing."""


class SynthesisTask(ABC):
    """Something to do with models; a value that can be sent to another process."""

    @abstractmethod
    def perform(self, context: WorkerContext) -> Any:
        """Do it; the result can be sent to another process."""


@dataclass(frozen=True)
class ModelProfile:
    """What the scheduling process has to know of a model, which it does not load.

    Attributes:
        convention: how its scores come about.
        words: those that it lets a search use; None where every word will do.
        training_text: the sentences that it was trained on; None where they are not known.
    """

    convention: Convention
    words: Vocabulary | None
    training_text: TrainingText | None = None


@dataclass(frozen=True)
class InspectionTask(SynthesisTask):
    """Load a model and describe it.

    Attributes:
        model: its specification.
    """

    model: str

    def perform(self, context: WorkerContext) -> ModelProfile:
        """See `SynthesisTask.perform`."""
        (model,) = context.models((self.model,))
        return ModelProfile(model.convention, context.usable_words(model), model.training_text)


@dataclass(frozen=True)
class TripletTask(SynthesisTask):
    """Search for the triplet of one natural sentence and two models.

    Attributes:
        models: their names.
        fingerprints: what the models were when the job began.
        place: the sentence's place, from 0, among those assigned to the pair.
        natural: the sentence.
        seed: decides what is left to chance.
        recipe: the name of the way to search.
        restarts: how often and how long to search in each direction; None as the recipe says.
    """

    models: tuple[str, str]
    fingerprints: tuple[str, str]
    place: int
    natural: Sentence
    seed: int
    recipe: str
    restarts: SearchBudget | None = None

    def perform(self, context: WorkerContext) -> Outcome:
        """See `SynthesisTask.perform`.

        A sentence that one of the models finds impossible is no failure, but inadmissible. A search
        that finds nothing is tried with further seeds, `SEEDS` in all; if all of them find nothing,
        the outcome's triplet is not distinct and its reason says so.

        Raises:
            ModelError: a model is no longer what it was when the job began.
            ContstimError: see `synthesize_triplet`.
        """
        first, second = models = context.models(self.models)
        # Files may have been overwritten since, and scores of two models must not share a name.
        for model, fingerprint in zip(models, self.fingerprints, strict=True):
            if model.convention.fingerprint != fingerprint:
                raise ModelError(f"{model.name} has changed since the job began; start it again.")
        try:
            triplet, *syntheses = synthesize_triplet(
                first,
                second,
                self.natural,
                context.words(self.models),
                recipe=recipe_named(self.recipe),
                seed=self.seed,
                seeds=SEEDS,
                restarts=self.restarts,
            )
        except ContstimError:
            # Whether the sentence is to blame is asked only where a search has failed.
            for model in models:
                if model.log_probs([self.natural])[0] == -np.inf:
                    return Outcome(JobState.INADMISSIBLE, f"{model.name} gives it probability zero")
            raise
        return Outcome(JobState.FOUND, triplet.alike, triplet, tuple(map(_trail, syntheses)))


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
            (e.visit, e.position, e.word, e.sentence.text, *_two(e.log_probs))
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
    accept, reject = log_probs.tolist()
    return accept, reject
