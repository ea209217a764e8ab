"""Measure for a short time how fast a study trains, scores and searches, in a separate process.

    python -m contstim.study.probe STUDY FOLDER SECONDS

STUDY is the path of a study file. The process prints a line with a JSON object after each
measurement. So the process can be killed at any time, and the printed measurements remain. The
process reads two files of the study: the natural sentences and the vocabulary. If no stage has
written one of these files yet, FOLDER contains a temporary file with the name of the missing file.
"""

from __future__ import annotations

import json
import sys
from contextlib import chdir, contextmanager, suppress
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from contstim.errors import ContstimError
from contstim.evaluation.overview import N_SENTENCES, context_gain, score_within
from contstim.items.stimuli import read_stimuli
from contstim.models.costs import Tally, counting
from contstim.optimization.jobs.floors import floors_of
from contstim.optimization.jobs.queues import Searches, pairs_sharing_models, search_key
from contstim.optimization.jobs.tasks import InspectionTask, SearchContext, shared_words
from contstim.optimization.search.opponents import pooled_sd
from contstim.steps.sentences import FindSentences
from contstim.steps.training import TrainNetwork
from contstim.steps.triplets import SearchTriplets
from contstim.store import Store, TripletStore
from contstim.store.times import times_beside
from contstim.study.states import stage_states
from contstim.study.study import STORE
from contstim.study.study_file import read_study
from contstim.study.times import SURE, is_ngram, training_key
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contstim.models.base import Scorer
    from contstim.models.loading import Loading
    from contstim.models.training.loop import Progress
    from contstim.optimization.jobs.tasks import ModelProfile
    from contstim.study.study import Study
    from contstim.words.sentence import Sentence

    ModelPair = tuple[str, str]

_TRAINING, _SCORING = 3.0, 1.5  # seconds to measure one training, and to measure one model's scores
# Maximum number of different sentences, and of scored sentences (including repetitions)
_SENTENCES, _MAX_SCORED = 64, 256
_MODELS_IN_MEMORY = 3
# A context is a text that a model reads before a sentence
# Usual number of contexts that are compared for a model, and maximum seconds for this comparison
_CONTEXTS, _CONTEXT_SECONDS = 4, 5.0


class _TimeIsUp(Exception):  # noqa: N818
    """Raised at the time limit.

    The class does not inherit from `ContstimError`, because searches catch every `ContstimError`.
    """


def print_measurement(key: str, units: float, seconds: float, rows: float = 0) -> None:
    """Print a measurement as a JSON object, whose keys are the arguments of `Times.add`."""
    _emit({"key": key, "units": units, "seconds": seconds, "rows": rows})


def _emit(line: dict[str, object]) -> None:
    print(json.dumps(line), file=sys.__stdout__, flush=True)


def probe(study: Study, folder: Path, seconds: float) -> None:
    """Measure training, scoring and searches for at most `seconds`.

    If no stage has written the file of natural sentences or the vocabulary yet, `folder` contains a
    temporary file with the name of the missing file. The current folder must be the study's folder.
    """
    deadline = perf_counter() + seconds
    undone = [state.stage.step for state in stage_states(study) if state.state != "done"]
    for step in undone:
        if isinstance(step, TrainNetwork):
            with _report_problems(step.out.name):
                _probe_training(step, folder)
    search = next((step for step in undone if isinstance(step, SearchTriplets)), None)
    natural = "sentences" in study.files and _path(study.files["sentences"], folder)
    sentences = [*dict.fromkeys(read_stimuli(natural))] if natural else _embedded(study)
    searcher = _Searcher(study.loading, search, folder, sentences)
    existing_models = [model.specification for model in study.existing_models]
    for specification in dict.fromkeys((*existing_models, *searcher.judges)):
        with _report_problems(specification):
            searcher.inspect(specification)
    if search is not None and natural:
        searcher.search(existing_models, deadline)


def _embedded(study: Study) -> list[Sentence]:
    """Generate sentences of the embedded English (`contstim.english`).

    If the study requests natural sentences of one length, the returned sentences have this length.
    """
    from contstim.english import generate

    finding = study.step(FindSentences)
    shortest, longest = finding.settings.lengths() if finding else (8, None)
    return [*generate(_SENTENCES, words=None if longest else shortest, seed=0)]


@contextmanager
def _report_problems(task: str) -> Iterator[None]:
    try:
        yield
    except ContstimError as error:
        _emit({"problem": f"{task}: {error}"})


def _path(path: Path, folder: Path) -> Path | None:
    """Return the path of a file, or of its replacement in `folder`; None if neither exists."""
    return next(filter(Path.is_file, (path, folder / path.name)), None)


def _probe_training(step: TrainNetwork, folder: Path) -> None:
    from contstim.models.training.run import train_network
    from contstim.words.corpus import read_sentences

    began = perf_counter()
    first: tuple[float, int] | None = None

    def watch(now: Progress) -> None:
        nonlocal first
        time = perf_counter()
        if first is None:
            print_measurement(f"prepare {training_key(step)}", 1, time - began)
            first = time, now.step
        elif time >= first[0] + _TRAINING or now.step == now.steps:
            share = (now.step - first[1]) / now.steps
            print_measurement(training_key(step), share, time - first[0])
            raise _TimeIsUp

    with TemporaryDirectory(dir=folder) as out, suppress(_TimeIsUp):
        train_network(
            read_sentences(step.text, prose=step.prose),
            Path(out) / "model",
            step.network,
            step.training,
            device=step.device,
            precision=step.precision,
            on_progress=watch,
        )


