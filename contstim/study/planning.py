"""Plan of a study: its stages, whether they can work, what they can show, how long they take.

Numbers follow from the study file. Times follow from earlier runs and from the speed of each
model: see `times`.
"""

from __future__ import annotations

from contextlib import chdir
from dataclasses import dataclass
from itertools import permutations
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from contstim.experiments.analysis.families import (
    THESE_ITEMS,
    crossed_instead,
    detectability,
    every_contrast,
    read_contrasts,
)
from contstim.optimization.selection.question import NaturalQuestion
from contstim.optimization.selection.strata import strata
from contstim.reporter import SILENT
from contstim.scores import ScoreTable
from contstim.steps.analysis import AnalysisSettings
from contstim.steps.selection import PairSettings, SelectionSettings
from contstim.steps.simulation import PowerSettings
from contstim.stimuli import read_stimuli
from contstim.study.amounts import StudyNumbers, most_sentences, numbers_of
from contstim.study.places import SCORES, StudyFiles
from contstim.study.sections import ResponsesSection
from contstim.study.stages import stages_of
from contstim.study.status import stage_states
from contstim.study.times import ScoringSpeed, Time, measured_speeds, stage_time, words_under_cap
from contstim.tables import columns_of, frame_of
from contstim.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pandas import DataFrame

    from contstim.experiments.design.sentence_needs import SentenceNeeds
    from contstim.reporter import Reporter
    from contstim.study.stage import StudyStage
    from contstim.study.study import Study

_USUAL_CANDIDATES = 10  # searched for each triplet that is selected: 100 and 10 in the 2023 study
_FEWEST_CANDIDATES = 2


@dataclass(frozen=True)
class StagePlan:
    """Plan of a run for a stage.

    Attributes:
        stage: its name.
        state: done, stale, begun or not done; or `waits` for a stage before it.
        what: what it does, in a phrase with its numbers.
        because: why it is stale.
        seconds: about how long it takes; None where nothing was measured.
        basis: how that is known: `done`, `measured`, `last time` or `guess`.
    """

    stage: str
    state: str
    what: str
    because: str
    seconds: float | None
    basis: str


@dataclass(frozen=True)
class SentenceSupply:
    """Natural sentences: how many a study needs, and how many it has.

    Attributes:
        needs: by use.
        available: how many there are; None where that is not known.
        how: `counted`, or `at most` as many as the text has sentences.
    """

    needs: SentenceNeeds
    available: int | None
    how: str

    @property
    def lacking(self) -> int:
        """Number of sentences that are lacking; 0 where that is not known."""
        return 0 if self.available is None else max(self.needs.in_all - self.available, 0)


