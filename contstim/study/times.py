"""Times of the stages of a study: those measured, and what is known without measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contstim.optimization.jobs.plausibility import MOST_SENTENCES
from contstim.optimization.search.recipes import recipe_named
from contstim.steps.design import PowerSettings
from contstim.study.sections import ScoresSection, TripletsSection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contstim.steps.execution import WorkerSettings
    from contstim.study.amounts import StudyNumbers
    from contstim.study.rehearsal import Speeds
    from contstim.study.stage_records import StageRecord
    from contstim.study.study import Study

# Seconds of stages that are short, with toy models and with the numbers of the 2023 study
_SHORT = {
    "text": 8.0,
    "vocabulary": 5.0,
    "sentences": 5.0,
    "pairs": 1.0,
    "selection": 1.0,
    "design": 5.0,
    "review": 0.5,
    "responses": 1.0,
    "export": 0.5,
    "analysis": 20.0,
}
_SIMULATION = 0.008  # of a simulated experiment with distant, and one with close rivals


@dataclass(frozen=True)
class Time:
    """Time that a stage takes, and how that is known.

    Attributes:
        seconds: about; None where nothing was measured.
        basis: `done`, `measured`, `partly guessed`, `last time` or `guess`.
    """

    seconds: float | None
    basis: str


def stage_time(
    name: str, study: Study, numbers: StudyNumbers, speeds: Speeds, record: StageRecord | None
) -> Time:
    """Time that a stage takes that is not done.

    Args:
        name: the stage's.
        study: of the stage.
        numbers: what its design comes to.
        speeds: what was measured.
        record: of when the stage was done before; None if it never was.
    """
    kind, _, rest = name.partition(" ")
    measured: float | None = None
    guessed = False
    if kind == "text":
        measured = speeds.texts.get(name)
    elif kind == "model":
        measured = speeds.training.get(rest)
    elif name == "vocabulary":
        measured = speeds.vocabulary
    elif name == "sentences":
        measured = speeds.sentences
    elif name == "scores":
        measured = _scoring(study, speeds, speeds.natural, in_store=True)
    elif name == "trial-scores":
        stored = "scores" in study.sections or "pairs" in study.sections
        natural = 2 * numbers.natural_pairs + numbers.selected
        fillers = numbers.trials - numbers.natural_pairs - 3 * numbers.selected
        further = 0 if stored else natural + 2 * fillers
        measured = _scoring(study, speeds, numbers.new_sentences + further, in_store=False)
    elif name == "triplets":
        measured, guessed = _searching(study, numbers, speeds)
    if measured is not None:
        return Time(measured, "partly guessed" if guessed else "measured")
    # What took so long with other models says little
    models = [model.text for model in study.models]
    if record is not None and record.options.get("models", models) == models:
        return Time(record.seconds, "last time")
    power = study.sections.get("power")
    if kind == "power" and isinstance(power, PowerSettings):
        return Time(power.simulations * numbers.models * _SIMULATION, "guess")
    return Time(_SHORT.get(kind), "guess") if kind in _SHORT else Time(None, "not measured")


def _scoring(
    study: Study, speeds: Speeds, n_sentences: int | None, *, in_store: bool
) -> float | None:
    """Seconds to score sentences under all models; those that have a score are left."""
    if n_sentences is None or len(speeds.scoring) < len(study.models):
        return None
    section = study.sections.get("scores")
    workers = workers_of(section) if isinstance(section, ScoresSection) else 1
    # Workers share the sentences; what loading they share depends on who is first
    return sum(
        speed.load + speed.sentence * max(n_sentences - speed.stored * in_store, 0) / workers
        for speed in speeds.scoring.values()
    )


def _searching(study: Study, numbers: StudyNumbers, speeds: Speeds) -> tuple[float | None, bool]:
    """Seconds of all searches, and whether anything about them is guessed."""
    section = study.sections.get("triplets")
    if not isinstance(section, TripletsSection) or not speeds.searches:
        return None, False
    mean = sum(speed.seconds for speed in speeds.searches.values()) / len(speeds.searches)
    # Pairs that were not measured are taken to be like the others
    seconds = mean * max(numbers.model_pairs - len(speeds.searches), 0) * section.per_pair
    for pair, speed in speeds.searches.items():
        seconds += speed.seconds * max(section.per_pair - speeds.settled.get(pair, 0), 0)
    guessed = len(speeds.searches) < numbers.model_pairs
    guessed |= any(speed.guessed for speed in speeds.searches.values())
    total = seconds / workers_of(section)
    total += sum(speed.load for speed in speeds.scoring.values())
    floored = section.plausible != "none" and recipe_named(section.recipe).plausible
    if floored:
        # Floors rest on scores of the natural sentences, which this stage computes itself
        reference = min(speeds.natural or 0, MOST_SENTENCES)
        total += sum(speed.sentence * reference for speed in speeds.scoring.values())
    return total, guessed


def workers_of(section: WorkerSettings) -> int:
    """Number of tasks done at a time; on a Ray cluster one, unless their number is given.

    Interleaved searches count as one: what they gain depends on the GPU, and on processors it is
    nothing.
    """
    if section.executor in ("local", "interleaved"):
        return 1
    if section.workers or section.executor == "ray":
        return section.workers or 1
    from contstim.jobs.processes import usable_processors, visible_gpus

    return len(visible_gpus()) or usable_processors()


def seconds_text(seconds: float | None) -> str:
    """A duration as one says it, such as `0.4 s`, `40 s`, `12 min` or `3.5 h`."""
    if seconds is None:
        return "?"
    for least, size, unit in ((172_800, 86_400, "days"), (5_400, 3_600, "h"), (99.5, 60, "min")):
        if seconds >= least:
            number = seconds / size
            return f"{number:.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def longest(times: Iterable[tuple[str, float | None]]) -> tuple[str, float] | None:
    """The stage that takes longest, and its share of the time of all; None where none takes any."""
    known = [(name, seconds) for name, seconds in times if seconds]
    if not known:
        return None
    name, seconds = max(known, key=lambda each: each[1])
    return name, seconds / sum(each[1] for each in known)
