"""Times of the stages of a study: of earlier runs, or of a measured speed."""

from __future__ import annotations

from itertools import cycle, islice
from time import perf_counter
from typing import TYPE_CHECKING

from contstim.errors import ContstimError
from contstim.stimuli import read_stimuli
from contstim.study.places import StudyFiles
from contstim.study.states import record_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contstim.reporter import Reporter
    from contstim.sentence import Sentence
    from contstim.steps.execution import Execution
    from contstim.study.amounts import StudyNumbers
    from contstim.study.stage import StudyStage
    from contstim.study.study import Study

# Stages that take some seconds, with toy models and with the numbers of the 2023 study
_SHORT = frozenset(
    {"text", "vocabulary", "sentences", "pairs", "selection", "design"}
    | {"review", "responses", "export", "analysis"}
)
_SHORT_SECONDS = 5.0
_SIMULATION = 0.008  # of a simulated experiment with distant, and one with close rivals
_SENTENCES, _SECONDS, _LARGEST_BLOCK = 64, 2.0, 512  # of a measurement of a model's speed
_CONTEXT_SECONDS, _CONTEXTS = 10.0, 4  # time to compare contexts, and their usual number

Speed = tuple[float, float]
"""Of a model on this machine: seconds to load it, and for a sentence."""


def measured_speeds(study: Study, reporter: Reporter) -> tuple[dict[str, Speed], list[str]]:
    """Return the speed of each available model, by its name, and cautions.

    Cautions name models that cannot be loaded, and contexts that are much worse than others.

    The current folder is the study's.
    """
    sentences = _some_sentences(study)
    speeds: dict[str, Speed] = {}
    cautions = []
    for number, model in enumerate(study.models):
        reporter.progress("measuring", number, len(study.models), model.name)
        if model.training is None or all(file.exists() for file in model.files):
            try:
                speeds[model.name], caution = _speed(study, model.specification, sentences)
                cautions += [f"{model.name}: {caution}"] if caution else []
            except ContstimError as error:
                cautions.append(f"{model.name}: {error}")
    reporter.progress("measuring", len(study.models), len(study.models))
    return speeds, cautions


def _some_sentences(study: Study) -> list[Sentence]:
    """Natural sentences of the study, or embedded ones of their length."""
    from contstim.english import generate

    files = StudyFiles(study)
    if files.natural is not None and files.natural.is_file():
        return list(read_stimuli(files.natural))[:_SENTENCES]
    return list(generate(_SENTENCES, words=files.only_length, seed=0))


def _speed(study: Study, specification: str, sentences: list[Sentence]) -> tuple[Speed, str]:
    """The speed of a model, and what is wrong with its context; empty if nothing is."""
    from contstim.evaluation.overview import N_SENTENCES, context_caution
    from contstim.models.catalog import free_memory, load_scorer

    began = perf_counter()
    scorer = load_scorer(specification, study.loading)
    load = perf_counter() - began
    reasons = scorer.unscorable(sentences)
    some = cycle([s for s, why in zip(sentences, reasons, strict=True) if why is None])
    first = list(islice(some, 1))
    if not first:
        raise ContstimError(f"it can score no natural sentence: {reasons[0]}")
    scorer.scores(first)  # warms up
    size, scored, spent = 4, 0, 0.0
    while spent < _SECONDS and scored < 4 * _SENTENCES:
        block = list(islice(some, size))
        began = perf_counter()
        scorer.scores(block)
        spent += perf_counter() - began
        scored += len(block)
        size = min(2 * size, _LARGEST_BLOCK)
    n = min(int(_CONTEXT_SECONDS / _CONTEXTS * scored / spent), N_SENTENCES)
    caution = context_caution(scorer, n=n, seconds=_CONTEXT_SECONDS) if n else ""
    del scorer
    free_memory()
    return (load, spent / scored), caution


def stage_time(
    stage: StudyStage,
    study: Study,
    numbers: StudyNumbers,
    n_natural: int | None,
    speeds: Mapping[str, Speed],
) -> tuple[float | None, str]:
    """Seconds that a stage takes that is not done, None where unknown, and how that is known.

    Args:
        stage: which.
        study: of the stage.
        numbers: what its design comes to.
        n_natural: natural sentences; None where their number is not known.
        speeds: of the models, by name, as far as they were measured.
    """
    n_sentences = {"scores": n_natural, "trial-scores": numbers.new_sentences}.get(stage.name)
    if n_sentences is not None and len(speeds) == len(study.models):
        workers = _workers_of(study.sections.get("scores"))
        times = (load + sentence * n_sentences / workers for load, sentence in speeds.values())
        return sum(times), "measured"
    record = record_of(stage)
    # What took so long with other models says little
    models = [model.text for model in study.models]
    if record is not None and record.options.get("models", models) == models:
        return record.seconds, "last time"
    if stage.name == "power":
        return study.sections["power"].simulations * numbers.models * _SIMULATION, "guess"
    return (_SHORT_SECONDS, "guess") if stage.kind in _SHORT else (None, "not known yet")


def _workers_of(section: Execution | None) -> int:
    """Number of tasks done at a time; on a Ray cluster one, unless their number is given."""
    if section is None or section.executor in ("local", "interleaved"):
        return 1
    if section.workers or section.executor == "ray":
        return section.workers or 1
    from contstim.jobs.processes import usable_processors, visible_gpus

    return len(visible_gpus()) or usable_processors()
