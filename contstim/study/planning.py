"""Plan of a run: work of its stages, possible causes of failure, statistical tests, durations.

Numbers of items follow from the study file, and numbers of natural sentences from the texts
(`amounts`). Durations follow from earlier runs and from the speed of each model (`times`). A
triplet is a natural sentence and two synthetic sentences.
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
    CORRECTIONS,
    THESE_ITEMS,
    crossed_instead,
    detectability,
    every_contrast,
    read_contrasts,
)
from contstim.experiments.design.waves import simulate_sizes
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
from contstim.steps.waves import DesignWaves
from contstim.store.times import times_beside
from contstim.study.amounts import StudyNumbers, count_missing, natural_supply, shortages
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

_MAX_SECONDS, _MAX_READING = 40.0, 20.0  # limits for a whole plan and for reading texts, seconds
_MIN_CANDIDATES = 2  # recommended minimum number of searched triplets for each selected triplet


@dataclass(frozen=True)
class StagePlan:
    """Plan of one stage of a run.

    Attributes:
        state: see `contstim.study.states.State`.
        what: work of the stage, a phrase with numbers of items.
        because: why the stage is stale or interrupted.
        shortest: estimated minimum duration, seconds; None if unknown.
        longest: estimated maximum duration, seconds; at most twice `shortest` if measured.
        basis: source of the estimate: `done`, `measured`, `usual` (usual duration of such stages),
            `last run` or `unknown`.
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
        supply: natural sentences that exist, or that the rules of [sentences] will find in the
            text; None if unknown.
        admissible: for each ordered pair of models, a row (reject model, accept model, number). The
            number counts natural sentences that the reject model rejects and the accept model
            accepts; natural pairs can use these sentences. Empty if scores are missing or stale, or
            if natural pairs are already selected.
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
        """Estimated minimum duration of a run, seconds, not counting stages of unknown duration."""
        return sum(stage.shortest or 0.0 for stage in self.stages)

    @property
    def longest(self) -> float:
        """Estimated maximum duration of a run, seconds, not counting stages of unknown duration."""
        return sum(stage.longest or 0.0 for stage in self.stages)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the stages of unknown duration."""
        return tuple(stage.stage for stage in self.stages if stage.basis == "unknown")

    @property
    def missing_sentences(self) -> int:
        """Number of natural sentences that the study lacks; 0 if this number is unknown."""
        return count_missing(self.numbers, self.supply)

    def to_frame(self) -> DataFrame:
        """Return a data frame of the stages; its columns are the fields of `StagePlan`."""
        return frame_of(columns_of(StagePlan, self.stages))


def plan_study(study: Study, *, measure: bool = True, reporter: Reporter = SILENT) -> StudyPlan:
    """Plan a run of a study: its work, its feasibility, and its duration on this machine.

    Training, scoring and searching are measured briefly, unless an earlier plan or run measured
    them. The measured times are stored next to the study's scores; nothing else is written.

    Args:
        study: study from `read_study`.
        measure: whether to measure speeds, which takes a minute at most.
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
            supply = natural_supply(study, states, reporter, began + _MAX_READING)
        except ContstimError as error:
            cautions.append(f"sentences: {error}")
        n_natural = None if supply is None else supply.number
        measured = times_beside(STORE)
        estimates = TimeEstimates(study, numbers, n_natural, measured)
        if measure and estimates.needs_measurement(states):
            seconds = began + _MAX_SECONDS - monotonic()
            cautions += measure_study(study, supply, measured, seconds, reporter)
        amounts, plans = _amounts(study, numbers), []
        for state, time in zip(states, estimates.of_stages(states), strict=True):
            amount = amounts.get(type(state.stage.step), "")
            work = f"{state.stage.about}: {amount}" if amount else state.stage.about
            plans.append(StagePlan(state.stage.name, state.state, work, state.because, *time))
        # Ignore scores that a stage will compute again, because the new scores may differ
        has_scores = SelectPairs in undone and study.files.get("scores") not in unwritten
        admissible = _admissible(study) if has_scores else ()
        cautions = [
            *_candidates(study, numbers),
            *([] if undone & {MakeVocabulary, FindSentences} else _word_caps(study, numbers)),
            *shortages(numbers, supply),
            *_rivals(study, admissible),
            *_contradictions(study),
            *_hopeless_tests(study, numbers),
            *_contexts(study, measured),
            *_unjudged(study),
            *cautions,
        ]
        tests = _tests(study, numbers)
    unique_cautions = tuple(dict.fromkeys(cautions))
    return StudyPlan(tuple(plans), numbers, supply, admissible, tests, unique_cautions)


