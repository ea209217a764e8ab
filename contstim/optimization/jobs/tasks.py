"""Tasks of workers, and the context in which workers execute them.

Workers are processes that load models. A task inspects a model, or searches for a triplet.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, reduce
from math import isnan
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contstim.errors import ContstimError, ModelError, VocabularyError
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from contstim.models.base import ROUNDING, computes_coarsely
from contstim.models.costs import Cost, Tally, counting
from contstim.models.merging import merged
from contstim.models.transforms import UnknownWords, unknown_words
from contstim.models.vocabularies import DEFAULT_MIN_COUNT, default_vocabulary
from contstim.optimization.jobs.results import FEW_NEW_WORDS
from contstim.optimization.search.constraints import Candidates, capitals, no_repeats
from contstim.optimization.search.recipes import recipe_named
from contstim.optimization.search.synthesize import synthesize_triplet
from contstim.optimization.search.verification import reaches_floor
from contstim.store.triplets import Result
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contstim.files.arrays import FloatArray
    from contstim.items.stimuli import Triplet
    from contstim.models.base import Convention, Scorer
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.search.synthesize import Synthesis
    from contstim.store.triplets import State
    from contstim.words.sentence import Sentence


SEEDS = 3
"""Maximum number of seeds for a triplet. Another seed is used only if a search finds nothing."""

VERSION = 10
"""Version of the search. Increase it when a change of the code changes the result of a search.

