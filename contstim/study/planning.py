"""Plan of a study: its stages, their feasibility, expected power, and durations.

Numbers follow from the study file, and those of natural sentences from its texts; see `supply`.
Times follow from earlier runs and from the speed of each model; see `times`.
"""

from __future__ import annotations

from contextlib import chdir
from dataclasses import dataclass
from itertools import permutations
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from contstim.english.words import tag_table
from contstim.errors import ContstimError
from contstim.evaluation.overview import context_caution
from contstim.experiments.analysis.families import (
    THESE_ITEMS,
    crossed_instead,
    detectability,
    every_contrast,
    read_contrasts,
)
from contstim.files.tables import columns_of, frame_of
from contstim.items.scores import ScoreTable
from contstim.items.stimuli import read_stimuli
from contstim.optimization.selection.natural import strata
from contstim.optimization.selection.question import NaturalQuestion
from contstim.reporter import SILENT
from contstim.steps.analysis import AnalyzeResponses
from contstim.steps.design import MakeDesign
from contstim.steps.fields import uncapped_words
from contstim.steps.selection import SelectPairs, SelectTriplets
from contstim.steps.sentences import FindSentences
from contstim.steps.simulation import SimulatePower, SimulateResponses
from contstim.steps.triplets import SearchTriplets
from contstim.steps.vocabulary import MakeVocabulary
from contstim.store.times import times_beside
from contstim.study.amounts import StudyNumbers, count_missing, natural_supply, too_few
from contstim.study.states import stage_states
from contstim.study.study import STORE
from contstim.study.times import TimeEstimates, measure_study
from contstim.wording import quantity
from contstim.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.families import Detectability, ModelContrast
    from contstim.reporter import Reporter
    from contstim.steps.step import Step
    from contstim.store.times import Times
    from contstim.study.amounts import NaturalSupply
    from contstim.study.study import Study

_IN_ALL, _READING = 40.0, 20.0  # seconds of a plan, and those after which no text is read further
_FEWEST_CANDIDATES = 2  # searched for each triplet that is selected; 10 in the 2023 study


@dataclass(frozen=True)
class StagePlan:
    """Plan of a run for a stage.

    Attributes:
        stage: name of the stage.
        state: done, stale, begun or not done; or `waits` for an earlier stage.
        what: work of the stage, a phrase with its numbers.
        because: why it is stale.
        shortest: estimated minimum duration, seconds; None if unknown.
        longest: estimated maximum duration, seconds; equal to `shortest` if measured.
        basis: source of the estimate: `done`, `measured`, `usual` (for such stages), `last run` or
            `unknown`.
        reason: why the duration is unknown; otherwise empty.
    """

    stage: str
    state: str
    what: str
    because: str
    shortest: float | None
    longest: float | None
    basis: str
    reason: str = ""


