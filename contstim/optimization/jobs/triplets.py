"""Triplets for all pairs of models, from a question to its results."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from contstim.errors import InputError, ModelError
from contstim.items.reviews import Decision, ItemKind
from contstim.items.stimuli import Triplet
from contstim.jobs.model_workers import work_off
from contstim.jobs.pool import worker_pool
from contstim.models.costs import ReportingTally, counting
from contstim.models.transforms import tell_end_mark, tell_unknown
from contstim.optimization.jobs.assignment import Assignment, models_in_order, slots_to_begin_with
from contstim.optimization.jobs.queues import CapRounds, Searches, TripletQueue
from contstim.optimization.jobs.results import TripletResults, pair_statistics
from contstim.optimization.jobs.so_far import TripletsSoFar
from contstim.optimization.jobs.tasks import InspectionTask, find_floors, shared_words
from contstim.optimization.search.settings import fixed_positions
from contstim.optimization.search.verification import NEEDS_LOG_PROBABILITIES
from contstim.reporter import SILENT
from contstim.store.triplets import AssignedSentence, Result, TripletStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.items.reviews import Review
    from contstim.jobs.pool import Executor, Pool
    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile, SearchContext
    from contstim.reporter import Reporter
    from contstim.store.database import Store
    from contstim.store.triplets import Slot
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

    ModelPair = tuple[str, str]

_RowT = TypeVar("_RowT", Triplet, Result, AssignedSentence)


def find_triplets(
    question: SearchQuestion,
    models: Sequence[Specification],
    sentences: Sequence[Sentence],
    database: Store,
    executor: Executor,
    context: SearchContext,
    *,
    retry_failed: bool = False,
    task_limit: float | None = None,
    review: Review | None = None,
    shown: Collection[Sentence] = frozenset(),
    assignment: Sequence[AssignedSentence] = (),
    so_far: Path | None = None,
    reporter: Reporter = SILENT,
) -> TripletResults:
    """Search for both directions of every natural sentence that is assigned to a pair of models.

    Each outcome is kept as it comes, in one transaction, by all that decides it: what has been
    searched before is looked up. So a job that was killed goes on where it stopped, and a study
    that has further models, sentences or triplets, fewer, or others searches what it has not yet.
    What is found does not depend on where a job was killed, nor on the executor, the number of
    workers or the order of the models. A search that fails is tried three times; then its error is
    kept, and the others go on. That a search finds nothing with any of its seeds is kept as well,
    and the next natural sentence takes its place.

    Args:
        question: what is wanted.
        models: every two of them are a pair.
        sentences: natural sentences.
        database: where outcomes are kept, and which sentences each pair has.
        executor: spawns the workers of the searches; is started and closed here.
        context: what every worker begins with, the words to use among it.
        retry_failed: try those again that failed in an earlier run.
        task_limit: seconds that a search may take, with loading its models; None for any time.
        review: what reviewers decided about triplets of the database. Those that are rejected are
            replaced by searches from the next natural sentences; all others stay.
        shown: sentences that trials show, from which no search begins as long as there are others.
        assignment: the natural sentences that a new study begins with, by the models' names; one
            that goes on has its own.
        so_far: a table of the triplets that are found, written every few seconds; None for none.
        reporter: told how many sentences are needed and can be used, what is scored, which words a
            model does not know, which workers are replaced, and how many searches have ended.

    Raises:
        InputError: fewer than two models, too few natural sentences, a word to fix that none has,
            or an assignment or a review that does not fit.
        ModelError: a model cannot be loaded, or two are one and the same.
        StoreError: the database cannot be written.
        VocabularyError: two models share no word.
        WorkerError: workers cannot be started.
    """
    if len(models) < 2:
        raise InputError("Triplets need two models or more.")
    for text in question.fix:
        if not any(fixed_positions(text, sentence) for sentence in sentences):
            raise InputError(f"fix: no sentence has the word or position {text!r}.")
    question, store = question.resolved, TripletStore(database)
    names = {named.specification: named.name for named in models}
    if question.further is not None:
        names.setdefault(question.further.specification, question.further.name)
    slots = store.slots(question.seed)
    of_name = {named.name: named.specification for named in models}
    given = [_renamed(row, of_name) for row in assignment]
    ordered = models_in_order(of_name.values(), slots or given)
    if review is not None:
        slots = _rejected(review, slots, store, question.seed, database.path)
    with worker_pool(executor, context, say=reporter.say, task_limit=task_limit) as workers:
        profiles = _inspect(ordered, sentences, workers)
        for name, profile in profiles.items():
            tell_end_mark(name, profile.convention.rule, reporter.say)
            tell_unknown(profile.unknown, reporter.warn, reporter.say)
        further = question.further
        judges = () if further is None else (further.specification,)
        if not {*judges} <= profiles.keys():
            # Alone: it may be one of the models under another specification.
            profiles |= _inspect(judges, (), workers)

        # Natural sentences for each pair, of words that both models, and a judge, know.
        words: dict[ModelPair, Vocabulary] = {}
        for pair in combinations(ordered, 2):
            group = tuple(dict.fromkeys((*pair, *judges)))
            words[pair] = shared_words(group, tuple(profiles[name].words for name in group))
            question.check_words(words[pair])
        pool = {*sentences}
        usable = {pair: partial(_is_usable, pool, vocabulary) for pair, vocabulary in words.items()}
        own = [slot for slot in slots if slot.pair in words]
        held = Assignment(
            sentences,
            usable,
            seed=question.seed,
            standing=_standing(own, usable, store.results(question.seed))
            if slots
            else slots_to_begin_with(given, pool, usable),
            reserved={slot.sentence for slot in slots if slot.pair not in words},
            shown=shown,
            save=partial(store.assign, question.seed),
        )
        reporter.say(held.supply(question.per_pair))
        held.assign(question.per_pair)
        goes_on = any(slot.sentence in pool for slot in own)
        floors = find_floors(
            question, profiles, ordered, sentences, store, workers, reporter, goes_on=goes_on
        )

        # Nothing is kept before all input has been found to be good.
        others = [slot for slot in slots if slot.pair not in words]
        held.save([*others, *(slot for some in held.slots.values() for slot in some)])
        searches = Searches(question, profiles, words, floors, store, retry_failed=retry_failed)
        cap = question.word_cap
        rounds = None if cap is None else CapRounds(cap, searches, held)
        table = None if so_far is None else TripletsSoFar(so_far, names)
        # Without a cap on words there is one round of all searches.
        while True:
            together = executor.shares_models
            queue = TripletQueue(searches, held, reporter, rounds, together=together, table=table)
            # Of searches in this process, every batch of a network moves the bar
            with counting(ReportingTally(queue.tick)):
                workers.work_off(queue)
            if rounds is None or not rounds.decide(queue.results):
                break

    found = [result for some in queue.found.values() for result in some]
    triplets = [_renamed(r.triplet, names) for r in found if r.triplet is not None]
    return TripletResults(
        triplets=tuple(triplet for triplet in triplets if triplet.distinct),
        unchanged=tuple(triplet for triplet in triplets if not triplet.distinct),
        failures=tuple(_renamed(r, names) for r in found if r.state == "failed"),
        pairs=tuple(
            pair_statistics((names[first], names[second]), results, queue.missing[first, second])
            for (first, second), results in queue.found.items()
        ),
        conventions={names[model]: profiles[model].convention for model in ordered},
        training_texts={names[model]: profiles[model].training_text for model in ordered},
        floors={names[model]: by_length for model, by_length in floors.items()},
        judge=None if further is None else profiles[further.specification].convention,
        assignment=tuple(
            _renamed(AssignedSentence(*slot.pair, slot.slot, slot.sentence), names)
            for some in held.slots.values()
            for slot in some
            # Of sentences that were passed over before a change, some are out of use since.
            if held.can_use(slot)
        ),
        found=tuple(found),
        wall_seconds=searches.wall_seconds,
        network_seconds=searches.network_seconds,
    )


def _renamed(row: _RowT, names: Mapping[str, str]) -> _RowT:
    """A triplet, a result or an assigned sentence with other names for its models."""
    first, second = (names.get(model, model) for model in (row.model_1, row.model_2))
    return replace(row, model_1=first, model_2=second)


def _is_usable(pool: Collection[Sentence], words: Vocabulary, sentence: Sentence) -> bool:
    return sentence in pool and len(sentence) > 1 and not words.missing(sentence)


def _standing(
    slots: Iterable[Slot],
    usable: Mapping[ModelPair, Callable[[Sentence], bool]],
    results: Mapping[int | None, Result],
) -> list[Slot]:
    """The slots that pairs keep.

    A sentence that was passed over, or searched in vain, does not come back when it is gone: its
    slot stays, or another would be searched there, before triplets that stand.
    """
    return [
        slot
        for slot in slots
        if slot.rejected
        or usable[slot.pair](slot.sentence)
        or ((r := results.get(slot.result)) and (r.state == "inadmissible" or r.in_vain))
    ]


def _inspect(
    models: Sequence[str], sentences: Sequence[Sentence], workers: Pool
) -> dict[str, ModelProfile]:
    """Facts about models; only workers load these.

    Raises:
        ModelError: two of them are one and the same, or scores are not log-probabilities.
    """
    # The first models come last, so that they are still loaded when searches begin.
    tasks = [InspectionTask(model, tuple(sentences)) for model in reversed(models)]
    told: dict[str, ModelProfile] = {}
    work_off(workers, tasks, lambda task, profile: told.update({task.model: profile}), {})
    of_fingerprint: dict[str, str] = {}
    for model in models:
        convention = told[model].convention
        convention.require_log_probability(model, NEEDS_LOG_PROBABILITIES)
        other = of_fingerprint.setdefault(convention.fingerprint, model)
        if other != model:
            raise ModelError(
                f"{model} and {other} are the same model: they can never disagree. Leave one of "
                f"them out."
            )
    return {model: told[model] for model in models}


def _rejected(
    review: Review, slots: Sequence[Slot], store: TripletStore, seed: int, path: Path
) -> list[Slot]:
    """Slots, with the reasons for which reviewers reject what stands there.

    A triplet that was replaced before, after a review or since it holds a word that is excluded by
    now, is settled: so a job that was killed goes on with the review that it began with.

    Raises:
        InputError: the review is of other triplets, or of triplets that have changed since.
    """
    triplets = {triplet.triplet_id: triplet for triplet in store.triplets()}
    if not triplets:
        raise InputError(
            f"{path} holds no triplets yet, so that none of them can have been reviewed: name the "
            f"store with which the reviewed table was made."
        )
    review.require_items_of(triplets.values(), path)
    # Trials are made of triplets: with a trial, its triplet is rejected.
    of_trials = [item for item in review.decisions if item.source_id in triplets]
    if not of_trials and not review.of_kind(ItemKind.TRIPLET):
        raise InputError(f"The review is of another set: it is not of triplets in {path}.")
    for item in of_trials:
        triplet = triplets[item.source_id]
        if not {*item.sentences} <= {*triplet.sentences}:
            raise InputError(
                f"{item.item_id} has changed since the review: {item.source_id} in {path} has "
                f"other sentences. Review it again."
            )
    reasons = {}
    for item in review.decisions:
        if item.decision is Decision.REJECT:
            why = f" ({item.reason})" if item.reason else ""
            name = item.source_id or item.item_id
            reasons[name] = f"rejected in a review: by {item.reviewer}{why}"
    results = store.results(seed)

    def reason(slot: Slot) -> str:
        result = results.get(slot.result)
        triplet = None if result is None or slot.refused else result.triplet
        return "" if triplet is None else reasons.get(triplet.triplet_id, "")

    return [replace(slot, rejected=slot.rejected or reason(slot)) for slot in slots]
