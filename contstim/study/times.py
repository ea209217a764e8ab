"""Estimates of the durations of a study's stages, from times that runs or `probe` have measured.

    training    seconds to prepare + seconds per step x steps of all epochs
    scores      seconds to load a model + seconds per sentence x sentences
    triplets    scores for floors + seconds per triplet x triplets, for each pair of models

    seconds per triplet    (seconds of all searches, including unsuccessful ones) / triplets

If the measurement ended before a triplet was found, seconds per triplet = seconds per row x usual
number of rows per triplet. A triplet is a natural sentence and two synthetic sentences. A row is a
sequence that a network processes. A floor is the lowest plausible score under a model. Searches
skip natural sentences with scores below the floor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from itertools import combinations
from tempfile import TemporaryDirectory
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

from contstim.errors import ContstimError
from contstim.files.files import lock_holder, write_text
from contstim.models.specifications import parse_model, parse_models
from contstim.optimization.jobs.floors import MAX_REFERENCE_SENTENCES
from contstim.optimization.jobs.queues import search_key
from contstim.steps.generation import GenerateSentences
from contstim.steps.scoring import ScoreSentences
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower
from contstim.steps.training import TrainNetwork, TrainNgram
from contstim.steps.triplets import SearchTriplets
from contstim.study.states import record_of
from contstim.study.study import LOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contstim.optimization.jobs.question import SearchQuestion
    from contstim.reporter import Reporter
    from contstim.steps.execution import Execution
    from contstim.store.times import Times
    from contstim.study.amounts import NaturalSupply, StudyNumbers
    from contstim.study.states import StageState
    from contstim.study.study import Study, StudyModel, StudyStage

# First words of the names of stages that take only seconds, even with as many items as in the study
# of 2023
_SHORT = """
text vocabulary sentences select design review export import simulate analyze questions
""".split()
_SHORT_SECONDS = (1.0, 8.0)
# Seconds per model and simulation. Each simulation has two experiments: one assumes similar models,
# and one assumes different models
_SIMULATION = 0.008
_NGRAM_BYTES = (0.3e6, 3e6)  # bytes of a training text per second
_EMBEDDED_BYTES = 1e6  # assumed size of a training text that is not generated yet
_GENERATED = (5e-5, 5e-4)  # seconds per sentence of the embedded English
# Number of networks in a pair → half and twice the usual number of rows per triplet.
#
# The usual numbers include rows of unsuccessful searches. They were measured with sentences of
# eight words, a vocabulary of 9,000 words, and `enough` from 3 to 5 nats
_ROWS = {1: (1_000.0, 4_000.0), 2: (6_000.0, 24_000.0)}
_OVERHEAD = 2e-3  # seconds per row of a search, in addition to the time of the network
_ROW_SHARE = 0.75  # (time of a network for a row) / (time of this network for scoring a sentence)
_SMALL_ROW = (2e-4, 5e-3)  # seconds per row of a small network that is not trained yet
_NGRAM_SEARCH = (0.1, 5.0)  # seconds per triplet of two n-gram models
_DOUBT = 1.7  # factor by which a mean over fewer than `SURE` triplets may be wrong
SURE = 3
"""Minimum number of triplets for a mean time that counts as measured."""
_TO_END = 3.0  # the measuring process should end this many seconds before the time limit

Basis = Literal["done", "measured", "usual", "last run", "unknown"]
Estimate: TypeAlias = tuple[float | None, float | None, Basis, str]
"""Shortest and longest duration of a stage (seconds), source of the estimate, and, if the duration
is unknown, the reason; see `StagePlan`."""


def training_key(step: TrainNetwork) -> str:
    """Return the key of a training in the measured times; one unit is the whole training."""
    settings = json.dumps([asdict(step.network), asdict(step.training)], sort_keys=True)
    return f"train {step.out.as_posix()} {settings}"


def is_ngram(specification: str) -> bool:
    """Return True for an n-gram model, whose scores take almost no time."""
    return parse_model(specification, specification).family == "kenlm"


class TimeEstimates:
    """Estimates of the durations of stages that are not done.

    The current folder must be the study's folder.
    """

    def __init__(
        self, study: Study, numbers: StudyNumbers, n_natural: int | None, times: Times
    ) -> None:
        self._study, self._numbers = study, numbers
        self._n_natural, self._times = n_natural, times

    def of_stages(self, states: Sequence[StageState]) -> list[Estimate]:
        """Return the estimate for each stage; 0 seconds for a stage that is done."""
        done: Estimate = (0.0, 0.0, "done", "")
        return [done if s.state == "done" else self.of_stage(s.stage) for s in states]

    def needs_measurement(self, states: Sequence[StageState]) -> bool:
        """Return True if a measurement could improve the estimate for at least one stage."""
        for state, (*_, basis, _) in zip(states, self.of_stages(states), strict=True):
            step, is_known = state.stage.step, basis in ("done", "measured")
            if isinstance(step, TrainNetwork | FindSentences) and basis == "unknown":
                return True
            if isinstance(step, ScoreSentences | SearchTriplets) and not is_known:
                return bool(self._study.existing_models)
        return False

    def of_stage(self, stage: StudyStage) -> Estimate:
        """Return the estimate for a stage that is not done."""
        try:
            return self._estimate(stage)
        except ContstimError as error:
            return None, None, "unknown", str(error)

    def _estimate(self, stage: StudyStage) -> Estimate:
        step = stage.step
        if isinstance(step, TrainNetwork):
            return self._training(step)
        if isinstance(step, TrainNgram):
            size = step.text.stat().st_size if step.text.is_file() else _EMBEDDED_BYTES
            slow, fast = _NGRAM_BYTES
            return 1 + size / fast, 2 + size / slow, "usual", ""
        if isinstance(step, GenerateSentences):
            fast, slow = _GENERATED
            return 1 + step.number * fast, 2 + step.number * slow, "usual", ""
        if isinstance(step, ScoreSentences):
            of_trials = step.sentences == self._study.files.get("trials")
            number = self._numbers.new_sentences if of_trials else self._n_natural
            return self._scores(number, _workers_of(step.execution))
        if isinstance(step, FindSentences) and step.judge:
            return self._judging(step)
        if isinstance(step, SearchTriplets):
            return self._triplets(step)
        if isinstance(step, SimulatePower):
            seconds = step.simulations * self._numbers.models * _SIMULATION
            return seconds / 2, 2 * seconds, "usual", ""
        if stage.kind in _SHORT:
            return *_SHORT_SECONDS, "usual", ""
        record = record_of(stage)
        # An earlier run with other models does not predict the duration
        models = [model.text for model in self._study.models]
        if record is not None and record.options.get("models", models) == models:
            return record.seconds, record.seconds, "last run", ""
        raise ContstimError("no run has measured this stage yet")

    def _training(self, step: TrainNetwork) -> Estimate:
        key = training_key(step)
        prepare, steps = self._times.get(f"prepare {key}").a_unit, self._times.get(key).a_unit
        if steps is None:
            text = "" if step.text.is_file() else f": {step.text} does not exist yet"
            raise ContstimError(f"no step of the training was measured{text}")
        seconds = (prepare or 0.0) + steps
        return seconds, seconds, "measured", ""

    def _scoring(self, model: StudyModel, n_sentences: int, workers: int) -> tuple[float, float]:
        """Return the shortest and longest time of scoring sentences, seconds."""
        name = model.specification
        sentence = self._times.get(f"score {name}").a_unit
        load = self._times.get(f"load {name}").a_unit or 0.0
        if sentence is not None:
            return (load + sentence * n_sentences / workers,) * 2
        if is_ngram(name):
            return 0.1, 5.0
        if model.training is None:
            raise ContstimError(f"the speed of {model.name} is not measured yet")
        fast, slow = _SMALL_ROW
        return 0.5 + fast * n_sentences / workers, 5 + slow * n_sentences / workers

    def _judging(self, step: FindSentences) -> Estimate:
        """Return the estimate for finding sentences with judges.

        Judges are language models that remove the less sensible half of the sentences.
        """
        if self._n_natural is None:
            raise ContstimError("the natural sentences are not counted yet")
        judges = [judge.specification for judge in parse_models(step.judge)]
        rates = [self._times.get(f"score {name}").a_unit for name in judges if not is_ngram(name)]
        if None in rates:
            raise ContstimError("the speed of the judge is not measured yet")
        judging = 2 * self._n_natural * sum(filter(None, rates))
        low, high = _SHORT_SECONDS
        return low + judging, high + judging, "usual", ""

    def _scores(self, n_sentences: int | None, workers: int) -> Estimate:
        if n_sentences is None:
            raise ContstimError("the natural sentences are not counted yet")
        return _summed(self._scoring(m, n_sentences, workers) for m in self._study.models)

    def _triplets(self, step: SearchTriplets) -> Estimate:
        workers, per_pair = _workers_of(step.execution), step.settings.per_pair
        question = step.question().resolved
        times = []
        if question.floor_quantile:
            floors = min(self._n_natural or MAX_REFERENCE_SENTENCES, MAX_REFERENCE_SENTENCES)
            times += [self._scoring(model, floors, workers) for model in self._study.models]
        for one, two in combinations(self._study.models, 2):
            low, high = self._triplet(question, one, two)
            times.append((per_pair * low / workers, per_pair * high / workers))
        return _summed(times)

    def _triplet(
        self, question: SearchQuestion, one: StudyModel, two: StudyModel
    ) -> tuple[float, float]:
        """Return the shortest and longest time per triplet of two models, seconds."""
        measured = self._times.get(search_key(question, one.specification, two.specification))
        if measured.a_unit is not None:
            doubt = 1.0 if measured.units >= SURE else _DOUBT
            return measured.a_unit / doubt, measured.a_unit * doubt
        networks = [model for model in (one, two) if not is_ngram(model.specification)]
        if not networks:
            return _NGRAM_SEARCH
        if measured.rows:
            fast = slow = measured.seconds / measured.rows
        else:  # the slower network determines the time
            fast, slow = map(max, zip(*map(self._row, networks), strict=True))
        fewest, largest = _ROWS[len(networks)]
        low = max(fewest * fast, measured.seconds)
        return low, max(largest * slow, 2 * low)

    def _row(self, model: StudyModel) -> tuple[float, float]:
        """Return the shortest and longest time per row of a search with a network, seconds."""
        sentence = self._times.get(f"score {model.specification}").a_unit
        if sentence is None and model.training is None:
            raise ContstimError(f"the speed of {model.name} is not measured yet")
        network = _SMALL_ROW if sentence is None else (_ROW_SHARE * sentence,) * 2
        return _OVERHEAD + network[0], _OVERHEAD + network[1]


def _summed(times: Iterable[tuple[float, float]]) -> Estimate:
    low, high = (sum(values) for values in zip(*times, strict=True))
    return low, high, "measured" if high <= 2 * low else "usual", ""


def _workers_of(execution: Execution) -> int:
    """Return the number of simultaneous tasks; 1 on a Ray cluster if `workers` is not set."""
    if execution.executor in ("local", "interleaved"):
        return 1
    if execution.workers or execution.executor == "ray":
        return execution.workers or 1
    from contstim.jobs.processes import usable_processors, visible_gpus

    return len(visible_gpus()) or usable_processors()


def measure_study(
    study: Study, supply: NaturalSupply | None, times: Times, seconds: float, reporter: Reporter
) -> list[str]:
    """Measure training, scoring and searches of stages that are not done; add the times to `times`.

    A separate process measures, and is killed after `seconds`. If no stage has written the file of
    natural sentences or the vocabulary yet, the process reads temporary files made from `supply`.
    While another process runs the study, `times` is not saved, because the run writes the same
    file. The current folder must be the study's folder.

    Returns:
        A sentence for each failed measurement.
    """
    began, problems = monotonic(), []
    with TemporaryDirectory() as folder:
        if supply is not None and supply.found_sentences is not None:
            lines = "".join(f"{sentence.text}\n" for sentence in supply.found_sentences.sentences)
            write_text(f"{folder}/{study.files['sentences'].name}", lines)
            if supply.vocabulary is not None:
                supply.vocabulary.save(f"{folder}/{study.files['vocabulary'].name}")
        command = [sys.executable, "-m", "contstim.study.probe"]
        arguments = [study.path.name, folder, str(max(1.0, seconds - _TO_END))]
        # The other process must find the same modules as this process
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            env=environment,
        ) as process:
            assert process.stdout is not None
            limit = Timer(seconds, process.kill)
            limit.start()
            try:
                for line in process.stdout:
                    reporter.progress("measuring", min(monotonic() - began, seconds), seconds)
                    message = json.loads(line)
                    if "problem" in message:
                        problems.append(message["problem"])
                    elif "context" in message:
                        times.add_context(message["context"], message["facts"])
                    else:
                        times.add(message.pop("key"), **message)
                if process.wait() and limit.is_alive():
                    problems.append(f"The measurement failed with status {process.returncode}.")
            finally:
                limit.cancel()
                process.kill()
    reporter.progress("measuring", seconds, seconds)
    if lock_holder(LOCK) is None:
        times.save()
    return problems