@dataclass(frozen=True)
class StudyPlan:
    """Plan of a study, before anything costs time.

    Attributes:
        stages: in their order.
        numbers: what the design comes to.
        supply: of natural sentences; None in a study that needs none.
        admissible: (model that rejects, model that accepts, natural sentences that pairs of these
            may be made of), of the scores; empty where there are none yet.
        tests: what the tests of the analysis can show, in sentences; empty without groups.
        cautions: what could fail or disappoint, in sentences.
    """

    stages: tuple[StagePlan, ...]
    numbers: StudyNumbers
    supply: SentenceSupply | None
    admissible: tuple[tuple[str, str, int], ...]
    tests: str
    cautions: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """About how long a run takes, stages of which nothing is known left out."""
        return sum(stage.seconds or 0.0 for stage in self.stages)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The stages of whose time nothing is known."""
        return tuple(stage.stage for stage in self.stages if stage.seconds is None)

    def to_frame(self) -> DataFrame:
        """The stages as a table of pandas: stage, state, what, because, seconds, basis."""
        return frame_of(columns_of(StagePlan, self.stages))


def plan_study(study: Study, *, measure: bool = True, reporter: Reporter = SILENT) -> StudyPlan:
    """Say what a run of a study would do, whether it can work, and how long it takes here.

    Of each model that is there, the speed of scoring is measured for a moment. Nothing is written.

    Args:
        study: as `read_study` reads it, which refuses what cannot work at all.
        measure: whether speeds are measured.
        reporter: told how far the measurement is.

    Raises:
        InputError: a file of the study cannot be read.
    """
    states = stage_states(study)
    with chdir(study.folder):
        stages = stages_of(study)
        numbers = numbers_of(study)
        supply = _supply(study, numbers)
        undone = [row.stage for row in states if row.state != "done"]
        speeds: dict[str, ScoringSpeed] = {}
        cautions: list[str] = []
        if measure and {"scores", "trial-scores"} & {*undone}:
            speeds, cautions = measured_speeds(study, reporter)
        plans = []
        for stage, row in zip(stages, states, strict=True):
            time = Time(0.0, "done")
            if row.stage in undone:
                n_natural = None if supply is None else supply.available
                time = stage_time(stage, study, numbers, n_natural, speeds)
            what = _phrase(stage, study, numbers, supply)
            plans.append(
                StagePlan(row.stage, row.state, what, row.because, time.seconds, time.basis)
            )
        admissible = () if "pairs" not in undone else _admissible(study)
        tests, limits = _tests(study, numbers)
        cautions = [
            *_candidates(study, numbers),
            *_word_caps(study, numbers),
            *_supply_cautions(supply),
            *_rival_cautions(study, admissible),
            *limits,
            *cautions,
        ]
    return StudyPlan(
        tuple(plans), numbers, supply, admissible, tests, tuple(dict.fromkeys(cautions))
    )


def _phrase(
    stage: StudyStage, study: Study, numbers: StudyNumbers, supply: SentenceSupply | None
) -> str:
    """Description of a stage in a phrase, with its numbers."""
    sections, pairs = study.sections, numbers.model_pairs
    under = f"under {counted(numbers.models, 'model')}"
    each = f"for each of {counted(pairs, 'pair')} of models"
    available = None if supply is None or supply.how == "at most" else supply.available
    sentences = (
        "the natural sentences" if available is None else counted(available, "natural sentence")
    )
    phrases = {
        "scores": f"score {sentences} {under}",
        "trial-scores": f"score the sentences of the trials {under}",
        "pairs": f"select {counted(numbers.natural_pairs, 'natural pair')}",
        "selection": f"select {numbers.selected:,} of {counted(numbers.searched, 'triplet')}",
        "design": (
            f"share {counted(numbers.trials, 'trial')} out to {counted(numbers.groups, 'group')}"
        ),
    }
    if stage.name == "triplets":
        return f"search for {counted(sections['triplets'].per_pair, 'triplet')} {each}"
    power = StudyFiles(study).section("power", PowerSettings)
    if stage.name == "power" and power is not None:
        return (
            f"simulate {counted(power.simulations, 'experiment')} {each.partition(' of ')[0]} model"
        )
    return phrases.get(stage.name, stage.about)


def _supply(study: Study, numbers: StudyNumbers) -> SentenceSupply | None:
    needs, natural = numbers.needs, StudyFiles(study).natural
    if needs is None:
        return None
    if natural is not None and natural.exists():
        return SentenceSupply(needs, len(set(read_stimuli(natural))), "counted")
    return SentenceSupply(needs, most_sentences(study), "at most")


def _supply_cautions(supply: SentenceSupply | None) -> Iterator[str]:
    if supply is not None and supply.lacking:
        about = "there are" if supply.how == "counted" else "at most"
        yield (
            f"The study needs {supply.needs.in_all:,} natural sentences, each of which serves "
            f"once, and {about} {supply.available or 0:,}: give {supply.lacking:,} more, loosen "
            f"[sentences] or enlarge [vocabulary], or ask for less."
        )


def _admissible(study: Study) -> tuple[tuple[str, str, int], ...]:
    """Number of natural sentences that models tell apart, by who rejects and who accepts them."""
    names = [model.name for model in study.models]
    pairs = StudyFiles(study).section("pairs", PairSettings)
    if pairs is None or len(names) < 2 or not SCORES.is_file():
        return ()
    scores = ScoreTable.read(SCORES)
    if not {*names} <= {*scores.models}:
        return ()
    log_probs = np.stack([scores.column(name) for name in names], axis=1)
    table = ScoreTable(None, tuple(names), log_probs)
    (whole,) = strata(table, NaturalQuestion(agreeing=pairs.agreeing))
    numbers = whole.admissible()
    sources = permutations(names, 2)
    return tuple((*pair, n) for pair, n in zip(sources, numbers.tolist(), strict=True))


def _rival_cautions(study: Study, admissible: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Models too much alike for as many natural pairs as are asked for."""
    pairs = StudyFiles(study).section("pairs", PairSettings)
    for reject, accept, number in admissible:
        if pairs is not None and pairs.counts is None and number < pairs.per_pair:
            yield (
                f"[pairs] {reject} and {accept} are much alike: about {number:,} natural sentences "
                f"are below the median of {reject} and at or above that of {accept}, and "
                f"{counted(pairs.per_pair, 'pair')} need as many. Give more sentences, ask for "
                f"fewer pairs, or compare other models."
            )