class _Searcher:
    """Models of a study, and searches with these models; a temporary store holds the results."""

    def __init__(
        self,
        loading: Loading,
        step: SearchTriplets | None,
        folder: Path,
        sentences: Sequence[Sentence],
    ) -> None:
        self._sentences, self._folder = sentences, folder
        self._stored = times_beside(STORE)
        self._question = None if step is None else step.question().resolved
        words = step and step.vocabulary and _path(step.vocabulary, folder)
        self._context = SearchContext(
            loading,
            _MODELS_IN_MEMORY,
            vocabulary=Vocabulary.load(words) if words else None,
            allow_unknown=bool(self._question and self._question.allow_unknown),
        )
        judges = self._question.judges if self._question else ()
        self.judges = tuple(judge.specification for judge in judges)
        self._profiles: dict[str, ModelProfile] = {}
        self._floors: dict[str, dict[int, float]] = {}
        self._scores: dict[str, dict[Sentence, float]] = {}

    def inspect(self, specification: str) -> None:
        """Load a model, and measure the durations of loading and scoring."""
        began = perf_counter()
        (scorer,) = self._context.scorers((specification,))
        print_measurement(f"load {specification}", 1, perf_counter() - began)
        scores = self._scores[specification] = self._score(specification, scorer)
        if self._question is not None:
            if quantile := self._question.floor_quantile:
                self._floors[specification] = floors_of(scores, quantile)
            self._profiles[specification] = InspectionTask(specification).perform(self._context)

    def _score(self, specification: str, scorer: Scorer) -> dict[Sentence, float]:
        sample = self._sentences[:_SENTENCES]
        reasons = scorer.unscorable(sample)
        scorable = [s for s, why in zip(sample, reasons, strict=True) if why is None]
        if not scorable:
            raise ContstimError(f"the model can score no natural sentence: {reasons[0]}")
        scorer.scores(scorable[:1])  # the first call is slower
        sentences = [*islice(cycle(scorable), _MAX_SCORED)]
        values, spent = score_within(scorer, sentences, _SCORING)
        print_measurement(f"score {specification}", len(values), spent)
        if specification not in self._stored.contexts:
            n = min(1 + int(_CONTEXT_SECONDS / _CONTEXTS * len(values) / spent), N_SENTENCES)
            if facts := context_gain(scorer, n=n, seconds=_CONTEXT_SECONDS):
                _emit({"context": specification, "facts": facts})
        # `values` is shorter than `sentences` if the time limit ended the scoring
        return dict(zip(sentences, values.tolist(), strict=False))

    def search(self, specifications: Sequence[str], deadline: float) -> None:
        """Measure searches of each pair of models in turn.

        The searches end at the time `deadline` (of `perf_counter`).
        """
        if not self._profiles.keys() >= {*self.judges}:
            return
        models = [model for model in specifications if model in self._profiles]
        # The remaining time is divided equally among the remaining pairs. A search can only be
        # stopped when it calls a network. Searches with two n-gram models call no network and may
        # take longer than planned, so these pairs are last
        networks = {model: not is_ngram(model) for model in models}
        by_kind = sorted(
            pairs_sharing_models(models[::-1]),
            key=lambda pair: sum(networks[model] for model in pair) or 3,
        )
        with TemporaryDirectory(dir=self._folder) as out, Store(Path(out) / "s.sqlite") as store:
            for number, pair in enumerate(by_kind):
                now = perf_counter()
                until = now + (deadline - now) / (len(by_kind) - number)
                with _report_problems(" and ".join(pair)):
                    self._search(pair, TripletStore(store), until)

    def _search(self, pair: ModelPair, store: TripletStore, until: float) -> None:
        assert self._question is not None
        words = shared_words(pair, tuple(self._profiles[name].words for name in pair))
        judges, sds = {pair: self.judges}, {}
        if not all(self._profiles[model].convention.is_log_probability for model in pair):
            sds = {model: pooled_sd(model, self._scores[model]) for model in pair}
        searches = Searches(
            self._question, self._profiles, {pair: words}, self._floors, store, judges, sds
        )
        key, triplets = search_key(self._question, *pair), 0
        for natural in self._sentences:
            if perf_counter() >= until or triplets == SURE:
                return
            if len(natural) < 2 or words.missing_words(natural):
                continue
            task = searches.task(pair, natural)
            tally, began = Tally(partial(_end_after, until)), perf_counter()
            try:
                with counting(tally):
                    outcome = task.perform(self._context)
            except _TimeIsUp:
                print_measurement(key, 0, perf_counter() - began, tally.total.rows)
                return
            if outcome.wall_seconds:
                is_triplet = outcome.triplet is not None and outcome.triplet.distinct
                triplets += is_triplet
                print_measurement(key, is_triplet, outcome.wall_seconds, tally.total.rows)


def _end_after(time: float) -> None:
    """Stop a search after a time limit; networks call this function after each batch."""
    if perf_counter() >= time:
        raise _TimeIsUp


def main() -> None:
    """Measure a study; the arguments are those of the command line."""
    path, folder, seconds = sys.argv[1:]
    # Libraries may print, but standard output is only for measurements
    sys.stdout = sys.stderr
    study = read_study(path)
    with chdir(study.folder):
        probe(study, Path(folder), float(seconds))


if __name__ == "__main__":
    main()
