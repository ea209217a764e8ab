"""What executors of `contstim triplets` cost: start-up, one task's way, a whole job on n-grams.

Seconds are those of the clock, which other programs on the machine lengthen; processor time is not.

A 2-gram and a 3-gram of `text/openstax.train.txt` with the published vocabulary and sentences where
CONTSTIM_DATA has them, else of the embedded English. `--quick` takes few triplets of the latter.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from time import perf_counter

from inputs import OPENSTAX, STUDY

from contstim.english import generate
from contstim.jobs import (
    Executor,
    InterleavedExecutor,
    LocalExecutor,
    ProcessExecutor,
    RayExecutor,
    worker_pool,
)
from contstim.jobs.worker_context import WorkerContext, WorkerTask
from contstim.models.loading import Loading
from contstim.models.ngram.training import train_ngram
from contstim.models.specifications import Specification, parse_models
from contstim.optimization.jobs.question import SearchQuestion
from contstim.optimization.jobs.results import TripletResults
from contstim.optimization.jobs.tasks import SearchContext
from contstim.optimization.jobs.triplets import find_triplets
from contstim.reporter import Reporter
from contstim.store import Store
from contstim.words.corpus import read_sentences
from contstim.words.sentence import Sentence
from contstim.words.vocabulary import Vocabulary

QUICK = "--quick" in sys.argv


@dataclass(frozen=True)
class Nothing(WorkerTask[WorkerContext]):
    number: int

    def perform(self, context: WorkerContext) -> int:
        del context
        return self.number


def materials() -> tuple[list[Sentence], Vocabulary, list[Sentence]]:
    """Training text, words, natural sentences."""
    if QUICK or not OPENSTAX.is_file() or not STUDY.is_dir():
        text = generate(20_000 if not QUICK else 4_000, seed=0)
        words = Vocabulary.from_sentences(text, min_count=2)
        return text, words, generate(2_000, seed=1, words=8)
    from contstim.experiments.reproduce.published import read_vocabulary

    (corpus,) = (STUDY / "resources" / "sentence_corpora").glob("*.txt")
    natural = list(islice(read_sentences(corpus), 3_000))
    return list(read_sentences(OPENSTAX)), read_vocabulary(STUDY), natural


def trips(executor: Executor, folder: Path, repeats: int) -> None:
    """Print the seconds until all workers are ready, and one task's way to a worker and back."""
    start = perf_counter()
    with worker_pool(executor, WorkerContext(Loading(device="cpu"), folder=folder)) as pool:
        for _ in range(executor.size):
            pool.receive()
        ready = perf_counter() - start
        start = perf_counter()
        for number in range(repeats):
            executor.send(0, Nothing(number))
            pool.receive()
        each = (perf_counter() - start) / repeats
    print(f"    {executor.size} ready after {ready:.2f} s; an empty task takes {1e3 * each:.2f} ms")


def whole_job(
    study: tuple[SearchQuestion, Sequence[Specification], Sequence[Sentence]],
    words: Vocabulary,
    executor: Executor,
    folder: Path,
) -> tuple[TripletResults, float, float]:
    """A job from nothing: what it found, its seconds, and those of them after models are known."""
    began: list[float] = []

    class First(Reporter):
        def progress(self, *_told: object) -> None:
            if not began:
                began.append(perf_counter())

    context = SearchContext(Loading(device="cpu"), vocabulary=words, folder=folder)
    start = perf_counter()
    with tempfile.TemporaryDirectory() as name, Store(Path(name) / "study.sqlite") as store:
        found = find_triplets(*study, store, executor, context, reporter=First())
        end = perf_counter()
    return found, end - start, end - began[0]


def cpu_seconds() -> tuple[float, float]:
    """Processor time of this process and of its children that have ended; Ray's are not its own."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def main() -> None:
    """Run everything and print it."""
    text, words, natural = materials()
    executors: dict[str, Callable[[], Executor]] = {
        "local": LocalExecutor,
        "interleaved": lambda: InterleavedExecutor(2),
        "processes": lambda: ProcessExecutor(2),
    }
    if find_spec("ray"):
        executors["ray"] = lambda: RayExecutor(2, gpus_per_worker=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for order in (2, 3):
            train_ngram(text, order, folder / f"{order}.arpa")
        models = tuple(f"kenlm:{folder}/{order}.arpa" for order in (2, 3))
        question = SearchQuestion(per_pair=10 if QUICK else 200, frame="none", plausible="none")
        study = (question, parse_models(models), natural)
        print(f"{question.per_pair} triplets of a 2-gram and a 3-gram, {len(words.words):,} words")
        reference: tuple[TripletResults, float] | None = None
        for kind, make in executors.items():
            print(kind)
            trips(make(), folder, 100 if QUICK else 1_000)
            driver, children = cpu_seconds()
            found, seconds, searching = whole_job(study, words, make(), folder)
            each = searching / question.per_pair
            used = [
                after - before
                for after, before in zip(cpu_seconds(), (driver, children), strict=True)
            ]
            print(f"    whole job {seconds:.2f} s, searching {searching:.2f} s: {each:.4f} s each")
            print(f"    processor time: driver {used[0]:.2f} s, its workers {used[1]:.2f} s")
            if reference is None:
                reference = found, searching
            assert found == reference[0]
            print(f"    same triplets; searching {reference[1] / searching:.2f} times as fast")


if __name__ == "__main__":
    main()