@dataclass(frozen=True)
class StudyPlan:
    """Plan of a study before a run.

    Attributes:
        stages: plans of the stages, in order.
        numbers: numbers of the design, and of the natural sentences that it needs.
        supply: existing natural sentences, or those of its text that its rules allow; None if
            unknown.
        admissible: (reject model, accept model, number of natural sentences for pairs of these),
            from the scores; empty if scores are missing or stale.
        tests: sentences about the tests of the analysis; empty without groups.
        cautions: sentences about possible failures.
    """

    stages: tuple[StagePlan, ...]
    numbers: StudyNumbers
    supply: NaturalSupply | None
    admissible: tuple[tuple[str, str, int], ...]
    tests: str
    cautions: tuple[str, ...]

    @property
    def shortest(self) -> float:
        """Seconds that a run takes at least, about, without stages of unknown time."""
        return sum(stage.shortest or 0.0 for stage in self.stages)

    @property
    def longest(self) -> float:
        """Seconds that a run takes at most, about, without stages of unknown time."""
        return sum(stage.longest or 0.0 for stage in self.stages)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the stages of unknown time."""
        return tuple(stage.stage for stage in self.stages if stage.basis == "unknown")

    @property
    def missing_sentences(self) -> int:
        """Number of natural sentences that are lacking; 0 where that is not known."""
        return count_missing(self.numbers, self.supply)

    def to_frame(self) -> DataFrame:
        """The stages as a table of pandas, a row each and a column a field of `StagePlan`."""
        return frame_of(columns_of(StagePlan, self.stages))


def plan_study(study: Study, *, measure: bool = True, reporter: Reporter = SILENT) -> StudyPlan:
    """Plan a run of a study: its work, its feasibility, and its duration on this machine.

    Trainings, models and searches between models are measured briefly, unless their speed is
    known. A run measures them, too. The times are stored next to the study's scores; nothing else
    is written.

    Args:
        study: as `read_study` reads it; studies that cannot work are refused there.
        measure: whether to measure speeds, for a minute at most in all.
        reporter: receives the progress of the measurement and of reading texts.

    Raises:
        InputError: if a file of the study cannot be read.
    """
    began = monotonic()
    states = stage_states(study)
    with chdir(study.folder):
        numbers, supply = StudyNumbers(study), None
        stages = [state.stage for state in states if state.state != "done"]
        undone = {type(stage.step) for stage in stages}
        unwritten = {path for stage in stages for path in stage.writes}
        cautions: list[str] = []
        try:
            supply = natural_supply(study, states, reporter, began + _READING)
        except ContstimError as error:
            cautions.append(f"sentences: {error}")
        n_natural = None if supply is None else supply.number
        measured = times_beside(STORE)
        estimates = TimeEstimates(study, numbers, n_natural, measured)
        times = estimates.of_stages(states)
        if measure and estimates.needs_measurement(states):
            measured, problems = measure_study(
                study, supply, began + _IN_ALL - monotonic(), reporter
            )
            cautions += problems
            times = TimeEstimates(study, numbers, n_natural, measured).of_stages(states)
        amounts, plans = _amounts(study, numbers), []
        for state, time in zip(states, times, strict=True):
            amount = amounts.get(type(state.stage.step), "")
            work = f"{state.stage.about}: {amount}" if amount else state.stage.about
            plans.append(StagePlan(state.stage.name, state.state, work, state.because, *time))
        # Files of stages that a run does again do not predict its results
        has_scores = SelectPairs in undone and study.files.get("scores") not in unwritten
        admissible = _admissible(study) if has_scores else ()
        cautions = [
            *_candidates(study, numbers),
            *([] if undone & {MakeVocabulary, FindSentences} else _word_caps(study, numbers)),
            *too_few(numbers, supply),
            *_rivals(study, admissible),
            *_contradictions(study),
            *_hopeless(study, numbers),
            *_contexts(study, measured),
            *_unjudged(study),
            *cautions,
        ]
        tests = _tests(study, numbers)
    unique_cautions = tuple(dict.fromkeys(cautions))
    return StudyPlan(tuple(plans), numbers, supply, admissible, tests, unique_cautions)


def _contexts(study: Study, measured: Times) -> Iterator[str]:
    """Cautions about contexts after which sentences are much less likely than after others."""
    for model in study.models:
        facts = measured.contexts.get(model.specification)
        if facts and (caution := context_caution(model.specification, **facts)):
            yield f"{model.name}: {caution}"


def _unjudged(study: Study) -> Iterator[str]:
    """Recommend a judge for searches between two models that have none."""
    for step in study.steps(SearchTriplets):
        if step.settings.nats and not step.settings.judge and len(study.models) == 2:
            yield (
                "triplets: without a judge, many synthetic sentences make no sense. Name a small "
                'pretrained model at the top of the file, such as judge = "hf:gpt2".'
            )


def _amounts(study: Study, numbers: StudyNumbers) -> dict[type[Step[Any]], str]:
    """Numbers of what steps make."""
    power = study.step(SimulatePower)
    return {
        SelectPairs: f"{numbers.natural_pairs:,}",
        SearchTriplets: f"{numbers.searched_each:,} for each pair of models",
        SelectTriplets: f"{numbers.selected:,} of {numbers.searched:,}",
        MakeDesign: f"{numbers.trials:,}, {quantity(numbers.groups, 'group')}",
        SimulatePower: f"{power.simulations:,} times for each model" if power else "",
    }


def _admissible(study: Study) -> tuple[tuple[str, str, int], ...]:
    """Count admissible natural sentences, by reject model and accept model."""
    names, pairs = study.names, study.step(SelectPairs)
    if pairs is None or len(names) < 2 or not pairs.scores.is_file():
        return ()
    scores = ScoreTable.from_file(pairs.scores)
    if not {*names} <= {*scores.models}:
        return ()
    log_probs = np.stack([scores.column(name) for name in names], axis=1)
    table = ScoreTable(None, names, log_probs)
    (stratum,) = strata(table, NaturalQuestion(agreeing=pairs.settings.agreeing))
    numbers = stratum.admissible().tolist()
    return tuple((*pair, n) for pair, n in zip(permutations(names, 2), numbers, strict=True))


def _rivals(study: Study, admissible: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield model pairs with too few admissible sentences for the requested natural pairs."""
    step = study.step(SelectPairs)
    pairs = None if step is None else step.settings
    for reject, accept, number in admissible:
        if pairs is not None and pairs.counts is None and number < pairs.per_pair:
            yield (
                f"[select.natural] {reject} and {accept} are very similar: about {number:,} "
                f"natural sentences are below the median of {reject} and at or above that of "
                f"{accept}, and {quantity(pairs.per_pair, 'pair')} need as many. Give more "
                f"sentences, ask for fewer pairs, or compare other models."
            )


