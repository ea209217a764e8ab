"""Triplets for all pairs of models, from a plan to its results."""

from __future__ import annotations

from dataclasses import astuple
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, TypeVar

from contstim.errors import InputError
from contstim.jobs.pool import worker_pool
from contstim.optimization.jobs.allotment import (
    AllottedSentence,
    models_of,
    standing_sentences,
)
from contstim.optimization.jobs.plan import MAY_GAIN, MAY_GROW
from contstim.optimization.jobs.plausibility import floors_of, reference_sentences
from contstim.optimization.jobs.results import SearchTime, TripletResults, pair_statistics
from contstim.optimization.jobs.sentence_allocation import SentenceAllocator
from contstim.optimization.jobs.store_changes import NO_CHANGES, AllowedChanges, StoreChange
from contstim.optimization.jobs.task_queue import ModelInspection, NaturalScores, TripletQueue
from contstim.optimization.jobs.word_cap import Waves
from contstim.optimization.jobs.words import shared_words
from contstim.reviews import Decision, ItemKind
from contstim.sentence import Sentence
from contstim.stimuli import Triplet
from contstim.store.triplets import Job, JobState, Outcome, StoreEdit, TripletStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.jobs.pool import Executor, Pool
    from contstim.optimization.jobs.plan import SynthesisPlan
    from contstim.optimization.jobs.plausibility import Floors
    from contstim.optimization.jobs.search_context import SearchContext
    from contstim.optimization.jobs.tasks import ModelProfile, TripletTask
    from contstim.reviews import Review
    from contstim.store.database import Database
    from contstim.vocabulary import Vocabulary

_RowT = TypeVar("_RowT", Triplet, Job)


