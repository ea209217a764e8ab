"""What workers do for a study: look at a model, and search for a triplet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import ContstimError, ModelError
from contstim.optimization.jobs.bench import Task
from contstim.optimization.search.recipes import RECIPES
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.store.triplets import Outcome, State, Trail

SEEDS = 3
"""How many seeds a search is tried with, at most, while it finds nothing."""

if TYPE_CHECKING:
    from contstim.arrays import FloatArray
    from contstim.models.base import Convention, LanguageModel
    from contstim.models.training_text import TrainingText
    from contstim.optimization.jobs.bench import Bench
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.sentence import Sentence
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True)
class Examined:
    """What the driver has to know of a model.

    Attributes:
        convention: how its scores come about.
        words: those that it lets a search use; None where every word will do.
        training_text: the sentences that it was trained on; None where they are not known.
    """

    convention: Convention
    words: Vocabulary | None
    training_text: TrainingText | None = None


@dataclass(frozen=True)
class Examine(Task):
    """Load a model and tell about it."""

    model: str

    def perform(self, bench: Bench) -> Examined:
        """See `Task.perform`."""
        (model,) = bench.models((self.model,))
        return Examined(model.convention, bench.usable_words(model), model.training_text)


@dataclass(frozen=True)
class Search(Task):
    """Search for the triplet of one natural sentence and two models.

    Attributes:
        models: their names.
        fingerprints: what the models were when the job began.
        place: the sentence's place, from 0, among those dealt to the pair.
        natural: the sentence.
        seed: decides what is left to chance.
        recipe: the name of the way to search.
    """

    models: tuple[str, str]
    fingerprints: tuple[str, str]
    place: int
    natural: Sentence
    seed: int
    recipe: str

    def perform(self, bench: Bench) -> Outcome:
        """See `Task.perform`.

        A sentence that one of the models finds impossible is no failure, but inadmissible. A search
        that finds nothing is tried with further seeds, `SEEDS` in all; if all of them find nothing,
        the outcome's triplet is not distinct and its reason says so.

        Raises:
            ModelError: a model is no longer what it was when the job began.
            ContstimError: see `synthesize_triplet`.
        """
        first, second = models = bench.models(self.models)
        for model, fingerprint in zip(models, self.fingerprints, strict=True):
            if model.convention.fingerprint != fingerprint:
                raise ModelError(f"{model.name} has changed since the job began; start it again.")
        try:
            triplet, *syntheses = synthesize_triplet(
                first,
                second,
                self.natural,
                bench.words(self.models),
                recipe=RECIPES[self.recipe],
                seed=self.seed,
                seeds=SEEDS,
            )
        except ContstimError:
            for model in models:
                if _is_impossible(model, self.natural):
                    return Outcome(State.INADMISSIBLE, f"{model.name} gives it probability zero")
            raise
        return Outcome(State.FOUND, triplet.alike, triplet, tuple(_trail(s) for s in syntheses))


def _is_impossible(model: LanguageModel, sentence: Sentence) -> bool:
    return bool(model.log_probs([sentence])[0] == -np.inf)


def _trail(synthesis: Synthesis) -> Trail:
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
    )


def _two(log_probs: FloatArray) -> tuple[float, float]:
    accept, reject = log_probs.tolist()
    return accept, reject
