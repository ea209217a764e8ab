"""Triplets for all pairs of models of a study, kept as they are found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from contstim.optimization.jobs.agenda import Examination, TripletAgenda
from contstim.optimization.jobs.dealing import Dealer
from contstim.optimization.jobs.foreman import Foreman
from contstim.optimization.jobs.statistics import PairStatistics, pair_statistics
from contstim.optimization.jobs.study import MAY_GROW
from contstim.optimization.jobs.words import shared_words
from contstim.store.triplets import State, TripletStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contstim.models.base import Convention
    from contstim.models.training_text import TrainingText
    from contstim.optimization.jobs.bench import Bench
    from contstim.optimization.jobs.executors.base import Executor
    from contstim.optimization.jobs.study import Study
    from contstim.optimization.jobs.tasks import Examined
    from contstim.sentence import Sentence
    from contstim.stimuli import Triplet
    from contstim.store.database import Database
    from contstim.store.triplets import Job
    from contstim.vocabulary import Vocabulary


@dataclass(frozen=True)
class Found:
    """What a study found.

    Attributes:
        triplets: in the order of the pairs of models, then in that in which sentences were dealt.
        unchanged: in the same order, those whose three sentences are not all different, because no
            search found anything, or both found the same; they are not among `triplets`.
        failures: the jobs that failed, in the same order.
        pairs: statistics of each pair of models.
        conventions: how each model's scores came about, by its name.
        training_texts: the sentences that each was trained on, where they are known.
    """

    triplets: tuple[Triplet, ...]
    unchanged: tuple[Triplet, ...]
    failures: tuple[Job, ...]
    pairs: tuple[PairStatistics, ...]
    conventions: Mapping[str, Convention]
    training_texts: Mapping[str, TrainingText | None]

    @property
    def complete(self) -> bool:
        """Whether every triplet that was wanted is there."""
        return not any(pair.failed or pair.unchanged or pair.missing for pair in self.pairs)


def find_triplets(
    study: Study,
    database: Database,
    executor: Executor,
    bench: Bench,
    *,
    retry_failed: bool = False,
    say: Callable[[str], None] = lambda _text: None,
    progress: Callable[[int, int], None] = lambda _settled, _wanted: None,
) -> Found:
    """Search for both directions of every natural sentence that a study's pairs are dealt.

    Each outcome is kept as it comes, in one transaction. A job that was killed goes on where it
    stopped, and what it finds does not depend on where that was, nor on the executor, the number of
    workers or the order of the models. A search that fails is tried three times; then its error is
    kept, and the others go on. So it is with a search that finds nothing with any of its seeds:
    that is kept, and no other sentence takes the place.

    Args:
        study: what is wanted.
        database: where outcomes are kept.
        executor: runs the searches; is started and closed here.
        bench: what every worker has at hand, the study's words among it.
        retry_failed: try those again that failed in an earlier run.
        say: told what the user should know.
        progress: told how many jobs have come to an end, and how many are wanted.

    Raises:
        InputError: too few natural sentences.
        ModelError: a model cannot be loaded, or two are one and the same.
        StoreError: the database holds triplets made with other settings, or cannot be written.
        VocabularyError: two models share no word.
        WorkerError: workers cannot be started.
    """
    kept = TripletStore(database)
    study = study.ordered(kept.models())
    with executor:
        executor.start(bench)
        foreman = Foreman(executor, say)
        examination = Examination(study.models)
        foreman.work_through(examination)
        examined = {name: examination.found[name] for name in study.models}
        dealer = _deal(study, examined)
        kept.settle(study.settings(tuple(examined.values())), may_grow=MAY_GROW)
        if retry_failed:
            kept.forget_failures()
        agenda = TripletAgenda(
            study,
            examined,
            dealer,
            settled=kept.jobs(),
            keep=lambda task, outcome: kept.keep(
                task.models, task.place, task.natural.text, outcome
            ),
            progress=progress,
        )
        foreman.work_through(agenda)
    missing = {pair: work.missing for pair, work in agenda.pairs.items()}
    return _found(study, kept, examined, missing)


def _deal(study: Study, examined: Mapping[str, Examined]) -> Dealer:
    suits = []
    for first, second in study.pairs:
        words = shared_words((first, second), (examined[first].words, examined[second].words))
        suits.append(partial(_suits, words))
    dealer = Dealer(study.sentences, suits, seed=study.seed)
    dealer.deal_all(study.per_pair, study.pairs)
    return dealer


def _suits(words: Vocabulary, sentence: Sentence) -> bool:
    return len(sentence) > 1 and not words.missing(sentence)


def _found(
    study: Study,
    kept: TripletStore,
    examined: Mapping[str, Examined],
    missing: Mapping[tuple[str, str], int],
) -> Found:
    order = {pair: number for number, pair in enumerate(study.pairs)}
    failed = [job for job in kept.jobs() if job.state is State.FAILED]
    triplets = sorted(kept.triplets(), key=lambda t: order[t.model_1, t.model_2])
    return Found(
        tuple(triplet for triplet in triplets if triplet.distinct),
        tuple(triplet for triplet in triplets if not triplet.distinct),
        tuple(sorted(failed, key=lambda job: order[job.model_1, job.model_2])),
        pair_statistics(study.pairs, kept, missing),
        {name: found.convention for name, found in examined.items()},
        {name: found.training_text for name, found in examined.items()},
    )