Also increase it when the table of English tags changes.
"""


@dataclass
class SearchContext(WorkerContext):
    """A worker's options and models, and the words that searches with these models may use.

    Attributes:
        vocabulary: words to use; None for the frequent words of the models' training texts.
        allow_unknown: whether searches may use words that a word-level model does not know.
    """

    vocabulary: Vocabulary | None = None
    allow_unknown: bool = False
    _words: dict[tuple[str, ...], Vocabulary] = field(default_factory=dict, init=False)

    def words(self, names: tuple[str, ...]) -> Vocabulary:
        """Return the words that a search between two models may use.

        Raises:
            VocabularyError: if there are no such words.
        """
        if names not in self._words:
            usable = tuple(self.usable_words(model) for model in self.scorers(names))
            # Store the words of one pair only: vocabularies are large, and pairs change rarely
            self._words = {names: shared_words(names, usable)}
        return self._words[names]

    def usable_words(self, model: Scorer) -> Vocabulary | None:
        """Return the words that a search may use with a model; None for all words.

        Raises:
            VocabularyError: if the model knows none of the words.
            ModelError: if the file of the model's word counts is missing.
        """
        if self.vocabulary is None:
            return model.vocabulary(DEFAULT_MIN_COUNT)
        return self.vocabulary if self.allow_unknown else self.vocabulary.restrict(model.knows)[0]


def shared_words(models: tuple[str, ...], words: tuple[Vocabulary | None, ...]) -> Vocabulary:
    """Return the words that a search may use with each of the models.

    `words` are the usable words of each model; see `SearchContext.usable_words`. If every model
    allows all words, return the embedded English vocabulary.

    Raises:
        VocabularyError: if no word may start a sentence, or if no word may follow another word.
    """
    vocabularies = [v for v in words if v is not None] or [default_vocabulary(())]
    for role, position in (("start a sentence", 0), ("follow another", 1)):
        if not set.intersection(*(set(v.at(position)) for v in vocabularies)):
            raise VocabularyError(
                f"No word of the vocabulary that may {role} is known to "
                f"{'both' if len(models) == 2 else 'all of'} {' and '.join(models)}. Use a "
                f"vocabulary in the models' language and letter case."
            )
    return reduce(Vocabulary.intersect, vocabularies)


@dataclass(frozen=True)
class ModelProfile:
    """Facts about a model for the main process, which does not load models.

    Attributes:
        words: words that a search may use with the model; None for all words.
        unknown: message about words of the natural sentences that the model does not know, and
            whether the message is a warning.
        order: see `Scorer.order_fingerprint`; empty if unknown.
    """

    convention: Convention
    words: Vocabulary | None
    training_text: Path | None = None
    is_causal: bool = False
    unknown: UnknownWords = ("", False)
    order: str = ""


@dataclass(frozen=True)
class InspectionTask(WorkerTask[SearchContext]):
    """Load a model and describe it."""

    model: str
    sentences: tuple[Sentence, ...] = ()
    text: ClassVar[str] = "Loading the model"

    def perform(self, context: SearchContext) -> ModelProfile:
        """See `WorkerTask.perform`."""
        (model,) = context.scorers((self.model,))
        return ModelProfile(
            model.convention,
            context.usable_words(model),
            model.training_text,
            bool(model.convention.context_tokens) and model.convention.is_log_probability,
            unknown_words(model, self.sentences),
            model.order_fingerprint,
        )


@dataclass(frozen=True)
class TripletTask(WorkerTask[SearchContext]):
    """Search for the triplet of one natural sentence and two models.

    Attributes:
        question: settings of the study's searches, with defaults filled in
            (`SearchQuestion.resolved`).
        fingerprints: fingerprints of the models at the start of the job. A fingerprint identifies a
            model and its scoring rule.
        words: digest of the words that the search may use.
        judges: specification and fingerprint of each judge, a model that chooses plausible
            sentences.
        floors: minimum score of the natural sentence under each of the two models; None for no
            minimum.
        sds: standard deviation of each model's scores of natural sentences; None if both models'
            scores are in nats.
    """

    question: SearchQuestion
    models: tuple[str, str]
    fingerprints: tuple[str, str]
    natural: Sentence
    words: str
    judges: tuple[tuple[str, str], ...] = ()
    floors: tuple[float, float] | None = None
    sds: tuple[float, float] | None = None

    @property
    def seed(self) -> int:
        """Seed of the search, which depends on the study's seed, the models and the sentence."""
        parts = (str(self.question.seed), *self.fingerprints, self.natural.text)
        return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:7])

    @cached_property
    def key(self) -> str:
        """Digest of everything that determines the result."""
        facts = {
            "version": VERSION,
            "models": self.models,
            "fingerprints": self.fingerprints,
            "natural": self.natural.text,
            "words": self.words,
            "judges": self.judges,
            "floors": self.floors,
            "exclude": sorted(self.question.excluded),
            **({"sds": self.sds, "enough_sds": self.question.sds} if self.sds else {}),
            **self.question.key,
        }
        return digest([json.dumps(facts, sort_keys=True)])

    def perform(self, context: SearchContext) -> Result:
        """See `WorkerTask.perform`.

        The state of the result is `inadmissible` if the natural sentence has probability zero under
        a model, if its score is below a floor, or if none of its words may change. There is one
        search for each of the two synthetic sentences. An unsuccessful search is repeated with
        other seeds, with at most `SEEDS` seeds in total. Searches for sentences with few new words
        (option `enough`) are not repeated. If one of the two searches remains unsuccessful, its
        result is the natural sentence, and the returned value says why the search ended.

        Raises:
            ModelError: if a model has changed since the job began.
            ContstimError: see `synthesize_triplet`.
        """
        loaded = self._load(context)
        models = [loaded[name] for name in self.models]
        vocabulary = context.words(self.models)
        constraints = self.question.constraints(self.natural, every_fix=False)
        if recipe_named(self.question.recipe).capitals and (rule := capitals(vocabulary)):
            constraints += (rule,)
        if reason := self._below_floor(zip(models, self.floors or (), strict=False)):
            return self.result("inadmissible", reason)
        if constraints:
            rules = (no_repeats(vocabulary.repeatable), *constraints)
            candidates = Candidates(vocabulary, self.natural, rules)
            if len(candidates.blocked) == len(candidates.positions):
                reason = (
                    "nothing may be put in: the constraints allow no other word at any position"
                )
                return self.result("inadmissible", reason)
        few_changes = self.question.few_changes(in_sds=self.sds is not None)
        if few_changes is not None and self.floors is not None and self.sds is None:
            # Without judges, the model with the higher floor chooses among sentences, because
            # natural sentences are likelier under this model
            better = models[int(self.floors[1] > self.floors[0])]
            few_changes = replace(few_changes, chooser=better.name)
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
                    judges=[loaded[name] for name, _ in self.judges],
                    sds=self.sds and dict(zip([m.name for m in models], self.sds, strict=True)),
                    seed=self.seed,
                    seeds=SEEDS,
                    restarts=self.question.budget,
                    few_changes=few_changes,
                )
        except ContstimError:
            # If the natural sentence is impossible under a model, skip it; the search did not fail
            for model in loaded.values():
                if model.scores([self.natural])[0] == -np.inf:
                    return self.result("inadmissible", f"{model.name} gives it probability zero")
            raise
        reason = triplet.equality_note
        if few_changes is not None and not triplet.distinct:
            unit = "nats" if self.sds is None else "standard deviations"
            reason = f"{FEW_NEW_WORDS} {few_changes.enough:g} {unit}"
        return replace(
            self.result("found", reason, triplet, tuple(map(trail_of, syntheses))),
            wall_seconds=perf_counter() - began - tally.others_seconds,
            network_seconds=tally.seconds,
        )

    def result(
        self,
        state: State,
        reason: str = "",
        triplet: Triplet | None = None,
        trails: tuple[dict[str, Any], ...] = (),
    ) -> Result:
        """Return a result of this search; its costs are sums over the trails, see `trail_of`."""
        costs = [cost for trail in trails for cost in trail["costs"].values()]
        return Result(
            *(0, *self.models, self.natural.text, state, reason, triplet),
            rows=sum(rows for rows, _, _ in costs),
            tokens=sum(tokens for _, tokens, _ in costs),
            searches=sum(len(trail["searches"]) for trail in trails),
            trails=trails,
        )

    def _load(self, context: SearchContext) -> dict[str, Scorer]:
        """Return the two models and the judges, by specification."""
        fingerprints = dict([*zip(self.models, self.fingerprints, strict=True), *self.judges])
        loaded = dict(zip(fingerprints, context.scorers(tuple(fingerprints)), strict=True))
        # The files may have been overwritten since the job began. Results of the new model must
        # not be stored as results of the old model
        for name, model in loaded.items():
            if model.convention.fingerprint != fingerprints[name]:
                raise ModelError(
                    f"{model.name} has changed since the job began. Start the job again."
                )
        return loaded

    def _below_floor(self, limits: Iterable[tuple[Scorer, float]]) -> str:
        """Return why the natural sentence is below a floor; empty if it is not below any floor."""
        for model, floor in limits:
            log_prob = float(model.scores([self.natural])[0])
            # Allow a tolerance: the floor may be the score of this very sentence, computed in
            # another batch and therefore with other rounding errors
            high_enough = reaches_floor(log_prob, floor, model.convention.tolerance)
            if computes_coarsely((model,)):
                # Floors are scores with float32 weights, but the search uses scores in lower
                # precision. Check both scores
                precise = float(model.float32_scores([self.natural])[0])
                high_enough = high_enough and reaches_floor(precise, floor, ROUNDING)
                log_prob = min(log_prob, precise)
            if not high_enough:
                return (
                    f"below the floor of plausibility: {model.name} gives it {log_prob:.2f} "
                    f"{model.convention.unit}, and the floor for {len(self.natural)} words is "
                    f"{floor:.2f}"
                )
        return ""