def _contexts(study: Study, measured: Times) -> Iterator[str]:
    """Warn about models for which another context makes sentences much more likely.

    A context is a text that a model reads before a sentence.
    """
    for model in study.models:
        facts = measured.contexts.get(model.specification)
        if facts and (caution := context_caution(model.specification, **facts)):
            yield f"{model.name}: {caution}"


def _unjudged(study: Study) -> Iterator[str]:
    """Recommend a judge if a study of two models searches triplets without a judge.

    A judge is a language model that chooses sensible sentences.
    """
    for step in study.steps(SearchTriplets):
        if step.settings.nats and not step.settings.judge and len(study.models) == 2:
            yield (
                "triplets: without a judge, many synthetic sentences make no sense. Name a small "
                "pretrained model at the top of the file, such as "
                'judge = { model = "hf:gpt2", context = "It says:" }.'
            )


def _amounts(study: Study, numbers: StudyNumbers) -> dict[type[Step[Any]], str]:
    power = study.step(SimulatePower)
    return {
        SelectPairs: f"{numbers.natural_pairs:,}",
        SearchTriplets: f"{numbers.searched_each:,} for each pair of models",
        SelectTriplets: f"{numbers.selected:,} of {numbers.searched:,}",
        MakeDesign: f"{numbers.trials:,}, {quantity(numbers.groups, 'group')}",
        SimulatePower: f"{power.simulations:,} times for each model" if power else "",
    }


def _admissible(study: Study) -> tuple[tuple[str, str, int], ...]:
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
    """Warn about pairs of models with too few sentences for the requested natural pairs.

    For `admissible`, see `StudyPlan`.
    """
    step = study.step(SelectPairs)
    if step is None or step.counts is not None:
        return
    n_pairs = step.settings.per_pair
    below = "" if step.settings.agreeing else "below the median of {} and "
    for reject, accept, number in admissible:
        if number < n_pairs:
            yield (
                f"[select.natural] {reject} and {accept} are too similar: about {number:,} "
                f"natural sentences have scores {below.format(reject)}at or above the median of "
                f"{accept}, but {quantity(n_pairs, 'pair')} need {n_pairs:,}. Give more sentences, "
                "request fewer pairs, or compare other models."
            )


