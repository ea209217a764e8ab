"""Triplets for all pairs of models, from a plan to its results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from contstim.optimization.jobs.plan import MAY_GROW
from contstim.optimization.jobs.results import TripletResults, pair_statistics
from contstim.optimization.jobs.scheduler import Scheduler
from contstim.optimization.jobs.sentence_allocation import SentenceAllocator
from contstim.optimization.jobs.task_queue import ModelInspection, TripletQueue
from contstim.optimization.jobs.words import shared_words
from contstim.store.triplets import JobState, TripletStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.optimization.jobs.executors.base import Executor
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.worker_context import WorkerContext
    from contstim.sentence import Sentence
    from contstim.store.database import Database
    from contstim.vocabulary import Vocabulary


def find_triplets(
    plan: SynthesisPlan,
    database: Database,
    executor: Executor,
    context: WorkerContext,
    *,
    retry_failed: bool = False,
    say: Callable[[str], None] = lambda _text: None,
    say_supply: Callable[[str], None] = lambda _text: None,
    progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
) -> TripletResults:
    """Search for both directions of every natural sentence that is assigned to a pair of models.

    Each outcome is stored as it comes, in one transaction. A job that was killed goes on where it
    stopped, and what it finds does not depend on where that was, nor on the executor, the number of
    workers or the order of the models. A search that fails is tried three times; then its error is
    stored, and the others go on. So it is with a search that finds nothing with any of its seeds:
    that is stored, and no other sentence takes the place.

    Args:
        plan: what is wanted.
        database: where outcomes are stored.
        executor: runs the searches; is started and closed here.
        context: what every worker begins with, the plan's words among it.
        retry_failed: try those again that failed in an earlier run.
        say: told what the user should know.
        say_supply: told, before the search, how many sentences are needed and can be used.
        progress: told how many jobs have come to an end, and how many are wanted.

    Raises:
        InputError: too few natural sentences.
        ModelError: a model cannot be loaded, or two are one and the same.
        StoreError: the database holds triplets made with other settings, or cannot be written.
        VocabularyError: two models share no word.
        WorkerError: workers cannot be started.
    """
    store = TripletStore(database)
    plan = plan.ordered(store.models()).resumed(store.settings())
    with executor:
        executor.start(context)
        scheduler = Scheduler(executor, say)

        # What each model is and which words it knows; only workers load models.
        inspection = ModelInspection(plan.models)
        scheduler.work_off(inspection)
        profiles = {name: inspection.profiles[name] for name in plan.models}

        # Natural sentences for each pair, of words that both models know.
        words = [shared_words(p, (profiles[p[0]].words, profiles[p[1]].words)) for p in plan.pairs]
        usable = [partial(_is_usable, vocabulary) for vocabulary in words]
        allocator = SentenceAllocator(plan.sentences, usable, seed=plan.seed)
        say_supply(allocator.supply(plan.per_pair, plan.pairs))
        allocator.assign(plan.per_pair, plan.pairs)

        # Nothing is stored before all input has been found to be good.
        store.settle(plan.settings(tuple(profiles.values())), may_grow=MAY_GROW)
        if retry_failed:
            store.forget_failures()
        queue = TripletQueue(
            plan,
            profiles,
            allocator,
            settled=store.jobs(),
            save=lambda task, outcome: store.keep(
                task.models, task.place, task.natural.text, outcome
            ),
            progress=progress,
        )
        scheduler.work_off(queue)

    order = {pair: number for number, pair in enumerate(plan.pairs)}
    triplets = sorted(store.triplets(), key=lambda t: order[t.model_1, t.model_2])
    failures = [job for job in store.jobs() if job.state is JobState.FAILED]
    missing = {pair: searches.missing for pair, searches in queue.pairs.items()}
    return TripletResults(
        triplets=tuple(triplet for triplet in triplets if triplet.distinct),
        unchanged=tuple(triplet for triplet in triplets if not triplet.distinct),
        failures=tuple(sorted(failures, key=lambda job: order[job.model_1, job.model_2])),
        pairs=pair_statistics(plan.pairs, store, missing),
        conventions={name: profile.convention for name, profile in profiles.items()},
        training_texts={name: profile.training_text for name, profile in profiles.items()},
    )


def _is_usable(words: Vocabulary, sentence: Sentence) -> bool:
    return len(sentence) > 1 and not words.missing(sentence)