def trail_of(synthesis: Synthesis) -> dict[str, Any]:
    """Return the trail (steps and costs) of a search for one synthetic sentence, as plain values.

    The accept model should accept the synthetic sentence, and the reject model should reject it.
    The search may have been repeated from the natural sentence. `costs` and `searches` are about
    all repetitions; the other values are only about the best one.

    Returns:
        accept, reject: names of the models.
        visits: number of visited positions.
        ending: why the search ended.
        costs: name of a model → (sequences, tokens, batches) that its network processed, summed
            over all searches.
        steps: (round, visit, position, old, new, sentence, log p accept, log p reject) of each
            accepted replacement, in order; see `climb.Step`. Log p is in nats.
        evaluations: (visit, position, word, sentence, log p accept, log p reject) of each exactly
            scored candidate, in order. Log p is None for a model that did not score the candidate.
        choice: fields of `few_changes.Choice`; only in searches for few new words.
        searches: (seed, loss, gain, visits, sequences, tokens) of each search from the natural
            sentence, in order.
    """
    climb = synthesis.climb
    searches = []
    for s in synthesis.searches:
        cost = sum(s.costs.values(), Cost())
        searches.append((s.seed, s.loss, s.gain, s.visits, cost.rows, cost.tokens))
    return {
        "accept": synthesis.accept,
        "reject": synthesis.reject,
        "visits": climb.visits,
        "ending": climb.end,
        "costs": {name: (c.rows, c.tokens, c.calls) for name, c in synthesis.costs.items()},
        "steps": [
            (s.round, s.visit, s.position, s.old, s.new, s.sentence.text, *_scores(s.log_probs))
            for s in climb.steps
        ],
        "evaluations": [
            (e.visit, e.position, e.word, e.sentence.text, *_scores(e.log_probs))
            for e in synthesis.evaluations
        ],
        "searches": searches,
        **({} if synthesis.choice is None else {"choice": asdict(synthesis.choice)}),
    }


def _scores(log_probs: FloatArray) -> list[float | None]:
    """Return the scores of the two models, accept model first, nats; None for missing scores."""
    return [None if isnan(score) else score for score in log_probs.tolist()[:2]]


def describe_words(words: Vocabulary | None) -> str:
    """Return a digest of the words that a search may use; `all` for None."""
    if words is None:
        return "all"
    return digest(map(" ".join, (words.initial, words.inner, sorted(words.repeatable))))


def digest(texts: Iterable[str]) -> str:
    """Return the SHA-256 digest of texts, in hexadecimal digits."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