def _candidates(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Warn if the number of triplets to search is close to the number of triplets to select."""
    selection = study.step(SelectTriplets)
    if selection is None or selection.counts is not None or not numbers.searched:
        return
    searched, selected = numbers.searched_each, selection.settings.per_pair
    if searched < _MIN_CANDIDATES * selected:
        only = "; if one triplet is not found, the selection fails" if searched == selected else ""
        yield (
            f"{selected} triplets of each pair of models are selected from {searched}{only}. The "
            "2023 study searched 10 triplets for each selected triplet. Set per_pair in [triplets] "
            f"to {_MIN_CANDIDATES * selected} or more."
        )


def _word_caps(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Warn if the vocabulary is too small for the cap on occurrences of a word."""
    search, selection = study.step(SearchTriplets), study.step(SelectTriplets)
    cap = selection.settings.word_cap if selection else None
    if search is None or selection is None or search.vocabulary is None or cap is None:
        return
    if not (search.vocabulary.is_file() and search.sentences.is_file()):
        return
    uncapped = uncapped_words(selection.uncapped, cap)
    table = tag_table(search.settings.tags)

    def lemmas(words: Iterable[str]) -> list[str]:
        return [table.lemma(word) for word in map(str.lower, words) if word not in uncapped]

    words = {*lemmas(Vocabulary.load(search.vocabulary).words)}
    counting = [len(lemmas(sentence.words)) for sentence in read_stimuli(search.sentences)]
    a_sentence = sum(counting) / max(len(counting), 1)
    needed, room = 3 * numbers.selected * a_sentence, cap * len(words)
    if 3 * needed > room:
        yield (
            f"[select.triplets] word_cap: {3 * numbers.selected:,} sentences contain about "
            f"{needed:,.0f} capped words. This is {needed / max(room, 1):.0%} of the maximum "
            f"({room:,} for {quantity(len(words), 'word')}), so the selection may fail. Raise "
            f"word_cap to {ceil(3 * needed / max(len(words), 1))}, or select fewer triplets."
        )


def _contradictions(study: Study) -> Iterator[str]:
    """Warn about numbers that two sections of a study state differently."""
    power, simulation = study.step(SimulatePower), study.step(SimulateResponses)
    settings, planned = _analysis(study), study.planned_participants
    if power is not None and power.smallest_effect != settings.smallest_effect:
        yield (
            f"smallest_effect is {power.smallest_effect:g} in [power], but "
            f"{settings.smallest_effect:g} in [analyze]: set the same value in both."
        )
    simulated = simulation and simulation.participants
    if planned and simulated and simulated != planned:
        yield (
            f"[power] and the preregistration have {planned:,} participants, but [simulate] has "
            f"{simulated:,}: remove participants from [simulate] to use the planned number."
        )


def _analysis(study: Study) -> AnalyzeResponses | type[AnalyzeResponses]:
    return study.step(AnalyzeResponses) or AnalyzeResponses  # the class has the defaults


def contrasts_of(study: Study) -> Sequence[ModelContrast]:
    """Return the contrasts that the analysis tests.

    These are the contrasts in the analysis's table, or all contrasts if there is no table. A
    contrast compares two models, or a model and the noise ceiling.

    Raises:
        InputError: if the table cannot be read.
    """
    stated, names = _analysis(study).contrasts, study.names
    return every_contrast(names) if stated is None else read_contrasts(stated, names)


def over_groups(study: Study, groups: int) -> Detectability:
    """Return the effects that tests over groups can detect with this number of groups."""
    settings, contrasts = _analysis(study), contrasts_of(study)
    return detectability([groups] * len(contrasts), settings.fdr, settings.correction)


def _hopeless_tests(study: Study, numbers: StudyNumbers) -> Iterator[str]:
    """Warn if the analysis requests tests over groups, but no such test can be significant."""
    settings = _analysis(study)
    if numbers.groups and numbers.models > 1 and settings.units == "groups":
        family = over_groups(study, numbers.groups)
        if family.hopeless:
            yield family.caution("groups", settings.fdr)


def _expected_waves(step: DesignWaves, n_models: int) -> str:
    """Return sentences about the expected numbers of participants, items and hours."""
    people, items, decided = simulate_sizes(step.rules, n_models, seed=step.seed)
    trials = step.rules.trials_per_person + step.catch_per_group
    sizes = np.ceil(np.percentile([people, items], (50, 80), axis=1))
    texts = [
        f"{n_people:,.0f} participants, {n_people * trials * step.seconds_per_trial / 3600:,.1f} "
        f"hours of participants' time, and {n_items:,.0f} triplets"
        for n_people, n_items in sizes
    ]
    return (
        f"Until a verdict, waves need about {texts[0]} for the pair of models that needs the most. "
        f"One of five studies needs at least {texts[1]}. In simulations with models and items like "
        f"those of Golan et al. (2023), {decided.mean():.0%} of the studies have a verdict after "
        f"at most {step.rules.max_people:,} participants."
    )


def _tests(study: Study, numbers: StudyNumbers) -> str:
    groups, settings = numbers.groups, _analysis(study)
    if (waves := study.step(DesignWaves)) and numbers.models > 1:
        return _expected_waves(waves, numbers.models)
    if not groups or numbers.models < 2:
        return ""
    family = over_groups(study, groups)
    needed = "a section [power] shows how many participants are needed."
    subject = "Each measure on each kind of trials has"
    if settings.units == "participants":
        return f"{subject} {quantity(family.tests, 'test')} of participants: {needed} {THESE_ITEMS}"
    if settings.units == "crossed" or (settings.units == "auto" and family.hopeless):
        why = "" if settings.units == "crossed" else f" {crossed_instead(groups)}"
        tests = quantity(family.tests, "crossed test")
        return f"{subject} {tests} of participants and items: {needed}{why}"
    rate = CORRECTIONS[settings.correction].partition(" (")[0]
    limits = family.caution("groups", settings.fdr) or (
        "Each test can be significant even if no other test is: its smallest possible p-value is "
        f"{family.smallest:.3g}, and the {rate} of all tests is {settings.fdr:g}."
    )
    return f"{subject} {quantity(family.tests, 'test')} of {quantity(groups, 'group')}. {limits}"
