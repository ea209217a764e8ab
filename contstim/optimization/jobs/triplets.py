"""Search for the triplets of all pairs of models.

A triplet is a natural sentence with two synthetic sentences. Model 1 rejects the first synthetic
sentence: this sentence is less likely than the natural sentence under model 1. Model 1 accepts the
second synthetic sentence: this sentence is at least as likely as the natural sentence under model
1. For model 2, the roles of the two synthetic sentences are reversed.
"""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING

from contstim.errors import InputError
from contstim.jobs.model_workers import work_off
from contstim.jobs.pool import worker_pool
from contstim.models.costs import Tally, counting
from contstim.models.transforms import tell_vocabulary
from contstim.optimization.jobs.floors import NaturalScores
from contstim.optimization.jobs.queues import Searches, TripletQueue, natural_walk
from contstim.optimization.jobs.results import TripletResults, pair_statistics
from contstim.optimization.jobs.so_far import renamed, triplets_writer
from contstim.optimization.jobs.tasks import InspectionTask, shared_words
from contstim.optimization.search.settings import fixed_positions
from contstim.optimization.search.verification import ModelOrder, refuse_equal_order
from contstim.reporter import SILENT
from contstim.store.triplets import TripletStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from contstim.jobs.pool import Executor, Pool
    from contstim.models.specifications import Specification
    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.optimization.jobs.tasks import ModelProfile, SearchContext
    from contstim.reporter import Reporter
    from contstim.store.database import Store
    from contstim.words.sentence import Sentence
    from contstim.words.vocabulary import Vocabulary

    ModelPair = tuple[str, str]


def find_triplets(
    question: SearchQuestion,
    models: Sequence[Specification],
    sentences: Sequence[Sentence],
    database: Store,
    executor: Executor,
    context: SearchContext,
    *,
    task_limit: float | None = None,
    so_far: Path | None = None,
    reporter: Reporter = SILENT,
) -> TripletResults:
    """Search for the triplets of every pair of models.

    Each pair uses the natural sentences in its own order. The results do not depend on the number
    of workers, on interruptions, or on the order of models. They can depend on earlier runs, from
    which the store keeps two things:

    * floors of plausibility, the lowest log-probabilities that natural sentences may have;
    * default judges, models of the study that choose plausible sentences.

    The stored floors and judges do not change if sentences or models are added or removed later.

    If a natural sentence yields no triplet, the pair uses its next sentence. A search that raises
    an error is tried up to three times in total. If all three attempts raise an error, the other
    searches continue, and the next run tries the failed search again.

    Args:
        question: settings of the searches.
        models: models to compare.
        sentences: natural sentences.
        database: store of the results.
        executor: see `worker_pool`.
        context: options of the workers, such as the words to use.
        task_limit: maximum time of a search, seconds, including the loading of its models; None for
            no limit.
        so_far: path of a table of the triplets so far; None for no table.
        reporter: receiver of messages and progress.

    Raises:
        InputError: if there are too few models or natural sentences; if a word or position of `fix`
            is in no sentence; if a pair has no judge, because all judges that the user has named
            are models of this pair; or if `tags` is a table for another language.
        ModelError: if a model cannot be loaded, or if two models can never disagree.
        StoreError: if the database cannot be written.
        VocabularyError: if two models share no word.
        WorkerError: if workers cannot be started.
    """
    if len(models) < 2:
        raise InputError("Triplets need two models or more.")
    for text in question.fix:
        if not any(fixed_positions(text, sentence) for sentence in sentences):
            raise InputError(f"fix: no sentence has the word or position {text!r}.")
    question, store = question.resolved, TripletStore(database)
    names = {model.specification: model.name for model in models}
    ordered = sorted(names)
    named_judges = {judge.specification: judge.name for judge in question.judges}
    with worker_pool(executor, context, say=reporter.say, task_limit=task_limit) as workers:
        profiles = _inspect(ordered, sentences, workers)
        for name, profile in profiles.items():
            tell_vocabulary(name, profile.convention.rule, profile.unknown, reporter)
        # This is a separate call, because `_inspect` refuses equal models. A judge may be the same
        # model as a compared model, under another specification
        profiles |= _inspect([j for j in named_judges if j not in profiles], (), workers)
        for judge, name in named_judges.items():
            profiles[judge].convention.require_log_probability(name, "A judge")
        panel = [*named_judges] or _default_panel(question, profiles, ordered, store)
        words: dict[ModelPair, Vocabulary] = {}
        judges: dict[ModelPair, tuple[str, ...]] = {}
        for pair in combinations(ordered, 2):
            words[pair] = shared_words(pair, tuple(profiles[name].words for name in pair))
            question.check_words(words[pair])
            # A judge must be neither of the two models
            fingerprints = [profiles[model].convention.fingerprint for model in pair]
            outside = (j for j in panel if profiles[j].convention.fingerprint not in fingerprints)
            judges[pair] = tuple(outside)
            if named_judges and not judges[pair]:
                raise InputError(
                    f"`judge` must be a model outside the pair {' × '.join(pair)}, got "
                    f"{', '.join(named_judges)}. Name another model."
                )
        walks = _walks(question, profiles, sentences, words)
        compared = {name: profiles[name] for name in ordered}
        natural = NaturalScores(compared, sentences, store, workers)
        floors, sds = natural.floors(question.floor_quantile, reporter), natural.sds()
        searches = Searches(question, profiles, words, floors, store, judges, sds)
        table = None if so_far is None else triplets_writer(so_far, names)
        together = executor.shares_models
        queue = TripletQueue(searches, walks, reporter, together=together, write_table=table)
        # If this process searches (without worker processes), every batch of a network updates the
        # progress bar
        with counting(Tally(queue.tick)):
            workers.work_off(queue)

    results = {
        (names[first], names[second]): [renamed(result, names) for result in results]
        for (first, second), results in queue.results.items()
    }
    all_results = [*chain.from_iterable(results.values())]
    all_names = named_judges | names
    triplets = [renamed(r.triplet, names) for r in all_results if r.triplet is not None]
    return TripletResults(
        triplets=tuple(triplet for triplet in triplets if triplet.distinct),
        unchanged=tuple(triplet for triplet in triplets if not triplet.distinct),
        failures=tuple(result for result in all_results if result.state == "failed"),
        pairs=tuple(pair_statistics(pair, r, question.per_pair) for pair, r in results.items()),
        conventions={names[model]: profiles[model].convention for model in ordered},
        training_texts={names[model]: profiles[model].training_text for model in ordered},
        floors={names[model]: by_length for model, by_length in floors.items()},
        judges={all_names[model]: profiles[model].convention for model in panel},
        refused={all_names[m]: share for m, share in store.refused_shares(all_results).items()},
        searches=tuple(all_results),
        wall_seconds=searches.wall_seconds,
        network_seconds=searches.network_seconds,
    )