def find_triplets(
    plan: SynthesisPlan,
    database: Database,
    executor: Executor,
    context: SearchContext,
    *,
    retry_failed: bool = False,
    task_limit: float | None = None,
    floors: Floors | None = None,
    review: Review | None = None,
    shown: Collection[Sentence] = frozenset(),
    changes: AllowedChanges = NO_CHANGES,
    allotment: Sequence[AllottedSentence] = (),
    say: Callable[[str], None] = lambda _text: None,
    note: Callable[[str], None] = lambda _text: None,
    warn: Callable[[str], None] = lambda _text: None,
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
        executor: spawns the workers of the searches; is started and closed here.
        context: what every worker begins with, the plan's words among it.
        retry_failed: try those again that failed in an earlier run.
        task_limit: seconds that a search may take, with loading its models; None for any time.
        floors: of plausibility; None to compute them from the plan's sentences.
        review: what reviewers decided about the triplets of the database. Those that are rejected
            are replaced by searches from the next natural sentences; all others stay.
        shown: sentences that trials show, from which no search begins as long as there are others.
        changes: what may differ from the study that the store was made for; see `store_changes`
            for what is done again.
        allotment: the natural sentences that the pairs of a new store begin with, models by their
            specifications, in the order in which the table names them; a store that is not new
            has its own.
        say: told what the user should know.
        note: told, for users who like to read it, how many sentences are needed and can be used,
            what is scored, and how few words a model does not know.
        warn: told, before any search, if these are many.
        progress: told how many jobs have come to an end, and how many are wanted.

    Raises:
        InputError: too few natural sentences, or an allotment that does not fit the plan.
        ModelError: a model cannot be loaded, or two are one and the same.
        StoreError: the database holds triplets made with other settings, or cannot be written.
        VocabularyError: two models share no word.
        WorkerError: workers cannot be started.
    """
    store = TripletStore(database)
    stored = store.settings()
    before_models = store.models()
    plan = plan.ordered(before_models or models_of(allotment)).resumed(stored)
    order = (*before_models, *(model for model in plan.models if model not in before_models))
    rejected = {} if review is None else _rejected(review, store, database.path)
    before = {triplet.triplet_id for triplet in _of_plan(plan, store.triplets())}
    with worker_pool(executor, context, say=say, task_limit=task_limit) as workers:
        # What each model is and which words it knows; only workers load models.
        inspection = ModelInspection(plan.models, plan.sentences)
        workers.work_off(inspection)
        profiles = {name: inspection.profiles[name] for name in plan.models}
        for profile in profiles.values():
            if profile.unknown is not None:
                profile.unknown.tell(warn, note)
        judge = plan.judge
        if judge is not None and judge not in profiles:
            # Alone: it may be one of the models under another specification.
            inspection = ModelInspection((judge,))
            workers.work_off(inspection)
            profiles[judge] = inspection.profiles[judge]

        # Natural sentences for each pair, of words that both models, and a judge, know.
        judges = () if judge is None else (judge,)
        groups = [tuple(dict.fromkeys((*pair, *judges))) for pair in plan.pairs]
        words = [shared_words(names, tuple(profiles[n].words for n in names)) for names in groups]
        usable = [partial(_is_usable, vocabulary) for vocabulary in words]
        describe = partial(
            plan.settings,
            tuple(profiles[name] for name in plan.models),
            None if judge is None else profiles[judge],
            order=order,
        )
        change = StoreChange(plan, stored, before_models, describe(), order, changes)
        assigned = store.assignments()
        if not stored:
            assigned = standing_sentences(allotment, plan, usable)
        elif not assigned and change.any:
            # A store from before assignments were kept. Unchanged, it comes to the same again.
            for job in store.jobs():
                assigned.setdefault((job.model_1, job.model_2), {})[job.place] = job.natural
        standing = _standing(plan, assigned, usable, store, change)
        elsewhere = {pair: texts for pair, texts in assigned.items() if pair not in standing}
        allocator = SentenceAllocator(
            plan.sentences,
            usable,
            seed=plan.seed,
            standing=[standing[pair] for pair in plan.pairs],
            reserved={Sentence.parse(s) for texts in elsewhere.values() for s in texts.values()},
            shown=shown,
        )
        note(allocator.supply(plan.per_pair, plan.pairs))
        allocator.assign(plan.per_pair, plan.pairs)

        # Floors are computed once: a store that was made on another machine keeps its own.
        floors = _floors(plan, profiles, change, floors or {}, workers, note)

        # Nothing is stored before all input has been found to be good.
        settings = change.settings(describe(floors))
        edit = StoreEdit(
            assigned=[
                *(
                    (*pair, place, s)
                    for pair, texts in elsewhere.items()
                    for place, s in texts.items()
                ),
                *_rows(plan.pairs, allocator.assigned),
            ],
            may_change=change.may_change(settings),
            renewed=[pair for pair in combinations(order, 2) if change.is_renewed(pair)],
            replaced=[
                (*pair, place)
                for pair in plan.pairs
                for place in assigned.get(pair, {})
                if place not in standing[pair]
            ],
            restarts_waves=change.any,
        )
        store.settle(settings, may_grow=MAY_GROW, may_gain=MAY_GAIN, edit=edit)
        if retry_failed:
            store.forget_failures()
        store.reject(rejected)
        # What was found under these exclusions does not hold an excluded word, so that only what
        # was found before a word was excluded is searched again.
        store.forget_holding(plan.limits.exclude)
        times: list[SearchTime] = []

        def save(task: TripletTask, outcome: Outcome) -> None:
            times.append(SearchTime(outcome.wall_seconds, outcome.network_seconds))
            store.keep(task.models, task.place, task.natural.text, outcome)

        waves = None if plan.cap is None else Waves(plan.cap, plan.pairs, plan.per_pair, store)
        # Without a cap on words there is one wave of all searches.
        while True:
            queue = TripletQueue(
                plan,
                profiles,
                allocator,
                settled=store.jobs(),
                save=save,
                progress=progress,
                floors=floors,
                unsuitable=partial(_unsuitable, plan.limits.exclude, waves),
                wanted=None if waves is None else waves.wanted,
                excluded=_nothing if waves is None else waves.excluded,
                save_assigned=lambda added: store.assign(
                    (*plan.pairs[pair], place, sentence.text) for pair, place, sentence in added
                ),
                together=executor.shares_models,
            )
            workers.work_off(queue)
            if waves is None or not waves.decide():
                break

    order_of_pairs = {pair: number for number, pair in enumerate(plan.pairs)}
    triplets = sorted(
        _of_plan(plan, store.triplets()), key=lambda t: order_of_pairs[t.model_1, t.model_2]
    )
    after = {triplet.triplet_id for triplet in triplets}
    failures = [job for job in _of_plan(plan, store.jobs()) if job.state is JobState.FAILED]
    pool = {*plan.sentences}
    missing = {pair: searches.missing for pair, searches in queue.pairs.items()}
    return TripletResults(
        triplets=tuple(triplet for triplet in triplets if triplet.distinct),
        unchanged=tuple(triplet for triplet in triplets if not triplet.distinct),
        failures=tuple(sorted(failures, key=lambda job: order_of_pairs[job.model_1, job.model_2])),
        pairs=pair_statistics(plan.pairs, store, missing),
        conventions={name: profiles[name].convention for name in plan.models},
        training_texts={name: profiles[name].training_text for name in plan.models},
        floors=floors,
        judge=None if judge is None else profiles[judge].convention,
        allotment=tuple(
            AllottedSentence(*pair, place, sentence)
            for pair, sentences, can_use in zip(plan.pairs, allocator.assigned, usable, strict=True)
            for place, sentence in enumerate(sentences)
            # Of sentences that were passed over before a change, some are out of use since.
            if sentence in pool and can_use(sentence)
        ),
        unaltered=len(before & after),
        gone=len(before - after),
        new=len(after - before),
        time=SearchTime(*map(sum, zip(*map(astuple, times), strict=True))),
    )


def _standing(
    plan: SynthesisPlan,
    assigned: Mapping[tuple[str, str], Mapping[int, str]],
    usable: Sequence[Callable[[Sentence], bool]],
    store: TripletStore,
    change: StoreChange,
) -> dict[tuple[str, str], dict[int, Sentence]]:
    """The sentences that each pair of the plan keeps, by their places, of all that it has.

    A sentence that was passed over does not come back when it is gone: its place stays, or another
    would be searched there that nobody asked for.
    """
    pool = {*plan.sentences}
    rejected = store.rejected()
    passed_over = {
        (*pair, job.place)
        for job in store.jobs()
        for pair in [(job.model_1, job.model_2)]
        if job.state is JobState.INADMISSIBLE
        and ((*pair, job.place) in rejected or not change.is_renewed(pair))
    }
    standing: dict[tuple[str, str], dict[int, Sentence]] = {}
    for pair, can_use in zip(plan.pairs, usable, strict=True):
        sentences = {place: Sentence.parse(s) for place, s in assigned.get(pair, {}).items()}
        standing[pair] = {
            place: sentence
            for place, sentence in sentences.items()
            if (*pair, place) in passed_over or (sentence in pool and can_use(sentence))
        }
    return standing


def _rows(
    pairs: Sequence[tuple[str, str]], assigned: Sequence[Sequence[Sentence]]
) -> list[tuple[str, str, int, str]]:
    return [
        (*pair, place, sentence.text)
        for pair, sentences in zip(pairs, assigned, strict=True)
        for place, sentence in enumerate(sentences)
    ]


def _of_plan(plan: SynthesisPlan, rows: Iterable[_RowT]) -> list[_RowT]:
    """The triplets or jobs of the plan's pairs: a store also has those of models left out."""
    pairs = {*plan.pairs}
    return [row for row in rows if (row.model_1, row.model_2) in pairs]


def _floors(
    plan: SynthesisPlan,
    profiles: Mapping[str, ModelProfile],
    change: StoreChange,
    given: Floors,
    workers: Pool,
    note: Callable[[str], None],
) -> Floors:
    """The floors of plausibility: stored or given ones, and those that workers compute."""
    floors: Floors = {}
    sentences: dict[str, tuple[Sentence, ...]] = {}
    for model in plan.plausible.judges(plan.models):
        floors[model] = change.floors(model) or dict(given.get(model, {}))
        reference = reference_sentences(plan.sentences, profiles[model].words)
        some = tuple(s for s in reference if change.lacks_floor(len(s), floors[model]))
        if some or not floors[model]:
            sentences[model] = some
            note(
                f"Scoring {len(some):,} natural sentences under {model}, for the floor of "
                f"plausibility."
            )
    queue = NaturalScores(sentences)
    workers.work_off(queue)
    for model, scores in queue.scores.items():
        floors[model] |= floors_of(scores, plan.plausible.quantile)
    return floors


def _rejected(review: Review, store: TripletStore, path: Path) -> dict[str, str]:
    """Why each triplet that reviewers reject is rejected, by its identifier.

    A triplet that was replaced before, after a review or since it holds a word that is excluded by
    now, is settled: so a job that was killed goes on with the review that it began with.

    Raises:
        InputError: the review is of other triplets, or of triplets that have changed since.
    """
    triplets = {t.triplet_id: t for t in store.triplets(with_gone=True)}
    if not triplets:
        raise InputError(
            f"{path} holds no triplets yet, so that none of them can have been reviewed: name the "
            f"store with which the reviewed table was made, with --store."
        )
    review.require_items_of(triplets.values(), path)
    # Trials are made of triplets: with a trial, its triplet is rejected.
    of_trials = [item for item in review.decisions if item.source_id in triplets]
    if not of_trials and not review.of_kind(ItemKind.TRIPLET):
        raise InputError(f"The review is of another set: it is not of triplets in {path}.")
    for item in of_trials:
        triplet = triplets[item.source_id]
        if not {*item.sentences} <= {triplet.natural, triplet.synthetic_1, triplet.synthetic_2}:
            raise InputError(
                f"{item.item_id} has changed since the review: {item.source_id} in {path} has "
                f"other sentences. Review it again."
            )
    reasons = {}
    for item in review.decisions:
        triplet_id = item.source_id or item.item_id
        if item.decision is Decision.REJECT and triplet_id in triplets:
            why = f" ({item.reason})" if item.reason else ""
            reasons[triplet_id] = f"rejected in a review: by {item.reviewer}{why}"
    return reasons


def _unsuitable(excluded: frozenset[str], waves: Waves | None, sentence: Sentence) -> str:
    """Why a natural sentence is not to be searched, whatever models say of it."""
    words = [word for word in sentence.words if word.lower() in excluded]
    if words:
        return f"holds an excluded word: {', '.join(words)}"
    return "" if waves is None else waves.no_room(sentence)


def _nothing(_pair: tuple[str, str], _place: int) -> frozenset[str]:
    return frozenset()


def _is_usable(words: Vocabulary, sentence: Sentence) -> bool:
    return len(sentence) > 1 and not words.missing(sentence)