def _candidates(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Caution where too few triplets are searched for what is to be selected of them."""
    selection = StudyFiles(study).section("selection", SelectionSettings)
    if selection is None or not numbers.searched:
        return
    searched, selected = numbers.searched_each, selection.per_pair
    if searched >= _FEWEST_CANDIDATES * selected:
        return
    text = (
        f"{selected} triplets of each pair of models are selected from {searched}, and some "
        "searches find nothing"
    )
    if selection.quantiles:
        text += (
            f": {searched / selection.quantiles:.1f} candidates or fewer fall into each of "
            f"{selection.quantiles} quantiles, of which {selected // selection.quantiles} are taken"
        )
    if searched == selected:
        text += "; if a single one is missing, there is no selection"
    yield (
        f"{text}. Usual are {_USUAL_CANDIDATES} searched for each that is selected, as in the 2023 "
        f"study; search for {_FEWEST_CANDIDATES * selected} or more."
    )


def _word_caps(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Cautions where a cap on words leaves too little room for all sentences."""
    section = study.sections.get("triplets")
    selection = study.sections.get("selection")
    files = StudyFiles(study)
    given = (files.vocabulary, files.natural)
    if any(path is None or not path.is_file() for path in given):
        return
    words, a_sentence = words_under_cap(study, *filter(None, given))
    caps = [("triplets", getattr(section, "word_cap", None), numbers.searched)]
    caps.append(("selection", getattr(selection, "word_cap", None), numbers.selected))
    for name, cap, triplets in caps:
        if cap is None:
            continue
        needed, room = 3 * triplets * a_sentence, cap * words
        if needed > room:
            least = ceil(needed / words)
            yield (
                f"[{name}] word_cap: {counted(triplets, 'triplet')} have {3 * triplets:,} "
                f"sentences of {a_sentence:.1f} words that count, on average, and "
                f"{counted(words, 'word')} of the vocabulary may each stand in {cap}: that "
                f"is room for {room:,} words, and {needed:,.0f} are needed. Raise word_cap to "
                f"{least} at the very least, or ask for fewer triplets."
            )
        elif 3 * needed > room:
            yield (
                f"[{name}] word_cap: the sentences would use {needed / room:.0%} of all room that "
                f"the cap leaves the vocabulary. Searches for the last triplets will find worse "
                f"words, or none: raise word_cap, or ask for fewer triplets."
            )


def _tests(study: Study, numbers: StudyNumbers) -> tuple[str, list[str]]:
    """Findings that the tests of the analysis can show; and cautions about them."""
    files, groups = StudyFiles(study), numbers.groups
    settings = files.section("analysis", AnalysisSettings) or AnalysisSettings()
    cautions: list[str] = []
    power = files.section("power", PowerSettings)
    if power is not None and power.smallest_effect != settings.smallest_effect:
        cautions.append(
            f"[power] takes {power.smallest_effect:g} for the smallest difference that matters, "
            f"[analysis] {settings.smallest_effect:g}: state one in both."
        )
    responses = files.section("responses", ResponsesSection)
    planned = files.planned_participants
    if responses is not None and planned is not None and responses.simulate is not None:
        simulated = responses.participants or planned
        if simulated != planned:
            cautions.append(
                f"[power] plans {planned:,} participants, and the preregistration says so, "
                f"[responses] simulates {simulated:,}: leave out the participants of [responses] "
                "to simulate as many as are planned."
            )
    if not groups or numbers.models < 2:
        return "", cautions
    names = [model.name for model in study.models]
    contrasts = every_contrast(names)
    if settings.contrasts is not None:
        contrasts = read_contrasts(settings.contrasts, names)
    if settings.units == "participants":
        return (
            f"{counted(len(contrasts), 'test')} compare participants: how many are needed says "
            f"`contstim design --power`, or a section [power]. {THESE_ITEMS}"
        ), cautions
    family = detectability([groups] * len(contrasts), settings.fdr, settings.correction)
    if settings.units == "crossed" or (settings.units == "auto" and family.needed is None):
        why = "" if settings.units == "crossed" else f" {crossed_instead(groups)}"
        return (
            f"{counted(len(contrasts), 'crossed test')}: how many people and items are needed says "
            f"`contstim design --power`, or a section [power].{why}"
        ), cautions
    tests = f"{counted(family.tests, 'test')} of {counted(groups, 'group')}"
    if limits := family.caution("groups", settings.fdr):
        if family.needed is None:
            cautions.append(limits)
        return f"{tests}. {limits}", cautions
    return (
        f"{tests}. A single one can be significant: the smallest p-value that it can have is "
        f"{family.smallest:.3g}, and the tests share a false-discovery rate of {settings.fdr:g}."
    ), cautions