def _candidates(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Warn if too few triplets are searched for the number to select."""
    selection = study.step(SelectTriplets)
    if selection is None or not numbers.searched:
        return
    searched, selected = numbers.searched_each, selection.settings.per_pair
    if searched < _FEWEST_CANDIDATES * selected:
        only = "; if a single one is missing, there is no selection" if searched == selected else ""
        yield (
            f"{selected} triplets of each pair of models are selected from {searched}{only}. Usual "
            f"are 10 searched for each that is selected, as in the 2023 study; search for "
            f"{_FEWEST_CANDIDATES * selected} or more."
        )


def _word_caps(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Caution if a cap on words leaves too little room for the selected sentences."""
    search, selection = study.step(SearchTriplets), study.step(SelectTriplets)
    cap = selection.settings.word_cap if selection else None
    if search is None or selection is None or search.vocabulary is None or cap is None:
        return
    if not (search.vocabulary.is_file() and search.sentences.is_file()):
        return
    uncapped = uncapped_words(selection.settings.uncapped, cap)
    table = tag_table(search.settings.tags)

    def lemmas(words: Iterable[str]) -> set[str]:
        return {table.lemma(word) for word in map(str.lower, words) if word not in uncapped}

    words = lemmas(Vocabulary.load(search.vocabulary).words)
    counting = [len(lemmas(sentence.words)) for sentence in read_stimuli(search.sentences)]
    a_sentence = sum(counting) / max(len(counting), 1)
    needed, room = 3 * numbers.selected * a_sentence, cap * len(words)
    if 3 * needed > room:
        yield (
            f"[select.triplets] word_cap: {3 * numbers.selected:,} sentences of {a_sentence:.1f} "
            f"words that count would use {needed / max(room, 1):.0%} of the room that the cap "
            f"leaves {quantity(len(words), 'word')}, so there may be no selection. Raise word_cap "
            f"to at least {ceil(needed / max(len(words), 1))}, or select fewer triplets."
        )


def _contradictions(study: Study) -> Iterator[str]:
    """Numbers that two sections of a study state differently."""
    power, simulation = study.step(SimulatePower), study.step(SimulateResponses)
    settings, planned = _analysis(study), study.planned_participants
    if power is not None and power.smallest_effect != settings.smallest_effect:
        yield (
            f"[power] takes {power.smallest_effect:g} for the smallest difference that "
            f"matters, [analyze] {settings.smallest_effect:g}: state one in both."
        )
    simulated = simulation and simulation.participants
    if planned and simulated and simulated != planned:
        yield (
            f"[power] plans {planned:,} participants, and the preregistration says so, "
            f"[simulate] simulates {simulated:,}: leave out the participants of [simulate] "
            "to simulate as many as are planned."
        )


def _analysis(study: Study) -> AnalyzeResponses | type[AnalyzeResponses]:
    return study.step(AnalyzeResponses) or AnalyzeResponses  # the class has the defaults


def contrasts_of(study: Study) -> Sequence[ModelContrast]:
    """The contrasts that the analysis tests: those of its table, or all.

    Raises:
        InputError: the table cannot be read.
    """
    stated, names = _analysis(study).contrasts, study.names
    return every_contrast(names) if stated is None else read_contrasts(stated, names)


def over_groups(study: Study, groups: int) -> Detectability:
    """Limits of the tests that the analysis makes over groups."""
    settings, contrasts = _analysis(study), contrasts_of(study)
    return detectability([groups] * len(contrasts), settings.fdr, settings.correction)


def _hopeless(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Caution where tests over groups were asked for that can show nothing."""
    settings = _analysis(study)
    if numbers.groups and numbers.models > 1 and settings.units == "groups":
        family = over_groups(study, numbers.groups)
        if family.hopeless:
            yield family.caution("groups", settings.fdr)


def _tests(study: Study, numbers: StudyNumbers) -> str:
    """Findings that the tests of the analysis can show."""
    groups, settings = numbers.groups, _analysis(study)
    if not groups or numbers.models < 2:
        return ""
    family, needed = over_groups(study, groups), "[power] says how many people and items to take."
    subject = "Each measure on each kind of trials has"
    if settings.units == "participants":
        return f"{subject} {quantity(family.tests, 'test')} of participants: {needed} {THESE_ITEMS}"
    if settings.units == "crossed" or (settings.units == "auto" and family.hopeless):
        why = "" if settings.units == "crossed" else f" {crossed_instead(groups)}"
        return (
            f"{subject} {quantity(family.tests, 'crossed test')} of people and items: {needed}{why}"
        )
    limits = family.caution("groups", settings.fdr) or (
        f"A single one can be significant: the smallest p-value that it can have is "
        f"{family.smallest:.3g}, and the tests share a false-discovery rate of {settings.fdr:g}."
    )
    return f"{subject} {quantity(family.tests, 'test')} of {quantity(groups, 'group')}. {limits}"
