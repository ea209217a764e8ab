"""The whole analysis of an experiment: from trials, responses and scores to results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from contstim.errors import InputError
from contstim.experiments.analysis import agreement as agreements
from contstim.experiments.analysis.crossed import BOTH
from contstim.experiments.analysis.effects import Sampling, compare, suited_units
from contstim.experiments.analysis.families import (
    CEILING,
    THESE_ITEMS,
    every_contrast,
    family_cautions,
)
from contstim.experiments.analysis.measures import measures_of, require_measure
from contstim.experiments.analysis.ratings import Scope, gather, scopes_of
from contstim.experiments.analysis.regression import regressions
from contstim.experiments.analysis.trivial_rivals import TrivialRivals, by_paradigm, judge_rivals
from contstim.experiments.responses.admission import admit
from contstim.files.tables import ShownAsTable
from contstim.items.stimuli import CONTROVERSIAL, Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pandas import DataFrame

    from contstim.experiments.analysis.effects import Result
    from contstim.experiments.analysis.families import ModelContrast
    from contstim.experiments.analysis.measures import Measure
    from contstim.experiments.analysis.ratings import Ratings
    from contstim.experiments.analysis.tables import Row
    from contstim.experiments.responses.admission import Admission
    from contstim.experiments.responses.exclusions import Exclusions
    from contstim.experiments.responses.table import Response, ResponseOrigin
    from contstim.files.arrays import FloatArray
    from contstim.items.scores import ScoreTable
    from contstim.items.stimuli import Trial


@dataclass(frozen=True, eq=False)
class Analysis(ShownAsTable):
    """Everything that an experiment says about its models; conditions it lacks are left out.

    Rows are those of the tables of the same names.

    Attributes:
        admission: who takes part, who does not, and why.
        ratings: what the participants answered, and the models' log-probabilities.
        scores: of all sentences.
        sampling: how uncertainty was measured.
        results: both measures in every scope.
        pairs: rival models on their own trials.
        agreement: for each condition, how often two models prefer the same sentence.
        dominance: for each controversial condition, how often people side with the row's model.
        roles: synthetic against natural sentences, by who accepts and who rejects.
        unanimity: on how many trials nearly everybody agrees.
        unanimous: the share of people on one side that this takes.
        orientations: for each controversial condition, how many trials there are, and how many of
            them have models in roles that the scores contradict.
        failures: where each model fails worst.
        regressions: how choices follow each model's log-probability ratios.
        rivals: the trivial rivals, and each model against each of them; see `judge_rivals`.
        rivals_left_out: what is left out of these, in sentences.
        paradigms: people, models and the grammar on minimal pairs; see `by_paradigm`.
        primary: the primary outcome, if one was named: a measure of all trials together.
    """

    admission: Admission
    ratings: Ratings
    scores: ScoreTable
    sampling: Sampling
    results: tuple[Result, ...]
    pairs: list[Row]
    agreement: dict[Condition, FloatArray]
    dominance: dict[Condition, FloatArray]
    roles: list[Row]
    unanimity: list[Row]
    unanimous: float
    orientations: dict[Condition, tuple[int, int]]
    failures: list[Row]
    regressions: list[Row]
    rivals: tuple[Result, ...] = ()
    rivals_left_out: tuple[str, ...] = ()
    paradigms: list[Row] = field(default_factory=list)
    primary: Measure | None = None

    @property
    def main(self) -> Result:
        """The primary outcome; if none was named, the last measure of all trials together."""
        return self.result(Scope.OVERALL, self.primary or measures_of(self.ratings.scale)[-1])

    @property
    def origin(self) -> ResponseOrigin:
        """Numbers of people and of artificial participants among those who take part."""
        return self.admission.origin

    @property
    def cautions(self) -> tuple[str, ...]:
        """Limits of results and tests: too few units, people or items, or answers without any."""
        units, rate = str(self.sampling.units), self.sampling.false_discovery_rate
        families = [(result.scope, result.detectability) for result in self.results]
        items = [THESE_ITEMS] if units == "participants" else []
        # Where intervals and tests speak of less than people and items: why → in which scopes
        limits: dict[str, list[str]] = {}
        for result in self.results:
            for interval in result.intervals:
                if interval.population != BOTH:
                    limits.setdefault(interval.note, []).append(str(result.scope))
        return (
            *filter(None, [self.admission.partial_note]),
            *_empty_answers(self.ratings),
            *family_cautions(families, units, rate),
            *items,
            *(f"{', '.join(dict.fromkeys(scopes))}: {note}." for note, scopes in limits.items()),
            *self.rivals_left_out,
        )

    def to_frame(self, name: str = "models") -> DataFrame:
        """One of the tables of `write_analysis`, such as models, comparisons or participants.

        Raises:
            InputError: there is no table of this name; says which there are.
        """
        from contstim.experiments.analysis.tables import named_frame, result_tables

        return named_frame(result_tables(self), name, "an analysis")

    def rivals_of(self, result: Result) -> Result | None:
        """The trivial rivals beside a result, if any says something there."""
        about = (result.scope, result.measure)
        return next((r for r in self.rivals if (r.scope, r.measure) == about), None)

    def result(self, scope: Scope, measure: Measure) -> Result:
        """One measure in one scope.

        Raises:
            InputError: the design has no such trials, or its scale no such measure.
        """
        for result in self.results:
            if (result.scope, result.measure) == (scope, measure):
                return result
        require_measure(measure, self.ratings.scale)
        raise InputError(f"This design has no trials for {scope}.")


def analyze(
    trials: Iterable[Trial],
    responses: Iterable[Response],
    scores: ScoreTable,
    *,
    contrasts: Sequence[ModelContrast] | None = None,
    exclusions: Exclusions | None = None,
    sampling: Sampling | None = None,
    unanimous: float = 0.9,
    worst: int = 5,
    rivals: TrivialRivals | None = None,
    primary: Measure | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Analysis:
    """Analysis of which model people agree with, by the methods of Golan et al. (2023).

    Args:
        trials: what was compared; see `read_trials`.
        responses: what people answered; see `read_responses`.
        scores: log-probabilities of the trials' sentences under every model, nats.
        contrasts: the family of tests; by default all pairs of models, and each model against the
            lower noise ceiling.
        exclusions: who is left out, and whether unfinished sessions count where they can.
        sampling: units of the tests, intervals, correction; by default tests compare groups where
            these are enough and saw different items, and else take people and items as random.
        unanimous: the share of people on one side that counts as near-unanimity.
        worst: how many trials to list for each model and scope.
        rivals: to set beside the models; see `trivial_rivals`.
        primary: the measure that is the primary outcome, of all trials together.
        progress: told how many of how many steps are done.

    Raises:
        InputError: responses, trials and scores do not fit together, or nobody is left.
    """
    if CEILING in scores.models:
        raise InputError(f"{CEILING!r} is the noise ceiling and cannot name a model; rename it.")
    trials = tuple(trials)
    admission = admit(trials, tuple(responses), exclusions=exclusions)
    ratings = gather(trials, admission.responses, scores)
    if primary is not None:
        require_measure(primary, ratings.scale)
    everybody = ratings
    if admission.partial:
        answers = admission.responses + admission.partial
        everybody = gather(trials, answers, scores, partial=True)
    sampling = sampling or Sampling()
    contrasts = contrasts or every_contrast(ratings.models)
    if sampling.units is None:
        sampling = replace(sampling, units=suited_units(ratings, contrasts, sampling))
    # What a design lacks is left out, not empty: conditions without trials, models without rivals.
    present = {trial.condition for trial in ratings.trials}
    if present == {Condition.CATCH}:
        raise InputError(
            "There are no trials but catch trials, which say nothing of models; analyse a design "
            "with others."
        )
    rival = [condition for condition in CONTROVERSIAL if condition in present]
    measures, rivals = measures_of(ratings.scale), rivals or TrivialRivals({})
    results = _results(ratings, contrasts, sampling, progress)
    return Analysis(
        admission,
        ratings,
        scores,
        sampling,
        results,
        [row for c in rival for m in measures for row in agreements.pair_results(ratings, c, m)],
        {c: agreements.model_agreement(ratings, c) for c in Condition if c in present},
        {c: agreements.dominance(ratings, c) for c in rival},
        agreements.role_preferences(ratings),
        agreements.near_unanimity(ratings, unanimous),
        unanimous,
        agreements.orientations(ratings),
        [
            row
            for scope in Scope
            if scope is not Scope.OVERALL
            for row in agreements.failures(ratings, scope, worst=worst)
        ],
        [*regressions(everybody, sampling.level)],
        tuple(filter(None, (judge_rivals(ratings, r, rivals, sampling) for r in results))),
        rivals.left_out,
        by_paradigm(ratings, sampling),
        primary,
    )


def _results(
    ratings: Ratings,
    contrasts: Sequence[ModelContrast],
    sampling: Sampling,
    progress: Callable[[int, int], None],
) -> tuple[Result, ...]:
    measures = measures_of(ratings.scale)
    steps = [(scope, measure) for scope in scopes_of(ratings) for measure in measures]
    results = []
    for done, (scope, measure) in enumerate(steps):
        progress(done, len(steps))
        results.append(compare(ratings, scope, measure, contrasts, sampling))
    progress(len(steps), len(steps))
    return tuple(results)


def _empty_answers(ratings: Ratings) -> Iterator[str]:
    """Ratings and models that prefer nothing, so that results say nothing of them."""
    given = np.unique(np.concatenate([group.ratings.ravel() for group in ratings.groups]))
    if len(given) == 1 and not ratings.missing:
        yield (
            f"Every rating is {given[0]:g}: results say on which side sentences stood, not what "
            "people prefer."
        )
    for row, model in enumerate(ratings.models):
        if not any(group.ratios[row].any() for group in ratings.groups):
            yield (
                f"{model} gives both sentences of every trial the same log-probability: its "
                "accuracy is one half, and a signed-rank cosine 0, whatever people answer."
            )