def _default_panel(
    question: SearchQuestion,
    profiles: Mapping[str, ModelProfile],
    models: Sequence[str],
    store: TripletStore,
) -> list[str]:
    """Return the default judges: the causal transformers of a study with three or more models.

    Only searches for sentences with few new words (option `enough`) need judges. The store keeps
    the judges of the first run. A model that is added later does not become a judge, because it
    would change earlier results.
    """
    if len(models) < 3 or not question.nats:
        return []
    causal = {profiles[m].convention.fingerprint: m for m in models if profiles[m].is_causal}
    if (remembered := store.panel()) is None:
        remembered = [*causal]
        store.keep_panel(remembered)
    return [causal[fingerprint] for fingerprint in remembered if fingerprint in causal]


def _walks(
    question: SearchQuestion,
    profiles: Mapping[str, ModelProfile],
    sentences: Sequence[Sentence],
    words: Mapping[ModelPair, Vocabulary],
) -> dict[ModelPair, Iterable[Sentence]]:
    """Return pair of models → natural sentences in the pair's own order.

    Raises:
        InputError: if a pair can use fewer than `per_pair` sentences.
    """
    walks: dict[ModelPair, Iterable[Sentence]] = {}
    for pair, vocabulary in words.items():
        one, two = (profiles[model].convention.fingerprint for model in pair)
        walk = natural_walk(question.seed, (one, two), sentences, vocabulary)
        first = [*islice(walk, question.per_pair)]
        if n_missing := question.per_pair - len(first):
            raise InputError(
                f"Too few natural sentences. {' × '.join(pair)} needs {question.per_pair:,} "
                f"sentences. There are {len({*sentences}):,} sentences, but in only "
                f"{len(first):,} of them, both models know all words. Give at least "
                f"{n_missing:,} more, or lower `per_pair`."
            )
        walks[pair] = chain(first, walk)
    return walks


def _inspect(
    models: Sequence[str], sentences: Sequence[Sentence], workers: Pool
) -> dict[str, ModelProfile]:
    """Let workers load models, and return facts about the models.

    Raises:
        ModelError: if two models rank all sentences of equal length in the same order.
    """
    # Inspect in reverse order, so that the first models are still loaded when searches begin
    tasks = [InspectionTask(model, tuple(sentences)) for model in reversed(models)]
    profiles: dict[str, ModelProfile] = {}
    work_off(workers, tasks, lambda task, profile: profiles.update({task.model: profile}), {})
    in_order = {model: profiles[model] for model in models}
    fingerprints = {model: profile.convention.fingerprint for model, profile in in_order.items()}
    refuse_equal_order(
        *(
            ModelOrder(model, fingerprints[model], profile.order or fingerprints[model])
            for model, profile in in_order.items()
        )
    )
    return in_order
